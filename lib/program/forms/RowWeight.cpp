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

Endpoint sizesOf(const Graph &G, NodeId N) {
  if (!G.isOp(N, op::Pack) || G.node(N).NumData == 0 ||
      G.intAttr(N, "axis").value_or(0) != 0)
    return {};
  Endpoint Sizes;
  for (auto [I, Combined] : enumerate(G.dataInputs(N))) {
    if (!isFreeOp(G, Combined, FromReplicasOp, 1))
      return {};
    auto Element = takenElement(G, G.input(Combined.Node, 0));
    if (!Element || Element->second != static_cast<int64_t>(I) ||
        (I != 0 && Element->first != Sizes))
      return {};
    Sizes = Element->first;
  }
  return Sizes;
}

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

using TwoCounts = std::optional<std::pair<RowCount, RowCount>>;

/// Returns the first value of \p Read for a condition that an assertion of \p
/// Gate tests.
static TwoCounts ofCondition(const Graph &G, NodeId Gate,
                             function_ref<TwoCounts(Endpoint)> Read) {
  for (Endpoint Control : G.controlInputs(Gate))
    if (NodeId N = Control.Node;
        G.isOp(N, op::Assert) && G.node(N).NumData != 0)
      if (auto Found = Read(G.input(N, 0)))
        return Found;
  return std::nullopt;
}

TwoCounts comparedRows(const Graph &G, NodeId Gate) {
  return ofCondition(G, Gate, [&](Endpoint E) -> TwoCounts {
    if (!isFreeOp(G, E, op::Equal, 2))
      return std::nullopt;
    auto One = rowCount(G, G.input(E.Node, 0)),
         Two = rowCount(G, G.input(E.Node, 1));
    return One && Two ? TwoCounts({*One, *Two}) : std::nullopt;
  });
}

namespace {

/// Reads the form of relatedRows().
class RelatedRows {
public:
  RelatedRows(const Graph &G, unsigned Replicas) : G(G), Replicas(Replicas) {}

  TwoCounts read(Endpoint Condition);

private:
  /// Returns operand \p I of \p E if \p E is an op \p Op of two operands.
  std::optional<Endpoint> operand(Endpoint E, StringRef Op, unsigned I) const {
    return isFreeOp(G, E, Op, 2) ? std::optional(G.input(E.Node, I))
                                 : std::nullopt;
  }
  bool isNumber(std::optional<Endpoint> E, double Number) const {
    return E && G.isOp(E->Node, op::Const) &&
           G.controlInputs(E->Node).empty() &&
           constScalar(G, E->Node) == Number;
  }
  std::optional<Endpoint> squared(Endpoint E) const {
    auto One = operand(E, op::Mul, 0);
    return One == operand(E, op::Mul, 1) ? One : std::nullopt;
  }
  std::optional<Endpoint> element(Endpoint E, unsigned I);
  std::optional<Endpoint> even(Endpoint Condition, unsigned I);

  const Graph &G;
  unsigned Replicas;
  NodeId Pack = NoNode; ///< The numbers of a replica.
};

/// Returns operand \p I of the Pack if \p E is the sum of it over replicas.
std::optional<Endpoint> RelatedRows::element(Endpoint E, unsigned I) {
  auto Taken = takenElement(G, E);
  if (!Taken || Taken->second != I)
    return std::nullopt;
  Endpoint Sum = Taken->first;
  if (!isFreeOp(G, Sum, FromReplicasOp, 1) ||
      G.stringAttr(Sum.Node, CombineAttr) != combine::Sum)
    return std::nullopt;
  Endpoint Numbers = G.input(Sum.Node, 0);
  if (!isFreeOp(G, Numbers, op::Pack, 5) ||
      (Pack != NoNode && Pack != Numbers.Node))
    return std::nullopt;
  Pack = Numbers.Node;
  return G.input(Pack, I);
}

/// Returns the number that all replicas have in common if \p Condition is true.
std::optional<Endpoint> RelatedRows::even(Endpoint Condition, unsigned I) {
  auto Left = operand(Condition, op::Equal, 0),
       Right = operand(Condition, op::Equal, 1);
  auto Squares = Left ? operand(*Left, op::Mul, 0) : std::nullopt;
  auto Sum = Right ? squared(*Right) : std::nullopt;
  if (!Squares || !Sum || !isNumber(operand(*Left, op::Mul, 1), Replicas))
    return std::nullopt;
  auto Number = element(*Sum, I), Square = element(*Squares, I + 1);
  return Number && Square && squared(*Square) == Number ? Number : std::nullopt;
}

TwoCounts RelatedRows::read(Endpoint Condition) {
  auto Even = operand(Condition, op::LogicalOr, 0),
       Same = operand(Condition, op::LogicalOr, 1);
  if (!Even || !Same || !isFreeOp(G, *Even, op::LogicalAnd, 2) ||
      !isNumber(operand(*Same, op::Equal, 1), 0))
    return std::nullopt;
  auto A = even(G.input(Even->Node, 0), 0), B = even(G.input(Even->Node, 1), 2);
  auto Distance = element(*operand(*Same, op::Equal, 0), 4);
  auto Apart = Distance ? squared(*Distance) : std::nullopt;
  if (!A || !B || !Apart || operand(*Apart, op::Sub, 0) != A ||
      operand(*Apart, op::Sub, 1) != B)
    return std::nullopt;
  auto One = rowCount(G, *A), Two = rowCount(G, *B);
  return One && Two ? TwoCounts({*One, *Two}) : std::nullopt;
}

} // namespace

TwoCounts relatedRows(const Graph &G, NodeId Gate, unsigned Replicas) {
  return ofCondition(
      G, Gate, [&](Endpoint E) { return RelatedRows(G, Replicas).read(E); });
}

} // namespace graft
