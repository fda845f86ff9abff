//===- lib/rewrite/FedSizes.cpp - sizes of the batch that are fed ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/FedSizes.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/rewrite/Assertions.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;

namespace graft {

bool leadsToSize(const Graph &G, NodeId N, bool OfDraws) {
  DenseSet<NodeId> Seen;
  bool IsSize = false;
  walkFrom({N}, Seen, [&](NodeId At, std::vector<NodeId> &Next) {
    G.forEachUse(At, [&](Use U) {
      if (IsSize || G.input(U.User, U.Index).isControl())
        return;
      const OpRule &Rule = ruleOf(G.opName(U.User));
      IsSize |= isOperand(Rule.SizeOperands, U.Index) &&
                (OfDraws || !(Rule.Is & trait::DrawsRows));
      if (Rule.Values)
        Next.push_back(U.User);
    });
  });
  return IsSize;
}

std::vector<NodeId> fedSizes(const Graph &G) {
  std::vector<bool> IsFeed;
  for (uint32_t Op : seq(0u, G.numOps()))
    IsFeed.push_back(G.opNameOf(Op).starts_with(op::Placeholder));
  std::vector<NodeId> Found;
  for (NodeId N = 0; N < G.size(); ++N)
    if (const Node &This = G.node(N); !This.isDead() && IsFeed[This.Op])
      if (unsigned Type = G.outputType(N, 0);
          (Type == DT_INT32 || Type == DT_INT64) && leadsToSize(G, N))
        Found.push_back(N);
  return Found;
}

/// Finds nodes that compute a batch size from constants, as \p Dims infers. An
/// example is the product of a static shape, as in boolean_mask. No constant
/// holds the size, so no constant can be divided.
static std::vector<NodeId> computedSizes(const Graph &G,
                                         const DimAnalysis &Dims) {
  std::vector<NodeId> Found;
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.isDead() || This.Count != Copies::Once ||
        This.Kind != Inserted::No || This.NumData == 0 ||
        !Dims.isSymbolic({N, 0}) || Dims.numOutputs(N) != 1)
      continue;
    auto Value = Dims.value({N, 0});
    auto Size = Value && Value->size() == 1 ? Dims.table().sym(Value->front())
                                            : std::nullopt;
    if (Size && Size->isLocal() && Size->globalPower() == 1 &&
        Size->Ragged == 0 && Dims.table().isOfSplit(*Size) &&
        all_of(G.dataInputs(N), [&](Endpoint E) {
          auto Of = Dims.value(E);
          return Of && all_of(*Of, [&](DimId D) {
                   return Dims.table().number(D) != UnknownSize &&
                          !Dims.table().hasSym(D);
                 });
        }))
      Found.push_back(N);
  }
  return Found;
}

/// Adds the share of \p Feed and redirects the readers that use \p Feed as a
/// size.
NodeId FedSizes::insert(NodeId Feed) {
  AttrRun Attrs;
  Attrs.type("T", G.outputType(Feed, 0)).integer(PowerAttr, -1);
  auto Uses = G.uses(Feed);
  NodeId N =
      G.insertNode((G.name(Feed) + "/share").str(), ScaleOp, Endpoint{Feed, 0},
                   Feed, Attrs, Inserted::Scale, Copies::PerReplica);
  for (Use U : Uses) {
    if (G.input(U.User, U.Index).isControl())
      continue;
    const OpRule &Rule = ruleOf(G.opName(U.User));
    if (isOperand(Rule.SizeOperands, U.Index) ||
        (Rule.Values && leadsToSize(G, U.User)))
      G.setInput(U.User, U.Index, {N, 0});
  }
  return N;
}

void FedSizes::undo(NodeId Share) {
  Endpoint Feed = G.input(Share, 0);
  for (Use U : G.uses(Share))
    G.setInput(U.User, U.Index, Feed);
  G.remove(Share);
}

void FedSizes::check(ArrayRef<NodeId> Shares, unsigned Replicas) {
  for (NodeId Share : Shares) {
    NodeId Feed = G.input(Share, 0).Node, Last = Feed;
    if (!G.opName(Feed).starts_with(op::Placeholder))
      continue;
    std::string Prefix = G.name(Share).str();
    unsigned Type = G.outputType(Feed, 0);
    auto Insert = [&](StringRef Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
                      const AttrRun &Attrs) {
      Last = G.insertNode(Prefix + Suffix.str(), Op, Inputs, Last, Attrs,
                          Inserted::Check,
                          Inputs.empty() ? Copies::Once : Copies::PerReplica);
      return Endpoint{Last, 0};
    };
    auto Constant = [&](StringRef Suffix, StringRef Value) {
      AttrRun Attrs;
      Attrs.type("dtype", Type).raw("value", Value);
      return Insert(Suffix, op::Const, {}, Attrs);
    };
    AttrRun OfNumbers;
    OfNumbers.type("T", Type);
    Endpoint Number =
        Constant("/replicas", encodeIntTensor(Type, {}, int64_t(Replicas)));
    Endpoint Zero = Constant("/none", encodeIntTensor(Type, {}, int64_t(0)));
    Endpoint Rest =
        Insert("/rest", op::FloorMod, {{Feed, 0}, Number}, OfNumbers);
    Endpoint Fits = Insert("/fits", op::Equal, {Rest, Zero}, OfNumbers);
    NodeId Gate = insertAssertion(
        G, Prefix + "/gate", Fits,
        ("'" + G.name(Feed) +
         "' is the number of rows of all replicas: feed a multiple of " +
         Twine(Replicas))
            .str());
    G.addControlInput(Share, Gate);
  }
}

std::vector<NodeId> FedSizes::share(std::unique_ptr<DimAnalysis> &Dims,
                                    const DimOptions &Options,
                                    DiagnosticEngine &Diags) {
  std::vector<NodeId> Shares;
  auto Analyze = [&] {
    return std::make_unique<DimAnalysis>(G, topologicalOrder(G), Options);
  };
  for (NodeId Feed : Dims->fedRows())
    Shares.push_back(insert(Feed));
  std::vector<NodeId> Known = Dims->fedRows();
  if (!Shares.empty())
    Dims = Analyze();
  constexpr size_t MaxSupposed = 8;
  size_t Supposed = 0;
  for (NodeId Feed : Fed) {
    auto Shape = Dims->shape({Feed, 0});
    if (is_contained(Known, Feed) || !Shape || !Shape->empty() ||
        !leadsToSize(G, Feed, /*OfDraws=*/false) || Supposed++ == MaxSupposed)
      continue;
    NodeId Share = insert(Feed);
    auto Now = Analyze();
    auto Value = Now->value({Share, 0});
    auto Size = Value && Now->table().hasSym(Value->front())
                    ? Now->table().sym(Value->front())
                    : std::nullopt;
    if (Size && Size->B == 1 && Size->R == 0 && Size->Ragged == 0 &&
        Now->table().isOfSplit(*Size) &&
        Now->conflicts().size() <= Dims->conflicts().size()) {
      Shares.push_back(Share);
      Dims = std::move(Now);
    } else {
      undo(Share);
    }
  }
  for (auto [I, Share] : enumerate(Shares)) {
    bool IsSupposed = I >= Known.size();
    Diags
        .remark(
            "fed-size", G.name(G.input(Share, 0).Node),
            IsSupposed
                ? "is assumed to be the number of fed rows, since sizes are "
                  "computed from it; a step in which the two differ fails"
                : "is the number of fed rows, since sizes are computed from "
                  "it")
        .shown(IsSupposed);
  }
  std::vector<NodeId> Computed = computedSizes(G, *Dims);
  for (NodeId N : Computed) {
    Diags.remark("constant", G.name(N),
                 "is computed from the static batch size, and each replica "
                 "reads its share of the value");
    Shares.push_back(insert(N));
  }
  if (!Computed.empty())
    Dims = Analyze();
  return Shares;
}

} // namespace graft
