//===- passes/MirrorVariables.cpp - mirror-variables ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Gives every replica its own copy of the variables that replicas use. The
// variable becomes a per-replica node, and so do its readers and writers:
//
//     w = VarHandleOp()                    w = VarHandleOp*()
//     w/Assign = AssignVariableOp(w, i) →  w/Initializer/Identity =
//     Identity*(i)
//                                          w/Assign = AssignVariableOp*(w, ..)
//     y = MatMul*(x/split, read)           read = ReadVariableOp*(w)
//
// The initial value exists once, so that copies start equal even when it is
// random; copy 0 takes it as it is, the others through an Identity on their
// device. Writers (restore, assignments) reach every copy because they are
// per-replica too, and copy 0 of a writer waits for the others, so whatever ran
// the writer in the input writes all copies.
//
// A variable that no replica uses in place, and whose value no replica reads
// except as a scalar (counters, learning rates, beta powers), stays once.
//
// Relies on: policies (assign-strategy), per-replica nodes (replicate).
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/graph/AttrRun.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class MirrorVariables final : public PassBase<MirrorVariables> {
public:
  static constexpr PassInfo Info = {
      "mirror-variables",
      "One copy of a variable per replica",
      "Makes the variables with policy `mirrored` that replicas use, their\n"
      "readers and their writers per-replica.",
      {}};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool replicasUse(NodeId Var) const;
  bool checkCopyNames(NodeId Var, DiagnosticEngine &Diags) const;
  void nameCopies(NodeId Var);
  void mirrorInitialValue(NodeId Var);
  bool stepWrites(NodeId Var) const;
  /// Calls \p F(Use) for each use of the variable's handle or reference.
  template <typename Fn> void forEachUse(NodeId Var, Fn F) const;

  Graph *G = nullptr;
  const VariableIndex *Vars = nullptr;
  unsigned Replicas = 0;
  uint64_t *Mirrored = nullptr;
};

template <typename Fn>
void MirrorVariables::forEachUse(NodeId Var, Fn F) const {
  SmallVector<NodeId, 4> Aliases{Var};
  while (!Aliases.empty()) {
    NodeId A = Aliases.pop_back_val();
    G->forEachUse(A, [&](Use U) {
      if (U.Index >= G->node(U.User).NumData ||
          Vars->variableOf(G->input(U.User, U.Index)) != Var)
        return;
      F(U);
      if (Vars->variableOf({U.User, 0}) == Var)
        Aliases.push_back(U.User);
    });
  }
}

bool MirrorVariables::replicasUse(NodeId Var) const {
  bool Result = false, IsRead = false;
  auto IsPerReplica = [&](NodeId N) {
    return G->node(N).Count == Copies::PerReplica;
  };
  forEachUse(Var, [&](Use U) {
    if (Result)
      return;
    if (IsPerReplica(U.User) && Vars->usesInPlace(*G, U.User, U.Index)) {
      Result = true;
    } else if (Vars->isUpdate(*G, U.User)) {
      Result = any_of(G->dataInputs(U.User),
                      [&](Endpoint E) { return IsPerReplica(E.Node); });
    } else if (!IsRead) {
      // What reads the value, itself or through one op.
      IsRead = IsPerReplica(U.User) || G->anyUse(U.User, [&](Use Reader) {
        return Reader.Index < G->node(Reader.User).NumData &&
               IsPerReplica(Reader.User);
      });
    }
  });
  if (Result || !IsRead)
    return Result;
  auto Shape = G->shapeAttr(Var, "shape");
  return !Shape || Shape->UnknownRank || !Shape->Dims.empty();
}

bool MirrorVariables::checkCopyNames(NodeId Var,
                                     DiagnosticEngine &Diags) const {
  for (unsigned I = 0; G->mayNameCopies() && I < Replicas; ++I)
    if (NodeId Copy = G->find((G->name(Var) + "/replica_" + Twine(I)).str());
        Copy != NoNode) {
      Diags.error(G->name(Copy), "this is the name of a copy of variable '" +
                                     G->name(Var).str() +
                                     "': the graph is already distributed");
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
    if (User.size() > Length && User[Length] == '/' && User.starts_with(Name))
      G->node(U.User).NameSplit = Length;
    if (Vars->isUpdate(*G, U.User))
      G->node(U.User).Flags |= NF_Led;
  });
}

/// The assignment of the initial value: the only one from inside the graph that
/// restores nothing.
void MirrorVariables::mirrorInitialValue(NodeId Var) {
  SmallVector<NodeId, 2> Found;
  forEachUse(Var, [&](Use U) {
    if (Vars->update(*G, U.User).Kind != UpdateKind::Assign || U.Index != 0)
      return;
    NodeId Value = G->input(U.User, 1).Node;
    if (G->node(Value).Count != Copies::Once)
      return;
    while (G->isOp(Value, "Identity") && G->node(Value).Kind == Inserted::No)
      Value = G->input(Value, 0).Node;
    if (!Vars->isOnce(*G, Value) &&
        !G->opName(Value).starts_with("Placeholder"))
      Found.push_back(U.User);
  });
  if (Found.size() != 1)
    return;
  Endpoint Value = G->input(Found[0], 1);
  SmallString<128> Name("loc:@");
  Name += G->name(Var);
  AttrRun Attrs;
  Attrs.type("T", G->outputType(Value.Node, Value.Port));
  Attrs.strings("_class", Name);
  Name = G->name(Var);
  Name += "/Initializer/Identity";
  NodeId N = G->insertNode(Name, "Identity", Value, Found[0], Attrs);
  Node &New = G->node(N);
  New.Kind = Inserted::Identity;
  New.Count = Copies::PerReplica;
  New.Flags |= NF_ElidePrimary;
  New.NameSplit = G->node(Var).NameSplit;
  G->setInput(Found[0], 1, {N, 0});
}

/// Whether an update of \p Var takes a value of the replicas.
bool MirrorVariables::stepWrites(NodeId Var) const {
  bool Written = false;
  forEachUse(Var, [&](Use U) {
    Written |= Vars->isUpdate(*G, U.User) &&
               any_of(G->dataInputs(U.User), [&](Endpoint E) {
                 return G->node(E.Node).Count == Copies::PerReplica &&
                        Vars->variableOf(E) == NoNode &&
                        G->node(E.Node).Kind != Inserted::Identity;
               });
  });
  return Written;
}

PassResult MirrorVariables::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  Mesh Devices = readMesh(*G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  VariableIndex Index(*G);
  Vars = &Index;
  std::vector<NodeId> Waiting, Found;
  for (NodeId Var : Index.variables())
    if (G->node(Var).Count == Copies::Once &&
        G->node(Var).Plan == Policy::Mirrored)
      Waiting.push_back(Var);
  // A variable that becomes per-replica may make others so: slots by their
  // update op, the source of a copy by the copy.
  for (bool Changed = true; Changed;) {
    std::vector<NodeId> New, Rest;
    for (NodeId Var : Waiting)
      (replicasUse(Var) ? New : Rest).push_back(Var);
    for (NodeId Var : New)
      G->node(Var).Count = Copies::PerReplica;
    spreadCopies(*G, Index, New);
    Found.insert(Found.end(), New.begin(), New.end());
    Waiting = std::move(Rest);
    Changed = !New.empty();
  }
  llvm::sort(Found);
  Replicas = Devices.replicas();
  for (NodeId Var : Found) {
    if (!checkCopyNames(Var, Diags))
      return PassResult::Failure;
    nameCopies(Var);
    mirrorInitialValue(Var);
    count(Mirrored, "variables mirrored");
    if (Diags.wantsRemarks())
      Diags
          .remark(
              "variable", G->name(Var),
              formatv("mirrored on {0} replicas{1}", Replicas,
                      stepWrites(Var) ? "" : "; the step does not write it"))
          .Facts = {{"policy", "mirrored"}};
  }
  for (NodeId Var : Waiting)
    if (Diags.wantsRemarks())
      Diags
          .remark(
              "variable", G->name(Var),
              "exists once: no replica writes it, or reads it but as a scalar")
          .Facts = {{"policy", "once"}};
  if (Found.empty())
    return PassResult::Unchanged;
  G->markModified();
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(MirrorVariables)

} // namespace graft
