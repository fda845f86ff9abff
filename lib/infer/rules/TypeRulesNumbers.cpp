//===- lib/infer/rules/TypeRulesNumbers.cpp - row numbers -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the rows of one replica: of all (Range), or of those that a
// condition selects (Where).
//
// Range(0, b), b the rows of one replica, numbers them from 0 on each replica.
// That is no relation to the true value for anything but what looks up, in rows
// of that replica, or scatters to them: there the local numbers are the right
// ones. Each is off by as much as all others of the replica, so that reshaping
// and joining with other indices keeps them what they are. What is looked up by
// Where has another number of rows on each replica, see Sym::Ragged.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/PartedRows.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/LengthGather.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Whether axis \p Axis of \p E is what \p Numbers number.
bool TypeRules::hasRows(Endpoint E, unsigned Axis, const RType &Numbers) const {
  auto Shape = D.shape(E);
  if (!Shape || Axis >= Shape->size())
    return false;
  auto S = D.table().sym((*Shape)[Axis]);
  return S && (*S == T.Numbered[Numbers.K] || D.replicas() == 1);
}

/// What numbers of rows are no numbers for axis \p Axis of \p E; false unless
/// that has the rows of another feed.
bool TypeRules::numbersOthers(Endpoint E, unsigned Axis, const RType &Numbers) {
  auto Shape = D.shape(E);
  auto S = Shape && Axis < Shape->size() ? D.table().sym((*Shape)[Axis])
                                         : std::nullopt;
  const Sym &Of = T.Numbered[Numbers.K];
  if (!S || !S->isLocal() || S->Ragged != 0 || Of.Ragged != 0 || S->B != 1)
    return false;
  if (S->Rows == Of.Rows) {
    setAll(varying("uses the row indices of one feed for another, which has a "
                   "different number of rows"));
    return true;
  }
  Endpoint Mine = D.table().rowsOf(Of), Its = D.table().rowsOf(*S);
  auto NameOf = [&](Endpoint Rows) { return feedName(G, Rows); };
  std::string Why = "uses the row indices of '" + NameOf(Mine) +
                    "' for the rows of '" + NameOf(Its) +
                    "', which are not proved to be equally many";
  if (sourceShape(G, Mine) && sourceShape(G, Its))
    Why +=
        "; if so, give --feed=" + NameOf(Mine) + "+" + NameOf(Its) + "=split";
  setAll(varying(Why));
  return true;
}

/// Numbers of the rows of one replica along axis \p Axis of \p E; Varying and
/// no more if it is not known how many there are.
RType TypeRules::numbersOf(Endpoint E, unsigned Axis, NodeId Cause) {
  auto Type = RType::varying(Cause);
  auto Shape = D.shape(E);
  auto S = Shape && Axis < Shape->size() ? D.table().sym((*Shape)[Axis])
                                         : std::nullopt;
  if (!S || S->B != 1 || S->R != 0)
    return Type;
  auto It = llvm::find(T.Numbered, *S);
  if (It == T.Numbered.end() && T.Numbered.size() == 100)
    return Type;
  if (It == T.Numbered.end())
    It = T.Numbered.insert(It, *S);
  Type.K = static_cast<int8_t>(It - T.Numbered.begin());
  Type.Order = RType::RowNumbers;
  return Type;
}

/// Where: a replica finds the indices of its own rows, unless somebody needs
/// those of all.
void TypeRules::where() {
  RType X = plain(0);
  if (X.isVarying())
    return setAll(varyingLike(X));
  if (!X.isSharded())
    return setAll(RType::replicated());
  auto Type = RType::varying(N);
  if (auto Shape = D.shape(out());
      Shape && D.table().isRagged((*Shape)[0]) && X.Axis == 0 && !X.isJoined())
    Type = numbersOf(G.input(N, 0), 0, N);
  if (!Type.isRowNumbers())
    return setAll(gathered(0, X));
  if (rank(G.input(N, 0)) != 1)
    Type.Order = RType::RowIndices;
  varying("has row indices that are local to one replica");
  SetsNumbers = true;
  setAll(Type);
  SetsNumbers = false;
}

/// The Where nodes with numbers that a reader of them, or of what is made of
/// them, does not know what to do with, or that nobody reads: they are results.
/// And the DynamicPartition nodes with rows of which that is so.
void TypeRules::findUnusable(std::vector<NodeId> &Found) {
  std::vector<bool> Has(G.size());
  auto Add = [&](NodeId Node) {
    if (!Has[Node])
      Found.push_back(Node);
    Has[Node] = true;
  };
  auto Ask = [&](const RType &X) {
    if (X.countsRows() && G.isOp(X.Cause, op::Where))
      Add(X.Cause);
  };
  // Where numbers of rows are sent too, those are right only on a replica.
  std::vector<bool> SendsNumbers(G.size());
  for (NodeId Node : Order)
    if (NodeId By =
            G.isOp(Node, op::DynamicPartition) ? partedBy({Node, 0}) : NoNode;
        By != NoNode && T.natural({Node, 0}).countsRows())
      SendsNumbers[By] = true;
  for (NodeId Node : Order) {
    ArrayRef<RType> Results(T.Types.data() + D.outputIndex({Node, 0}),
                            D.numOutputs(Node));
    bool Gives = any_of(Results, [](const RType &X) { return X.countsRows(); });
    bool Uses = any_of(Results, [](const RType &X) { return !X.isVarying(); });
    if (Gives && !G.hasUses(Node))
      Ask(Results.front());
    if (G.node(Node).Count == Copies::Once || T.Vars.isUpdate(G, Node) ||
        (!Gives && !Uses))
      for (Endpoint E : G.dataInputs(Node))
        Ask(T.type(E));
    // Of what gathers rows after their numbers only the end has a type.
    if (!Gives && !Uses && !isLengthGatherOp(G, Node))
      for (Endpoint E : G.dataInputs(Node))
        if (NodeId By = T.type(E).isSharded() ? partedBy(E) : NoNode;
            By != NoNode && !SendsNumbers[By] && !Results.empty())
          Add(By);
  }
}

/// The DynamicPartition that counts the rows of \p E on each replica.
NodeId TypeRules::partedBy(Endpoint E) const {
  auto Shape = D.shape(E);
  if (Shape)
    for (DimId Size : *Shape)
      if (D.table().isRagged(Size))
        if (NodeId By = D.counterOf(D.table().sym(Size)->Ragged);
            G.isOp(By, op::DynamicPartition))
          return By;
  return NoNode;
}

/// Whether operands that are split have different numbers of rows, or may have:
/// one row on a replica would be broadcast there.
bool TypeRules::mixesRows(TypeRule Rule) const {
  if (traitsOf(Rule) & trait::TakesUnequalRows)
    return false;
  const DimId None = ~DimId(0);
  DimId First = None;
  for (unsigned I = 0; I < numData(); ++I) {
    RType X = operand(I);
    if (!X.isSharded())
      continue;
    auto Shape = D.shape(G.input(N, I));
    if (!Shape || X.Axis >= Shape->size()) {
      if (numData() > 1)
        return true;
      continue;
    }
    DimId Rows = (*Shape)[X.Axis];
    auto S = D.table().sym(Rows);
    if (First == None)
      First = Rows;
    else if (D.table().find(First) != D.table().find(Rows) &&
             (!S || S != D.table().sym(First)))
      return true;
  }
  return false;
}

/// Range(0, b, 1).
bool TypeRules::range() {
  auto Start = D.numbers(G.input(N, 0)), Delta = D.numbers(G.input(N, 2));
  if (!Start || !Delta || Start->size() != 1 || (*Start)[0] != 0 ||
      Delta->size() != 1 || (*Delta)[0] != 1 || !operand(0).isTrue() ||
      !operand(2).isTrue() || !isSize(1))
    return false;
  RType Type = numbersOf(out(), 0, N);
  if (!Type.isRowNumbers())
    return false;
  varying("has row indices that are local to one replica");
  SetsNumbers = true;
  setAll(Type);
  SetsNumbers = false;
  return true;
}

/// Pack, Concat: row numbers, which count as rows, before other indices, along
/// the last axis.
RType TypeRules::rowIndices(const RType &Numbers) {
  RType All = join(), Type = RType::varying(Numbers.Cause);
  bool Pack = G.isOp(N, op::Pack);
  int Rank = rank(out());
  if (!All.isSharded() || All.isJoined() || All.K != 0 || Rank < 2 ||
      All.Axis + 1 >= Rank || (!Pack && !G.isOp(N, op::ConcatV2)))
    return Type;
  int64_t Axis = Pack ? G.intAttr(N, "axis").value_or(0)
                      : (*D.numbers(G.input(N, numData() - 1)))[0];
  auto Shape = D.shape(G.input(N, 0));
  if ((Axis < 0 ? Axis + Rank : Axis) + 1 != Rank ||
      (!Pack && (!Shape || !D.table().isOne(Shape->back()))))
    return Type;
  Type.Order = RType::RowIndices;
  Type.Axis = All.Axis;
  Type.K = Numbers.K;
  return Type;
}

/// The axis of operand \p I, indices of which the first is a row number; -1.
int TypeRules::indexedAxis(unsigned I) const {
  Endpoint E = G.input(N, I);
  RType X = T.type(E);
  auto Shape = D.shape(E);
  bool Single = X.isRowNumbers() && Shape && !Shape->empty() &&
                D.table().isOne(Shape->back());
  return Shape && (Single || X.isRowIndices()) && X.Axis + 1u < Shape->size()
             ? X.Axis
             : -1;
}

/// What takes row numbers: true when the types are set.
bool TypeRules::byRowNumbers(TypeRule Rule) {
  NodeId Cause = NoNode;
  for (Endpoint E : G.dataInputs(N))
    if (RType X = T.type(E); X.isRowNumbers() || X.isRowIndices())
      Cause = X.Cause;
  if (Cause == NoNode)
    return byHits(Rule);
  auto IsRows = [](const RType &X, int Axis) {
    return X.isSharded() && !X.isJoined() && X.Axis == Axis;
  };
  auto IsIndex = [](std::optional<unsigned> Type) {
    return Type == DT_INT32 || Type == DT_INT64;
  };
  auto Result = RType::varying(Cause);
  RType First = T.type(G.input(N, 0));
  switch (Rule) {
  case TypeRule::Pass:
    SetsNumbers = true;
    for (unsigned I = 0; I < numData(); ++I)
      set(I, operand(I));
    SetsNumbers = false;
    return true;
  case TypeRule::Cast:
    if (!IsIndex(G.typeAttr(N, "SrcT")) || !IsIndex(G.typeAttr(N, "DstT")))
      return false;
    Result = First;
    break;
  case TypeRule::Relayout:
  case TypeRule::Tile:
  case TypeRule::Part:
  case TypeRule::Join:
    // Zeros that fill are no row numbers, nor are they indices of columns.
    if (!First.isRowNumbers() ||
        (Rule == TypeRule::Part && !G.isOp(N, op::StridedSlice)))
      return false;
    for (Endpoint E : G.dataInputs(N).drop_front())
      if (T.type(E).isVarying())
        return false;
    // Elements move, and are joined, as if they were rows.
    T.Types[D.outputIndex(G.input(N, 0))] = RType::sharded(First.Axis);
    if (Rule == TypeRule::Join) {
      Result = rowIndices(First);
    } else {
      apply(Rule);
      RType Moved = T.natural(out());
      if (Moved.isSharded() && !Moved.isJoined() && Moved.K == 0) {
        Result.Order = RType::RowNumbers;
        Result.Axis = Moved.Axis;
        Result.K = First.K;
      }
    }
    T.Types[D.outputIndex(G.input(N, 0))] = First;
    break;
  case TypeRule::Gather: {
    RType Table = operand(0), Index = T.type(G.input(N, 1));
    if (!Index.isRowNumbers() || !Table.isSharded())
      return false;
    int64_t Axis = 0;
    if (G.isOp(N, op::GatherV2)) {
      auto V = D.numbers(G.input(N, 2));
      int Rank = rank(G.input(N, 0));
      if (!V || V->size() != 1 || !operand(2).isTrue() || Rank < 0 ||
          G.intAttr(N, "batch_dims").value_or(0) != 0)
        return false;
      Axis = (*V)[0] < 0 ? (*V)[0] + Rank : (*V)[0];
    }
    if (!IsRows(Table, static_cast<int>(Axis)))
      return false;
    if (!hasRows(G.input(N, 0), Table.Axis, Index))
      return numbersOthers(G.input(N, 0), Table.Axis, Index);
    Result = RType::sharded(Table.Axis + Index.Axis, Table.K);
    break;
  }
  case TypeRule::GatherNd: {
    RType Table = operand(0);
    int Axis = indexedAxis(1);
    if (Axis < 0 || !IsRows(Table, 0))
      return false;
    if (RType Index = T.type(G.input(N, 1)); !hasRows(G.input(N, 0), 0, Index))
      return numbersOthers(G.input(N, 0), 0, Index);
    Result = RType::sharded(Axis, Table.K);
    break;
  }
  case TypeRule::ScatterNd: {
    RType X = operand(1);
    int Axis = indexedAxis(0);
    if (Axis < 0 || !IsRows(X, Axis) || !isSize(2) || localAxis(out()) != 0)
      return false;
    if (!hasRows(out(), 0, First))
      return numbersOthers(out(), 0, First);
    Result = RType::sharded(0, X.K);
    break;
  }
  case TypeRule::UnsortedSegmentSum: {
    RType X = operand(0), Ids = T.type(G.input(N, 1));
    if (!Ids.isRowNumbers() || !IsRows(X, Ids.Axis) || !isSize(2) ||
        localAxis(out()) != 0)
      return false;
    if (!hasRows(out(), 0, Ids))
      return numbersOthers(out(), 0, Ids);
    Result = RType::sharded(0, X.K);
    break;
  }
  case TypeRule::Partition:
    // The numbers that are sent to a part are still those of the same rows.
    if (!First.isRowNumbers() || First.Axis != 0 || !IsRows(operand(1), 0) ||
        !isParted())
      return false;
    Result = First;
    break;
  case TypeRule::Stitch: {
    std::optional<RType> Stitched = stitch();
    if (!Stitched)
      return false;
    Result = *Stitched;
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

//===----------------------------------------------------------------------===//
// Rows that are sent to parts
//===----------------------------------------------------------------------===//

/// Whether the DynamicPartition at hand counts the rows of one replica.
bool TypeRules::isParted() const {
  auto Shape = D.shape(out());
  return Shape && D.table().isRagged(Shape->front());
}

/// DynamicPartition: each replica sends rows of its own; all together, in the
/// order of replicas, are the rows of the part in the order of the true value.
void TypeRules::partition() {
  RType X = operand(0), Part = operand(1);
  if (X.isVarying() || Part.isVarying())
    return setAll(varyingLike(X.isVarying() ? X : Part));
  Part = plain(1);
  if (!isParted() || !Part.isSharded() || !X.isSharded())
    return setAll(whole());
  X = numeric(0);
  bool Fits =
      Part.Axis == 0 && X.Axis == 0 && !Part.isJoined() && !X.isJoined();
  setAll(Fits ? RType::sharded(0, X.K)
              : varying("partitions rows by partition numbers in a different "
                        "row order"));
}

/// A stitch of all the rows that were sent to parts, each part in the order in
/// which it got them: rows in the order in which they were sent.
std::optional<RType> TypeRules::stitch() {
  NodeId Partition = partitionStitched(G, N);
  if (Partition == NoNode ||
      !T.type({numbersParted(G, Partition), 0}).isRowNumbers())
    return std::nullopt;
  unsigned Count = numData() / 2;
  std::optional<int> K;
  auto RowsOf = [&](unsigned I) -> std::optional<Sym> {
    auto Shape = D.shape(G.input(N, I));
    return Shape && !Shape->empty() ? D.table().sym(Shape->front())
                                    : std::nullopt;
  };
  for (unsigned I = 0; I < Count; ++I) {
    RType Rows = numeric(Count + I);
    auto Sent = RowsOf(I);
    if (!T.type(G.input(N, I)).isRowNumbers() || !Rows.isSharded() ||
        Rows.isJoined() || Rows.Axis != 0 || !Sent || Sent->Ragged == 0 ||
        Sent != RowsOf(Count + I))
      return std::nullopt;
    if (!Rows.Zero && (!K || Rows.K == 0))
      K = Rows.K;
  }
  for (unsigned I = 0; I < Count; ++I)
    scaled(Count + I, numeric(Count + I), K.value_or(0));
  return RType::sharded(0, K.value_or(0));
}

} // namespace graft
