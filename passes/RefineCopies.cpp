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

#include "lib/graph/PerOp.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Loops.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"

using namespace llvm;

namespace graft {
namespace {

struct RefineCopiesOptions : PassOptions {
  Option<unsigned> ConstantBytes{*this, "constant-bytes",
                                 "Largest constant that is copied", 1024};
};

class RefineCopies final : public PassBase<RefineCopies, RefineCopiesOptions> {
public:
  static constexpr PassInfo Info = {
      "refine-copies", "Compute equal values where they are used",
      "Makes nodes unreplicated whose value is equal on all replicas and is\n"
      "read only by unreplicated nodes, and makes small constants and "
      "barriers\n"
      "per-replica that only per-replica nodes use."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  /// What is asked of an op.
  enum Role : uint8_t {
    Other,
    Pure, ///< Has no effect but its outputs.
    Const,
    NoOp,
  };
  static Role roleOf(StringRef Op, const OpDef *Def);

  bool computesOnce(NodeId N) const;
  bool onlyReplicasUse(NodeId N, bool Data) const;

  Graph *G = nullptr;
  const ProgramFacts *Facts = nullptr;
  const PerOp *Roles = nullptr;
  uint64_t *ComputedOnce = nullptr, *Copied = nullptr;
};

RefineCopies::Role RefineCopies::roleOf(StringRef Op, const OpDef *Def) {
  if (Op == op::Const)
    return Const;
  if (Op == op::NoOp)
    return NoOp;
  bool IsPure = Def ? (!Def->isStateful() || Def->readsVariable()) &&
                          Def->update().Kind == UpdateKind::None
                    : Op == ScaleOp;
  return IsPure ? Pure : Other;
}

/// Whether a per-replica node may as well run once: pure, of true inputs, and
/// read by nothing per-replica.
bool RefineCopies::computesOnce(NodeId N) const {
  // Most nodes have a per-replica user, so that is asked before the types.
  if (G->anyUse(N,
                [&](Use U) { return G->isData(U) && G->isPerReplica(U.User); }))
    return false;
  bool Exchange = combinesReplicas(*G, N);
  if ((!Exchange && (*Roles)[G->node(N)] == Other) ||
      Facts->Dims.numOutputs(N) == 0)
    return false;
  for (unsigned Port = 0; Port < Facts->Dims.numOutputs(N); ++Port)
    if (!Facts->Types.type({N, Port}).isTrue() ||
        Facts->Vars.variableOf({N, Port}) != NoNode)
      return false;
  // A replica's proxy is for that replica.
  auto IsProxy = [&](NodeId Of) { return G->node(Of).Kind == Inserted::Proxy; };
  if (IsProxy(N) ||
      any_of(G->dataInputs(N), [&](Endpoint E) { return IsProxy(E.Node); }))
    return false;
  for (Endpoint E : G->dataInputs(N))
    if (!Exchange && G->isPerReplica(E.Node) && !Facts->Types.type(E).isTrue())
      return false;
  // The copies that a rule asked for are read as the variable is.
  return !Facts->Types.usesState(N);
}

/// Whether \p N has users, all of its \p Data (or control) users are
/// per-replica, and it has no others. An initial value stays one tensor: who
/// feeds it, as Variable.load does, reaches every copy.
bool RefineCopies::onlyReplicasUse(NodeId N, bool Data) const {
  bool Any = false;
  bool Other = G->anyUse(N, [&](Use U) {
    bool IsData = G->isData(U);
    Any |= IsData == Data;
    return (IsData || !Data) && (!G->isPerReplica(U.User) || IsData != Data ||
                                 Facts->Vars.isUpdate(*G, U.User) ||
                                 G->node(U.User).Flags & NF_ElidePrimary);
  });
  return Any && !Other;
}

PassResult RefineCopies::run(Module &M, DiagnosticEngine &) {
  G = &M.graph();
  if (readMesh(*G).Node == NoNode)
    return PassResult::Unchanged;
  Facts = &programFacts(M);
  // A loop exists once or per replica as a whole.
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(*G, Facts->Order);
  PerOp Table(*G, roleOf);
  Roles = &Table;
  bool Changed = false;
  auto Set = [&](NodeId N, Copies Count) {
    G->node(N).Count = Count;
    G->markModified();
    Changed = true;
    if (Count == Copies::Once)
      count(ComputedOnce, "computed once");
    else
      count(Copied, "copied");
  };
  for (size_t I = Facts->Order.size(); I-- > 0;) {
    NodeId N = Facts->Order[I];
    if (Loops && Loops->isInLoop(N))
      continue;
    if (G->isPerReplica(N)) {
      if (computesOnce(N))
        Set(N, Copies::Once);
      continue;
    }
    uint8_t Role = Table[G->node(N)];
    if (Role == Const && G->node(N).AttrSize <= Options.ConstantBytes &&
        G->node(N).Kind == Inserted::No && onlyReplicasUse(N, true))
      Set(N, Copies::PerReplica);
    else if (Role == NoOp && onlyReplicasUse(N, false) &&
             any_of(G->inputs(N),
                    [&](Endpoint E) { return G->isPerReplica(E.Node); }))
      Set(N, Copies::PerReplica);
  }
  // Only values that are true everywhere moved: their types are the same.
  keepFacts(M);
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(RefineCopies)

} // namespace graft
