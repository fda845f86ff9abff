//===- lib/program/forms/SeedOffset.cpp - draws of random numbers -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/SeedOffset.h"

#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

DrawOperands drawOperands(StringRef Op) {
  if (Op == op::Multinomial)
    return {-1, 0, -1};
  if (Op == op::StatelessMultinomial)
    return {-1, 0, 2};
  if (Op == op::RandomGamma || Op == op::RandomPoissonV2)
    return {0, 1, -1};
  // (shape, seed, ...), or (shape, key, counter, alg, ...).
  return {0, -1, Op.starts_with("Stateless") ? 1 : -1};
}

bool isSeededDraw(StringRef Op) {
  return ruleOf(Op).Is & trait::DrawsRows && drawOperands(Op).Seed >= 0;
}

bool offsetsSeed(const Graph &G, NodeId N, unsigned Replicas) {
  auto IsInserted = [&](NodeId Node, StringRef Op, Inserted Kind) {
    return G.node(Node).Kind == Kind && G.isOp(Node, Op);
  };
  if (!IsInserted(N, op::AddV2, Inserted::Definition) || G.node(N).NumData != 2)
    return false;
  NodeId Index = G.input(N, 1).Node;
  if (IsInserted(Index, op::Cast, Inserted::Definition))
    Index = G.input(Index, 0).Node;
  if (!IsInserted(Index, ToReplicasOp, Inserted::Split) ||
      G.intAttr(Index, "axis").value_or(0) != 0)
    return false;
  NodeId Range = G.input(Index, 0).Node;
  if (!IsInserted(Range, op::Range, Inserted::Definition) ||
      G.node(Range).NumData != 3)
    return false;
  const double Want[] = {0, double(Replicas), 1};
  for (unsigned I = 0; I < 3; ++I) {
    NodeId Bound = G.input(Range, I).Node;
    if (!IsInserted(Bound, op::Const, Inserted::Definition) ||
        constScalar(G, Bound) != Want[I])
      return false;
  }
  return true;
}

Endpoint withoutOffset(const Graph &G, NodeId N, unsigned K, Endpoint E,
                       unsigned Replicas) {
  StringRef Op = G.opName(N);
  return E.Node != NoNode && isSeededDraw(Op) &&
                 drawOperands(Op).Seed == static_cast<int>(K) &&
                 offsetsSeed(G, E.Node, Replicas)
             ? G.input(E.Node, 0)
             : E;
}

} // namespace graft
