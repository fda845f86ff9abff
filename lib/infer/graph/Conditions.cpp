//===- lib/infer/graph/Conditions.cpp - when a node runs --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/Conditions.h"

#include "lib/infer/graph/Topology.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <iterator>

using namespace llvm;

namespace graft {

static bool isSwitch(StringRef Op) {
  return Op == op::Switch || Op == op::RefSwitch;
}

bool Conditions::any(const Graph &G) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    if (isSwitch(G.opNameOf(Op)))
      return true;
  return false;
}

uint32_t Conditions::intern(Set S) {
  if (S.size() > MaxChoices)
    return ManySet;
  auto [It, New] = Ids.try_emplace(S, static_cast<uint32_t>(Sets.size()));
  if (New) {
    Under.emplace_back();
    for (uint32_t Choice : S)
      if (Under.back().empty() || Under.back().back() != Choice / 2)
        Under.back().push_back(Choice / 2);
    Sets.push_back(std::move(S));
  }
  return It->second;
}

uint32_t Conditions::unite(uint32_t A, uint32_t B) {
  if (A == B || B == 0)
    return A;
  if (A == 0)
    return B;
  if (A == ManySet || B == ManySet)
    return ManySet;
  Set Result;
  std::set_union(Sets[A].begin(), Sets[A].end(), Sets[B].begin(), Sets[B].end(),
                 std::back_inserter(Result));
  return intern(std::move(Result));
}

/// Returns the choices of a Merge, which runs if one of its inputs does. One of
/// the two sides of a predicate always runs, so their Merge drops that choice.
/// Any other Merge is assumed to depend on all choices of its inputs.
uint32_t Conditions::merge(ArrayRef<uint32_t> Sides) {
  uint32_t All = 0;
  for (uint32_t Side : Sides)
    All = unite(All, Side);
  if (Sides.size() != 2 || is_contained(Sides, ManySet))
    return All;
  const Set &A = Sets[Sides[0]], &B = Sets[Sides[1]];
  Set Differ;
  std::set_symmetric_difference(A.begin(), A.end(), B.begin(), B.end(),
                                std::back_inserter(Differ));
  if (A.size() != B.size() || Differ.size() != 2 ||
      Differ[0] / 2 != Differ[1] / 2)
    return All;
  Set Common;
  std::set_intersection(A.begin(), A.end(), B.begin(), B.end(),
                        std::back_inserter(Common));
  return intern(std::move(Common));
}

uint32_t Conditions::setAt(Endpoint E) {
  uint32_t P = predicateOf(E.Node), Base = SetOf[E.Node];
  return P == ~0u || E.isControl()
             ? Base
             : unite(Base, intern({2 * P + (E.Port & 1)}));
}

/// Skips identities and inserted nodes, which do not change a predicate.
Endpoint Conditions::source(Endpoint E) const {
  for (;;) {
    const Node &This = G.node(E.Node);
    bool Passes = This.Kind != Inserted::No || G.isOp(E.Node, op::Identity);
    if (!Passes || This.NumData == 0)
      break;
    E = G.input(E.Node, 0);
  }
  if (auto It = SameAs.find(E.Node); It != SameAs.end())
    E.Node = It->second;
  return E;
}

/// Returns the number of the predicate of the Switch \p N.
uint32_t Conditions::addSwitch(NodeId N) {
  Endpoint E = source(G.input(N, 1));
  if (G.isOp(E.Node, op::LoopCond))
    return ~0u;
  auto [It, New] = Predicates.try_emplace(
      {E.Node, E.Port}, static_cast<uint32_t>(Tensors.size()));
  if (New)
    addPredicate();
  // Skip each Identity that runs whenever its input does, since it has the type
  // of its input. A graph has about one such Identity for each conditional.
  Endpoint Tensor = G.input(N, 1);
  while (G.isOp(Tensor.Node, op::Identity) &&
         G.node(Tensor.Node).Kind == Inserted::No &&
         G.node(Tensor.Node).NumData == 1 &&
         SetOf[Tensor.Node] == setAt(G.input(Tensor.Node, 0)))
    Tensor = G.input(Tensor.Node, 0);
  std::vector<Endpoint> &Its = Tensors[It->second];
  if (!is_contained(Its, Tensor))
    Its.push_back(Tensor);
  return It->second;
}

uint32_t Conditions::addPredicate() {
  Members.emplace_back();
  Tensors.emplace_back();
  return static_cast<uint32_t>(Tensors.size() - 1);
}

Conditions::Conditions(const Graph &G, ArrayRef<NodeId> Order,
                       DenseMap<NodeId, NodeId> SameAs)
    : G(G), SameAs(std::move(SameAs)) {
  enum : uint8_t { Other, Chooses, Joins, Returns };
  std::vector<uint8_t> Roles;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    Roles.push_back(isSwitch(Name)                              ? Chooses
                    : Name == op::Merge || Name == op::RefMerge ? Joins
                    : isBackEdgeOp(Name)                        ? Returns
                                                                : Other);
  }
  intern({});
  addPredicate();
  Sets.emplace_back();
  Under.push_back({Many});
  SetOf.assign(G.size(), 0);
  SmallVector<uint32_t, 2> Sides;
  for (NodeId N : Order) {
    uint8_t Role = Roles[G.node(N).Op];
    if (Role == Chooses && G.node(N).NumData == 2)
      if (uint32_t P = addSwitch(N); P != ~0u)
        Switches[N] = P;
    uint32_t Its = 0;
    Sides.clear();
    for (Endpoint E : G.inputs(N)) {
      if (Roles[G.node(E.Node).Op] == Returns)
        continue;
      uint32_t Side = setAt(E);
      if (Role == Joins && !E.isControl())
        Sides.push_back(Side);
      else
        Its = unite(Its, Side);
    }
    if (Role == Joins)
      Its = unite(Its, merge(Sides));
    SetOf[N] = Its;
    for (uint32_t P : Under[Its])
      Members[P].push_back(N);
  }
}

} // namespace graft
