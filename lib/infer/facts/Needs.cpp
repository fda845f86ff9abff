//===- lib/infer/facts/Needs.cpp - needs of a node --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/Needs.h"

#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/forms/Proxy.h"
#include "lib/program/forms/RowRepeat.h"
#include "lib/support/InternalError.h"

using namespace llvm;

namespace graft {

bool isNeed(StringRef Op, const OpDef *Def) {
  if (isVariableOp(Op))
    return false;
  if (Op.starts_with(op::Placeholder) || !Def)
    return true;
  if (Def->readsVariable() || isLocalHandleOp(Op))
    return false;
  // An op whose reference argument may have any type only passes the reference
  // on.
  auto Uses = [](const ArgDef &Arg) {
    return Arg.IsRef && Arg.Type != DT_INVALID;
  };
  return Def->isStateful() || Def->update().Kind != UpdateKind::None ||
         any_of(Def->inputs(), Uses);
}

bool needsValue(const Graph &G, const VariableIndex &Vars, NodeId N,
                unsigned Index, NodeId Var) {
  UpdateDef Update = Vars.update(G, N);
  if (Update.Kind != UpdateKind::None)
    return Update.Kind != UpdateKind::Assign || Index >= Update.NumVars;
  const OpDef *Def = G.opDef(N);
  if (Def && Def->Flags & OpDef::AllowsUninitialized)
    return false;
  // An op that takes a reference needs the value of the variable, even if the
  // op only passes the reference on. A take-first merge, which has no OpDef,
  // does not need it.
  if (!G.isOp(Var, op::VarHandleOp) && Def)
    return true;
  return Vars.variableOf({N, 0}) != Var && !G.isOp(N, op::VarIsInitializedOp) &&
         !G.isOp(N, op::DestroyResourceOp);
}

Needs::Needs(const Graph &G, const ProgramFacts &Facts) {
  std::vector<bool> IsNeed;
  IsNeed.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    IsNeed.push_back(isNeed(G.opNameOf(Op), G.opDefOf(Op)));
  auto IsOwn = [&](NodeId N) {
    return G.node(N).Kind == Inserted::No && IsNeed[G.node(N).Op];
  };
  // A caller can feed a split tensor or a PlaceholderWithDefault. The feed
  // replaces the inputs of the node and their needs.
  auto IsCut = [&](NodeId N) {
    return (G.node(N).Kind == Inserted::Split && !followsOther(G, N)) ||
           G.isOp(N, op::PlaceholderWithDefault);
  };
  auto Number = [&](Endpoint E) {
    return NumberOf
        .try_emplace({E.Node, E.Port}, static_cast<uint32_t>(NumberOf.size()))
        .first->second;
  };
  // Returns the tensor before the inserted nodes. A caller feeds that tensor,
  // so its other readers need it, too.
  auto Origin = [&](Endpoint E) {
    while (G.node(E.Node).Kind != Inserted::No && E.Port == 0 &&
           (G.node(E.Node).NumData == 1 || isProgramOp(G.opName(E.Node))))
      E = G.input(E.Node, 0);
    return E;
  };
  DenseMap<NodeId, SmallVector<uint32_t, 1>> Fed; ///< Ports, by node.
  std::optional<Conditions> When;
  if (Conditions::any(G))
    When.emplace(G, Facts.Order);
  DenseMap<NodeId, NodeId> Proxies;
  for (NodeId Var : Facts.Vars.variables()) {
    if (G.node(Var).Kind != Inserted::No)
      continue;
    Number({Var, 0});
    if (When)
      Number({Var, 1});
    if (NodeId Proxy = proxyOf(G, Var); Proxy != NoNode)
      Proxies[Proxy] = Var;
  }
  uint64_t Loops = 0;
  for (NodeId N : Facts.Order) {
    Loops += isBackEdgeOp(G.opName(N));
    if (IsOwn(N))
      Number({N, 0});
    else if (IsCut(N))
      Number(Origin(G.input(N, 0)));
    if (IsCut(N)) {
      Endpoint E = IsOwn(N) ? Endpoint{N, 0} : Origin(G.input(N, 0));
      Fed[E.Node].push_back(E.Port);
    }
  }
  Sets = NumberSets(NumberOf.size());
  auto AddRead = [&](uint32_t &Set, NodeId N, unsigned I) {
    NodeId Var = Facts.Vars.variableOf(G.input(N, I));
    if (Var == NoNode || !needsValue(G, Facts.Vars, N, I, Var))
      return;
    if (auto It = Proxies.find(Var); It != Proxies.end())
      Var = It->second;
    if (G.node(Var).Kind != Inserted::No)
      return;
    if (When)
      Set = Sets.unite(Set, Sets.single(Number({Var, 1})));
    if (!When || When->of(N).empty())
      Set = Sets.unite(Set, Sets.single(Number({Var, 0})));
  };
  SetOf.assign(G.size(), NumberSets::None);
  auto Taken = [&](Endpoint E) {
    auto It = Fed.empty() || E.isControl() ? Fed.end() : Fed.find(E.Node);
    return It != Fed.end() && is_contained(It->second, E.Port) &&
                   SetOf[E.Node] != NumberSets::None
               ? Sets.single(Number(E))
               : SetOf[E.Node];
  };
  // Needs that pass a back edge are found after the first turn. The loop ends,
  // because sets only grow.
  TurnLimit Limit("the needs of nodes", 1 + Loops * NumberOf.size());
  for (NodeId Again = 0; Again != NoNode;) {
    Limit.turn([&] { return G.name(Again).str(); });
    Again = NoNode;
    for (NodeId N : Facts.Order) {
      uint32_t Set = SetOf[N];
      ArrayRef<Endpoint> Inputs = G.inputs(N);
      bool Cut = IsCut(N);
      bool IsInserted = G.node(N).Kind != Inserted::No;
      for (size_t I = 0; I < Inputs.size(); ++I) {
        if (IsInserted && isRowOperand(G, N, static_cast<unsigned>(I)))
          continue;
        Set = Sets.unite(Set, Taken(Inputs[I]));
        if (I < G.node(N).NumData && !Cut)
          AddRead(Set, N, I);
      }
      if (Cut && Set != NumberSets::None)
        Set = Sets.single(
            Number(IsOwn(N) ? Endpoint{N, 0} : Origin(G.input(N, 0))));
      else if (IsOwn(N))
        Set = Sets.unite(Set, Sets.single(Number({N, 0})));
      if (Set == SetOf[N])
        continue;
      SetOf[N] = Set;
      if (Loops != 0 && isBackEdgeOp(G.opName(N)))
        Again = N;
    }
  }
}

} // namespace graft
