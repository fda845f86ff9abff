//===- lib/infer/sizes/DimRounds.cpp - when rules are applied ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The outputs of a graph, and the rounds of rules over its nodes.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/DimRules.h"

#include "lib/graph/FileWalk.h"
#include "lib/infer/graph/Topology.h"
#include "lib/program/Program.h"
#include "lib/support/InternalError.h"

#include "llvm/ADT/Sequence.h"

using namespace llvm;

namespace graft {

DimAnalysis::DimAnalysis(const Graph &G, ArrayRef<NodeId> Order,
                         DimOptions Options)
    : G(G), Options(std::move(Options)) {
  // Outputs: by the op where it has a fixed number, else by the node, else as
  // many as are used.
  std::vector<int> Fixed(G.numOps(), -1);
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    if (const OpDef *Def = G.opDefOf(Op);
        Def && all_of(Def->outputs(), [](const ArgDef &A) {
          return !*A.NumberAttr && !*A.TypeListAttr;
        }))
      Fixed[Op] = Def->NumOutputs;
  FirstOutput.assign(G.size() + 1, 0);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    unsigned Count = 0;
    if (Fixed[G.node(N).Op] >= 0) {
      Count = Fixed[G.node(N).Op];
    } else if (auto Declared = G.numOutputs(N)) {
      Count = *Declared;
    } else {
      Count = 1;
      G.forEachUse(N, [&](Use U) {
        Endpoint E = G.input(U.User, U.Index);
        if (!E.isControl())
          Count = std::max(Count, E.Port + 1);
      });
    }
    FirstOutput[N + 1] = Count;
  }
  for (NodeId N = 0; N < G.size(); ++N)
    FirstOutput[N + 1] += FirstOutput[N];
  // Sizes are taken to be the same in every iteration of a loop. Where that
  // turns out to be wrong, all starts again without it: what was concluded
  // cannot be taken back.
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  DimRules::VariantDims Variant;
  // Each turn finds one more axis of a loop variable.
  TurnLimit Limit("sizes that change in a loop",
                  16 + 256 * uint64_t(totalOutputs()));
  for (;;) {
    ZeroConsts.assign(G.size(), false);
    Shapes.assign(totalOutputs(), {});
    Values.assign(totalOutputs(), {});
    DimRules Rules(*this, Order, Loops.get());
    Rules.setVariant(Variant);
    Rules.run();
    if (!Loops || !Rules.findVariant(Variant))
      break;
    Limit.turn([&] { return G.name(Variant.begin()->first).str(); });
    Dims = DimTable();
    Pool.clear();
    Conflicts.clear();
  }
  finish();
}

DimRules::DimRules(DimAnalysis &A, ArrayRef<NodeId> Order,
                   const LoopInfo *Loops)
    : A(A), G(A.G), Order(Order), Loops(Loops) {
  Ops.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    StringRef Name = G.opNameOf(Op);
    Ops.push_back(
        {rulesOf(Name), isBackEdgeOp(Name), Def ? Def->update() : UpdateDef()});
  }
  HasMesh = any_of(seq(0u, G.numOps()),
                   [&](uint32_t Op) { return G.opNameOf(Op) == MeshOp; });
  for (auto [E, Axis] : A.Options.Suppose)
    Supposed[E.Node].push_back({E.Port, Axis});
  FirstMade.resize(G.size());
  Due.resize(G.size());
  Makers.push_back({NoNode, 0});
  One = A.Dims.make(1);
}

void DimRules::run() {
  walkAttrs(G, Order, [&](NodeId Node) { visit(Node); });
  FirstRound = false;
  // One or two rounds settle ordinary graphs. Each tells more of a size: that
  // it is the same on all replicas, its number or symbol, or another that it
  // is. Conflicts are those of a whole round.
  TurnLimit Limit("sizes", 16 + 4 * uint64_t(A.Dims.size()));
  for (unsigned Round = 1;; ++Round) {
    bool Whole = Round > 4 || !A.Conflicts.empty();
    std::vector<DimId> Changed = A.Dims.takeChanged();
    std::vector<bool> Moved = A.Dims.takeMoved();
    if (Changed.empty() && Moved.empty() && !(Loops && is_contained(Due, true)))
      break;
    Limit.turn([&] {
      markDue(Changed, Moved);
      auto It = find_if(Order, [&](NodeId Node) { return Due[Node]; });
      return It == Order.end() ? std::string() : G.name(*It).str();
    });
    // (Nodes that are gone are in no order, and would be due for ever.)
    if (Whole)
      for (NodeId Node : Order)
        Due[Node] = true;
    else
      markDue(Changed, Moved);
    A.Conflicts.clear();
    for (NodeId Node : Order)
      if (Due[Node]) {
        Due[Node] = false;
        visit(Node);
      }
  }
}

void DimRules::markUsers(NodeId Node) {
  G.forEachUse(Node, [&](Use U) { Due[U.User] = true; });
}

/// Marks the nodes that a change of \p Changed, or of the rows \p Moved, may
/// tell something.
void DimRules::markDue(ArrayRef<DimId> Changed,
                       const std::vector<bool> &Moved) {
  std::vector<bool> IsChanged(A.Dims.size());
  for (DimId D : Changed)
    IsChanged[A.Dims.find(D)] = true;
  std::vector<uint32_t> Before = A.countInPool([&](DimId D) {
    return IsChanged[A.Dims.find(D)] || A.Dims.counts(D, Moved);
  });
  auto Holds = [&](DimRun R) {
    return Before[R.First + R.Count] != Before[R.First];
  };
  for (NodeId Node : Order) {
    if (Ops[G.node(Node).Op].Rules.ComparesSizes)
      Due[Node] = true;
    for (uint32_t O = A.FirstOutput[Node]; O < A.FirstOutput[Node + 1]; ++O)
      if (Holds(A.Shapes[O]) || Holds(A.Values[O])) {
        Due[Node] = true;
        markUsers(Node);
        break;
      }
  }
}

void DimRules::visit(NodeId Node) {
  N = Node;
  Inputs = G.dataInputs(N);
  Moved = false;
  A.Dims.beginNode();
  if (FirstRound)
    FirstMade[N] = static_cast<DimId>(A.Dims.size());
  const OpRule &Op = Ops[G.node(N).Op];
  const UpdateDef &U = Op.Update;
  if (U.Kind != UpdateKind::None && U.Grad > 0 && U.Indices < 0 &&
      U.Kind != UpdateKind::StridedSliceAssign && numData() > unsigned(U.Grad))
    if (Dims Var = in(0), Value = in(U.Grad); Var && Value)
      sameShapes(*Var, *Value);
  if (A.numOutputs(N) == 0)
    return;
  if (Loops && Loops->isLoopMerge(N))
    loopMerge();
  else
    shapeRule(Op.Rules.Shape);
  valueRule(Op.Rules.Values);
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
    if (!A.Shapes[A.outputIndex({N, Port})].Known) {
      hintFromAttr();
      break;
    }
  sameRows(Op.Rules);
  if (!Supposed.empty())
    if (auto It = Supposed.find(N); It != Supposed.end())
      for (auto [Port, Axis] : It->second)
        if (Dims X = A.shape({N, Port}); X && Axis < X->size())
          splitRows((*X)[Axis], 0x7000 + Port, {N, Port}, /*Own=*/false);
  // In the first round the users are still to come, but for those in a loop.
  if (Moved && (!FirstRound || Op.IsBackEdge))
    markUsers(N);
}

} // namespace graft
