//===- lib/certify/forms/ProxyCheck.cpp - copies of shared variables ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A read of a proxy is a read of its variable if
//
//   - a refresh with the new value follows every op that changes the variable,
//     and all nodes that waited for the op wait for the refresh;
//   - if one run makes two changes, other than assignments, the refreshes have
//     the order of the changes;
//   - a value that the input reads before a change is read before the refresh,
//     or before the change if it is still read from the variable;
//   - a value that the input reads after a change is read from the variable.
//
// Assignments need no order: in the input, too, any of several may be last.
//
// A lookup of rows in a proxy has no edge to the refresh. Its result is sharded
// (checked). So an unreplicated node reads the rows of all replicas together,
// or none: then no proxy is behind the others.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/ProxyCheck.h"

#include "lib/certify/forms/InsertedForm.h"
#include "lib/graph/Walk.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/Proxy.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

ProxyCheck::ProxyCheck(Comparison &C)
    : C(C), In(C.In), G(C.G), InputOf(C.InputOf) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Kind == Inserted::Proxy &&
        G.isOp(N, op::VarHandleOp))
      collect(N);
}

/// Collects the nodes of the proxy \p N that have the form of
/// lib/program/forms/Proxy.h.
void ProxyCheck::collect(NodeId N) {
  auto Index = static_cast<uint32_t>(Proxies.size());
  Proxy P;
  P.Node = N;
  auto IsProxy = [&](NodeId User, StringRef Op) {
    return G.node(User).Kind == Inserted::Proxy && G.isOp(User, Op);
  };
  for (Use U : G.uses(N)) {
    if (IsProxy(U.User, op::ReadVariableOp)) {
      P.Reads.push_back(U.User);
      ByNode[U.User] = Index;
      Parts.insert(U.User);
    } else if (IsProxy(U.User, op::AssignVariableOp) && U.Index == 0 &&
               G.node(U.User).NumData == 2) {
      P.Refreshes.push_back(U.User);
      Parts.insert(U.User);
      NodeId W = G.input(U.User, 1).Node;
      if (G.node(W).Kind != Inserted::Proxy || G.node(W).NumData != 1)
        continue;
      Parts.insert(W);
      P.Var = G.input(W, 0).Node;
      NodeId Update = G.node(W).NumInputs == 2 ? G.input(W, 1).Node : NoNode;
      G.forEachUse(U.User, [&](Use Gate) {
        if (IsProxy(Gate.User, op::NoOp) || IsProxy(Gate.User, op::Identity)) {
          Parts.insert(Gate.User);
          if (Update != NoNode)
            UpdateOf[Gate.User] = Update;
        }
      });
    }
  }
  Parts.insert(N);
  ByNode[N] = Index;
  if (P.Var != NoNode && InputOf[P.Var] != NoNode) {
    ByVar.try_emplace(InputOf[P.Var], Index);
    StringRef Op =
        G.isOp(P.Var, op::VarHandleOp) ? op::ReadVariableOp : op::Identity;
    for (Use U : G.uses(P.Var))
      if (P.Read == NoNode && G.isOp(U.User, Op) &&
          G.node(U.User).NumInputs == 1 && InputOf[U.User] != NoNode)
        P.Read = U.User;
  }
  Proxies.push_back(std::move(P));
}

Endpoint ProxyCheck::standsFor(Endpoint E) const {
  if (auto It = ByNode.find(E.Node); It != ByNode.end()) {
    const Proxy &P = Proxies[It->second];
    NodeId To = E.Node == P.Node ? P.Var : P.Read;
    return To == NoNode ? Endpoint() : Endpoint{To, 0};
  }
  NodeId Update = updateOf(E.Node);
  return Update == NoNode || G.isOp(E.Node, op::NoOp)
             ? Endpoint()
             : Endpoint{Update, E.Port};
}

bool ProxyCheck::areSameRead(Endpoint A, Endpoint B) const {
  auto Passes = [&](NodeId N) {
    return In.opNames()[In.op(N)] == op::Identity && In.inputs(N).size() == 1 &&
           In.inputs(N)[0].Port != ControlPort;
  };
  // An Identity of a reference is itself a read.
  while (A.Node != B.Node && B.Port == 0 && Passes(B.Node) &&
         !ByVar.contains(In.inputs(B.Node)[0].Node))
    B = In.inputs(B.Node)[0];
  if (A.Port != 0 || B.Port != 0 || In.op(A.Node) != In.op(B.Node) ||
      In.inputs(A.Node) != In.inputs(B.Node) || In.inputs(A.Node).size() != 1)
    return false;
  StringRef Op = In.opNames()[In.op(A.Node)];
  auto It = ByVar.find(In.inputs(A.Node)[0].Node);
  return It != ByVar.end() && In.inputs(A.Node)[0].Port == 0 &&
         (Op == op::ReadVariableOp || Op == op::Identity) &&
         In.attr(A.Node, "dtype") == In.attr(B.Node, "dtype");
}

bool ProxyCheck::isReadOf(NodeId Read, NodeId Update) const {
  if (G.node(Read).NumInputs != 1 || InputOf[Read] == NoNode ||
      !(G.isOp(Read, op::ReadVariableOp) || G.isOp(Read, op::Identity)))
    return false;
  Endpoint Var = G.input(Read, 0);
  return InputOf[Var.Node] != NoNode && ByVar.contains(InputOf[Var.Node]) &&
         any_of(G.dataInputs(Update), [&](Endpoint E) {
           return through(G, E, op::Switch, op::RefSwitch) == Var;
         });
}

/// Checks that the reads of the variable of \p P that precede \p Update in the
/// input precede it in the program.
void ProxyCheck::checkOrder(const Proxy &P, NodeId Update) const {
  SmallVector<NodeId, 2> Reads;
  G.forEachUse(P.Var, [&](Use U) {
    if (isReadOf(U.User, Update) &&
        !is_contained(G.controlInputs(Update), Endpoint{U.User, ControlPort}))
      Reads.push_back(U.User);
  });
  if (Reads.empty())
    return;
  DenseSet<NodeId> Before, BeforeInInput;
  walkInputs(G, {Update}, Along::All, Before);
  walkInputs(In, {InputOf[Update]}, Along::All, BeforeInInput);
  for (NodeId R : Reads)
    if (BeforeInInput.contains(InputOf[R]) && !Before.contains(R))
      C.error(Update, "updates '" + G.name(P.Var) +
                          "' but does not wait for '" + G.name(R) +
                          "', which reads it before in the input");
}

/// Returns true if all runs of the input read \p Var before \p Update.
bool ProxyCheck::readsBefore(NodeId Var, NodeId Update) const {
  DenseSet<NodeId> Seen;
  bool Found = false;
  walkInputs(In, {Update}, Along::All, Seen, [&](NodeId N) {
    StringRef Op = In.opNames()[In.op(N)];
    Found |= (Op == op::ReadVariableOp || Op == op::Identity) && N != Update &&
             In.inputs(N)[0].Node == Var;
    return !Found;
  });
  return Found;
}

/// Checks that the refresh \p F takes the value that an update left.
void ProxyCheck::checkRefresh(const ProgramFacts &Facts, const Proxy &P,
                              NodeId F) const {
  Endpoint W = G.input(F, 1);
  bool IsHandle = G.isOp(P.Var, op::VarHandleOp);
  if (G.node(F).Count != Copies::PerReplica || W.Port != 0 ||
      !Parts.contains(W.Node) || G.node(W.Node).Count != Copies::Once ||
      !G.isOp(W.Node, IsHandle ? op::ReadVariableOp : op::Identity) ||
      G.input(W.Node, 0) != Endpoint{P.Var, 0} || G.node(W.Node).NumInputs != 2)
    return C.error(F, "refreshes a proxy, but not with the value of '" +
                          G.name(P.Var) + "' after an update");
  NodeId U = G.input(W.Node, 1).Node;
  UpdateDef Def = Facts.Vars.update(G, U);
  bool Writes = false;
  for (unsigned I = 0; I < Def.NumVars; ++I)
    Writes |= Facts.Vars.variableOf(G.input(U, I)) == P.Var;
  if (!Writes || InputOf[U] == NoNode)
    C.error(F, "refreshes a proxy after '" + originName(G, U) +
                   "', which does not write '" + G.name(P.Var) + "'");
  for (Endpoint E : G.controlInputs(F))
    if (!is_contained(P.Reads, E.Node))
      C.error(F, "refreshes a proxy and waits for '" + G.name(E.Node) +
                     "', which does not read that proxy");
  if (G.anyUse(W.Node, [&](Use Of) { return Of.Index != 1 || Of.User != F; }))
    C.error(W.Node, "is read by a node other than the refresh of a proxy");
}

/// Checks that all users of the update \p U come after the refresh \p F.
void ProxyCheck::checkUpdate(const Proxy &P, NodeId U, NodeId F) const {
  NodeId W = G.input(F, 1).Node, Gate = NoNode;
  G.forEachUse(F, [&](Use Of) {
    if (updateOf(Of.User) == U && (Gate == NoNode || Gate == Of.User))
      Gate = Of.User;
    else
      C.error(Of.User, "waits for the refresh of a proxy but does not take the "
                       "place of its update");
  });
  if (Gate == NoNode)
    return C.error(U,
                   "updates '" + G.name(P.Var) +
                       "', but no node waits for the refresh of its proxies");
  bool IsRef = G.isOp(Gate, op::Identity);
  if (G.node(Gate).Count != Copies::Once || G.node(Gate).NumData != IsRef ||
      (IsRef && G.input(Gate, 0) != Endpoint{U, 0}) ||
      G.controlInputs(Gate).size() != 1 || G.input(Gate, IsRef).Node != F)
    C.error(Gate,
            "takes the place of the update '" + originName(G, U) +
                "' but waits for a node other than the refresh of the proxies");
  G.forEachUse(U, [&](Use Of) {
    if (Of.User != W && Of.User != Gate)
      C.error(Of.User,
              "uses the update '" + originName(G, U) +
                  "' but does not wait for the refresh of the proxies");
  });
}

/// Checks that reads of the proxy \p P come before and after updates as in the
/// input.
void ProxyCheck::checkReads(const ProgramFacts &Facts, const Proxy &P,
                            const DenseMap<NodeId, NodeId> &RefreshOf) const {
  for (Use U : G.uses(P.Node)) {
    bool Own = G.node(U.User).Kind == Inserted::Proxy
                   ? Parts.contains(U.User)
                   : G.node(U.User).Kind == Inserted::Refresh;
    bool LooksUp = InputOf[U.User] != NoNode && looksUpRows(G, U.User);
    if (U.Index != 0 || (!Own && !LooksUp))
      C.error(U.User, "uses the proxy of '" + G.name(P.Var) +
                          "' and neither reads nor refreshes it");
    else if (LooksUp && !Facts.Types.type({U.User, 0}).isSharded())
      C.error(U.User, "looks up rows in the proxy of '" + G.name(P.Var) +
                          "', but its result is not sharded");
  }
  for (NodeId R : P.Reads) {
    if (G.node(R).Count != Copies::PerReplica || G.node(R).NumInputs != 1 ||
        P.Read == NoNode ||
        G.typeAttr(R, "dtype") != G.typeAttr(P.Node, "dtype")) {
      C.error(R, "does not read a proxy as the input reads '" + G.name(P.Var) +
                     "'");
      continue;
    }
    for (auto [U, F] : RefreshOf)
      if (!is_contained(G.controlInputs(F), Endpoint{R, ControlPort}) &&
          readsBefore(InputOf[P.Var], InputOf[U]))
        C.error(F, "refreshes a proxy but does not wait for '" + G.name(R) +
                       "', which must read the value before the update");
  }
}

/// Checks that a lookup after an update reads the variable and not a proxy.
void ProxyCheck::checkLookups(const ProgramFacts &Facts) const {
  std::vector<NodeId> Lookups, Updates;
  for (const Proxy &P : Proxies) {
    // A proxy without a variable was reported before.
    if (P.Var == NoNode)
      continue;
    size_t Before = Lookups.size();
    G.forEachUse(P.Node, [&](Use U) {
      if (looksUpRows(G, U.User))
        Lookups.push_back(U.User);
    });
    if (Lookups.size() == Before)
      continue;
    Facts.Vars.forEachUse(G, P.Var, [&](Use U) {
      if (Facts.Vars.isUpdate(G, U.User))
        Updates.push_back(U.User);
    });
  }
  if (Lookups.empty())
    return;
  std::vector<bool> After(G.size());
  walkUsers(G, std::move(Updates), Along::All, After);
  for (NodeId N : Lookups)
    if (After[N])
      C.error(N, "looks up rows in a proxy after an update of its variable, "
                 "but must look them up in the variable");
}

void ProxyCheck::check(const ProgramFacts &Facts) const {
  DenseMap<NodeId, NodeId> Gates;
  for (auto [Gate, U] : UpdateOf)
    Gates[U] = Gate;
  DenseSet<NodeId> Seen;
  for (const Proxy &P : Proxies) {
    if (P.Var == NoNode || InputOf[P.Var] == NoNode ||
        !isVariableOp(G.opName(P.Var)) || G.node(P.Var).Count != Copies::Once ||
        G.node(P.Node).Count != Copies::PerReplica ||
        G.node(P.Node).NumInputs != 0 || !Seen.insert(P.Var).second ||
        G.attr(P.Node, "dtype") != G.attr(P.Var, "dtype") ||
        G.attr(P.Node, "shape") != G.attr(P.Var, "shape")) {
      C.error(P.Node, "is not the one proxy of an unreplicated variable, with "
                      "its type and shape");
      continue;
    }
    DenseMap<NodeId, NodeId> RefreshOf;
    unsigned First = C.Errors;
    for (NodeId F : P.Refreshes) {
      unsigned Before = C.Errors;
      checkRefresh(Facts, P, F);
      NodeId W = G.input(F, 1).Node;
      if (C.Errors == Before &&
          !RefreshOf.try_emplace(G.input(W, 1).Node, F).second)
        C.error(F, "refreshes a proxy for a second time");
    }
    SmallVector<NodeId, 2> Changes;
    Facts.Vars.forEachUse(G, P.Var, [&](Use U) {
      UpdateDef Def = Facts.Vars.update(G, U.User);
      if (Def.Kind == UpdateKind::None || U.Index >= Def.NumVars) {
        if (!leavesVariable(G, U))
          C.error(U.User,
                  "may write '" + G.name(P.Var) +
                      "', which has proxies, and does not refresh them");
        return;
      }
      auto It = RefreshOf.find(U.User);
      if (It == RefreshOf.end())
        return C.error(U.User, "updates '" + G.name(P.Var) +
                                   "' and does not refresh its proxies");
      checkUpdate(P, U.User, It->second);
      if (Def.Kind != UpdateKind::Assign)
        Changes.push_back(U.User);
    });
    if (C.Errors != First)
      continue;
    if (!areOrdered(G, Changes, [&](NodeId U) { return Gates[U]; }))
      C.error(
          P.Node,
          "a run may update '" + G.name(P.Var) +
              "' twice in one order and refresh its proxies in another order");
    checkReads(Facts, P, RefreshOf);
    for (NodeId Update : make_first_range(RefreshOf))
      checkOrder(P, Update);
  }
  checkLookups(Facts);
}

std::vector<bool> findProxies(const Graph &L, const Graph &In, StringRef Word) {
  std::vector<bool> Found(L.size());
  auto IsNew = [&](NodeId N) {
    NodeId I = In.find(copyNameIn(In, Word, L.name(N)).Base);
    return I == NoNode || In.opName(I) != L.opName(N);
  };
  for (NodeId P = 0; P < L.size(); ++P) {
    if (!L.isLive(P) || !L.isOp(P, op::VarHandleOp) || !IsNew(P))
      continue;
    Found[P] = true;
    L.forEachUse(P, [&](Use U) {
      if (L.isOp(U.User, op::ReadVariableOp) && IsNew(U.User))
        Found[U.User] = true;
      if (U.Index != 0 || !L.isOp(U.User, op::AssignVariableOp) ||
          !IsNew(U.User) || !IsNew(L.input(U.User, 1).Node))
        return;
      Found[U.User] = Found[L.input(U.User, 1).Node] = true;
      L.forEachUse(U.User, [&](Use Gate) {
        if ((L.isOp(Gate.User, op::NoOp) || L.isOp(Gate.User, op::Identity)) &&
            IsNew(Gate.User))
          Found[Gate.User] = true;
      });
    });
  }
  return Found;
}

static Endpoint standsForProxy(const Comparison &C, Endpoint E) {
  return C.Proxies ? C.Proxies->standsFor(E) : Endpoint();
}

static void checkProxy(Comparison &C, const ProgramFacts & /*Facts*/,
                       NodeId N) {
  if (!C.Proxies || !C.Proxies->isPart(N))
    C.mismatch(N);
}

static bool recognizeProxy(const LoweredFile &File, NodeId N) {
  return File.Proxies[N];
}

const InsertedForm ProxyForm = {.StandsFor = standsForProxy,
                                .Check = checkProxy,
                                .Recognize = recognizeProxy,
                                .WritesCopies = true,
                                .IsUnseen = true};

} // namespace graft
