//===- lib/lower/tpu/TpuVariables.cpp - copies of a variable ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Each op that assigns a variable outside of the computation (its initializer,
// the restore of a checkpoint) assigns each copy the same value:
//
//     v = VarHandleOp()        v = VarHandleOp() @/device:TPU:0
//     AssignVariableOp(v, i)   v/replica_1 = VarHandleOp() @/device:TPU:1
//                         →    v/replica_1/Assign = AssignVariableOp(.., i)
//                              AssignVariableOp(v, i, ^v/replica_1/Assign)
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/lower/tpu/TpuForm.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

class VariableCopier {
public:
  VariableCopier(Graph &G, NodeId Handle, bool IsMirrored, StringRef Word,
                 const std::vector<bool> &IsMember, DiagnosticEngine &Diags)
      : G(G), Handle(Handle), IsMirrored(IsMirrored), Word(Word),
        IsMember(IsMember), Diags(Diags) {}

  bool findAssigns();
  NodeId copy(unsigned Replica);
  std::string device(unsigned Replica) const;

private:
  AttrRun attrsFor(NodeId N, StringRef Copy) const;
  std::string nameFor(NodeId N, StringRef Copy) const;
  void copyAssign(NodeId Assign, NodeId Copy);

  Graph &G;
  NodeId Handle;
  bool IsMirrored;
  StringRef Word; ///< The word in the names of mirrored copies.
  const std::vector<bool> &IsMember;
  DiagnosticEngine &Diags;
  SmallVector<NodeId, 4> Assigns;
  SmallVector<NodeId, 8> Copied; ///< Copies of the ops that assign it.
};

/// Finds the ops outside that change the variable.
bool VariableCopier::findAssigns() {
  for (Use U : G.uses(Handle)) {
    const OpDef *Def = G.opDef(U.User);
    if (!G.isData(U) || (U.User < IsMember.size() && IsMember[U.User]) ||
        (Def && Def->readsVariable()) || G.isOp(U.User, op::TPUReplicatedInput))
      continue;
    UpdateDef Update = Def ? Def->update() : UpdateDef();
    if (Update.Kind == UpdateKind::None) {
      Diags.unproved("copies", G.name(U.User),
                     ("uses the variable '" + G.name(Handle) +
                      "' outside of the computation; if this op changes the "
                      "variable, its copies on other replicas do not change")
                         .str());
      continue;
    }
    if ((Update.Kind != UpdateKind::Assign &&
         Update.Kind != UpdateKind::AssignAdd) ||
        Update.NumVars != 1) {
      Diags.error(G.name(U.User),
                  ("updates the variable '" + G.name(Handle) +
                   "' outside of the computation, but the variable has a copy "
                   "on each replica; make this op a part of the computation")
                      .str());
      return false;
    }
    Assigns.push_back(U.User);
  }
  return true;
}

std::string VariableCopier::device(unsigned Replica) const {
  DeviceName Device =
      DeviceName::parse(G.device(Handle)).value_or(DeviceName());
  Device.Type = "TPU";
  Device.Index = Replica;
  return Device.str();
}

/// Returns the attributes of \p N for \p Copy: in the names, the copy replaces
/// the variable.
AttrRun VariableCopier::attrsFor(NodeId N, StringRef Copy) const {
  AttrRun Attrs;
  for (const AttrEntry &A : G.attrs(N)) {
    StringRef Text = bytesField(A.Value, AttrString).value_or("");
    if (A.Key == "_class")
      Attrs.strings("_class", ("loc:@" + Copy).str());
    else if ((A.Key == "shared_name" || A.Key == "debug_name") && !Text.empty())
      Attrs.string(A.Key, Text.consume_front(G.name(Handle))
                              ? (Copy + Text).str()
                              : Copy.str());
    else
      Attrs.raw(A.Key, A.Value);
  }
  return Attrs;
}

std::string VariableCopier::nameFor(NodeId N, StringRef Copy) const {
  StringRef Name = G.name(N), Rest = Name;
  if (Rest.consume_front(G.name(Handle)) && Rest.starts_with("/"))
    return (Copy + Rest).str();
  return (Copy + "/" + Name).str();
}

void VariableCopier::copyAssign(NodeId Assign, NodeId Copy) {
  StringRef CopyName = G.name(Copy);
  SmallVector<Endpoint, 4> Inputs(G.inputs(Assign));
  Inputs[0] = {Copy, 0};
  if (IsMirrored && G.opDef(Assign)->update().Kind == UpdateKind::Assign) {
    AttrRun Attrs;
    Attrs.type("T", G.outputType(Inputs[1].Node, Inputs[1].Port))
        .strings("_class", ("loc:@" + CopyName).str());
    NodeId Value = G.insertNode((CopyName + "/Initializer/Identity").str(),
                                op::Identity, Inputs[1], Assign, Attrs);
    G.setDevice(Value, G.device(Copy));
    Inputs[1] = {Value, 0};
  }
  // The variable's op waits for the ops on earlier copies. The new op need not
  // wait for these.
  while (Inputs.back().isControl() && is_contained(Copied, Inputs.back().Node))
    Inputs.pop_back();
  NodeId N = G.insertNode(nameFor(Assign, CopyName), G.opName(Assign), Inputs,
                          Assign, attrsFor(Assign, CopyName));
  G.setDevice(N, G.device(Copy));
  G.addControlInput(Assign, N);
  Copied.push_back(N);
}

NodeId VariableCopier::copy(unsigned Replica) {
  std::string Name =
      formatv("{0}/{1}{2}", G.name(Handle), IsMirrored ? Word : "", Replica);
  if (NodeId Old = G.find(Name); Old != NoNode) {
    // An existing node is a copy only if it is on the TPU of the replica: an
    // equal name proves nothing.
    auto Device = DeviceName::parse(G.device(Old));
    if (G.isOp(Old, op::VarHandleOp) &&
        G.typeAttr(Old, "dtype") == G.typeAttr(Handle, "dtype") && Device &&
        Device->Type == "TPU" && Device->Index == Replica)
      return Old;
    Diags.error(G.name(Handle),
                "has a copy on each replica, but another op has "
                "the name of a copy, '" +
                    Name + "'; rename that op");
    return NoNode;
  }
  NodeId Copy =
      G.insertNode(Name, op::VarHandleOp, {}, Handle, attrsFor(Handle, Name));
  G.setDevice(Copy, device(Replica));
  for (NodeId A : Assigns)
    copyAssign(A, Copy);
  return Copy;
}

} // namespace

std::optional<TpuVariable> copyTpuVariable(Graph &G, NodeId Handle,
                                           unsigned Replicas, bool IsMirrored,
                                           StringRef Word,
                                           const std::vector<bool> &IsMember,
                                           DiagnosticEngine &Diags) {
  VariableCopier Copier(G, Handle, IsMirrored, Word, IsMember, Diags);
  if (!Copier.findAssigns())
    return std::nullopt;
  TpuVariable V;
  V.Handle = Handle;
  V.IsMirrored = IsMirrored;
  V.Copies.push_back(Handle);
  for (unsigned R = 1; R < Replicas; ++R)
    if (V.Copies.emplace_back(Copier.copy(R)) == NoNode)
      return std::nullopt;
  G.setDevice(Handle, Copier.device(0));
  return V;
}

bool addTpuVariables(Graph &G, TpuComputation &C,
                     ArrayRef<TpuVariableRule> Rules, DiagnosticEngine &Diags) {
  if (Rules.empty())
    return true;
  std::vector<GlobPattern> Patterns;
  std::vector<bool> Matched(Rules.size()), IsMember(G.size());
  for (const TpuVariableRule &R : Rules) {
    auto Pattern = GlobPattern::create(R.Pattern);
    if (!Pattern) {
      Diags.error(
          "", std::string(R.Option) + ": '" + R.Pattern +
                  "' is not a valid pattern: " + toString(Pattern.takeError()));
      return false;
    }
    Patterns.push_back(std::move(*Pattern));
  }
  std::string Word = readMesh(G).Word;
  std::set<NodeId> Handles;
  for (NodeId M : C.Members) {
    IsMember[M] = true;
    for (Endpoint E : G.dataInputs(M))
      if (G.isOp(E.Node, op::VarHandleOp))
        Handles.insert(E.Node);
  }
  for (NodeId N : Handles) {
    const TpuVariableRule *First = nullptr;
    for (size_t I = 0; I < Rules.size(); ++I) {
      if (!Patterns[I].match(G.name(N)))
        continue;
      Matched[I] = true;
      if (First && StringRef(First->Option) != Rules[I].Option) {
        Diags.error(G.name(N), std::string(First->Option) + " and " +
                                   Rules[I].Option +
                                   " both name this variable: give only one");
        return false;
      }
      First = &Rules[I];
    }
    if (!First)
      continue;
    if (First->IsPacked) {
      C.Variables.push_back({N, {N}, false, true});
      continue;
    }
    auto V = copyTpuVariable(G, N, C.Replicas, First->IsMirrored, Word,
                             IsMember, Diags);
    if (!V)
      return false;
    C.Variables.push_back(std::move(*V));
  }
  for (size_t I = 0; I < Rules.size(); ++I)
    if (!Matched[I]) {
      Diags.error("", std::string(Rules[I].Option) +
                          ": the computation uses no resource variable with a "
                          "name like '" +
                          Rules[I].Pattern + "'");
      return false;
    }
  return true;
}

} // namespace graft
