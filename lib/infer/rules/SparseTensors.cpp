//===- lib/infer/rules/SparseTensors.cpp - sparse, ragged tensors *- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sparse and ragged tensors, sets and matrices in rows. Their indices, splits
// and shapes say where the elements of all rows are, so they read the rows of
// all replicas. A sparse matrix (CSR) is a box: it is made of true values, or
// nothing is known of what is in it (ofAllRows).
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

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
      entry(op::SparseSlice, Whole),
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
