//===- passes/RefineCopies.cpp - refine-copies ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Copies spread forward from the batch and from mirrored variables, which is
// always right and sometimes more than is needed. This pass moves equal values
// to where they are used:
//
//   - a value that is true on every replica and that only once-ops read is
//     computed once (what is saved, the norm of a reduced gradient that is
//     printed, the clipping before the update of a shared variable);
//   - a small constant that only replicas read exists per replica;
//   - a barrier between nodes of replicas exists per replica.
//
//     r = ReadVariableOp*(w)          r = ReadVariableOp(w/pick)
//     SaveV2(.., r)              →    SaveV2(.., r)
//
// Relies on: replication types; all reductions are in place.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

using namespace llvm;

namespace graft {
namespace {

constexpr PassOption Options[] = {
    {"constant-bytes", "Largest constant that is copied", "1024"},
};

class RefineCopies final : public PassBase<RefineCopies> {
public:
  static constexpr PassInfo Info = {
      "refine-copies", "Compute equal values where they are used",
      "Makes nodes once whose value is equal on all replicas and is read only\n"
      "by nodes that exist once, and small constants and barriers per-replica\n"
      "that only replicas use.",
      Options};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool computesOnce(NodeId N) const;
  bool onlyReplicasUse(NodeId N, bool Data) const;

  Graph *G = nullptr;
  const ProgramFacts *Facts = nullptr;
};

/// Whether a per-replica node may as well run once: pure, of true inputs, and
/// read by nothing per-replica.
bool RefineCopies::computesOnce(NodeId N) const {
  const OpDef *Def = G->opDef(N);
  bool Reads = Def && Def->readsVariable();
  bool Exchange = combinesReplicas(*G, N);
  if ((!Def && !Exchange && !G->isOp(N, "_Scale")) ||
      (Def && Def->isStateful() && !Reads) || Facts->Vars.isUpdate(*G, N) ||
      Facts->Dims.numOutputs(N) == 0)
    return false;
  for (unsigned Port = 0; Port < Facts->Dims.numOutputs(N); ++Port)
    if (!Facts->Types.type({N, Port}).isTrue() ||
        Facts->Vars.variableOf({N, Port}) != NoNode)
      return false;
  for (Endpoint E : G->dataInputs(N))
    if (!Exchange && G->node(E.Node).Count == Copies::PerReplica &&
        !Facts->Types.type(E).isTrue())
      return false;
  bool Result = true;
  G->forEachUse(N, [&](Use U) {
    Result &= U.Index >= G->node(U.User).NumData ||
              G->node(U.User).Count == Copies::Once;
  });
  return Result;
}

/// Whether \p N has users, all of its \p Data (or control) users are
/// per-replica, and it has no others. An initial value stays one tensor: who
/// feeds it, as Variable.load does, reaches every copy.
bool RefineCopies::onlyReplicasUse(NodeId N, bool Data) const {
  bool Any = false, All = true;
  G->forEachUse(N, [&](Use U) {
    bool IsData = U.Index < G->node(U.User).NumData;
    Any |= IsData == Data;
    if (IsData || !Data)
      All &= G->node(U.User).Count == Copies::PerReplica && IsData == Data &&
             !Facts->Vars.isUpdate(*G, U.User) &&
             !(G->node(U.User).Flags & NF_ElidePrimary);
  });
  return Any && All;
}

PassResult RefineCopies::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  if (readMesh(*G).Node == NoNode)
    return PassResult::Unchanged;
  Expected<unsigned> Limit = unsignedOption("constant-bytes");
  if (!Limit) {
    Diags.error("", toString(Limit.takeError()));
    return PassResult::Failure;
  }
  Facts = &programFacts(M);
  bool Changed = false;
  auto Set = [&](NodeId N, Copies Count) {
    G->node(N).Count = Count;
    G->markModified();
    Changed = true;
    ++Statistics[Count == Copies::Once ? "computed once" : "copied"];
  };
  for (size_t I = Facts->Order.size(); I-- > 0;) {
    NodeId N = Facts->Order[I];
    if (G->node(N).Count == Copies::PerReplica) {
      if (computesOnce(N))
        Set(N, Copies::Once);
      continue;
    }
    bool SmallConst = G->isOp(N, "Const") && G->node(N).AttrSize <= *Limit;
    if (SmallConst && G->node(N).Kind == Inserted::No &&
        onlyReplicasUse(N, true))
      Set(N, Copies::PerReplica);
    else if (G->isOp(N, "NoOp") && onlyReplicasUse(N, false) &&
             any_of(G->inputs(N), [&](Endpoint E) {
               return G->node(E.Node).Count == Copies::PerReplica;
             }))
      Set(N, Copies::PerReplica);
  }
  // Only values that are true everywhere moved: their types are the same.
  keepFacts(M);
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(RefineCopies)

} // namespace graft
