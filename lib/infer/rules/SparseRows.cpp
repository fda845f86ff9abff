//===- lib/infer/rules/SparseRows.cpp - sparse tensors of own rows --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A replica can make a sparse tensor of local rows, as feature columns do:
//
//     indices = Where(x != nothing)         RowIndices: on one replica, all
//     values = GatherNd(x, indices)         rows have the same offset
//     shape = Shape(x)                      sizes
//
// The elements of all replicas, concatenated, are those of the global value.
// This still holds after ops on each row (SparseReshape of columns,
// SparseFillEmptyRows, SparseCross). Ops that sum the elements of a row return
// rows of the batch.
//
// An embedding finds the distinct values first, to look up each row only once.
// The distinct values of a replica are not the global ones, but each element
// gets the right row. Sums per distinct value are right after they are summed
// over all replicas:
//
//     ids, which = Unique(values)           Distinct, DistinctNumbers
//     rows = Gather(table, ids)             Distinct
//     y = SparseSegmentSum(rows, which, i)  rows of the batch
//     d = UnsortedSegmentSum(.., which, n)  DistinctSums, for ids
//
// A second Unique reads the distinct values of all replicas, concatenated. It
// returns the distinct values of all rows, in the global order.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/SparseRows.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void sparseReshape(SizeContext &C) {
  Dims From = C.val(1), To = C.val(2);
  if (!To)
    return;
  DimList List(To->begin(), To->end()), Old, Others;
  if (From)
    Old.assign(From->begin(), From->end());
  int Wild = -1;
  for (size_t I = 0; I < List.size(); ++I) {
    if (C.plainNumber(List[I]) != -1) {
      Others.push_back(List[I]);
      continue;
    }
    if (Wild >= 0)
      return;
    Wild = static_cast<int>(I);
  }
  if (Wild >= 0) {
    if (!From)
      return;
    // Sizes in both shapes cancel out.
    erase_if(Others, [&](DimId D) {
      auto It = find_if(
          Old, [&](DimId O) { return C.Table.find(O) == C.Table.find(D); });
      if (It == Old.end())
        return false;
      Old.erase(It);
      return true;
    });
    DimId All = C.One, Rest = C.One;
    for (size_t I = 0; I < Old.size(); ++I)
      All = C.product(64 + I, All, Old[I]);
    for (size_t I = 0; I < Others.size(); ++I)
      Rest = C.product(96 + I, Rest, Others[I]);
    List[Wild] = C.quotient(63, All, Rest);
  }
  Dims Index = C.in(0);
  if (Index && Index->size() == 2)
    C.setShape(0, {Index->front(), C.number(0, int64_t(List.size()))});
  C.setShape(1, C.number(1, int64_t(List.size())));
  C.setValue(1, List);
}

/// Returns true if each replica may count the local rows of a sparse tensor
/// that has indices \p Indices and \p Batch rows.
static bool countsOwnRows(SizeContext &C, DimId Batch, Endpoint Indices) {
  return C.countsLocally(Batch) && areMadeOfRows(C.G, Indices) &&
         !C.Known.isOfAllRows(C.N);
}

/// Infers the sizes of SparseFillEmptyRows. Output 0 has an index for each
/// element, and one for each empty row.
static void fillEmptyRows(SizeContext &C) {
  Dims Index = C.in(0), Shape = C.val(2);
  if (!Index || Index->size() != 2 || !Shape || Shape->empty())
    return;
  DimId Elements = (*Index)[0], Columns = (*Index)[1], Batch = (*Shape)[0];
  DimId Filled = C.slot(0);
  if (C.countsLocally(Elements) && countsOwnRows(C, Batch, C.Inputs[0])) {
    // Another SparseFillEmptyRows with the same indices and the same number of
    // rows has outputs of the same size.
    NodeId First = C.firstLike(0);
    Dims Its = First != C.N ? C.Known.value(C.G.input(First, 2)) : Dims();
    bool Same =
        Its && !Its->empty() && C.Table.find((*Its)[0]) == C.Table.find(Batch);
    C.countRows(Filled, {Same ? First : C.N, 0});
  }
  C.setShape(0, {Filled, Columns});
  C.setShape(1, Filled);
  C.setShape(2, Batch);
  C.setShape(3, Elements);
}

/// Returns the number of sparse inputs of a SparseCross, which precede the
/// dense inputs.
static unsigned sparseInputs(const NodeView &C) {
  return static_cast<unsigned>(C.intAttr("N").value_or(0));
}

/// Returns the number of operands after the dense inputs.
static unsigned otherInputs(const NodeView &C) {
  return C.isOp(op::SparseCrossV2) ? 1 : C.isOp(op::SparseCrossHashed) ? 3 : 0;
}

static void sparseCross(SizeContext &C) {
  unsigned Count = sparseInputs(C);
  Dims First = Count > 0 ? C.val(2 * Count) : C.in(0);
  if (!First || First->empty() || 3 * Count >= C.numData() + (Count > 0))
    return;
  DimId Batch = First->front(), Elements = C.slot(0);
  bool Own = Count > 0 ? countsOwnRows(C, Batch, C.Inputs[0])
                       : C.countsLocally(Batch) && !C.Known.isOfAllRows(C.N);
  if (Own)
    C.countRows(Elements, {C.N, 0});
  DimId Columns = C.slot(1);
  C.setShape(0, {Elements, C.number(2, 2)});
  C.setShape(1, Elements);
  C.setShape(2, C.number(3, 2));
  C.setValue(2, {Batch, Columns});
}

/// Infers a shape with a row per segment. After a SparseFillEmptyRows, each row
/// of the batch is a segment.
static void sparseSegment(SizeContext &C) {
  Dims Data = C.in(0);
  unsigned Of = C.isOp(op::SegmentSum) || C.isOp(op::SegmentMean) ? 1 : 2;
  NodeId Filled = filledBy(C.G, C.Inputs[Of]);
  if (!Data || Data->empty())
    return;
  DimList List(Data->begin(), Data->end());
  Dims Rows = Filled == NoNode ? Dims() : C.Known.shape({Filled, 2});
  List[0] = Rows && Rows->size() == 1 ? Rows->front() : C.slot(0);
  C.setShape(0, List);
}

/// Infers a shape whose number of rows is the value of operand 3.
static void sparseSegmentGrad(SizeContext &C) {
  Dims Data = C.in(0), Count = C.val(3);
  if (!Data || Data->empty())
    return;
  DimList List(Data->begin(), Data->end());
  List[0] = Count && Count->size() == 1 ? Count->front() : C.slot(0);
  C.setShape(0, List);
}

static void unique(SizeContext &C) {
  C.setShape(0, C.slot(0));
  if (Dims X = C.in(0))
    C.setShape(1, *X);
}

} // namespace sizes

namespace {

bool isRows(const ReplicationType &X) {
  return X.isSharded() && !X.isJoined() && X.Axis == 0;
}

/// Returns true if \p X and \p Y have equally many local rows along axis 0.
bool sameRows(const TypeContext &C, Endpoint X, Endpoint Y) {
  auto Mine = C.sizeOf(X, 0), Its = C.sizeOf(Y, 0);
  return Mine && Mine->isLocal() && Mine == Its;
}

/// Returns true if operand \p I is a shape whose first size is the number of
/// rows to which \p Indices refer.
bool isShapeOfRows(const TypeContext &C, unsigned I,
                   const ReplicationType &Indices) {
  auto Shape = C.D.value(C.input(I));
  return C.isSize(I) && Shape && !Shape->empty() &&
         types::numbersRows(C, Indices, C.D.table().sym(Shape->front()));
}

/// Returns true if operands \p Index, \p Values and \p Shape are a sparse
/// tensor of local rows.
bool isOfOwnRows(TypeContext &C, unsigned Index, unsigned Values,
                 unsigned Shape) {
  ReplicationType X = C.operand(Index);
  return X.isRowIndices() && X.Axis == 0 && isShapeOfRows(C, Shape, X) &&
         isRows(C.operand(Values)) &&
         sameRows(C, C.input(Index), C.input(Values)) &&
         isRows(C.plain(Values));
}

/// Returns the type of indices or values of node \p Cause that are right only
/// on their replica.
ReplicationType local(TypeContext &C, NodeId Cause) {
  ReplicationType Type =
      C.varying("has indices or values that are local to one replica");
  Type.Cause = Cause;
  return Type;
}

/// Returns true if output 0 has a data-dependent row count on each replica.
bool countsOwn(const TypeContext &C) {
  auto Shape = C.D.shape(C.out());
  return Shape && !Shape->empty() && C.D.table().isRagged(Shape->front());
}

/// Types an op on the rows of all replicas. The type is Varying if the op
/// counts local rows.
void ofAll(TypeContext &C) {
  C.setAll(countsOwn(C)
               ? C.varying("counts the rows of one replica, but its operands "
                           "are not a sparse tensor of these rows")
               : types::ofAllRows(C));
}

} // namespace

namespace types {

bool numbersRows(const TypeContext &C, const ReplicationType &Numbers,
                 std::optional<Sym> Rows) {
  auto Of = C.sizeOf(rowsNumbered(C, Numbers.Cause), 0);
  return Rows && Of && Rows->isLocal() && *Rows == *Of;
}

//===----------------------------------------------------------------------===//
// Ops on each row by itself
//===----------------------------------------------------------------------===//

/// Types a SparseReshape that keeps the rows and reshapes the columns.
static bool sparseReshapeIndices(TypeContext &C) {
  ReplicationType Index = C.operand(0);
  auto From = C.D.value(C.input(1)), To = C.D.value(C.out(1));
  bool Fits = Index.isRowIndices() && Index.Axis == 0 && C.isSize(2) &&
              isShapeOfRows(C, 1, Index) && To && !To->empty() &&
              numbersRows(C, Index, C.D.table().sym(To->front())) &&
              ((C.D.table().areSame(From->drop_front()) &&
                C.D.table().areSame(To->drop_front())) ||
               equal(*From, *To, [&](DimId X, DimId Y) {
                 return C.D.table().find(X) == C.D.table().find(Y);
               }));
  if (!Fits) {
    C.setAll(ofAllRows(C));
    return true;
  }
  C.set(0, Index, Index.Indices);
  C.set(1, C.sizes(*To));
  return true;
}

static void fillEmptyRows(TypeContext &C) { ofAll(C); }

/// Types a SparseFillEmptyRows, after which each row of a replica has elements.
static bool fillEmptyRowsIndices(TypeContext &C) {
  if (!countsOwn(C) || !isOfOwnRows(C, 0, 1, 2) || !C.plain(3).isReplicated())
    return false;
  ReplicationType Index = C.operand(0);
  C.setAll(ReplicationType::sharded(0));
  C.set(0, Index, Index.Indices);
  C.set(3, local(C, C.N), LocalIndices::RowNumbers);
  return true;
}

/// Types a SparseCross, which crosses the elements within each row.
static void sparseCross(TypeContext &C) {
  unsigned Count = sizes::sparseInputs(C), Others = sizes::otherInputs(C);
  auto Shape = C.D.value(C.out(2));
  auto Fits = [&] {
    if (!countsOwn(C) || C.D.isOfAllRows(C.N) || !Shape ||
        C.numData() < 3 * Count + Others)
      return false;
    auto Batch = C.D.table().sym(Shape->front());
    for (unsigned I = 0; I < Count; ++I)
      if (!isOfOwnRows(C, I, Count + I, 2 * Count + I) ||
          !numbersRows(C, C.operand(I), Batch))
        return false;
    for (unsigned I = 3 * Count; I < C.numData() - Others; ++I)
      if (!isRows(C.plain(I)) || C.sizeOf(C.input(I), 0) != Batch)
        return false;
    for (unsigned I = C.numData() - Others; I < C.numData(); ++I)
      if (!C.operand(I).isTrue())
        return false;
    return true;
  };
  if (!Fits())
    return ofAll(C);
  // With dense inputs only, the op makes the row numbers itself.
  ReplicationType Index = local(C, Count > 0 ? C.operand(0).Cause : C.N);
  C.set(0, Index, LocalIndices::RowIndices);
  C.set(1, ReplicationType::sharded(0));
  C.set(2, C.sizes(*Shape));
}

static bool sparseCrossIndices(TypeContext &C) {
  sparseCross(C);
  return true;
}

/// Types a SparseToDense of local rows.
bool sparseToDenseIndices(TypeContext &C) {
  auto Out = C.D.shape(C.out());
  Endpoint Rows;
  if ((!isOfOwnRows(C, 0, 2, 1) && !isOfEntries(C, 0, 2, 1, Rows)) || !Out ||
      !C.D.table().areSame(Out->drop_front()) || !C.plain(3).isReplicated())
    return false;
  C.setAll(ReplicationType::sharded(0));
  return true;
}

//===----------------------------------------------------------------------===//
// Distinct values
//===----------------------------------------------------------------------===//

/// Types a Unique: each replica finds the distinct values of local rows, unless
/// a user needs the distinct values of all rows.
static void unique(TypeContext &C) {
  ReplicationType X = C.plain(0);
  if (isRows(X) && C.isPerReplica() && !C.isInLoop() && C.rank(0) == 1 &&
      C.D.table().hasRagged() && !C.D.isOfAllRows(C.N) &&
      isLookedUp(C.G, C.N)) {
    ReplicationType Found = local(C, C.N);
    C.set(0, Found, LocalIndices::Distinct);
    C.set(1, Found, LocalIndices::DistinctNumbers);
    return;
  }
  if (X.isSharded())
    X = C.gathered(0, X);
  C.setAll(X.isVarying() ? C.varyingLike(X) : ReplicationType::replicated());
}

/// Types a second Unique, which reads the distinct values of all replicas.
/// Output 0 has the distinct values of all rows, in the global order. Output 1
/// has an index into output 0 for each value that a replica found.
static bool uniqueIndices(TypeContext &C) {
  ReplicationType X = C.operand(0);
  if ((X.Indices != LocalIndices::Distinct &&
       X.Indices != LocalIndices::AllDistinct) ||
      C.rank(0) != 1)
    return false;
  if (X.Indices == LocalIndices::Distinct)
    C.gathered(0, X);
  C.set(0, ReplicationType::replicated());
  C.set(1, local(C, X.Cause), LocalIndices::AllDistinctNumbers);
  return true;
}

static bool isOf(const ReplicationType &X, LocalIndices Kind, NodeId Unique) {
  return X.Indices == Kind && X.Cause == Unique;
}

/// Types a lookup of a table's row for each distinct value, or a lookup in such
/// rows for each element.
bool gatherDistinct(TypeContext &C) {
  ReplicationType Table = C.operand(0), Index = C.operand(1);
  if (!Index.isDistinct() || !takesRows(C))
    return false;
  if (Index.Indices == LocalIndices::Distinct) {
    if (Table.isSharded() || Table.isVarying() || !C.plain(0).isReplicated())
      return false;
    C.setAll(Index, LocalIndices::Distinct);
    return true;
  }
  if (Index.Indices != LocalIndices::DistinctNumbers ||
      !isOf(Table, LocalIndices::Distinct, Index.Cause))
    return false;
  C.setAll(ReplicationType::sharded(Index.Axis));
  return true;
}

/// Returns true if operand \p I is the number of distinct values of \p Unique.
static bool countsDistinct(const TypeContext &C, unsigned I, NodeId Unique) {
  auto Count = C.D.value(C.input(I)), Found = C.D.shape({Unique, 0});
  return C.isSize(I) && Count && Count->size() == 1 && Found &&
         C.D.table().find(Count->front()) == C.D.table().find(Found->front());
}

bool sumsOfDistinct(TypeContext &C) {
  ReplicationType X = C.operand(0), Ids = C.operand(1);
  if (Ids.Indices == LocalIndices::DistinctNumbers && isRows(X) &&
      Ids.Axis == 0 && C.rank(1) == 1 && sameRows(C, C.input(0), C.input(1)) &&
      countsDistinct(C, 2, Ids.Cause) && isRows(C.plain(0))) {
    C.setAll(local(C, Ids.Cause), LocalIndices::DistinctSums);
    return true;
  }
  bool Own = isOf(X, LocalIndices::DistinctSums, Ids.Cause);
  // The segment ids are the distinct values, so each replica has a partial sum.
  if (Ids.Indices == LocalIndices::Distinct && Own && C.rank(1) == 1 &&
      C.operand(2).isTrue()) {
    C.setAll(ReplicationType::partial(0));
    return true;
  }
  if (Ids.Indices != LocalIndices::AllDistinctNumbers ||
      !(Own || isOf(X, LocalIndices::AllDistinctSums, Ids.Cause)) ||
      !C.operand(2).isTrue())
    return false;
  if (Own)
    C.gathered(0, X);
  C.setAll(ReplicationType::replicated());
  return true;
}

bool reshapeDistinct(TypeContext &C) {
  ReplicationType X = C.operand(0);
  auto In = C.shape(0), Out = C.D.shape(C.out());
  if (!X.isDistinct() || !C.isOp(op::Reshape) || !C.isSize(1) || !In || !Out ||
      In->empty() || Out->empty() ||
      C.D.table().find(In->front()) != C.D.table().find(Out->front()))
    return false;
  C.setAll(X, X.Indices);
  return true;
}

ReplicationType gatheredDistinct(TypeContext &C, const ReplicationType &X) {
  auto All = [&](LocalIndices Is) {
    ReplicationType Type = local(C, X.Cause);
    Type.Indices = Is;
    return Type;
  };
  return X.Indices == LocalIndices::Distinct ? All(LocalIndices::AllDistinct)
         : X.Indices == LocalIndices::DistinctSums
             ? All(LocalIndices::AllDistinctSums)
             : C.varyingLike(X);
}

//===----------------------------------------------------------------------===//
// Segments of elements
//===----------------------------------------------------------------------===//

/// Returns true if operand \p I has the local row number of each element of
/// operand \p Of.
static bool isRowOfEach(const TypeContext &C, unsigned I, unsigned Of) {
  return C.operand(I).isRowNumbers() && C.operand(I).Axis == 0 &&
         C.rank(I) == 1 && sameRows(C, C.input(I), C.input(Of));
}

/// Types SegmentSum(x, row numbers).
static bool segmentIndices(TypeContext &C) {
  if (!isRowOfEach(C, 1, 0) || filledBy(C.G, C.input(1)) == NoNode ||
      !numbersRows(C, C.operand(1), C.sizeOf(C.out(), 0)))
    return false;
  ReplicationType X = C.numeric(0);
  if (!isRows(X))
    return false;
  C.setAll(ReplicationType::sharded(0, X.K));
  return true;
}

/// Types SparseSegmentSum(table, rows of the table, row numbers).
static bool sparseSegmentIndices(TypeContext &C) {
  if (!isRowOfEach(C, 2, 1) || filledBy(C.G, C.input(2)) == NoNode ||
      !numbersRows(C, C.operand(2), C.sizeOf(C.out(), 0)))
    return false;
  ReplicationType Table = C.operand(0), Index = C.operand(1);
  if (Index.Indices == LocalIndices::DistinctNumbers && Index.Axis == 0 &&
      isOf(Table, LocalIndices::Distinct, Index.Cause)) {
    C.setAll(ReplicationType::sharded(0));
    return true;
  }
  if (Table.isVarying() || Table.isSharded() || !isRows(Index) ||
      !isRows(C.plain(1)))
    return false;
  Table = C.reduced(0);
  C.setAll(ReplicationType::sharded(0, Table.K));
  return true;
}

/// Types the gradient of a lookup in a table: a sum over the batch.
static bool sparseSegmentGradIndices(TypeContext &C) {
  ReplicationType Grad = C.operand(0), Index = C.operand(1);
  if (!isRows(Grad) || !isRowOfEach(C, 2, 1) ||
      !numbersRows(C, C.operand(2), C.sizeOf(C.input(0), 0)))
    return false;
  if (Index.Indices == LocalIndices::DistinctNumbers && Index.Axis == 0 &&
      countsDistinct(C, 3, Index.Cause) && isRows(C.plain(0))) {
    C.setAll(local(C, Index.Cause), LocalIndices::DistinctSums);
    return true;
  }
  if (!isRows(Index) || !isRows(C.plain(1)) || !C.operand(3).isTrue())
    return false;
  C.setAll(ReplicationType::partial(C.numeric(0).K));
  return true;
}

} // namespace types

namespace {

constexpr OpRule Cross = {.Sizes = sizes::sparseCross,
                          .Type = types::sparseCross,
                          .LocalIndices = types::sparseCrossIndices,
                          .Is = trait::FindsRows,
                          .SizeOperands = AnyInteger,
                          .ComparedOperands = AllOperands};
constexpr OpRule SparseSegment = {.Sizes = sizes::sparseSegment,
                                  .Type = types::whole,
                                  .LocalIndices = types::sparseSegmentIndices,
                                  .ZerosOf = operands(0),
                                  .SizeOperands = AnyInteger,
                                  .ComparedOperands = AllOperands};
constexpr OpRule SparseSegmentGrad = {.Sizes = sizes::sparseSegmentGrad,
                                      .Type = types::whole,
                                      .LocalIndices =
                                          types::sparseSegmentGradIndices,
                                      .ZerosOf = operands(0),
                                      .SizeOperands = AnyInteger,
                                      .ComparedOperands = AllOperands};
constexpr OpRule Segment = {.Sizes = sizes::sparseSegment,
                            .Type = types::whole,
                            .LocalIndices = types::segmentIndices,
                            .ZerosOf = operands(0),
                            .SizeOperands = AnyInteger,
                            .ComparedOperands = AllOperands};

} // namespace

ArrayRef<OpRule> families::sparseRows() {
  static const OpRule Rules[] = {
      // Ops on each row by itself.
      entry(op::SparseReshape, Whole,
            {.Sizes = sizes::sparseReshape,
             .LocalIndices = types::sparseReshapeIndices}),
      entry(op::SparseFillEmptyRows, Whole,
            {.Sizes = sizes::fillEmptyRows,
             .Type = types::fillEmptyRows,
             .LocalIndices = types::fillEmptyRowsIndices}),
      entry(op::SparseCross, Cross),
      entry(op::SparseCrossHashed, Cross),
      entry(op::SparseCrossV2, Cross),

      // Segments of elements.
      entry(op::SegmentMean, Segment),
      entry(op::SegmentSum, Segment),
      entry(op::SparseSegmentMean, SparseSegment),
      entry(op::SparseSegmentSqrtN, SparseSegment),
      entry(op::SparseSegmentSum, SparseSegment),
      entry(op::SparseSegmentMeanGrad, SparseSegmentGrad),
      entry(op::SparseSegmentSqrtNGrad, SparseSegmentGrad),
      entry(op::SparseSegmentSumGrad, SparseSegmentGrad),

      // Distinct values.
      {.Op = op::Unique,
       .Sizes = sizes::unique,
       .Type = types::unique,
       .LocalIndices = types::uniqueIndices,
       .Elements = ElementsOf::FirstThenSizes},
  };
  return Rules;
}

} // namespace graft
