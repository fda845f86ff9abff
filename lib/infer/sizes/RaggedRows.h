//===- lib/infer/sizes/RaggedRows.h - data-dependent rows -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The values of a condition determine how many rows Where selects on each
// replica. Two Where nodes select equally many rows if their conditions have
// the same value. This is common: a graph computes the same mask again for each
// tensor that it masks. Likewise, two DynamicPartition nodes with the same
// partitions send equally many rows to a part.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_SIZES_RAGGEDROWS_H
#define GRAFT_LIB_INFER_SIZES_RAGGEDROWS_H

#include "lib/infer/sizes/Dims.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace graft {

class RaggedRows {
public:
  /// Returns the first node of earlier calls that has the row count of \p N, or
  /// \p N if there is none. \p N is a Where or a DynamicPartition, and its
  /// input \p By determines the row count. Two nodes have the same row count if
  /// their inputs \p By are computed in the same way from the same tensors.
  NodeId firstLike(const Graph &G, NodeId N, unsigned By);

private:
  llvm::DenseMap<NodeId, NodeId> Like;
  /// The nodes that firstLike() returns, by a hash of the nodes that compute
  /// their input.
  llvm::DenseMap<uint64_t, llvm::SmallVector<NodeId, 2>> First;
};

/// Returns true if the data-dependent row count \p Rows may be 0 on a replica
/// that has rows of the batch. A count of elements after SparseFillEmptyRows is
/// not 0, because each row has an element.
bool mayBeNone(const Graph &G, const DimAnalysis &Dims, DimId Rows);

/// Returns true if \p N divides integers by a row count that may be 0 on a
/// replica. TensorFlow fails there.
bool dividesByNone(const Graph &G, const DimAnalysis &Dims, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_RAGGEDROWS_H
