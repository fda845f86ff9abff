//===- lib/infer/rules/Indexing.cpp - rows by index -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that look up, scatter or sum rows by row number. For local row indices
// see RowIndices.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/program/forms/LengthGather.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// If operand \p I is a Where, unifies \p Sizes, the shape of the indexed
/// tensor, with the sizes of the condition that have the same numbers. A
/// replica then finds the positions of local rows.
static void likeListed(SizeContext &C, unsigned I, ArrayRef<DimId> Sizes) {
  const Graph &G = C.G;
  auto Passes = [&](NodeId N) {
    return G.isOp(N, op::Cast) || G.isOp(N, op::Identity) ||
           (Sizes.size() == 1 &&
            (G.isOp(N, op::Reshape) || G.isOp(N, op::Squeeze)));
  };
  NodeId From = C.Inputs[I].Node;
  for (int Steps = 0; Steps < 8 && Passes(From); ++Steps)
    From = G.input(From, 0).Node;
  if (!G.isOp(From, op::Where))
    return;
  Dims Of = C.Known.shape(G.input(From, 0));
  if (!Of || (Sizes.size() == 1 && Of->size() != 1))
    return;
  for (size_t A = 0; A < std::min(Sizes.size(), Of->size()); ++A)
    if (int64_t Number = C.Known.localNumber(Sizes[A]);
        Number != UnknownSize && Number == C.Known.localNumber((*Of)[A]))
      C.same(Sizes[A], (*Of)[A]);
}

static void gather(SizeContext &C) {
  Dims X = C.in(0), Rows = C.in(1);
  if (!X || !Rows)
    return;
  auto Number = C.isOp(op::GatherV2) ? C.num(2) : 0;
  if (!Number)
    return;
  int64_t Lead = C.intAttr("batch_dims").value_or(0);
  for (int64_t I = 0;
       I < Lead && I < int64_t(std::min(X->size(), Rows->size())); ++I)
    C.same((*C.in(0))[I], (*C.in(1))[I]);
  auto Axis = axisIn(*Number, int64_t(X->size()));
  if (!Axis || Lead < 0 || Lead > int64_t(*Axis) ||
      Lead > int64_t(Rows->size()))
    return;
  if (Lead == 0)
    likeListed(C, 1, (*X)[*Axis]);
  DimList List(X->begin(), X->begin() + *Axis);
  List.append(Rows->begin() + Lead, Rows->end());
  List.append(X->begin() + *Axis + 1, X->end());
  C.setShape(0, List);
}

/// Infers the shape of a GatherNd: the last axis of the indices selects an
/// element or a slice, the other axes are kept.
static void gatherNd(SizeContext &C) {
  Dims X = C.in(0), Index = C.in(1);
  if (X)
    likeListed(C, 1, *X);
  if (!X || !Index || Index->empty())
    return;
  int64_t Depth = C.Table.number(Index->back());
  if (Depth < 0 || Depth > int64_t(X->size()) || C.Table.hasSym(Index->back()))
    return;
  DimList List(Index->begin(), Index->end() - 1);
  List.append(X->begin() + Depth, X->end());
  C.setShape(0, List);
}

/// Unifies the sizes of operand \p Rows, which operand \p Index scatters into a
/// tensor of shape \p Into. The shape of Rows is the shape of Index without the
/// last axis, followed by the axes of Into that no index selects.
static void scatterRows(SizeContext &C, Dims Into, unsigned Index,
                        unsigned Rows) {
  Dims At = C.in(Index), From = C.in(Rows);
  if (!Into || !At || !From || At->empty())
    return;
  int64_t Depth = C.Table.number(At->back());
  if (C.Table.hasSym(At->back()) || Depth < 0 || Depth > int64_t(Into->size()))
    return;
  DimList List(At->begin(), At->end() - 1);
  List.append(Into->begin() + Depth, Into->end());
  C.sameShapes(*From, List);
}

static void tensorScatter(SizeContext &C) {
  C.passShape(0, C.inRun(0));
  scatterRows(C, C.in(0), 1, 2);
}

static void scatterNd(SizeContext &C) {
  fromSizes<2>(C);
  // Equal data-dependent row counts, such as those of a mask, do not prove an
  // equal row order.
  if (Dims Rows = C.in(1);
      Rows && !Rows->empty() && C.Table.number(Rows->front()) != UnknownSize)
    scatterRows(C, C.out(0), 0, 1);
  if (Dims Out = C.out(0))
    likeListed(C, 0, *Out);
}

void unsortedSegment(SizeContext &C) {
  Dims Data = C.in(0), Ids = C.in(1), Count = C.val(2);
  if (!Data || !Ids || Data->size() < Ids->size())
    return;
  C.sameShapes(Data->take_front(Ids->size()), *Ids);
  if (Count && Count->size() == 1)
    likeListed(C, 1, *Count);
  DimList List{Count && Count->size() == 1 ? (*Count)[0] : C.slot(0)};
  List.append(Data->begin() + Ids->size(), Data->end());
  C.setShape(0, List);
}

static void oneHot(SizeContext &C) {
  Dims X = C.in(0), Depth = C.val(1);
  if (!X || C.intAttr("axis").value_or(-1) != -1)
    return;
  DimList List(X->begin(), X->end());
  List.push_back(Depth && Depth->size() == 1 ? (*Depth)[0] : C.slot(0));
  C.setShape(0, List);
}

static void topK(SizeContext &C) {
  Dims X = C.in(0), K = C.val(1);
  if (!X || X->empty())
    return;
  DimList List(X->begin(), X->end());
  if (auto Count = C.num(1);
      Count && C.Known.localNumber(List.back()) != UnknownSize)
    C.require(*Count <= C.Known.localNumber(List.back()), List.back(),
              "selects more rows than a replica has");
  List.back() = K && K->size() == 1 ? (*K)[0] : C.slot(0);
  C.setShape(0, List);
  C.setShape(1, List);
}

} // namespace sizes

namespace values {

static void gather(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  auto Rows = C.nums(1);
  if (!Rows)
    return;
  DimList List;
  for (int64_t R : *Rows) {
    if (R < 0 || R >= int64_t(X->size()))
      return;
    List.push_back((*X)[R]);
  }
  C.setValue(0, List);
}

} // namespace values

namespace {

/// Infers the type of rows that a group of nodes gathers from all replicas
/// (lengthGatherSource). No single node of the group proves the type, so the
/// rule reads the type of the gathered tensor. In a graph with loops that type
/// may still change, and the rule would not run again.
ReplicationType gatherByLengths(TypeContext &C) {
  Endpoint Source = lengthGatherSource(C.G, C.N);
  if (Source.Node == NoNode || C.hasLoops())
    return C.varying("gathers rows in an unknown way");
  ReplicationType X = C.Types.number(Source);
  C.Assumes |= X.Assumes;
  return X.isVarying() ? types::gatheredDistinct(C, X)
         : X.isSharded() && X.Axis == 0
             ? ReplicationType::replicated(X.K)
             : C.varying("gathers a value that is not split along its axis");
}

/// Infers the type of rows looked up in a table. With batch_dims, each row of
/// the indices has a table of its own.
ReplicationType gatherType(TypeContext &C) {
  ReplicationType Table = C.numeric(0), Index = C.plain(1);
  if (Table.isVarying() || Index.isVarying())
    return C.varyingLike(Table.isVarying() ? Table : Index);
  int64_t Lead = C.intAttr("batch_dims").value_or(0);
  int RankOfTable = C.rank(0), RankOfIndex = C.rank(1), Axis = 0;
  if (C.isOp(op::GatherV2)) {
    // A table of unknown rank is assumed to have the looked-up axis.
    auto V = C.numbers(2);
    auto At =
        V && V->size() == 1
            ? axisIn((*V)[0], RankOfTable < 0 && (*V)[0] >= 0 ? int64_t(MaxRank)
                                                              : RankOfTable)
            : std::nullopt;
    Axis = At ? static_cast<int>(*At) : -1;
  }
  if (C.isOp(op::GatherV2) && !C.operand(2).isTrue())
    return C.varying("looks up along an axis that differs per replica");
  if (Lead != 0) {
    if (Table.isSharded() && Index.isSharded() && Table.Axis == Index.Axis &&
        Lead > Table.Axis && (Axis < 0 || Axis > Table.Axis))
      return Table;
    return Table.isSharded() || Index.isSharded()
               ? C.varying("looks up rows in a per-replica shard")
               : Table;
  }
  if (Index.isReplicated()) {
    if (!Table.isSharded())
      return Table;
    // Replicated indices must not select along the batch axis of the table.
    if (Axis < 0 || Axis == Table.Axis || RankOfIndex < 0)
      return C.varying("looks up rows in a per-replica shard");
    int Shift = Axis < Table.Axis ? RankOfIndex - 1 : 0;
    return ReplicationType::sharded(Table.Axis + Shift, Table.K);
  }
  if (Table.isPartial())
    Table = C.reduced(0);
  return Table.isReplicated() && Axis >= 0
             ? ReplicationType::sharded(Axis + Index.Axis, Table.K)
             : C.varying("looks up rows in a per-replica shard");
}

ReplicationType gatherNdType(TypeContext &C) {
  ReplicationType Table = C.numeric(0), Index = C.plain(1);
  if (Table.isVarying() || Index.isVarying())
    return C.varyingLike(Table.isVarying() ? Table : Index);
  if (Table.isSharded())
    return C.varying("looks up elements in a per-replica shard");
  if (!Index.isSharded())
    return Table;
  if (Table.isPartial())
    Table = C.reduced(0);
  return Index.Axis + 1 < C.rank(1)
             ? ReplicationType::sharded(Index.Axis, Table.K)
             : C.varying("has indices that are split along their last axis");
}

/// Infers the type of a ScatterNd into a tensor whose size is equal on all
/// replicas.
ReplicationType scatterNdType(TypeContext &C) {
  ReplicationType Index = C.plain(0), X = C.numeric(1);
  if (X.isVarying() || Index.isVarying())
    return C.varyingLike(X.isVarying() ? X : Index);
  if (!C.operand(2).isTrue())
    return C.varying("makes a tensor of a per-replica size");
  if (!X.isSharded() && !Index.isSharded())
    return X;
  if (!X.isSharded() || !Index.isSharded() || X.Axis != Index.Axis ||
      Index.Axis + 1 >= C.rank(0))
    return C.varying("scatters rows by the indices of other rows");
  // ScatterNd combines bools by a logical or.
  switch (C.G.outputType(C.out())) {
  case DT_BOOL:
    return ReplicationType::partial(0, Combine::Or);
  case DT_STRING:
    return C.varying("appends strings to each other in the order of the rows");
  default:
    return ReplicationType::partial(X.K);
  }
}

/// Infers the type of a tensor with some elements replaced. The tensor stays
/// sharded if its batch axis follows the axes that the indices select.
/// Otherwise the op needs the rows of all replicas.
ReplicationType tensorScatterType(TypeContext &C) {
  auto Index = C.shape(1);
  int64_t Depth = Index && !Index->empty() && C.D.table().isKnown(Index->back())
                      ? C.D.table().number(Index->back())
                      : -1;
  ReplicationType X = C.operand(0), Rows = C.operand(2);
  if (Depth < 0 || !C.operand(1).isReplicated() || !X.isSharded() ||
      !Rows.isSharded() || X.Axis < Depth ||
      Rows.Axis + Depth != X.Axis + int64_t(Index->size()) - 1)
    return types::ofAllRows(C);
  C.plain(1);
  ReplicationType Result = C.plain(0), Other = C.plain(2);
  return Other.isVarying() ? C.varyingLike(Other) : Result;
}

ReplicationType unsortedSegmentType(TypeContext &C, Combine Op) {
  bool Sum = Op == Combine::Sum;
  ReplicationType X = Sum ? C.numeric(0) : C.plain(0), Ids = C.plain(1);
  if (X.isVarying() || Ids.isVarying())
    return C.varyingLike(X.isVarying() ? X : Ids);
  bool Fixed = C.operand(2).isTrue();
  if (Ids.isReplicated()) {
    if (!Fixed && (!C.isSize(2) || C.localAxis(C.out()) != -1))
      return C.varying("makes a tensor of a per-replica size");
    int Rank = C.rank(1);
    if (!X.isSharded())
      return X;
    if (Rank >= 0 && X.Axis >= Rank)
      return ReplicationType::sharded(X.Axis - Rank + 1, X.K);
    // The segment ids number the rows of the whole batch.
    return X.Axis == 0
               ? C.gathered(0, X)
               : C.varying(
                     "sums rows along an axis other than that of the segments");
  }
  if (!X.isSharded() || X.Axis != Ids.Axis || !Fixed)
    return C.varying("sums rows by row indices of one replica");
  // On a replica without rows of a segment, the result has the neutral element
  // of the operation, such as 0 for a sum.
  return ReplicationType::partial(Sum ? X.K : 0, Op);
}

ReplicationType oneHotType(TypeContext &C) {
  ReplicationType X = C.plain(0);
  // The depth and the on and off values must be equal on all replicas.
  for (unsigned I = 1; I < C.numData(); ++I)
    if (ReplicationType Y = C.plain(I);
        !Y.isReplicated() || C.operand(I).Symbolic)
      X = Y.isVarying()
              ? C.varyingLike(Y)
              : C.varying("has a depth or a value that differs per replica");
  if (X.isSharded() && C.intAttr("axis").value_or(-1) != -1)
    X = C.varying("inserts its axis before the batch axis");
  return X;
}

} // namespace

namespace types {

bool takesRows(const TypeContext &C) {
  if (C.intAttr("batch_dims").value_or(0) != 0)
    return false;
  if (!C.isOp(op::GatherV2))
    return true;
  auto Axis = C.numbers(2);
  return Axis && Axis->size() == 1 && Axis->front() == 0 &&
         C.operand(2).isTrue();
}

ReplicationType ofAllRows(TypeContext &C) {
  ReplicationType Type = ReplicationType::replicated();
  for (unsigned I = 0; I < C.numData(); ++I) {
    // A variant has no rows to gather.
    bool IsBox = C.G.outputType(C.input(I).Node, C.input(I).Port) == DT_VARIANT;
    ReplicationType X = IsBox ? C.operand(I) : C.whole(I);
    if (X.isVarying())
      Type = C.varyingLike(X);
    else if (IsBox && !X.isTrue())
      Type = C.varying("needs the rows of all replicas of a variant tensor, "
                       "which cannot be gathered");
  }
  return Type;
}

static void gather(TypeContext &C) {
  ReplicationType Type =
      C.node().Kind == Inserted::Gather ? gatherByLengths(C) : gatherType(C);
  C.setAll(Type, Type.Indices);
}

static void gatherNd(TypeContext &C) { C.setAll(gatherNdType(C)); }
static void scatterNd(TypeContext &C) { C.setAll(scatterNdType(C)); }
static void tensorScatter(TypeContext &C) { C.setAll(tensorScatterType(C)); }

static void unsortedSegmentSum(TypeContext &C) {
  C.setAll(unsortedSegmentType(C, Combine::Sum));
}

static void unsortedSegmentMax(TypeContext &C) {
  C.setAll(unsortedSegmentType(C, Combine::Max));
}

static void unsortedSegmentMin(TypeContext &C) {
  C.setAll(unsortedSegmentType(C, Combine::Min));
}

static void oneHot(TypeContext &C) { C.setAll(oneHotType(C)); }

static void topK(TypeContext &C) {
  ReplicationType X = C.plain(0);
  int Rank = C.rank(0);
  if (X.isSharded() && (Rank < 0 || X.Axis + 1 == Rank))
    X = C.varying("selects along the batch axis");
  if (C.numData() > 1 && !C.operand(1).isTrue())
    X = C.varying("selects a per-replica number of elements");
  C.setAll(X);
}

void whole(TypeContext &C) { C.setAll(ofAllRows(C)); }

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Gather = {.Sizes = sizes::gather,
                           .Type = types::gather,
                           .LocalIndices = types::gatherIndices,
                           .ZerosOf = operands(0),
                           .Elements = ElementsOf::First,
                           .Looks = indexes(1, 0)};
constexpr OpRule GatherNd = {.Sizes = sizes::gatherNd,
                             .Type = types::gatherNd,
                             .LocalIndices = types::gatherNdIndices,
                             .ZerosOf = operands(0),
                             .Elements = ElementsOf::First,
                             .Looks = indexes(1, 0, IndexUse::Columns)};
constexpr OpRule TensorScatter = {.Sizes = sizes::tensorScatter,
                                  .Type = types::tensorScatter,
                                  .ComparedOperands = operands(1, 2),
                                  .Looks = indexes(1, 0, IndexUse::Columns)};
constexpr OpRule UnsortedSegment = {.Sizes = sizes::unsortedSegment,
                                    .SizeOperands = operands(2),
                                    .ComparedOperands = operands(0, 1),
                                    .Elements = ElementsOf::First,
                                    .Looks = indexes(1, -1)};

} // namespace

ArrayRef<OpRule> families::indexing() {
  static const OpRule Rules[] = {
      entry(op::Gather, Gather, {.Values = values::gather}),
      entry(op::GatherV2, Gather, {.Values = values::gather}),
      entry(op::ResourceGather, Gather),
      entry(op::GatherNd, GatherNd),
      entry(op::ResourceGatherNd, GatherNd),
      {.Op = op::ScatterNd,
       .Sizes = sizes::scatterNd,
       .Type = types::scatterNd,
       .LocalIndices = types::scatterNdIndices,
       .ZerosOf = operands(1),
       .SizeOperands = operands(2),
       .ComparedOperands = operands(0, 1),
       .Looks = indexes(0, -1, IndexUse::Columns)},
      entry(op::TensorScatterAdd, TensorScatter),
      entry(op::TensorScatterMax, TensorScatter),
      entry(op::TensorScatterMin, TensorScatter),
      entry(op::TensorScatterSub, TensorScatter),
      entry(op::TensorScatterUpdate, TensorScatter),
      entry(op::UnsortedSegmentSum, UnsortedSegment,
            {.Type = types::unsortedSegmentSum,
             .LocalIndices = types::unsortedSegmentSumIndices,
             .ZerosOf = operands(0)}),
      entry(op::UnsortedSegmentMax, UnsortedSegment,
            {.Type = types::unsortedSegmentMax}),
      entry(op::UnsortedSegmentMin, UnsortedSegment,
            {.Type = types::unsortedSegmentMin}),
      {.Op = op::OneHot,
       .Sizes = sizes::oneHot,
       .Type = types::oneHot,
       .SizeOperands = operands(1),
       .LengthOperands = operands(1),
       .Elements = ElementsOf::Nothing},
      {.Op = op::TopKV2,
       .Sizes = sizes::topK,
       .Type = types::topK,
       .SizeOperands = operands(1),
       .LengthOperands = operands(1),
       .Elements = ElementsOf::FirstThenSizes},
  };
  return Rules;
}

} // namespace graft
