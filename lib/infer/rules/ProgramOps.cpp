//===- lib/infer/rules/ProgramOps.cpp - the program's own ops ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What crosses between replicas.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/program/Program.h"
#include "lib/program/forms/Accumulator.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// The axis of the node along which replicas have parts; none if there is no
/// such axis.
static std::optional<size_t> splitAxis(SizeContext &C, Dims X) {
  int64_t Axis = C.intAttr("axis").value_or(0);
  if (!X || Axis < 0 || Axis >= int64_t(X->size()))
    return std::nullopt;
  return static_cast<size_t>(Axis);
}

/// The slice of one replica.
static void toReplicas(SizeContext &C) {
  Dims X = C.in(0);
  auto Axis = splitAxis(C, X);
  if (!Axis)
    return;
  DimList List(X->begin(), X->end());
  DimId Old = List[*Axis], New = C.slot(0);
  int64_t Number = C.Table.number(Old);
  Endpoint Input = C.Inputs[0];
  if (C.G.node(Input.Node).Kind == Inserted::Definition) {
    // The numbers of the replicas are no rows.
    int64_t Replicas = C.options().Unpatched ? 1 : C.options().Replicas;
    if (Number != UnknownSize && Number % Replicas == 0)
      C.Table.assignNumber(New, Number / Replicas);
  } else {
    C.Table.assignNumber(New, Number);
    if (auto All = C.Table.sym(Old); All && All->B > 0 && All->R > 0)
      C.Table.assign(New, {All->C, All->B, int8_t(All->R - 1), All->Rows});
    C.splitRows(New, 0, Input, /*Own=*/false);
    // The user says which feeds have equally many rows.
    auto S = C.Table.sym(New);
    if (auto Batch = S && C.G.node(C.N).Flags & NF_MayHaveGraft
                         ? C.intAttr(RowsAttr)
                         : std::nullopt)
      C.sayRows(*Batch, *S);
    if (auto Own = C.Table.sym(New); Own && Own->B > 0)
      C.Table.assign(Old, {Own->C, Own->B, int8_t(Own->R + 1), Own->Rows});
  }
  List[*Axis] = New;
  C.setShape(0, List);
}

/// What all replicas have together.
static void gatherReplicas(SizeContext &C) {
  Dims X = C.in(0);
  auto Axis = splitAxis(C, X);
  if (!Axis)
    return;
  DimList List(X->begin(), X->end());
  DimId Old = List[*Axis], New = C.slot(0);
  int64_t Number = C.Table.number(Old);
  // The number of rows of the batch is that of all replicas already, unless
  // each has a batch of its own.
  auto S = C.Table.sym(Old);
  bool IsOfAll =
      C.options().Unpatched || (S && S->isLocal() && !C.hasOwnRows());
  if (S)
    C.Table.assign(New, {S->C, S->B, int8_t(S->R + 1), S->Rows, S->Ragged});
  if (Number != UnknownSize)
    C.Table.assignNumber(New, Number * (IsOfAll ? 1 : C.options().Replicas));
  List[*Axis] = New;
  C.setShape(0, List);
}

static void fromReplicas(SizeContext &C) {
  if (C.stringAttr("combine") == StringRef("concat"))
    gatherReplicas(C);
  else
    C.passShape(0, C.inRun(0));
}

/// A sum over the replicas has the shape of what they put.
static void accumulated(SizeContext &C) {
  NodeId Put = putOf(C.G, C.N);
  Dims X = Put == NoNode ? Dims() : C.Known.shape(C.G.input(Put, 2));
  if (X)
    C.setShape(0, DimList(X->begin(), X->end()));
}

} // namespace sizes

ArrayRef<OpRule> families::programOps() {
  static constexpr OpRule Rules[] = {
      // The program's own ops.
      {.Op = "_ToReplicas",
       .Sizes = sizes::toReplicas,
       .Type = TypeRule::ToReplicas},
      {.Op = "_FromReplicas",
       .Sizes = sizes::fromReplicas,
       .Values = values::same,
       .Type = TypeRule::FromReplicas},
      {.Op = "_Reduce", .Sizes = sizes::same, .Type = TypeRule::Reduce},
      {.Op = "_Gather",
       .Sizes = sizes::gatherReplicas,
       .Type = TypeRule::GatherReplicas},
      {.Op = "_Scale", .Sizes = sizes::same, .Type = TypeRule::Scale},
      {.Op = op::CollectiveReduce,
       .Sizes = sizes::same,
       .Type = TypeRule::CollectiveReduce},
      {.Op = op::CollectiveGather,
       .Sizes = sizes::gatherReplicas,
       .Type = TypeRule::GatherReplicas},
      {.Op = op::AccumulatorApplyGradient, .Type = TypeRule::AccumulatorPut},
      {.Op = op::AccumulatorTakeGradient,
       .Sizes = sizes::accumulated,
       .Type = TypeRule::AccumulatorTake},
  };
  return Rules;
}

} // namespace graft
