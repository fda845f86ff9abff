//===- lib/program/forms/RowWeight.cpp - weights of rows --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/RowWeight.h"

#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

bool passesWeightsOn(const Graph &G, NodeId N) {
  const Node &This = G.node(N);
  return This.NumData != 0 &&
         (This.Kind == Inserted::Pack ||
          (This.Kind != Inserted::No && G.isOp(N, op::Identity)));
}

std::optional<RowWeight> rowWeight(const Graph &G, Endpoint E) {
  RowWeight Result;
  Endpoint Base = E;
  while (isFreeOp(G, Base, op::Mul, 2))
    Base = G.input(Base.Node, 1);
  for (; isFreeOp(G, E, op::Mul, 2) && G.input(E.Node, 1) == Base;
       ++Result.Power)
    E = G.input(E.Node, 0);
  if (E != Base || !isFreeOp(G, E, op::Cast, 1))
    return std::nullopt;
  E = G.input(E.Node, 0);
  if (isFreeOp(G, E, FromReplicasOp, 1) &&
      G.stringAttr(E.Node, CombineAttr) == combine::Sum) {
    Result.OfAll = true;
    E = G.input(E.Node, 0);
  }
  auto Rows = rowCount(G, E);
  if (!Rows)
    return std::nullopt;
  Result.Rows = *Rows;
  return Result;
}

std::optional<std::pair<RowCount, RowCount>> comparedRows(const Graph &G,
                                                          NodeId Gate) {
  for (Endpoint Control : G.controlInputs(Gate)) {
    NodeId Assert = Control.Node;
    if (!G.isOp(Assert, op::Assert) || G.node(Assert).NumData == 0 ||
        !isFreeOp(G, G.input(Assert, 0), op::Equal, 2))
      continue;
    NodeId Same = G.input(Assert, 0).Node;
    auto One = rowCount(G, G.input(Same, 0)),
         Two = rowCount(G, G.input(Same, 1));
    if (One && Two)
      return std::pair(*One, *Two);
  }
  return std::nullopt;
}

} // namespace graft
