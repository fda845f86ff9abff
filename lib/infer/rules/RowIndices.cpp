//===- lib/infer/rules/RowIndices.cpp - rows selected by their values -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Data-dependent row counts, DynamicPartition routing, and local row indices:
// of all rows (Range), or of the rows that a condition selects (Where).
//
// On each replica, Range(0, b) numbers the b local rows from 0. These local row
// indices are right only in a lookup or scatter of rows of the same replica. On
// one replica, all of them differ from the global row numbers by the same
// offset. This still holds after a reshape or a concatenation with other
// indices. The op Where selects a different number of rows on each replica, see
// Sym::Ragged.
//
// If a mask has a concatenation order, its row numbers index rows in the same
// order. The selected rows have a new order:
//
//     mask = [t, b] → [t * b], rows = [t, b, k] → [t * b, k]: t blocks
//     Gather(rows, Where(mask)): the rows of t blocks that this Where selects
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/PartedRows.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Infers the shape of a Where: a row per true element, and a column per axis.
static void where(SizeContext &C) {
  Dims X = C.in(0);
  if (!X)
    return;
  DimId Rows = C.slot(0);
  if (C.countsLocally(*X) && !is_contained(C.options().Whole, C.N))
    C.countRows(Rows, {C.firstLike(0), 0});
  C.setShape(0, {Rows, C.number(1, int64_t(X->size()))});
}

/// Infers the shapes of the parts of a DynamicPartition.
static void parts(SizeContext &C) {
  Dims X = C.in(0), Part = C.in(1);
  if (!X || !Part || X->size() < Part->size())
    return;
  C.sameShapes(X->take_front(Part->size()), *Part);
  NodeId First = C.N;
  bool Local = C.countsLocally(*Part);
  if (Local) {
    First = C.firstLike(1);
    Local = !is_contained(C.options().Whole, First);
  }
  DimList List{0};
  List.append(X->begin() + Part->size(), X->end());
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port) {
    List[0] = C.slot(Port);
    if (Local)
      C.countRows(List[0],
                  {Port < C.Known.numOutputs(First) ? First : C.N, Port});
    C.setShape(Port, List);
  }
}

} // namespace sizes

Endpoint types::rowsNumbered(const TypeContext &C, NodeId N) {
  return C.is(N, trait::FindsRows) ? C.G.input(N, 0) : Endpoint{N, 0};
}

namespace {

/// Returns true if \p X is sharded along \p Axis with rows in order \p Order.
bool isRows(const ReplicationType &X, int Axis,
            uint32_t Order = ReplicationType::InOrder) {
  return X.isSharded() && X.Axis == Axis &&
         (X.Order == Order || X.Order == ReplicationType::AnyOrder);
}

/// Returns the order in which Where lists the rows of tensor \p E of type \p X.
/// The op sorts by the index along the first axis first. Returns none if the
/// order is not known.
std::optional<uint32_t> orderListed(TypeContext &C, Endpoint E,
                                    const ReplicationType &X) {
  if (X.Axis == 0)
    return X.isJoined() ? X.Order : ReplicationType::InOrder;
  auto Shape = C.D.shape(E);
  if (!Shape || X.Axis >= Shape->size() || !C.Types.natural(E).isSharded())
    return std::nullopt;
  auto Each = C.D.table().sym((*Shape)[X.Axis]);
  auto Order = Each ? C.orderBehind(Shape->take_front(X.Axis), *Each, X.Order)
                    : std::nullopt;
  // If all axes before the batch axis have size 1, the first column of
  // the result has no row numbers.
  return Order == ReplicationType::InOrder ? std::nullopt : Order;
}

/// Returns the axis of the rows that \p Numbers index: 0, or the batch axis of
/// the operand of a Where.
unsigned numberedAxis(const TypeContext &C, const ReplicationType &Numbers) {
  if (Numbers.Order == ReplicationType::InOrder ||
      !C.is(Numbers.Cause, trait::FindsRows))
    return 0;
  return C.Types.natural(types::rowsNumbered(C, Numbers.Cause)).Axis;
}

/// Returns the order of the rows that a lookup by \p Numbers selects.
uint32_t orderSelected(TypeContext &C, const ReplicationType &Numbers) {
  if (Numbers.Order == ReplicationType::InOrder ||
      !C.is(Numbers.Cause, trait::FindsRows))
    return Numbers.Order;
  auto Selected = C.sizeOf({Numbers.Cause, 0}, 0);
  return C.orderOf({{Numbers.Order, 0, Selected.value_or(Sym())}});
}

/// Returns the row order of the tensor that \p Numbers index, along
/// numberedAxis().
uint32_t orderIndexed(const TypeContext &C, const ReplicationType &Numbers) {
  if (numberedAxis(C, Numbers) == 0)
    return Numbers.Order;
  ReplicationType Of = C.Types.natural(types::rowsNumbered(C, Numbers.Cause));
  return Of.isJoined() ? Of.Order : ReplicationType::InOrder;
}

/// Returns \p Type with its rows in order \p Order.
ReplicationType inOrder(ReplicationType Type, uint32_t Order) {
  Type.Order = Order;
  return Type;
}

/// Types a lookup by \p Numbers along axis \p Axis of \p E, or a scatter to
/// that axis. If Numbers are row numbers of that axis, the type is \p Result.
/// If they are row numbers of another feed, the type is Varying with a message.
/// Returns false if neither is proved.
bool useNumbers(TypeContext &C, const ReplicationType &Numbers, Endpoint E,
                unsigned Axis, ReplicationType Result) {
  Endpoint Numbered = types::rowsNumbered(C, Numbers.Cause);
  unsigned At = numberedAxis(C, Numbers);
  auto S = C.sizeOf(E, Axis), Of = C.sizeOf(Numbered, At);
  if (C.isSameSize(E, Axis, Numbered, At) || (S && Of && C.D.replicas() == 1)) {
    C.setAll(Result);
    return true;
  }
  if (!S || !Of || !S->isLocal() || S->Ragged != 0 || Of->Ragged != 0 ||
      S->B != 1)
    return false;
  if (S->Rows == Of->Rows) {
    C.setAll(C.varying("uses the row indices of one feed for another, which "
                       "has a different number of rows"));
    return true;
  }
  Endpoint Mine = C.D.table().rowsOf(*Of), Its = C.D.table().rowsOf(*S);
  auto NameOf = [&](Endpoint Rows) { return feedName(C.G, Rows); };
  std::string Why =
      "uses the row indices of '" + NameOf(Mine) + "' for the rows of '" +
      NameOf(Its) +
      "', but these feeds are not proved to have equally many rows";
  if (sourceShape(C.G, Mine) && sourceShape(C.G, Its))
    Why += "; if they have, give --feed=" + NameOf(Mine) + "+" + NameOf(Its) +
           "=split";
  C.setAll(C.varying(Why));
  return true;
}

/// Returns true if the node at hand numbers the local rows along \p Axis.
bool numbersLocalRows(const TypeContext &C, unsigned Axis = 0) {
  auto Shape = C.D.shape(types::rowsNumbered(C, C.N));
  if (!Shape || Axis >= Shape->size())
    return false;
  auto S = C.D.table().sym((*Shape)[Axis]);
  return S ? S->B == 1 && S->R == 0 : C.D.table().followsRows((*Shape)[Axis]);
}

/// Returns the axis along which operand \p I lists index vectors that contain a
/// row number for numberedAxis(). Returns -1 if there is none.
int indexedAxis(const TypeContext &C, unsigned I) {
  ReplicationType X = C.operand(I);
  auto Shape = C.shape(I);
  bool Single = X.Indices == LocalIndices::RowNumbers && Shape &&
                !Shape->empty() && C.D.table().isOne(Shape->back());
  return Shape && (Single || X.Indices == LocalIndices::RowIndices) &&
                 X.Axis + 1u < Shape->size()
             ? X.Axis
             : -1;
}

/// Returns true if the parts of the DynamicPartition at hand have
/// data-dependent row counts.
bool isParted(const TypeContext &C) {
  auto Shape = C.D.shape(C.out());
  return Shape && C.D.table().isRagged(Shape->front());
}

} // namespace

namespace types {

/// Types Range(0, b, 1) as row numbers.
bool rangeIndices(TypeContext &C) {
  auto Start = C.numbers(0), Delta = C.numbers(2);
  if (!Start || !Delta || Start->size() != 1 || (*Start)[0] != 0 ||
      Delta->size() != 1 || (*Delta)[0] != 1 || !C.operand(0).isTrue() ||
      !C.operand(2).isTrue() || !C.isSize(1) || !numbersLocalRows(C))
    return false;
  C.setAll(C.varying("has row indices that are local to one replica"),
           LocalIndices::RowNumbers);
  return true;
}

/// Types a Where: each replica finds the indices of local rows, unless a user
/// needs the indices of all rows.
static void where(TypeContext &C) {
  ReplicationType X = C.plain(0);
  if (X.isVarying())
    return C.setAll(C.varyingLike(X));
  if (!X.isSharded())
    return C.setAll(ReplicationType::replicated());
  auto Shape = C.D.shape(C.out());
  auto Order = orderListed(C, C.input(0), X);
  if (!Shape || !C.D.table().isRagged((*Shape)[0]) || !Order ||
      !numbersLocalRows(C, X.Axis))
    return C.setAll(C.gathered(0, X));
  // The op must find the rows of all replicas, but its row count was inferred
  // as that of one replica.
  if (C.D.isOfAllRows(C.N))
    return C.setAll(C.varying("finds the rows of all replicas, but its row "
                              "count must equal a size of one replica"));
  C.setAll(inOrder(C.varying("has row indices that are local to one replica"),
                   *Order),
           C.rank(0) == 1 ? LocalIndices::RowNumbers
                          : LocalIndices::RowIndices);
}

bool moveNumbers(TypeContext &C, ReplicationType (*Move)(TypeContext &)) {
  ReplicationType First = C.operand(0);
  if (First.Indices != LocalIndices::RowNumbers)
    return false;
  for (unsigned I = 1; I < C.numData(); ++I)
    if (C.operand(I).isVarying())
      return false;
  ReplicationType Moved = C.suppose(ReplicationType::sharded(First.Axis), Move);
  bool Moves = Moved.isSharded() && !Moved.isJoined() && Moved.K == 0;
  First.Axis = Moves ? Moved.Axis : 0;
  C.setAll(First, Moves ? LocalIndices::RowNumbers : LocalIndices::None);
  return true;
}

bool gatherIndices(TypeContext &C) {
  ReplicationType Table = C.operand(0), Index = C.operand(1);
  if (Index.isOfEntries())
    return entryLookups(C);
  bool OfIndices =
      Table.isRowIndices() || (Table.isRowNumbers() && Table.Axis == 0);
  if (Index.Indices != LocalIndices::RowNumbers ||
      !(Table.isSharded() || OfIndices))
    return gatherDistinct(C);
  std::optional<unsigned> Axis = 0;
  if (C.isOp(op::GatherV2)) {
    auto V = C.numbers(2);
    Axis = V && V->size() == 1 ? axisIn((*V)[0], C.rank(0)) : std::nullopt;
    if (!Axis || !C.operand(2).isTrue() ||
        C.intAttr("batch_dims").value_or(0) != 0)
      return false;
  }
  // The lookup selects among the row indices of a replica.
  if (OfIndices) {
    if (*Axis != 0 || Table.Axis != 0 || Index.Axis != 0 || C.rank(1) != 1 ||
        !Index.isRowNumbers() ||
        !numbersRows(C, Index, C.sizeOf(C.input(0), 0)))
      return false;
    C.setAll(Table, Table.Indices);
    return true;
  }
  return isRows(Table, static_cast<int>(*Axis), Index.Order) &&
         useNumbers(
             C, Index, C.input(0), Table.Axis,
             inOrder(ReplicationType::sharded(Table.Axis + Index.Axis, Table.K),
                     orderSelected(C, Index)));
}

bool gatherNdIndices(TypeContext &C) {
  ReplicationType Table = C.operand(0), Index = C.operand(1);
  int Axis = indexedAxis(C, 1);
  if (Axis < 0)
    return false;
  unsigned At = numberedAxis(C, Index);
  return isRows(Table, At, orderIndexed(C, Index)) &&
         useNumbers(C, Index, C.input(0), At,
                    inOrder(ReplicationType::sharded(Axis, Table.K),
                            orderSelected(C, Index)));
}

bool scatterNdIndices(TypeContext &C) {
  ReplicationType Index = C.operand(0), X = C.operand(1);
  int Axis = indexedAxis(C, 0);
  if (Axis < 0)
    return false;
  unsigned At = numberedAxis(C, Index);
  return isRows(X, Axis, orderSelected(C, Index)) && C.isSize(2) &&
         C.localAxis(C.out()) == static_cast<int>(At) &&
         useNumbers(C, Index, C.out(), At,
                    inOrder(ReplicationType::sharded(At, X.K),
                            orderIndexed(C, Index)));
}

bool unsortedSegmentSumIndices(TypeContext &C) {
  ReplicationType X = C.operand(0), Ids = C.operand(1);
  if (Ids.isDistinct())
    return sumsOfDistinct(C);
  return Ids.Indices == LocalIndices::RowNumbers &&
         isRows(X, Ids.Axis, orderSelected(C, Ids)) && C.isSize(2) &&
         C.localAxis(C.out()) == 0 &&
         useNumbers(C, Ids, C.out(), 0,
                    inOrder(ReplicationType::sharded(0, X.K), Ids.Order));
}

//===----------------------------------------------------------------------===//
// DynamicPartition routing
//===----------------------------------------------------------------------===//

/// Types a DynamicPartition: each replica sends local rows to the parts. The
/// local values of a part, concatenated in replica order, are the global value
/// of the part.
static void partition(TypeContext &C) {
  ReplicationType X = C.operand(0), Part = C.operand(1);
  if (X.isVarying() || Part.isVarying())
    return C.setAll(C.varyingLike(X.isVarying() ? X : Part));
  Part = C.plain(1);
  if (!isParted(C) || !Part.isSharded() || !X.isSharded())
    return C.setAll(ofAllRows(C));
  X = C.numeric(0);
  bool Fits =
      Part.Axis == 0 && X.Axis == 0 && !Part.isJoined() && !X.isJoined();
  C.setAll(
      Fits ? ReplicationType::sharded(0, X.K)
           : C.varying("partitions rows by partition numbers in a different "
                       "row order"));
}

/// Types a DynamicPartition of row numbers, which still refer to the same rows.
static bool partitionIndices(TypeContext &C) {
  ReplicationType First = C.operand(0);
  if (!First.isRowNumbers() || First.Axis != 0 || !isRows(C.operand(1), 0) ||
      !isParted(C))
    return false;
  C.setAll(First, First.Indices);
  return true;
}

/// Types a stitch of all rows that a DynamicPartition sent to parts. A
/// DynamicPartition keeps the row order within a part, so the result has the
/// order before the partition.
bool stitchIndices(TypeContext &C) {
  NodeId Partition = partitionStitched(C.G, C.N);
  if (Partition == NoNode ||
      !C.Types.type({numbersParted(C.G, Partition), 0}).isRowNumbers())
    return false;
  unsigned Count = C.numData() / 2;
  std::optional<int> K;
  for (unsigned I = 0; I < Count; ++I) {
    if (!C.operand(I).isRowNumbers())
      return false;
    ReplicationType Rows = C.numeric(Count + I);
    auto Sent = C.sizeOf(C.input(I), 0);
    if (!isRows(Rows, 0) || !Sent || Sent->Ragged == 0 ||
        Sent != C.sizeOf(C.input(Count + I), 0))
      return false;
    if (!Rows.Zero && (!K || Rows.K == 0))
      K = Rows.K;
  }
  for (unsigned I = 0; I < Count; ++I)
    C.scaled(Count + I, C.numeric(Count + I), K.value_or(0));
  C.setAll(ReplicationType::sharded(0, K.value_or(0)));
  return true;
}

} // namespace types

ArrayRef<OpRule> families::rowIndices() {
  using namespace trait;
  static const OpRule Rules[] = {
      // Rows by index.
      {.Op = op::DynamicPartition,
       .Sizes = sizes::parts,
       .Type = types::partition,
       .LocalIndices = types::partitionIndices,
       .Is = SendsRows},
      {.Op = op::ParallelDynamicStitch,
       .Sizes = sizes::stitch,
       .Type = types::whole,
       .LocalIndices = types::stitchIndices,
       .ComparedOperands = AllOperands},

      // Rows that a condition selects.
      {.Op = op::Where,
       .Sizes = sizes::where,
       .Type = types::where,
       .Is = FindsRows,
       .Elements = ElementsOf::SizesOfFirst},
  };
  return Rules;
}

} // namespace graft
