//===- lib/certify/compare/RepeatCheck.cpp - rows that repeat -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/RepeatCheck.h"

#include "lib/infer/facts/RepeatedRows.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

namespace {

class RepeatChecker {
public:
  RepeatChecker(Comparison &C, const ProgramFacts &Facts)
      : C(C), G(C.G), Facts(Facts), Rows(G, Facts, /*Plan=*/false) {}

  void run();

private:
  bool isTable(Endpoint Lookup, StringRef Bytes) const {
    auto Found = rowLookup(G, Lookup);
    return Found && G.attr(Found->Table, "value") == Bytes;
  }
  int64_t axis(NodeId N) const { return G.intAttr(N, "axis").value_or(0); }
  bool repeats(NodeId Split) const;
  bool keeps(NodeId Merge, Endpoint Upto) const;
  bool scales(NodeId Scale) const;
  bool isShareOf(NodeId Merge, Endpoint E) const;

  Comparison &C;
  const Graph &G;
  const ProgramFacts &Facts;
  RepeatedRows Rows;
};

/// Returns true if \p Split repeats the rows of its input N/n times, for N
/// replicas and n shards (lib/program/forms/RowRepeat.h).
bool RepeatChecker::repeats(NodeId Split) const {
  auto Shape = Facts.Dims.shape(G.input(Split, 0));
  return Rows.repeats(Split) && Shape &&
         isTable(G.input(Split, 1),
                 timesTable(C.Replicas, static_cast<unsigned>(Shape->size()),
                            static_cast<unsigned>(axis(Split))));
}

/// Returns true if \p E is the sum of the replicas' row counts at \p Merge,
/// divided by N/n. Each shard is on N/n replicas, so the sum counts its rows
/// N/n times.
bool RepeatChecker::isShareOf(NodeId Merge, Endpoint E) const {
  auto Number = rowLookup(G, G.input(E.Node, 1));
  NodeId Sum = G.input(E.Node, 0).Node;
  if (!Number ||
      !isTable(G.input(E.Node, 1), scaleTable(C.Replicas, DT_INT32, 0, 1)) ||
      C.opKind(Sum) != OpKind::FromReplicas || G.node(Sum).NumData != 1 ||
      G.stringAttr(Sum, CombineAttr) != combine::Sum)
    return false;
  auto Local = rowCount(G, G.input(Sum, 0));
  auto Source = Rows.sourceAt(Number->Rest);
  return Local && Local->Of == G.input(Merge, 0) &&
         Local->Axis == axis(Merge) && Source &&
         Rows.follows(G.input(Merge, 0).Node, *Source);
}

/// Returns true if \p Upto is the number of rows that the concatenation or the
/// gather \p Merge has in the single-device step.
bool RepeatChecker::keeps(NodeId Merge, Endpoint Upto) const {
  int64_t Axis = axis(Merge);
  if (Axis < 0 || !isFreeOp(G, Upto, op::Fill, 2))
    return false;
  auto Count = constValue(G, G.input(Upto.Node, 0).Node);
  if (!Count || Count->Ints.size() != 1 || Count->Ints[0] != Axis + 1)
    return false;
  Endpoint Number = G.input(Upto.Node, 1);
  if (isFreeOp(G, Number, op::FloorDiv, 2) && isShareOf(Merge, Number))
    return true;
  int64_t Times = 1;
  if (isFreeOp(G, Number, op::Mul, 2)) {
    Times = static_cast<int64_t>(
        constScalar(G, G.input(Number.Node, 1).Node).value_or(0));
    Number = G.input(Number.Node, 0);
  }
  for (unsigned I = 0; I < Rows.sources().size(); ++I)
    if (const RepeatedRows::Source &S = Rows.sources()[I];
        S.Rest.Units == Number && S.Rest.Axis >= 0)
      return Rows.follows(G.input(Merge, 0).Node, I) &&
             Rows.rowsOf(Merge, I, Axis) == Times;
  return false;
}

/// Returns true if the factors of \p Scale are those that its attributes state.
bool RepeatChecker::scales(NodeId Scale) const {
  return isTable(G.input(Scale, 1),
                 scaleTable(C.Replicas, G.outputType(G.input(Scale, 0)),
                            statedPowers(G, Scale),
                            G.intAttr(Scale, ShareAttr).value_or(0)));
}

void RepeatChecker::run() {
  for (const RepeatedRows::Obstacle &O : Rows.obstacles())
    C.error(O.Node, O.Why);
  for (const RepeatedRows::Need &Need : Rows.needs())
    C.error(Need.Node, "combines the values of all replicas, but some replicas "
                       "repeat the rows of others");
  for (auto [N, I] : C.NamedAfter)
    if (Rows.isRaw(N))
      C.error(N, "has the name of an input node, but its value includes the "
                 "repeated rows");
  for (NodeId N : Facts.Order) {
    if (NodeId Member = keptMember(G, N);
        Member != NoNode &&
        !(keptAxis(G, N) == 0 && keeps(Member, G.input(N, 2))))
      C.error(N, "does not keep the rows of the single-device step");
    if (G.node(N).NumData != 2)
      continue;
    switch (C.opKind(N)) {
    case OpKind::ToReplicas:
      if (!repeats(N))
        C.error(N, "does not repeat its rows as often as the replicas need");
      break;
    case OpKind::FromReplicas:
      if (G.stringAttr(N, CombineAttr) != combine::Concat ||
          !keeps(N, G.input(N, 1)))
        C.error(N, "does not keep the rows of the single-device step");
      break;
    case OpKind::Scale:
      if (!scales(N))
        C.error(N, "does not scale by the factor that its attributes and the "
                   "number of rows give");
      break;
    default:
      break;
    }
  }
}

} // namespace

void checkRepeats(Comparison &C, const ProgramFacts &Facts) {
  auto Repeats = [&](NodeId N) {
    OpKind Op = C.opKind(N);
    return keptMember(C.G, N) != NoNode ||
           (C.G.node(N).NumData == 2 &&
            (Op == OpKind::ToReplicas || Op == OpKind::FromReplicas ||
             Op == OpKind::Scale));
  };
  if (any_of(Facts.Order, Repeats))
    RepeatChecker(C, Facts).run();
}

} // namespace graft
