//===- lib/infer/sizes/RaggedRows.cpp - data-dependent rows -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/RaggedRows.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

/// The depth, in ops, up to which two conditions are compared.
static constexpr unsigned MaxDepth = 6;

/// Returns true if the value of \p E may differ between two reads, because a
/// variable may be written between them.
static bool changes(const Graph &G, Endpoint E) {
  const OpDef *Def = G.opDef(E.Node);
  return isVariableOp(G.opName(E.Node)) ||
         (Def && any_of(Def->outputs(), [](const ArgDef &A) {
            return A.IsRef || A.Type == DT_RESOURCE;
          }));
}

/// Returns true if the value of \p N depends only on the op and the operands.
static bool isFunction(const Graph &G, NodeId N) {
  const OpDef *Def = G.opDef(N);
  return Def && !Def->isStateful() && G.opName(N) != op::Merge &&
         none_of(G.dataInputs(N), [&](Endpoint E) { return changes(G, E); });
}

/// Returns the tensor of which \p E is a reshape or an Identity; else \p E.
static Endpoint withoutShape(const Graph &G, Endpoint E) {
  for (;;) {
    bool Keeps = StringSwitch<bool>(G.opName(E.Node))
                     .Cases(op::Reshape, op::ExpandDims, op::Squeeze, true)
                     .Cases(op::Identity, op::StopGradient, true)
                     .Default(false);
    if (!Keeps || changes(G, G.input(E.Node, 0)))
      return E;
    E = G.input(E.Node, 0);
  }
}

static bool isIgnored(StringRef Key) {
  return Key.starts_with("_graft_") || Key == "_class" ||
         Key == "_output_shapes";
}

static bool sameAttrs(const Graph &G, NodeId X, NodeId Y) {
  auto Covers = [&](NodeId A, NodeId B) {
    return all_of(G.attrs(A), [&](const AttrEntry &E) {
      return isIgnored(E.Key) || G.attr(B, E.Key) == E.Value;
    });
  };
  return Covers(X, Y) && Covers(Y, X);
}

static uint64_t hashOf(const Graph &G, Endpoint E, unsigned Depth) {
  uint64_t Hash = hash_combine(G.opName(E.Node), E.Port);
  if (Depth == 0 || !isFunction(G, E.Node) || G.node(E.Node).NumData > 4)
    return Hash;
  for (Endpoint In : G.dataInputs(E.Node))
    Hash = hash_combine(Hash, hashOf(G, In, Depth - 1));
  return Hash;
}

/// Returns true if \p X and \p Y have the same value in every run.
static bool isSameValue(const Graph &G, Endpoint X, Endpoint Y,
                        unsigned Depth) {
  if (X.Node == Y.Node)
    return X.Port == Y.Port;
  if (Depth == 0 || X.Port != Y.Port ||
      G.node(X.Node).Op != G.node(Y.Node).Op ||
      G.node(X.Node).Count != G.node(Y.Node).Count ||
      G.node(X.Node).NumData != G.node(Y.Node).NumData ||
      G.node(X.Node).NumData > 4 || !isFunction(G, X.Node) ||
      !isFunction(G, Y.Node) || !sameAttrs(G, X.Node, Y.Node))
    return false;
  for (unsigned I = 0; I < G.node(X.Node).NumData; ++I)
    if (!isSameValue(G, G.input(X.Node, I), G.input(Y.Node, I), Depth - 1))
      return false;
  return true;
}

NodeId RaggedRows::firstLike(const Graph &G, NodeId N, unsigned By) {
  auto [It, New] = Like.try_emplace(N, N);
  if (!New)
    return It->second;
  Endpoint Counted = withoutShape(G, G.input(N, By));
  // Limits the cost: isSameValue() compares at most four operands a level, and
  // only the first few inputs with the same hash are compared.
  constexpr size_t MaxAlike = 8;
  auto &Alike = First[hashOf(G, Counted, 3)];
  for (NodeId Other : Alike)
    if (G.node(Other).Op == G.node(N).Op &&
        isSameValue(G, withoutShape(G, G.input(Other, By)), Counted, MaxDepth))
      return Like[N] = Other;
  if (Alike.size() < MaxAlike)
    Alike.push_back(N);
  return N;
}

bool mayBeNone(const Graph &G, const DimAnalysis &Dims, DimId Rows) {
  while (Dims.table().isRagged(Rows)) {
    NodeId By = Dims.counterOf(Dims.table().sym(Rows)->Ragged);
    if (!G.isOp(By, op::SparseFillEmptyRows))
      return true;
    auto Shape = Dims.value(G.input(By, 2));
    if (!Shape || Shape->empty())
      return true;
    Rows = Shape->front();
  }
  return false;
}

bool dividesByNone(const Graph &G, const DimAnalysis &Dims, NodeId N) {
  if (!Dims.table().hasRagged())
    return false;
  bool Divides = StringSwitch<bool>(G.opName(N))
                     .Cases(op::FloorDiv, op::TruncateDiv, true)
                     .Cases(op::FloorMod, op::TruncateMod, op::Mod, true)
                     .Default(false);
  auto Divisors = Divides ? Dims.value(G.input(N, 1)) : std::nullopt;
  return Divisors &&
         any_of(*Divisors, [&](DimId D) { return mayBeNone(G, Dims, D); });
}

} // namespace graft
