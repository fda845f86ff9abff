//===- passes/RefineCopies.cpp - refine-copies ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// At first every node that depends on the batch or a mirrored variable is
// per-replica. This is always correct but sometimes unnecessary. This pass
// moves the computation of equal values to their users:
//
//   - A per-replica value that is the global one and that only unreplicated ops
//     read is computed once. Examples are a saved variable, the printed norm of
//     a reduced gradient, and clipping before the update of a shared variable.
//   - A small constant that only replicas read becomes per-replica, and so
//     does a small value that depends on such constants.
//   - A barrier between per-replica nodes becomes per-replica.
//
//     r = ReadVariableOp*(w)          r = ReadVariableOp(w/pick)
//     SaveV2(.., r)              →    SaveV2(.., r)
//
// Relies on: replication types; the reductions of insert-reductions.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/PerOp.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Loops.h"
#include "lib/io/Module.h"
#include "lib/ops/OpRule.h"
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
      "read only by unreplicated nodes. Small constants, small values that\n"
      "depend only on constants, and barriers become per-replica if only\n"
      "per-replica nodes use them."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  /// The role of an op.
  enum Role : uint8_t {
    Other,
    Pure,  ///< Has no effect but its outputs.
    Value, ///< Pure, and its outputs follow from its inputs.
    Const,
    NoOp,
  };
  static Role roleOf(StringRef Op, const OpDef *Def);

  bool computesOnce(NodeId N) const;
  bool isSmall(NodeId N) const;
  std::vector<bool> findConstant(const LoopInfo *Loops) const;
  bool onlyReplicasUse(NodeId N, bool Data) const;
  bool onlyReplicasTake(NodeId N) const;

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
  if (!IsPure)
    return Other;
  // Switch and Merge are excluded since replicas may run different branches,
  // and a PlaceholderWithDefault since a fed tensor stays unreplicated.
  bool Follows =
      Def && !Def->isStateful() && ruleOf(Op).Type &&
      (traitsOf(Op) &
       (trait::Draws | trait::DrawsRows | trait::Once | trait::Handle)) == 0 &&
      Op != op::Switch && Op != op::Merge && Op != op::PlaceholderWithDefault;
  return Follows ? Value : Pure;
}

/// Returns true if the per-replica node \p N can run once: it is pure, has
/// global inputs and outputs, and no per-replica node reads it.
bool RefineCopies::computesOnce(NodeId N) const {
  // Most nodes have a per-replica user, so check this before the types.
  if (G->anyUse(N,
                [&](Use U) { return G->isData(U) && G->isPerReplica(U.User); }))
    return false;
  bool Exchange = combinesReplicas(*G, N);
  if ((!Exchange && (*Roles)[G->node(N)] == Other) ||
      Facts->Dims.numOutputs(N) == 0)
    return false;
  // An empty list has the shape of one replica's elements.
  auto IsGlobal = [&](Endpoint E) {
    ReplicationType Type = Facts->Types.type(E);
    return Type.isTrue() && !Type.isNothing();
  };
  for (unsigned Port = 0; Port < Facts->Dims.numOutputs(N); ++Port)
    if (!IsGlobal({N, Port}) || Facts->Vars.variableOf({N, Port}) != NoNode)
      return false;
  // Each replica reads its own proxy.
  auto IsProxy = [&](NodeId Of) { return G->node(Of).Kind == Inserted::Proxy; };
  if (IsProxy(N) ||
      any_of(G->dataInputs(N), [&](Endpoint E) { return IsProxy(E.Node); }))
    return false;
  for (Endpoint E : G->dataInputs(N))
    if (!Exchange && G->isPerReplica(E.Node) && !IsGlobal(E))
      return false;
  // A node under a non-default policy keeps the copies that the policy asks
  // for.
  return !Facts->Types.usesState(N);
}

/// If \p Data is true, returns true if only per-replica nodes read \p N.
/// Otherwise returns true if only per-replica nodes wait for \p N and no node
/// reads it. An initial value stays unreplicated, so that a feed of it
/// (Variable.load) reaches every copy.
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

/// Returns true if per-replica nodes read \p N, and no other node reads it or
/// waits for it.
bool RefineCopies::onlyReplicasTake(NodeId N) const {
  bool Any = false;
  bool Other = G->anyUse(N, [&](Use U) {
    Any |= G->isData(U);
    return !G->isPerReplica(U.User) || Facts->Vars.isUpdate(*G, U.User) ||
           G->node(U.User).Flags & NF_ElidePrimary;
  });
  return Any && !Other;
}

/// Returns true if \p N has outputs and each is small enough to be copied, like
/// a constant.
bool RefineCopies::isSmall(NodeId N) const {
  unsigned NumOutputs = Facts->Dims.numOutputs(N);
  for (unsigned Port = 0; Port < NumOutputs; ++Port) {
    auto Elements = staticElements(Facts->Dims, {N, Port});
    if (!Elements || *Elements > *Options.ConstantBytes / 8 ||
        !Facts->Dims.isPlain({N, Port}) ||
        !Facts->Types.type({N, Port}).isTrue())
      return false;
  }
  return NumOutputs != 0;
}

/// Finds the unreplicated nodes with small values that depend only on
/// constants.
std::vector<bool> RefineCopies::findConstant(const LoopInfo *Loops) const {
  std::vector<bool> Result(G->size());
  for (NodeId N : Facts->Order) {
    const Node &This = G->node(N);
    if (This.Count != Copies::Once)
      continue;
    uint8_t Role = (*Roles)[This];
    Result[N] =
        Role == Const ||
        (Role == Value && This.NumData != 0 && This.Kind == Inserted::No &&
         !(Loops && Loops->isInLoop(N)) &&
         all_of(G->dataInputs(N), [&](Endpoint E) { return Result[E.Node]; }) &&
         isSmall(N));
  }
  return Result;
}

PassResult RefineCopies::run(Module &M, DiagnosticEngine &) {
  G = &M.graph();
  if (readMesh(*G).Node == NoNode)
    return PassResult::Unchanged;
  Facts = &programFacts(M);
  // A loop is unreplicated or per-replica as a whole.
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(*G, Facts->Order);
  PerOp Table(*G, roleOf);
  Roles = &Table;
  std::vector<bool> IsConstant = findConstant(Loops.get());
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
    else if (Role == Value && IsConstant[N] && onlyReplicasTake(N))
      Set(N, Copies::PerReplica);
    else if (Role == NoOp && onlyReplicasUse(N, false) &&
             any_of(G->inputs(N),
                    [&](Endpoint E) { return G->isPerReplica(E.Node); }))
      Set(N, Copies::PerReplica);
  }
  // Only nodes with global values changed, so all types stay the same.
  keepFacts(M);
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(RefineCopies)

} // namespace graft
