//===- lib/infer/rules/TypeRulesRows.cpp - rows by number -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The families that look rows up, scatter them, or add them up by row numbers;
// for numbers of the rows of one replica see TypeRulesNumbers.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/LengthGather.h"

using namespace llvm;

namespace graft {

/// Ops on rows one by one, as RowRules.def describes them.
void TypeRules::rows() {
  const graft::OpRule &Rule = ruleOf(G.opName(N));
  SmallVector<unsigned, 2> Linear;
  std::optional<int> K;
  bool Split = false, AnyWhole = false;
  for (unsigned I = 0; I < numData(); ++I) {
    auto [Letter, Rank] = letterOf(Rule.Inputs, I);
    bool IsLinear = Letter == 'l' || Letter == 'm';
    RType X = IsLinear ? numeric(I) : plain(I);
    if (X.isVarying())
      return setAll(varyingLike(X));
    int Axis = Letter == 't' || Letter == 'm' ? 1 : 0;
    bool OfRows = IsLinear || Letter == 'r' || Letter == 't';
    if (X.isSharded() &&
        (!OfRows || X.Axis != Axis || (Rank > 0 && rank(G.input(N, I)) < Rank)))
      return setAll(varying("operates along the batch axis"));
    Split |= X.isSharded();
    AnyWhole |= !X.isSharded() && OfRows;
    if (IsLinear) {
      Linear.push_back(I);
      if (!X.Zero && (!K || X.K == 0))
        K = X.K;
    }
  }
  if (Split && AnyWhole)
    return setAll(varying("combines a per-replica shard with a replicated "
                          "value along the batch axis"));
  // Of several terms, or beside rows, all have one scale and none is partial.
  bool OnlyTerm = Linear.size() == 1 && !Split;
  for (unsigned I : Linear)
    if (RType X = numeric(I); X.isPartial() && !OnlyTerm)
      K = 0;
  for (unsigned I : Linear)
    if (RType X = numeric(I); !OnlyTerm)
      scaled(I, X.isPartial() ? reduced(I) : X, K.value_or(0));
  if (!Split)
    return setAll(OnlyTerm ? numeric(Linear[0])
                           : RType::replicated(K.value_or(0)));
  for (unsigned Port = 0; Port < D.numOutputs(N); ++Port) {
    char Letter = letterOf(Rule.Outputs, Port).first;
    if (Letter == 'i' &&
        G.boolAttr(N, "include_batch_in_index").value_or(false))
      set(Port, varying("has row indices that are local to one replica"));
    else
      set(Port, Letter == 'r' || Letter == 'i'
                    ? RType::sharded(0, K.value_or(0))
                : Letter == 't' ? RType::sharded(1, K.value_or(0))
                                : RType::partial(K.value_or(0)));
  }
}

/// Rows of a table; with batch_dims, of a table for each row of the indices.
/// The rows of all replicas, by what the nodes before compute together: what
/// they compute each is nothing. In a graph with loops, the type of what is
/// gathered might be another later, and nobody would ask here again.
RType TypeRules::gatherByLengths() {
  Endpoint Source = lengthGatherSource(G, N);
  if (Source.Node == NoNode || Loops)
    return varying("gathers rows in an unknown way");
  RType X = T.number(Source);
  Assumes |= X.Assumes;
  return X.isVarying() ? varyingLike(X)
         : X.isSharded() && X.Axis == 0
             ? RType::replicated(X.K)
             : varying("gathers a value that is not split along its axis");
}

RType TypeRules::gather() {
  RType Table = numeric(0), Index = plain(1);
  if (Table.isVarying() || Index.isVarying())
    return varyingLike(Table.isVarying() ? Table : Index);
  int64_t Lead = G.intAttr(N, "batch_dims").value_or(0), Axis = 0;
  int RankOfTable = rank(G.input(N, 0)), RankOfIndex = rank(G.input(N, 1));
  if (G.isOp(N, op::GatherV2)) {
    auto V = D.numbers(G.input(N, 2));
    Axis = V && V->size() == 1 ? (*V)[0] : -1;
    if (V && Axis < 0 && RankOfTable > 0)
      Axis += RankOfTable;
  }
  if (G.isOp(N, op::GatherV2) && !operand(2).isTrue())
    return varying("looks up along an axis that differs per replica");
  if (Lead != 0) {
    if (Table.isSharded() && Index.isSharded() && Table.Axis == Index.Axis &&
        Lead > Table.Axis && (Axis < 0 || Axis > Table.Axis))
      return Table;
    return Table.isSharded() || Index.isSharded()
               ? varying("looks up rows in a per-replica shard")
               : Table;
  }
  if (Index.isReplicated()) {
    if (!Table.isSharded())
      return Table;
    // Columns of rows.
    if (Axis < 0 || Axis == Table.Axis || RankOfIndex < 0)
      return varying("looks up rows in a per-replica shard");
    int Shift = Axis < Table.Axis ? RankOfIndex - 1 : 0;
    return RType::sharded(Table.Axis + Shift, Table.K);
  }
  if (Table.isPartial())
    Table = reduced(0);
  return Table.isReplicated() && Axis >= 0
             ? RType::sharded(static_cast<int>(Axis) + Index.Axis, Table.K)
             : varying("looks up rows in a per-replica shard");
}

RType TypeRules::gatherNd() {
  RType Table = numeric(0), Index = plain(1);
  if (Table.isVarying() || Index.isVarying())
    return varyingLike(Table.isVarying() ? Table : Index);
  if (Table.isSharded())
    return varying("looks up elements in a per-replica shard");
  if (!Index.isSharded())
    return Table;
  if (Table.isPartial())
    Table = reduced(0);
  return Index.Axis + 1 < rank(G.input(N, 1))
             ? RType::sharded(Index.Axis, Table.K)
             : varying("has indices that are split along their last axis");
}

/// A sum into a tensor of one size on all replicas.
RType TypeRules::scatterNd() {
  RType Index = plain(0), X = numeric(1);
  if (X.isVarying() || Index.isVarying())
    return varyingLike(X.isVarying() ? X : Index);
  if (!operand(2).isTrue())
    return varying("makes a tensor of a per-replica size");
  if (!X.isSharded() && !Index.isSharded())
    return X;
  return X.isSharded() && Index.isSharded() && X.Axis == Index.Axis &&
                 Index.Axis + 1 < rank(G.input(N, 0))
             ? RType::partial(X.K)
             : varying("scatters rows by the indices of other rows");
}

/// What is a function of the rows of all replicas.
RType TypeRules::whole() {
  RType Type = RType::replicated();
  for (unsigned I = 0; I < numData(); ++I)
    if (RType X = whole(I); !X.isReplicated())
      Type = varyingLike(X);
  return Type;
}

/// A tensor of which some elements are others: along axes after those that the
/// indices go through, or as a whole.
RType TypeRules::tensorScatter() {
  auto Index = D.shape(G.input(N, 1));
  int Depth = Index && !Index->empty() && D.table().isKnown(Index->back())
                  ? static_cast<int>(D.table().number(Index->back()))
                  : -1;
  RType X = operand(0), Rows = operand(2);
  if (Depth < 0 || !operand(1).isReplicated() || !X.isSharded() ||
      !Rows.isSharded() || X.Axis < Depth ||
      Rows.Axis + Depth != X.Axis + static_cast<int>(Index->size()) - 1)
    return whole();
  plain(1);
  RType Result = plain(0), Other = plain(2);
  return Other.isVarying() ? varyingLike(Other) : Result;
}

RType TypeRules::unsortedSegment(TypeRule Rule) {
  bool Sum = Rule == TypeRule::UnsortedSegmentSum;
  RType X = Sum ? numeric(0) : plain(0), Ids = plain(1);
  if (X.isVarying() || Ids.isVarying())
    return varyingLike(X.isVarying() ? X : Ids);
  bool Fixed = operand(2).isTrue();
  if (Ids.isReplicated()) {
    if (!Fixed && (!isSize(2) || localAxis(out()) != -1))
      return varying("makes a tensor of a per-replica size");
    int Rank = rank(G.input(N, 1));
    if (!X.isSharded())
      return X;
    if (Rank >= 0 && X.Axis >= Rank)
      return RType::sharded(X.Axis - Rank + 1, X.K);
    // The rows belong to row numbers of the whole batch.
    return X.Axis == 0
               ? gathered(0, X)
               : varying(
                     "sums rows along an axis other than that of the segments");
  }
  if (!X.isSharded() || X.Axis != Ids.Axis || !Fixed)
    return varying("sums rows by row indices of one replica");
  // An empty segment has the value that loses against every other.
  return Sum ? RType::partial(X.K)
             : RType::partial(0, Rule == TypeRule::UnsortedSegmentMax
                                     ? Combine::Max
                                     : Combine::Min);
}

//===----------------------------------------------------------------------===//
// Hits: a sparse matrix with the rows of one replica
//===----------------------------------------------------------------------===//

/// Whether axis 0 of \p E is as many rows of one replica as that of \p Rows.
bool TypeRules::hasRowsOf(Endpoint E, Endpoint Rows) const {
  auto RowsOf = [&](Endpoint Of) {
    auto Shape = D.shape(Of);
    return Shape && !Shape->empty() ? D.table().sym(Shape->front())
                                    : std::nullopt;
  };
  auto S = RowsOf(E);
  return S && S->B == 1 && S->R == 0 && S->Ragged == 0 && S == RowsOf(Rows);
}

/// ComputeAccidentalHits: which of the sampled classes are labels, by row.
void TypeRules::hits() {
  RType Labels = plain(0), Sampled = plain(1);
  if (Labels.isVarying() || Sampled.isVarying())
    return setAll(varyingLike(Labels.isVarying() ? Labels : Sampled));
  if (Labels.isReplicated() && Sampled.isReplicated())
    return setAll(RType::replicated());
  RType Type = varying("has row indices that are local to one replica");
  bool Fits = Labels.isSharded() && !Labels.isJoined() && Labels.Axis == 0 &&
              Sampled.isReplicated() && hasRowsOf(G.input(N, 0), G.input(N, 0));
  if (!Fits)
    return setAll(Type);
  SetsNumbers = true;
  Type.Order = RType::HitValues;
  setAll(Type);
  Type.Order = RType::HitRows;
  set(0, Type);
  SetsNumbers = false;
}

/// What takes hits: true when the types are set.
bool TypeRules::byHits(TypeRule Rule) {
  RType First = T.type(G.input(N, 0)), Result = First;
  bool IsRows = First.isOfHits(RType::HitRows),
       IsIndices = First.isOfHits(RType::HitIndices);
  if (!IsRows && !IsIndices && !First.isOfHits(RType::HitValues))
    return false;
  auto IsIndex = [](std::optional<unsigned> Type) {
    return Type == DT_INT32 || Type == DT_INT64;
  };
  auto IsColumn = [&](unsigned I) {
    auto Shape = D.shape(G.input(N, I));
    return Shape && Shape->size() == 2 && D.table().isOne(Shape->back());
  };
  switch (Rule) {
  case TypeRule::Pass:
    if (numData() != 1)
      return false;
    break;
  case TypeRule::Cast:
    if (!First.isOfHits(RType::HitValues) &&
        (!IsIndex(G.typeAttr(N, "SrcT")) || !IsIndex(G.typeAttr(N, "DstT"))))
      return false;
    break;
  case TypeRule::Relayout: {
    // One element after the other, in a column or not.
    auto Shape = D.numbers(G.input(N, 1));
    if (!G.isOp(N, op::Reshape) || IsIndices || !operand(1).isTrue() ||
        !Shape || (*Shape)[0] != -1 ||
        !(Shape->size() == 1 || (Shape->size() == 2 && (*Shape)[1] == 1)))
      return false;
    break;
  }
  case TypeRule::Join: {
    RType Columns = T.type(G.input(N, 1));
    auto Axis = D.numbers(G.input(N, numData() - 1));
    if (!G.isOp(N, op::ConcatV2) || numData() != 3 || !IsRows ||
        !Columns.isOfHits(RType::HitValues) || Columns.Cause != First.Cause ||
        !Axis || Axis->size() != 1 || ((*Axis)[0] != 1 && (*Axis)[0] != -1) ||
        !operand(2).isTrue() || !IsColumn(0) || !IsColumn(1))
      return false;
    Result.Order = RType::HitIndices;
    break;
  }
  case TypeRule::Whole: {
    // Rows that are made of the elements of their own.
    RType Values = G.isOp(N, op::SparseToDense) ? T.type(G.input(N, 2)) : First;
    if (!IsIndices || !Values.isOfHits(RType::HitValues) ||
        Values.Cause != First.Cause || !isSize(1) || localAxis(out()) != 0 ||
        !hasRowsOf(out(), G.input(First.Cause, 0)) || rank(out()) != 2 ||
        !plain(3).isReplicated())
      return false;
    Result = RType::sharded(0);
    break;
  }
  default:
    return false;
  }
  SetsNumbers = true;
  setAll(Result);
  SetsNumbers = false;
  return true;
}

} // namespace graft
