//===- lib/certify/fold/Copies.cpp - copies in a lowered graph --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/fold/Copies.h"

#include "lib/certify/forms/LoweredFile.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace llvm;

namespace graft {

namespace {

class CopyChecker {
public:
  CopyChecker(const Graph &L, const Graph &In, const Graph &P,
              ArrayRef<CopyGroup> Groups, DiagnosticEngine &Diags)
      : L(L), In(In), P(P), Groups(Groups), Diags(Diags),
        Word(readMesh(P).Word), Vars(P), LoweredVars(L) {}

  bool run();

private:
  void error(NodeId N, const Twine &Message) {
    if (++Errors <= 12)
      Diags.error(N == NoNode ? StringRef() : L.name(N), Message.str());
  }
  void compareAttrs(const CopyGroup &Gr);
  void compareSeeds(const CopyGroup &Gr);
  bool mayStandTogether(const CopyGroup &Gr) const;
  bool areOnTasks() const;
  void checkDevices();
  bool isOfInput(NodeId N, NodeId Other) const;
  bool takesMemoryOf(NodeId N, NodeId Var) const;
  void checkClass(const CopyGroup &Gr, NodeId N, int Replica);
  NodeId leader(NodeId N);
  void colocate(NodeId N, NodeId With);
  void checkPlace(NodeId N);
  void checkState(const CopyGroup &Gr, NodeId N, int Replica);

  /// Returns the container and name that identify the resource of \p N on its
  /// device.
  static std::string stateName(const Graph &G, NodeId N) {
    StringRef Shared = G.stringAttr(N, "shared_name").value_or("");
    // All handles without a name are handles of one variable.
    bool ByNode = Shared.empty() && !G.isOp(N, op::VarHandleOp);
    return (G.stringAttr(N, "container").value_or("") + "/" +
            (ByNode ? G.name(N) : Shared))
        .str();
  }

  const Graph &L;
  const Graph &In;
  const Graph &P;
  ArrayRef<CopyGroup> Groups;
  DiagnosticEngine &Diags;
  std::string Word;                ///< The word in the names of copies.
  VariableIndex Vars, LoweredVars; ///< The variables of P and of L.
  unsigned Errors = 0;
  /// The parent of each node of L in a union-find forest. All nodes with the
  /// same root must be on one device.
  std::vector<NodeId> Leader;
  /// By root: a node that is colocated with the root and has a device, or
  /// NoNode.
  std::vector<NodeId> Placed;
  /// By device and name of a resource: its name in the input, with the replica.
  std::map<std::pair<std::string, std::string>, std::string> States;
};

/// Checks that attributes of copies differ in names, colocation and seeds only.
void CopyChecker::compareAttrs(const CopyGroup &Gr) {
  NodeId M = Gr.model();
  for (NodeId Copy : Gr.Copies) {
    if (Copy == NoNode || Copy == M)
      continue;
    for (const AttrEntry &A : L.attrs(M)) {
      if (A.Key == "_class" || A.Key == "shared_name" || A.Key == "seed2" ||
          A.Key == "frame_name")
        continue;
      if (L.attr(Copy, A.Key) != A.Value)
        error(Copy,
              "attribute '" + A.Key + "' is not that of the other copies");
    }
    for (const AttrEntry &A : L.attrs(Copy))
      if (A.Key != "_class" && !L.hasAttr(M, A.Key))
        error(Copy, "attribute '" + A.Key + "' is not in the other copies");
  }
}

/// Checks that copies of a seeded random op have different seeds, and that
/// copies of other nodes have equal seeds.
void CopyChecker::compareSeeds(const CopyGroup &Gr) {
  NodeId M = Gr.model();
  if (!L.hasAttr(M, "seed2"))
    return;
  bool Differ = isRandomOp(L.opName(M)) &&
                (L.intAttr(M, "seed") != 0 || L.intAttr(M, "seed2") != 0);
  // By seed: the first copy that has it.
  std::map<std::optional<int64_t>, NodeId> First;
  NodeId Any = NoNode;
  for (NodeId Copy : Gr.Copies) {
    if (Copy == NoNode)
      continue;
    auto [It, New] = First.try_emplace(L.intAttr(Copy, "seed2"), Copy);
    if (Differ && !New)
      error(It->second, "draws the same numbers as '" + L.name(Copy) + "'");
    else if (!Differ && New && Any != NoNode)
      error(Any, "has a different seed than '" + L.name(Copy) + "'");
    Any = Any == NoNode ? Copy : Any;
  }
}

/// Returns true if all copies may be on one device: they use an unreplicated
/// variable or an accumulator, or the input has them on that device.
bool CopyChecker::mayStandTogether(const CopyGroup &Gr) const {
  StringRef Device = L.device(Gr.model());
  if (NodeId I = In.find(Gr.Base); I != NoNode && In.device(I) == Device)
    return true;
  for (Endpoint E : P.dataInputs(Gr.Program)) {
    NodeId Var = Vars.variableOf(E);
    if (P.node(E.Node).Kind == Inserted::Accumulate ||
        (Var != NoNode && P.node(Var).Count == Copies::Once))
      return true;
  }
  return false;
}

/// Returns the position of the type in a full device name.
static size_t typeAt(StringRef Device) {
  return std::min(Device.size(), Device.find("/device:"));
}

/// Returns true if the copies of a node are in different tasks.
bool CopyChecker::areOnTasks() const {
  return any_of(Groups, [&](const CopyGroup &Gr) {
    if (Gr.Once != NoNode)
      return false;
    StringRef Model = L.device(Gr.model());
    return any_of(Gr.Copies, [&](NodeId N) {
      return N != NoNode && L.device(N).take_front(typeAt(L.device(N))) !=
                                Model.take_front(typeAt(Model));
    });
  });
}

/// Checks that each replica has one device, which no other replica has.
void CopyChecker::checkDevices() {
  std::vector<std::string> Device;
  bool OnTasks = areOnTasks();
  for (const CopyGroup &Gr : Groups) {
    if (Gr.Once != NoNode)
      continue;
    Device.resize(Gr.Copies.size());
    bool Together = all_of(Gr.Copies, [&](NodeId N) {
      return N == NoNode || L.device(N) == L.device(Gr.model());
    });
    if (Together && mayStandTogether(Gr))
      continue;
    for (size_t R = 0; R < Gr.Copies.size(); ++R) {
      if (Gr.Copies[R] == NoNode)
        continue;
      // If all replicas are in one task, the node decides job and task, and the
      // replica decides only the rest of the device.
      StringRef D = L.device(Gr.Copies[R]);
      if (!OnTasks)
        D = D.substr(typeAt(D));
      if (Device[R].empty())
        Device[R] = D.str();
      else if (Device[R] != D)
        error(Gr.Copies[R], "is not on the device of its replica");
    }
  }
  StringSet<> Known;
  for (const std::string &Of : Device)
    if (!Of.empty() && !Known.insert(Of).second)
      error(NoNode, "two replicas are on " + Of);
}

/// Returns true if \p N and \p Other each have the device that they have in the
/// input.
bool CopyChecker::isOfInput(NodeId N, NodeId Other) const {
  NodeId Was = In.find(L.name(N)), Its = In.find(L.name(Other));
  return Was != NoNode && Its != NoNode && In.device(Was) == L.device(N) &&
         In.device(Its) == L.device(Other);
}

/// Returns true if \p N takes the result of an Identity of the reference \p
/// Var. Such a node is colocated with \p Var so that it reads the memory of the
/// variable.
bool CopyChecker::takesMemoryOf(NodeId N, NodeId Var) const {
  return any_of(L.dataInputs(N), [&](Endpoint E) {
    return L.isOp(E.Node, op::Identity) &&
           LoweredVars.variableOf(L.input(E.Node, 0)) == Var;
  });
}

/// Checks that each colocation of \p N is in the input, or is with a variable
/// whose memory \p N reads. No colocation may be with another replica.
/// TensorFlow refuses colocation with a node on another device.
void CopyChecker::checkClass(const CopyGroup &Gr, NodeId N, int Replica) {
  auto List = L.stringListAttr(N, "_class");
  if (!List)
    return;
  NodeId I = In.find(Gr.Base);
  auto Was = I == NoNode ? std::nullopt : In.stringListAttr(I, "_class");
  for (StringRef Entry : *List) {
    NodeId With = Entry.consume_front("loc:@") ? L.find(Entry) : NoNode;
    if (With == NoNode)
      continue;
    CopyName Its = copyNameIn(In, Word, Entry);
    std::string Base = "loc:@" + Its.Base;
    if (I != NoNode && (!Was || !is_contained(*Was, StringRef(Base))) &&
        !takesMemoryOf(N, With))
      error(N, "is colocated with '" + Entry + "', but not in the input graph");
    else if (Its.Replica >= 0 && Its.Replica != Replica)
      error(N, "is colocated with '" + Entry + "', of another replica");
    else
      colocate(N, With);
  }
}

/// Returns the root of \p N: it represents all nodes colocated with \p N so
/// far.
NodeId CopyChecker::leader(NodeId N) {
  while (Leader[N] != N)
    N = Leader[N] = Leader[Leader[N]];
  return N;
}

/// Records that \p N is colocated with \p With. Colocation is transitive: all
/// connected nodes must be on one device.
void CopyChecker::colocate(NodeId N, NodeId With) {
  if (Leader.empty()) {
    for (NodeId Each = 0; Each < L.size(); ++Each) {
      Leader.push_back(Each);
      Placed.push_back(L.device(Each).empty() ? NoNode : Each);
    }
  }
  NodeId A = leader(N), B = leader(With);
  NodeId Mine = L.device(N).empty() ? Placed[A] : N;
  NodeId Its = L.device(With).empty() ? Placed[B] : With;
  if (Mine != NoNode && Its != NoNode &&
      !canBeOneDevice(L.device(Mine), L.device(Its)) && !isOfInput(Mine, Its))
    error(N, "is colocated with '" + L.name(Its) + "', which is on " +
                 L.device(Its));
  Leader[B] = A;
  if (Placed[A] == NoNode)
    Placed[A] = Placed[B];
}

/// Checks that \p N is on the device of each variable or accumulator that it
/// uses in place.
void CopyChecker::checkPlace(NodeId N) {
  for (unsigned I = 0; I < L.node(N).NumData; ++I) {
    NodeId Var = LoweredVars.variableOf(L.input(N, I));
    bool Uses = Var != NoNode && LoweredVars.usesInPlace(L, N, I);
    if (L.isOp(L.input(N, I).Node, op::ConditionalAccumulator)) {
      Var = L.input(N, I).Node;
      Uses = true;
    }
    if (!Uses || canBeOneDevice(L.device(Var), L.device(N)) ||
        isOfInput(N, Var))
      continue;
    error(N, StringRef("uses ") +
                 (isVariableOp(L.opName(Var)) ? "the variable '" : "'") +
                 L.name(Var) + "' in place but is not on its device " +
                 L.device(Var));
  }
}

/// Checks that two handles share a resource only if they do in the input.
void CopyChecker::checkState(const CopyGroup &Gr, NodeId N, int Replica) {
  NodeId I = In.find(Gr.Base);
  std::string Was =
      I == NoNode ? Gr.Base : stateName(In, I) + "@" + In.device(I).str();
  Was += " " + std::to_string(Replica);
  auto [It, New] =
      States.try_emplace({L.device(N).str(), stateName(L, N)}, Was);
  if (!New && It->second != Was)
    error(N, "has the device and resource name of another " + L.opName(N) +
                 ", so both are one resource");
  StringRef Shared = L.stringAttr(N, "shared_name").value_or("");
  if (Shared.starts_with("_") &&
      (I == NoNode || In.stringAttr(I, "shared_name") != Shared))
    error(N,
          "has a shared_name that starts with '_', which TensorFlow reserves");
}

bool CopyChecker::run() {
  for (const CopyGroup &Gr : Groups) {
    if (Gr.Once == NoNode) {
      compareAttrs(Gr);
      compareSeeds(Gr);
    }
    const OpDef *Def = findOp(L.opName(Gr.model()));
    bool IsState = Def && Def->hasSharedName();
    auto Check = [&](NodeId N, int Replica) {
      if (N == NoNode)
        return;
      checkClass(Gr, N, Replica);
      checkPlace(N);
      if (IsState)
        checkState(Gr, N, Replica);
    };
    Check(Gr.Once, 0);
    for (size_t R = 0; R < Gr.Copies.size(); ++R)
      Check(Gr.Copies[R], static_cast<int>(R));
  }
  checkDevices();
  return Errors == 0;
}

} // namespace

bool checkCopies(const Graph &L, const Graph &In, const Graph &P,
                 ArrayRef<CopyGroup> Groups, DiagnosticEngine &Diags) {
  return CopyChecker(L, In, P, Groups, Diags).run();
}

} // namespace graft
