//===- lib/analysis/TypeRulesRows.cpp - rows by number ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The families that look rows up, scatter them, or add them up by row numbers.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/TypeRules.h"

using namespace llvm;

namespace graft {

/// Rows of a table; with batch_dims, of a table for each row of the indices.
RType TypeRules::gather() {
  RType Table = numeric(0), Index = plain(1);
  if (Table.isVarying() || Index.isVarying())
    return varyingLike(Table.isVarying() ? Table : Index);
  int64_t Lead = G.intAttr(N, "batch_dims").value_or(0), Axis = 0;
  int RankOfTable = rank(G.input(N, 0)), RankOfIndex = rank(G.input(N, 1));
  if (G.isOp(N, "GatherV2")) {
    auto V = D.numbers(G.input(N, 2));
    Axis = V && V->size() == 1 ? (*V)[0] : -1;
    if (V && Axis < 0 && RankOfTable > 0)
      Axis += RankOfTable;
  }
  if (G.isOp(N, "GatherV2") && !operand(2).isTrue())
    return varying("looks up along another axis on each replica");
  if (Lead != 0) {
    if (Table.isSharded() && Index.isSharded() && Table.Axis == Index.Axis &&
        Lead > Table.Axis && (Axis < 0 || Axis > Table.Axis))
      return Table;
    return Table.isSharded() || Index.isSharded()
               ? varying("looks rows up in one replica's rows")
               : Table;
  }
  if (Index.isReplicated()) {
    if (!Table.isSharded())
      return Table;
    // Columns of rows.
    if (Axis < 0 || Axis == Table.Axis || RankOfIndex < 0)
      return varying("looks rows up in one replica's rows");
    int Shift = Axis < Table.Axis ? RankOfIndex - 1 : 0;
    return RType::sharded(Table.Axis + Shift, Table.K);
  }
  if (Table.isPartial())
    Table = reduced(0);
  return Table.isReplicated() && Axis >= 0
             ? RType::sharded(static_cast<int>(Axis) + Index.Axis, Table.K)
             : varying("looks rows up in one replica's rows");
}

RType TypeRules::gatherNd() {
  RType Table = numeric(0), Index = plain(1);
  if (Table.isVarying() || Index.isVarying())
    return varyingLike(Table.isVarying() ? Table : Index);
  if (Table.isSharded())
    return varying("looks elements up in one replica's rows");
  if (!Index.isSharded())
    return Table;
  if (Table.isPartial())
    Table = reduced(0);
  return Index.Axis + 1 < rank(G.input(N, 1))
             ? RType::sharded(Index.Axis, Table.K)
             : varying("splits what says which element");
}

/// A sum into a tensor of one size on all replicas.
RType TypeRules::scatterNd() {
  RType Index = plain(0), X = numeric(1);
  if (X.isVarying() || Index.isVarying())
    return varyingLike(X.isVarying() ? X : Index);
  if (!operand(2).isTrue())
    return varying("makes a tensor of a size of its own on each replica");
  if (!X.isSharded() && !Index.isSharded())
    return X;
  return X.isSharded() && Index.isSharded() && X.Axis == Index.Axis &&
                 Index.Axis + 1 < rank(G.input(N, 0))
             ? RType::partial(X.K)
             : varying("scatters rows by indices of other rows");
}

RType TypeRules::unsortedSegment(TypeRule Rule) {
  bool Sum = Rule == TypeRule::UnsortedSegmentSum;
  RType X = Sum ? numeric(0) : plain(0), Ids = plain(1);
  if (X.isVarying() || Ids.isVarying())
    return varyingLike(X.isVarying() ? X : Ids);
  bool Fixed = operand(2).isTrue();
  if (Ids.isReplicated()) {
    if (!Fixed && (!isSize(2) || localAxis(out()) != -1))
      return varying("makes a tensor of a size of its own on each replica");
    int Rank = rank(G.input(N, 1));
    if (!X.isSharded())
      return X;
    if (Rank >= 0 && X.Axis >= Rank)
      return RType::sharded(X.Axis - Rank + 1, X.K);
    // The rows belong to row numbers of the whole batch.
    return X.Axis == 0 ? gathered(0, X) : varying("sums rows of another axis");
  }
  if (!X.isSharded() || X.Axis != Ids.Axis || !Fixed)
    return varying("sums rows by row numbers of one replica");
  // An empty segment has the value that loses against every other.
  return Sum ? RType::partial(X.K)
             : RType::partial(0, Rule == TypeRule::UnsortedSegmentMax
                                     ? Combine::Max
                                     : Combine::Min);
}

} // namespace graft
