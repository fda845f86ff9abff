//===- lib/infer/facts/Needs.cpp - what running a node takes ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/Needs.h"

#include "lib/infer/graph/Loops.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/Proxy.h"
#include "lib/support/InternalError.h"

using namespace llvm;

namespace graft {

namespace {

enum class NeedRole : uint8_t { None, Need, Fed };

/// Whether an op by itself is something that a run needs or does.
NeedRole roleOf(StringRef Op, const OpDef *Def) {
  if (Op == op::PlaceholderWithDefault)
    return NeedRole::Fed;
  if (Op == op::Placeholder || Op == op::PlaceholderV2 || isVariableOp(Op) ||
      !Def)
    return NeedRole::Need;
  if (Def->readsVariable() || isLocalHandleOp(Op))
    return NeedRole::None;
  // A reference that is passed on has any type.
  auto Uses = [](const ArgDef &Arg) {
    return Arg.IsRef && Arg.Type != DT_INVALID;
  };
  return Def->isStateful() || Def->update().Kind != UpdateKind::None ||
                 any_of(Def->inputs(), Uses)
             ? NeedRole::Need
             : NeedRole::None;
}

} // namespace

uint32_t Needs::intern(unsigned At, Pair Set) {
  Level &L = Levels[At];
  if (Set == Pair(0, 0))
    return 0;
  auto [It, New] = L.Ids.try_emplace(Set, L.Sets.size());
  if (New)
    L.Sets.push_back(Set);
  return It->second;
}

uint32_t Needs::single(unsigned At, uint32_t Number) {
  if (At == 0)
    return intern(0, {uint32_t(1) << (Number & 31), 0});
  uint32_t Part = single(At - 1, Number);
  bool Upper = (Number >> (At + 4)) & 1;
  return intern(At, Upper ? Pair(0, Part) : Pair(Part, 0));
}

uint32_t Needs::unite(unsigned At, uint32_t A, uint32_t B) {
  if (A == B || B == 0)
    return A;
  if (A == 0)
    return B;
  if (A > B)
    std::swap(A, B);
  auto [It, New] = Levels[At].Unions.try_emplace({A, B}, 0);
  if (!New)
    return It->second;
  Pair X = Levels[At].Sets[A], Y = Levels[At].Sets[B];
  uint32_t Both = At == 0 ? intern(0, {X.first | Y.first, 0})
                          : intern(At, {unite(At - 1, X.first, Y.first),
                                        unite(At - 1, X.second, Y.second)});
  Levels[At].Unions[{A, B}] = Both;
  return Both;
}

Needs::Needs(const Graph &G, const ProgramFacts &Facts) {
  std::vector<NeedRole> Roles;
  Roles.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Roles.push_back(roleOf(G.opNameOf(Op), G.opDefOf(Op)));
  auto RoleOf = [&](NodeId N) {
    return G.node(N).Kind == Inserted::No ? Roles[G.node(N).Op]
                                          : NeedRole::None;
  };
  auto IsSplit = [&](NodeId N) { return G.node(N).Kind == Inserted::Split; };
  DenseMap<std::pair<NodeId, uint32_t>, uint32_t> Numbers;
  auto NumberOf = [&](Endpoint E) {
    return Numbers.try_emplace({E.Node, E.Port}, Numbers.size()).first->second;
  };
  uint64_t Loops = 0;
  for (NodeId N : Facts.Order) {
    Loops += isBackEdgeOp(G.opName(N));
    if (RoleOf(N) != NeedRole::None)
      NumberOf({N, 0});
    else if (IsSplit(N))
      NumberOf(G.input(N, 0));
  }
  DenseMap<NodeId, NodeId> Proxies;
  for (NodeId Var : Facts.Vars.variables())
    if (RoleOf(Var) != NeedRole::None)
      if (NodeId Proxy = proxyOf(G, Var); Proxy != NoNode)
        Proxies[Proxy] = Var;
  unsigned Top = 0;
  while ((uint64_t(32) << Top) < Numbers.size())
    ++Top;
  Levels.resize(Top + 1);
  SetOf.assign(G.size(), 0);
  // What comes round a loop is there after the first turn; sets only grow.
  TurnLimit Limit("what is needed to run it", 1 + Loops * Numbers.size());
  for (NodeId Again = 0; Again != NoNode;) {
    Limit.turn([&] { return G.name(Again).str(); });
    Again = NoNode;
    for (NodeId N : Facts.Order) {
      uint32_t Set = SetOf[N];
      NeedRole Role = RoleOf(N);
      if (Role != NeedRole::Fed)
        for (Endpoint E : G.inputs(N))
          Set = unite(Top, Set, SetOf[E.Node]);
      uint32_t Own = ~0u;
      if (IsSplit(N))
        Own = Set != 0 ? NumberOf(G.input(N, 0)) : ~0u;
      else if (Role != NeedRole::None)
        Own = NumberOf({N, 0});
      else if (auto It = Proxies.find(N); It != Proxies.end())
        Own = NumberOf({It->second, 0});
      if (Own != ~0u)
        Set = unite(Top, IsSplit(N) ? 0 : Set, single(Top, Own));
      if (Set == SetOf[N])
        continue;
      SetOf[N] = Set;
      if (Loops != 0 && isBackEdgeOp(G.opName(N)))
        Again = N;
    }
  }
}

} // namespace graft
