//===- lib/rewrite/Reductions.cpp - variables of a reduction ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Reductions.h"

#include "lib/graph/PerOp.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/DenseSet.h"

using namespace llvm;

namespace graft {

StringRef specName(Synchronizer::SpecType Spec) {
  return Spec == Synchronizer::Nccl   ? "nccl"
         : Spec == Synchronizer::Ring ? "ring"
                                      : "auto";
}

/// The maximum number of nodes that are visited from one reduction. Few ops lie
/// between a gradient and its update, and the limit keeps the cost linear.
static constexpr size_t MaxSteps = 256;

static bool haveOneShape(const DimAnalysis &Dims, Endpoint A, Endpoint B) {
  auto X = Dims.shape(A), Y = Dims.shape(B);
  return X && Y && X->size() == Y->size() && all_of(zip(*X, *Y), [&](auto Two) {
           auto [S, T] = Two;
           return Dims.table().find(S) == Dims.table().find(T) ||
                  (Dims.table().number(S) != UnknownSize &&
                   Dims.table().number(S) == Dims.table().number(T));
         });
}

/// Returns true if \p N only moves its elements, such as the Reshape of a sum
/// over broadcast axes to the shape of the variable.
static bool keepsElements(const Graph &G, NodeId N) {
  StringRef Op = G.opName(N);
  return Op == op::Reshape || Op == op::Squeeze || Op == op::Transpose;
}

ReductionUse useOfReduction(const Graph &G, const ProgramFacts &Facts,
                            Endpoint Reduced) {
  ReductionUse Result;
  DenseSet<NodeId> Seen;
  SmallVector<Endpoint, 8> Work{Reduced};
  auto Follow = [&](Endpoint From, Use U) {
    NodeId N = U.User;
    if (U.Index >= G.node(N).NumData || G.input(N, U.Index) != From)
      return;
    if (Facts.Vars.isUpdate(G, N)) {
      NodeId Var = Facts.Vars.variableOf(G.input(N, 0));
      if (Var != NoNode && U.Index >= Facts.Vars.update(G, N).NumVars &&
          haveOneShape(Facts.Dims, {Var, 0}, From) &&
          !is_contained(Result.Variables, Var))
        Result.Variables.push_back(Var);
      return;
    }
    if (!Seen.insert(N).second || Seen.size() > MaxSteps)
      return;
    for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
      if (haveOneShape(Facts.Dims, {N, Port}, From) ||
          (U.Index == 0 && keepsElements(G, N)))
        Work.push_back({N, Port});
  };
  while (!Work.empty()) {
    Endpoint E = Work.pop_back_val();
    G.forEachUse(E.Node, [&](Use U) { Follow(E, U); });
  }
  sort(Result.Variables,
       [&](NodeId A, NodeId B) { return G.name(A) < G.name(B); });
  bool Differ = false;
  for (NodeId Var : Result.Variables)
    if (auto Sync = synchronizerOf(G, Var)) {
      Differ |= Result.Sync && *Result.Sync != *Sync;
      Result.Sync = Sync;
    }
  if (Differ)
    Result.Sync.reset();
  return Result;
}

bool anySynchronizer(const Graph &G,
                     function_ref<bool(NodeId, const Synchronizer &)> Is) {
  PerOp IsVariable(
      G, [](StringRef Op, const OpDef *) { return isVariableOp(Op); });
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (!IsVariable[This] || This.isDead() || !(This.Flags & NF_MayHaveGraft))
      continue;
    if (auto Sync = synchronizerOf(G, N); Sync && Is(N, *Sync))
      return true;
  }
  return false;
}

} // namespace graft
