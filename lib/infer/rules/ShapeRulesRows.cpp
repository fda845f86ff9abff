//===- lib/infer/rules/ShapeRulesRows.cpp - more rules for shapes -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rows that are counted by their values, sent to parts and stitched, moved into
// blocks, or cross between replicas.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/PartedRows.h"
#include "lib/infer/sizes/DimRules.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/Accumulator.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

/// SpaceToBatchND, BatchToSpaceND: how many rows, and the rank.
void DimRules::blocks() {
  Dims X = in(0);
  auto Block = nums(1);
  if (!X || !Block || X->size() < Block->size() + 1)
    return;
  int64_t Count = 1;
  for (int64_t Size : *Block)
    if (Size <= 0 || MulOverflow(Count, Size, Count))
      return;
  DimList List(X->begin(), X->end());
  DimId Blocks = number(0, Count);
  List[0] = G.isOp(N, op::SpaceToBatchND) ? product(1, List[0], Blocks)
                                          : quotient(1, List[0], Blocks);
  for (size_t I = 1; I <= Block->size(); ++I)
    List[I] = slotFrom(1 + I, List[I]);
  setShape(0, List);
}

/// The candidates that a sampler draws, and how often it is expected to draw
/// the true classes, and them.
void DimRules::candidates() {
  passShape(1, inRun(0));
  if (auto Count = G.intAttr(N, "num_sampled")) {
    setShape(0, number(0, *Count));
    setShape(2, number(0, *Count));
  }
}

/// A sum over the replicas has the shape of what they put.
void DimRules::accumulated() {
  NodeId Put = putOf(G, N);
  Dims X = Put == NoNode ? Dims() : A.shape(G.input(Put, 2));
  if (X)
    setShape(0, DimList(X->begin(), X->end()));
}

/// Crossing ops: the slice of one replica, or what all replicas have together.
void DimRules::crossing() {
  Dims X = in(0);
  if (!X)
    return;
  DimList List(X->begin(), X->end());
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  bool Concat = G.isOp(N, "_FromReplicas")
                    ? G.stringAttr(N, "combine") == StringRef("concat")
                    : !G.isOp(N, "_ToReplicas");
  if (G.isOp(N, "_FromReplicas") && !Concat) {
    setShape(0, List);
    return;
  }
  if (Axis < 0 || Axis >= int64_t(List.size()))
    return;
  DimId Old = List[Axis], New = slot(0);
  int64_t Number = A.Dims.number(Old);
  int64_t Replicas = A.Options.Unpatched ? 1 : A.Options.Replicas;
  if (Concat) {
    // The number of rows of the batch is that of all replicas already, unless
    // each has a batch of its own.
    auto S = A.Dims.sym(Old);
    if (S && S->isLocal() && !A.OwnRows)
      Replicas = 1;
    if (S)
      A.Dims.assign(New, {S->C, S->B, int8_t(S->R + 1), S->Rows, S->Ragged});
    if (Number != UnknownSize)
      A.Dims.assignNumber(New, Number * Replicas);
  } else if (G.node(G.input(N, 0).Node).Kind == Inserted::Definition) {
    // The numbers of the replicas are no rows.
    if (Number != UnknownSize && Number % Replicas == 0)
      A.Dims.assignNumber(New, Number / Replicas);
  } else {
    A.Dims.assignNumber(New, Number);
    if (auto All = A.Dims.sym(Old); All && All->B > 0 && All->R > 0)
      A.Dims.assign(New, {All->C, All->B, int8_t(All->R - 1), All->Rows});
    splitRows(New, 0, G.input(N, 0), /*Own=*/false);
    // The user says which feeds have equally many rows.
    auto S = A.Dims.sym(New);
    if (auto Batch = S && G.node(N).Flags & NF_MayHaveGraft
                         ? G.intAttr(N, RowsAttr)
                         : std::nullopt)
      if (auto [It, First] = RowsBySaying.try_emplace(*Batch, *S); !First)
        A.Dims.relate(It->second, *S);
    if (auto Own = A.Dims.sym(New); Own && Own->B > 0)
      A.Dims.assign(Old, {Own->C, Own->B, int8_t(Own->R + 1), Own->Rows});
  }
  List[Axis] = New;
  setShape(0, List);
}

/// The indices of what is true: a row each, of as many columns as there are
/// axes.
void DimRules::where() {
  Dims X = in(0);
  if (!X)
    return;
  DimId Rows = slot(0);
  if (countsLocally(*X) && !is_contained(A.Options.Whole, N))
    countRows(Rows, {Selected.firstLike(G, N, 0), 0});
  setShape(0, {Rows, number(1, int64_t(X->size()))});
}

/// Whether the node at hand, which counts rows of shape \p X by their values,
/// may do so on each replica.
bool DimRules::countsLocally(ArrayRef<DimId> X) const {
  bool OfRows = any_of(X, [&](DimId D) {
    auto S = A.Dims.sym(D);
    return S && S->isLocal();
  });
  return OfRows && !A.Options.Unpatched &&
         G.node(N).Count == Copies::PerReplica &&
         !(Loops && Loops->givesInside(N));
}

/// Gives \p Rows the class of those that \p By counts.
void DimRules::countRows(DimId Rows, Endpoint By) {
  A.Dims.assign(Rows, {1, 1, 0, 0, A.outputIndex(By) + 1});
}

/// DynamicPartition: each part gets the rows that are sent to it.
void DimRules::parts() {
  Dims X = in(0), Part = in(1);
  if (!X || !Part || X->size() < Part->size())
    return;
  sameShapes(X->take_front(Part->size()), *Part);
  NodeId First = N;
  bool Local = countsLocally(*Part);
  if (Local) {
    First = Selected.firstLike(G, N, 1);
    Local = !is_contained(A.Options.Whole, First);
  }
  DimList List{0};
  List.append(X->begin() + Part->size(), X->end());
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port) {
    List[0] = slot(Port);
    if (Local)
      countRows(List[0], {Port < A.numOutputs(First) ? First : N, Port});
    setShape(Port, List);
  }
}

/// A stitch of all the rows that were sent to parts.
void DimRules::stitch() {
  NodeId Partition = partitionStitched(G, N);
  if (Partition == NoNode) {
    dynamicStitch();
    return;
  }
  NodeId Range = numbersParted(G, Partition);
  auto Start = A.numbers(G.input(Range, 0)),
       Delta = A.numbers(G.input(Range, 2));
  Dims All = A.shape({Range, 0}), Rows = in(numData() / 2);
  if (!Start || !Delta || *Start != ArrayRef<int64_t>{0} ||
      *Delta != ArrayRef<int64_t>{1} || !All || All->size() != 1 || !Rows ||
      Rows->empty())
    return;
  DimList List{All->front()};
  List.append(Rows->begin() + 1, Rows->end());
  setShape(0, List);
}

} // namespace graft
