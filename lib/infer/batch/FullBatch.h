//===- lib/infer/batch/FullBatch.h - graphs without a batch -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_FULLBATCH_H
#define GRAFT_LIB_INFER_BATCH_FULLBATCH_H

#include "lib/infer/batch/Feeds.h"
#include "lib/infer/sizes/Dims.h"

namespace graft {

/// Finds tensors with a row and a column for each example, such as the
/// adjacency matrix of a graph network. Each example then depends on all
/// others, so the rows of the feeds are no batch.
class FullBatch {
public:
  /// Finds candidates in \p G after its feeds are split. Candidates are feeds,
  /// constant factors of products, and sparse feeds that are factors of two
  /// products.
  FullBatch(const Graph &G, llvm::ArrayRef<Feed> Feeds);

  /// Returns true if there are candidates, for which sizes must be known.
  bool mayBe() const { return !Dense.empty() || !Sparse.empty(); }

  /// Reports an error for the first candidate with a row and a column for each
  /// example.
  bool refuse(const DimAnalysis &Dims, DiagnosticEngine &Diags) const;

private:
  struct Matrix {
    NodeId Source;   ///< The node that messages name.
    Endpoint Tensor; ///< The tensor that replicas read.
  };
  /// The products of one sparse tensor and dense matrices. A product with the
  /// adjoint of the sparse tensor is none of them.
  struct Products {
    Endpoint Indices;
    llvm::SmallVector<NodeId, 2> Nodes;
  };

  bool isFull(const Products &P, const DimAnalysis &Dims) const;

  const Graph &G;
  std::vector<Matrix> Dense;
  std::vector<Products> Sparse;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FULLBATCH_H
