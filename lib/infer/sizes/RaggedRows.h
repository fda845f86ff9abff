//===- lib/infer/sizes/RaggedRows.h - rows counted by values ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The values of a condition say how many rows it selects on each replica. Two
// Where nodes select equally many if their conditions are one value: graphs
// commonly repeat a mask for each tensor that it applies to. Likewise, two
// DynamicPartition nodes send equally many rows to a part.
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
  /// Returns the first node asked for that counts rows as \p N, a Where or a
  /// DynamicPartition, does: its input \p By, by which it counts, is computed
  /// in the same way from the same tensors.
  NodeId firstLike(const Graph &G, NodeId N, unsigned By);

private:
  llvm::DenseMap<NodeId, NodeId> Like;
  /// The first ones, by a hash of the nodes that compute their input.
  llvm::DenseMap<uint64_t, llvm::SmallVector<NodeId, 2>> First;
};

/// Returns true if a replica that has rows of the batch may have none of
/// \p Rows, which are counted by values. Each row that SparseFillEmptyRows
/// fills has at least one.
bool mayBeNone(const Graph &G, const DimAnalysis &Dims, DimId Rows);

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_RAGGEDROWS_H
