//===- lib/infer/rules/SparseTensors.cpp - sparse, ragged tensors ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sparse and ragged tensors, sets and sparse matrices. Their indices, splits
// and shapes locate elements among all rows, so the ops read the rows of all
// replicas. A sparse matrix (CSR) is a variant. Its contents are either global
// values or unknown (ofAllRows).
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/SparseRows.h"
#include "lib/program/forms/EntrySlice.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Infers the sizes of the entries in the rows of one replica.
static void sparseSlice(SizeContext &C) {
  NodeId Rows = rowsSliced(C.G, C.N, C.replicas());
  Dims Of = Rows == NoNode ? Dims() : C.Known.shape({Rows, 0}), X = C.in(0),
       Shape = C.in(2);
  if (!Of || Of->size() != 1)
    return;
  DimId Batch = Of->front(), Entries = C.slot(0);
  DimId Axes = X && X->size() == 2 ? (*X)[1] : C.slot(1);
  if (Shape && Shape->size() == 1)
    C.same(Axes, Shape->front());
  C.setShape(0, {Entries, Axes});
  C.setShape(1, Entries);
  C.setShape(2, Axes);
  int64_t Rank = C.plainNumber(Axes);
  if (Rank < 1 || Rank > C.MaxElements)
    return;
  DimList Sizes{Batch};
  for (int64_t I = 1; I < Rank; ++I) {
    Sizes.push_back(C.slot(1 + I));
    C.Table.markSame(Sizes.back());
  }
  C.setValue(2, Sizes);
}

} // namespace sizes

namespace types {

static bool sparseSliceIndices(TypeContext &C) {
  NodeId Rows = rowsSliced(C.G, C.N, C.D.replicas());
  auto Shape = C.D.value(C.out(2));
  if (Rows == NoNode || !Shape || !C.operand(0).isTrue() ||
      !C.operand(1).isTrue() || !C.operand(2).isTrue() ||
      !C.Types.type({Rows, 0}).isSharded())
    return false;
  ReplicationType Type = C.varying("has only the entries of a sparse tensor "
                                   "that are in the rows of one replica");
  Type.Cause = C.N;
  C.set(0, Type, LocalIndices::EntryIndices);
  C.set(1, Type, LocalIndices::EntryValues);
  C.set(2, C.sizes(*Shape));
  return true;
}

/// Types an element-wise op on the values of entries.
bool entryValues(TypeContext &C) {
  if (C.numData() != 1 || C.operand(0).Indices != LocalIndices::EntryValues)
    return false;
  C.setAll(C.operand(0), LocalIndices::EntryValues);
  return true;
}

/// Types the product of a value per entry with another value per entry, or with
/// one value for all entries.
bool entryProducts(TypeContext &C) {
  if (C.numData() != 2)
    return false;
  ReplicationType X = C.operand(0), Y = C.operand(1);
  bool IsX = X.Indices == LocalIndices::EntryValues,
       IsY = Y.Indices == LocalIndices::EntryValues;
  int RX = C.rank(0), RY = C.rank(1);
  bool Fits = RX >= 0 && RY >= 0 &&
              (IsX && IsY ? X.Cause == Y.Cause && RX == RY
               : IsX      ? Y.isTrue() && RY < RX
                          : IsY && X.isTrue() && RX < RY);
  if (Fits)
    C.setAll(IsX ? X : Y, LocalIndices::EntryValues);
  return Fits;
}

/// Types a sum along axes other than that of the entries.
bool entrySums(TypeContext &C) {
  ReplicationType X = C.operand(0);
  auto Listed = C.numbers(1);
  auto Axes = Listed ? axesIn(*Listed, C.rank(0)) : std::nullopt;
  if (X.Indices != LocalIndices::EntryValues || !C.operand(1).isTrue() ||
      !Axes || Axes->empty() || Axes->test(0))
    return false;
  C.setAll(X, LocalIndices::EntryValues);
  return true;
}

/// Types an op that adds or drops axes of size 1 behind the axis of the
/// entries.
bool entryAxes(TypeContext &C) {
  ReplicationType X = C.operand(0);
  int Rank = C.rank(0);
  if (X.Indices != LocalIndices::EntryValues || Rank < 0)
    return false;
  bool Expands = C.isOp(op::ExpandDims) && C.operand(1).isTrue();
  std::optional<SmallVector<int64_t, 4>> Listed;
  if (Expands)
    Listed = C.numbers(1);
  else if (auto Named = C.intListAttr("squeeze_dims");
           C.isOp(op::Squeeze) && Named && !Named->empty())
    Listed.emplace(Named->begin(), Named->end());
  auto Axes = Listed ? axesIn(*Listed, Rank + Expands) : std::nullopt;
  if (!Axes || Axes->empty() || Axes->test(0))
    return false;
  C.setAll(X, LocalIndices::EntryValues);
  return true;
}

/// Types a batched matrix product with two matrices per entry.
bool entryMatrices(TypeContext &C) {
  ReplicationType X = C.operand(0), Y = C.operand(1);
  if (X.Indices != LocalIndices::EntryValues ||
      Y.Indices != LocalIndices::EntryValues || X.Cause != Y.Cause ||
      C.rank(0) < 3 || C.rank(0) != C.rank(1))
    return false;
  C.setAll(X, LocalIndices::EntryValues);
  return true;
}

/// Types a column of the indices of entries. Column 0 has the row numbers.
bool entryColumns(TypeContext &C) {
  ReplicationType X = C.operand(0);
  auto Column = columnTaken(C.G, C.N);
  if (X.Indices != LocalIndices::EntryIndices || !Column || C.rank(0) != 2)
    return false;
  C.setAll(X,
           *Column == 0 ? LocalIndices::EntryRows : LocalIndices::EntryValues);
  return true;
}

/// Types a lookup of the local row of each entry, or of a row per entry in a
/// table that is not sharded.
bool entryLookups(TypeContext &C) {
  ReplicationType Table = C.operand(0), Index = C.operand(1);
  bool IsRow = Index.Indices == LocalIndices::EntryRows;
  if ((!IsRow && Index.Indices != LocalIndices::EntryValues) || !takesRows(C))
    return false;
  NodeId Rows = IsRow ? rowsSliced(C.G, Index.Cause, C.D.replicas()) : NoNode;
  bool Fits = IsRow ? Rows != NoNode && Table.isSharded() &&
                          !Table.isJoined() && Table.Axis == 0 &&
                          C.isSameSize(C.input(0), 0, {Rows, 0}, 0)
                    : !Table.isVarying() && !Table.isSharded();
  if (!Fits)
    return false;
  if (ReplicationType X = C.plain(0); X.isVarying())
    return false;
  C.setAll(Index, LocalIndices::EntryValues);
  return true;
}

bool isOfEntries(const TypeContext &C, unsigned Indices, unsigned Values,
                 unsigned Shape, Endpoint &Rows) {
  ReplicationType I = C.operand(Indices), V = C.operand(Values);
  if (I.Indices != LocalIndices::EntryIndices ||
      V.Indices != LocalIndices::EntryValues || I.Cause != V.Cause)
    return false;
  Rows = {rowsSliced(C.G, I.Cause, C.D.replicas()), 0};
  return Rows.Node != NoNode &&
         entriesSliced(C.G, C.input(Shape), 2, C.D.replicas()) == I.Cause;
}

} // namespace types

ArrayRef<OpRule> families::sparseTensors() {
  static const OpRule Rules[] = {
      // Indices, values and a shape.
      entry(op::DenseCountSparseOutput, Whole),
      entry(op::DenseToSparseSetOperation, Whole),
      entry(op::DeserializeManySparse, Whole),
      entry(op::DeserializeSparse, Whole),
      entry(op::SerializeManySparse, Whole),
      entry(op::SerializeSparse, Whole),
      entry(op::SetSize, Whole),
      entry(op::SparseAdd, Whole),
      entry(op::SparseAddGrad, Whole),
      entry(op::SparseBincount, Whole),
      entry(op::SparseConcat, Whole),
      entry(op::SparseCountSparseOutput, Whole),
      entry(op::SparseDenseCwiseAdd, Whole),
      entry(op::SparseDenseCwiseDiv, Whole),
      entry(op::SparseDenseCwiseMul, Whole),
      entry(op::SparseFillEmptyRowsGrad, Whole,
            {.Looks = indexes(0, 1, IndexUse::OtherRows)}),
      entry(op::SparseReduceMax, Whole),
      entry(op::SparseReduceMaxSparse, Whole),
      entry(op::SparseReduceSum, Whole),
      entry(op::SparseReduceSumSparse, Whole),
      entry(op::SparseReorder, Whole),
      entry(op::SparseSegmentMeanGradV2, Whole),
      entry(op::SparseSegmentSqrtNGradV2, Whole),
      entry(op::SparseSegmentSumGradV2, Whole),
      entry(op::SparseSlice, Whole,
            {.Sizes = sizes::sparseSlice,
             .LocalIndices = types::sparseSliceIndices}),
      entry(op::SparseSliceGrad, Whole),
      entry(op::SparseSoftmax, Whole),
      entry(op::SparseSparseMaximum, Whole),
      entry(op::SparseSparseMinimum, Whole),
      entry(op::SparseSplit, Whole),
      entry(op::SparseTensorDenseAdd, Whole),
      entry(op::SparseToSparseSetOperation, Whole),

      // Values and splits.
      entry(op::RaggedBincount, Whole),
      entry(op::RaggedCountSparseOutput, Whole),
      entry(op::RaggedCross, Whole),
      entry(op::RaggedFillEmptyRows, Whole),
      entry(op::RaggedFillEmptyRowsGrad, Whole),
      entry(op::RaggedGather, Whole),
      entry(op::RaggedRange, Whole),
      entry(op::RaggedTensorFromVariant, Whole),
      entry(op::RaggedTensorToSparse, Whole),
      entry(op::RaggedTensorToTensor, Whole),
      entry(op::RaggedTensorToVariant, Whole),
      entry(op::RaggedTensorToVariantGradient, Whole),

      // Matrices in rows.
      entry(op::CSRSparseMatrixComponents, Whole),
      entry(op::CSRSparseMatrixToDense, Whole),
      entry(op::CSRSparseMatrixToSparseTensor, Whole),
      entry(op::DenseToCSRSparseMatrix, Whole),
      entry(op::SparseMatrixAdd, Whole),
      entry(op::SparseMatrixMatMul, Whole),
      entry(op::SparseMatrixMul, Whole),
      entry(op::SparseMatrixNNZ, Whole),
      entry(op::SparseMatrixOrderingAMD, Whole),
      entry(op::SparseMatrixSoftmax, Whole),
      entry(op::SparseMatrixSoftmaxGrad, Whole),
      entry(op::SparseMatrixSparseCholesky, Whole),
      entry(op::SparseMatrixSparseMatMul, Whole),
      entry(op::SparseMatrixTranspose, Whole),
      entry(op::SparseMatrixZeros, Whole),
      entry(op::SparseTensorToCSRSparseMatrix, Whole),
  };
  return Rules;
}

} // namespace graft
