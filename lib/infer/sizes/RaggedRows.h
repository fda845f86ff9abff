//===- lib/infer/sizes/RaggedRows.h - rows counted by values ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rows that a condition selects are as many on each replica as the condition
// says there. Two Where select equally many if their conditions are one value:
// masks are commonly written out once for each tensor that they are put on.
// Likewise two DynamicPartition send equally many rows to a part.
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
  /// The first node that was asked for of those that count rows as \p N does,
  /// a Where or a DynamicPartition: what it counts by, input \p By, is computed
  /// in the same way from the same tensors.
  NodeId firstLike(const Graph &G, NodeId N, unsigned By);

private:
  llvm::DenseMap<NodeId, NodeId> Like;
  /// The first ones, by a hash of what computes their input.
  llvm::DenseMap<uint64_t, llvm::SmallVector<NodeId, 2>> First;
};

/// Returns whether a replica that has rows of the batch may have none of
/// \p Rows: values count them. Each row that SparseFillEmptyRows fills has one.
bool mayBeNone(const Graph &G, const DimAnalysis &Dims, DimId Rows);

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_RAGGEDROWS_H
