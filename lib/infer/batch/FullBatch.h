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

/// What has a row and a column for each example, such as the adjacency matrix
/// of a graph network: each example needs all the others then, so that the rows
/// of the feeds are no batch.
class FullBatch {
public:
  /// Looks for what may be such a matrix in \p G, whose feeds are split: feeds,
  /// constants that are multiplied, and sparse feeds that are multiplied twice.
  FullBatch(const Graph &G, llvm::ArrayRef<Feed> Feeds);

  /// Whether there is anything that sizes have to be known for.
  bool mayBe() const { return !Dense.empty() || !Sparse.empty(); }

  /// Reports the first that is one as an error.
  bool refuse(const DimAnalysis &Dims, DiagnosticEngine &Diags) const;

private:
  struct Matrix {
    NodeId Source;   ///< What the user knows it as.
    Endpoint Tensor; ///< What the replicas read.
  };
  /// Products of one sparse tensor that give rows.
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
