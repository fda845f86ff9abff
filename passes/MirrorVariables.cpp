//===- passes/MirrorVariables.cpp - mirror-variables ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Gives every replica its own copy of the variables that replicas use. The
// variable becomes a per-replica node, and so do its readers and writers:
//
//     w = VarHandleOp()                    w = VarHandleOp*()
//     w/Assign = AssignVariableOp(w, i) →  init = Identity*(i)
//                                          w/Assign = AssignVariableOp*(w, ..)
//     y = MatMul*(x/split, read)           read = ReadVariableOp*(w)
//
// The initial value is unreplicated, so that copies start equal even if it is
// random. Copy 0 reads it directly, the other copies through an Identity on
// their device. Writers (restore, assignments) reach every copy because they
// are per-replica too. Copy 0 of a writer waits for all other copies, so a run
// of the writer's name writes all copies.
//
// A scalar variable (a counter, a learning rate) stays unreplicated if replicas
// only read it. It gets copies if a rule names it, or if replicas read it so
// often that sending the reads costs more than writing copies: Adam reads beta
// powers once for each trained variable.
//
// Sync-on-read variables get copies too, which each replica writes for itself
// (lib/infer/types/VariableStates.cpp). A declared sync-on-read variable that
// no replica writes, such as a metric of the learning rate, stays unreplicated.
// Copies of replicated variables are called `<v>/<i>` and read the initial
// value directly.
//
// Relies on: policies (assign-strategy), per-replica nodes (replicate).
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/batch/SpreadCopies.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/rewrite/Merges.h"
#include "lib/rewrite/Slots.h"
#include "lib/rewrite/VariableRules.h"
#include "passes/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class MirrorVariables final
    : public PassBase<MirrorVariables, MirrorVariablesOptions> {
public:
  static constexpr PassInfo Info = {
      "mirror-variables", "One copy of a variable per replica",
      "Makes the variables with policy `mirrored` that replicas use, and "
      "those\n"
      "with policy `sync-on-read` or `replicated`, their readers and their\n"
      "writers per-replica."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool replicasUse(NodeId Var) const;
  void readReferences(NodeId Var);
  void askPrimary(NodeId Var);
  bool checkCopyNames(NodeId Var, DiagnosticEngine &Diags) const;
  void nameCopies(NodeId Var);
  void mirrorInitialValue(NodeId Var);
  bool stepWrites(NodeId Var) const;
  std::vector<NodeId> spreadVariables(std::vector<NodeId> &Rest) const;
  bool mirror(NodeId Var, DiagnosticEngine &Diags);
  template <typename Fn> void forEachUse(NodeId Var, Fn F) const {
    Vars->forEachUse(*G, Var, F);
  }

  Graph *G = nullptr;
  const VariableIndex *Vars = nullptr;
  DenseSet<NodeId> Named; ///< Variables that a rule names.
  unsigned Replicas = 0;
  bool SpreadsScalars = false;
  /// The number of reads up to which a scalar gets no copies: graft sends each
  /// read to the replicas instead.
  static constexpr unsigned FewReads = 2;
  uint64_t *Mirrored = nullptr;
};

bool MirrorVariables::replicasUse(NodeId Var) const {
  Policy Plan = G->node(Var).Plan;
  if (Plan == Policy::Replicated || Named.contains(Var))
    return true;
  bool Result = false, IsRead = false;
  unsigned NumReads = 0, NumWrites = 0;
  forEachUse(Var, [&](Use U) {
    if (Plan == Policy::SyncOnRead && !Result)
      Result = Vars->isUpdate(*G, U.User) && isInStep(*G, *Vars, U.User);
    if (Result)
      return;
    if (G->isPerReplica(U.User) && Vars->usesInPlace(*G, U.User, U.Index)) {
      Result = true;
    } else if (Vars->isUpdate(*G, U.User)) {
      ++NumWrites;
      Result = any_of(G->dataInputs(U.User),
                      [&](Endpoint E) { return G->isPerReplica(E.Node); });
    } else if (G->isPerReplica(U.User) || G->anyUse(U.User, [&](Use Reader) {
                 return G->isData(Reader) && G->isPerReplica(Reader.User);
               })) {
      // The user, or a reader of its result, is per-replica.
      IsRead = true;
      ++NumReads;
    }
  });
  if (Result || !IsRead)
    return Result;
  // A read is sent to each replica, and a write to each copy. If there are more
  // reads than writes, copies cost less.
  if (NumReads > std::max(FewReads, NumWrites) && SpreadsScalars)
    return true;
  auto Shape = G->shapeAttr(Var, "shape");
  return !Shape || Shape->UnknownRank || !Shape->Dims.empty();
}

/// Checks that the names of copies of a replicated variable are free: other
/// tools look for these names.
bool MirrorVariables::checkCopyNames(NodeId Var,
                                     DiagnosticEngine &Diags) const {
  if (G->node(Var).Plan != Policy::Replicated)
    return true;
  for (unsigned I = 0; I < Replicas; ++I)
    if (NodeId Copy = G->find((G->name(Var) + "/" + Twine(I)).str());
        Copy != NoNode) {
      Diags.error(G->name(Copy), "has the name that a copy of variable '" +
                                     G->name(Var).str() +
                                     "' must have: rename this node");
      return false;
    }
  return true;
}

void MirrorVariables::nameCopies(NodeId Var) {
  StringRef Name = G->name(Var);
  auto Length = static_cast<uint32_t>(Name.size());
  G->node(Var).NameSplit = Length;
  forEachUse(Var, [&](Use U) {
    StringRef User = G->name(U.User);
    if (User.size() > Length && User[Length] == '/' && User.starts_with(Name)) {
      G->node(U.User).NameSplit = Length;
      if (G->node(Var).Plan == Policy::Replicated)
        G->node(U.User).Plan = Policy::Replicated;
    }
    if (Vars->isUpdate(*G, U.User))
      G->node(U.User).Flags |= NF_Led;
  });
}

/// Makes each copy read the unreplicated initial value through an Identity on
/// its device.
void MirrorVariables::mirrorInitialValue(NodeId Var) {
  NodeId Assign = Vars->initialAssign(*G, Var);
  if (Assign == NoNode || G->node(Var).Plan == Policy::Replicated ||
      G->isPerReplica(G->input(Assign, 1).Node))
    return;
  Endpoint Value = G->input(Assign, 1);
  SmallString<128> Name("loc:@");
  Name += G->name(Var);
  AttrRun Attrs;
  Attrs.type("T", G->outputType(Value));
  Attrs.strings("_class", Name);
  Name = G->name(Var);
  Name += "/Initializer/Identity";
  NodeId N = G->insertNode(Name, op::Identity, Value, Assign, Attrs,
                           Inserted::Identity, Copies::PerReplica);
  G->noteColocation(N, Var);
  G->node(N).Flags |= NF_ElidePrimary;
  G->node(N).NameSplit = G->node(Var).NameSplit;
  G->setInput(Assign, 1, {N, 0});
}

/// Adds a read for each user that reads the value of a reference, such as a
/// saver. Each replica has its own copy of the read.
void MirrorVariables::readReferences(NodeId Var) {
  SmallVector<Use, 4> Uses;
  forEachUse(Var, [&](Use U) {
    if (!G->isRefInput(U.User, U.Index) && !G->isOp(U.User, op::Identity))
      Uses.push_back(U);
  });
  for (Use U : Uses) {
    Endpoint Reference = G->input(U);
    AttrRun Attrs;
    Attrs.type("T", G->outputType(Reference));
    SmallString<128> Name(G->name(Var));
    Name += "/read";
    NodeId N = G->insertNode(Name, op::Identity, Reference, Reference.Node,
                             Attrs, Inserted::Identity, Copies::PerReplica);
    G->node(N).NameSplit = G->node(Var).NameSplit;
    G->setInput(U.User, U.Index, {N, 0});
  }
}

/// Makes all initialization tests of a variable test copy 0, which is written
/// last. The result may decide if a sum over all replicas runs. If each replica
/// tested its own copy, the results could differ, and the sum would wait
/// forever.
void MirrorVariables::askPrimary(NodeId Var) {
  SmallVector<NodeId, 4> Asks;
  forEachUse(Var, [&](Use U) {
    if (G->isOp(U.User, op::VarIsInitializedOp) ||
        G->isOp(U.User, op::IsVariableInitialized))
      Asks.push_back(U.User);
  });
  for (NodeId N : Asks) {
    if (G->uses(N).empty())
      continue;
    Endpoint First = insertMerge(*G, {N, 0}, ReplicationType::replicated(),
                                 G->name(N), /*Picked=*/true);
    G->replaceUses({N, 0}, First, First.Node);
  }
}

/// Returns true if an update of \p Var reads a per-replica value.
bool MirrorVariables::stepWrites(NodeId Var) const {
  bool Written = false;
  forEachUse(Var, [&](Use U) {
    Written |= Vars->isUpdate(*G, U.User) && writesOwnValue(*G, *Vars, U.User);
  });
  return Written;
}

/// Makes the variables that replicas use per-replica, with all nodes that
/// depend on them. Returns these variables, and all other variables in \p Rest.
/// A per-replica variable may make other variables per-replica: the slots that
/// an op updates with it, or a variable from which it is assigned.
std::vector<NodeId>
MirrorVariables::spreadVariables(std::vector<NodeId> &Rest) const {
  for (NodeId Var : Vars->variables()) {
    Policy Plan = G->node(Var).Plan;
    if (G->node(Var).Count == Copies::Once &&
        (Plan == Policy::Mirrored || Plan == Policy::SyncOnRead ||
         Plan == Policy::Replicated))
      Rest.push_back(Var);
  }
  std::vector<NodeId> Found, New;
  do {
    New.clear();
    erase_if(Rest, [&](NodeId Var) {
      bool Uses = replicasUse(Var);
      if (Uses)
        New.push_back(Var);
      return Uses;
    });
    for (NodeId Var : New)
      G->node(Var).Count = Copies::PerReplica;
    spreadCopies(*G, *Vars, New);
    append_range(Found, New);
  } while (!New.empty());
  llvm::sort(Found);
  return Found;
}

/// Edits the names, the initial value and the readers of the per-replica
/// variable \p Var for its copies. Returns false after an error.
bool MirrorVariables::mirror(NodeId Var, DiagnosticEngine &Diags) {
  if (!checkCopyNames(Var, Diags) || !checkWrites(*G, *Vars, Var, Diags))
    return false;
  nameCopies(Var);
  mirrorInitialValue(Var);
  if (G->node(Var).Plan == Policy::SyncOnRead && !G->isOp(Var, op::VarHandleOp))
    readReferences(Var);
  if (G->node(Var).Plan == Policy::SyncOnRead)
    askPrimary(Var);
  count(Mirrored, "variables mirrored");
  if (Diags.wantsRemarks())
    Diags
        .remark("variable", G->name(Var),
                formatv("{0} on {1} replicas{2}", policyName(G->node(Var).Plan),
                        Replicas,
                        stepWrites(Var) ? "" : "; the step does not write it"))
        .Facts = {{"policy", policyName(G->node(Var).Plan).str()}};
  return true;
}

PassResult MirrorVariables::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  Mesh Devices = readMesh(*G);
  Replicas = Devices.replicas();
  // A scalar is one operand of a TPU computation, however often it is read.
  SpreadsScalars = Devices.Node != NoNode &&
                   hostDevice(Devices.Devices[0]) == Devices.Devices[0];
  bool HasRules = !Options.Rules->empty(); // Also set if slots change.
  if (Devices.Node == NoNode && !HasRules)
    return PassResult::Unchanged;
  VariableIndex Index(*G);
  Vars = &Index;
  if (HasRules && !applyVariableRules(*G, Index, *Options.Rules, Named, Diags))
    return PassResult::Failure;
  if (Devices.Node == NoNode)
    return PassResult::Changed;
  // If only some variables are shared, a slot and its variable may have
  // different policies.
  auto Has = [&](Policy Plan) {
    return any_of(Index.variables(),
                  [&](NodeId Var) { return G->node(Var).Plan == Plan; });
  };
  if (Has(Policy::Shared) && Has(Policy::Mirrored) &&
      !slotsFollow(*G, Index, HasRules, Diags))
    return PassResult::Failure;
  std::vector<NodeId> Rest, Found = spreadVariables(Rest);
  for (NodeId Var : Found)
    if (!mirror(Var, Diags))
      return PassResult::Failure;
  for (NodeId Var : Rest)
    if (Diags.wantsRemarks())
      Diags
          .remark("variable", G->name(Var),
                  "is unreplicated: no replica writes it, and replicas read it "
                  "at most a few times, as a scalar")
          .Facts = {{"policy", "once"}};
  if (Found.empty())
    return HasRules ? PassResult::Changed : PassResult::Unchanged;
  G->markModified();
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(MirrorVariables)

} // namespace graft
