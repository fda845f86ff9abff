//===- lib/analysis/RaggedRows.h - rows counted by values -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rows that a condition selects are as many on each replica as the condition
// says there. Two Where select equally many if their conditions are one value:
// masks are commonly written out once for each tensor that they are put on.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_RAGGEDROWS_H
#define GRAFT_LIB_ANALYSIS_RAGGEDROWS_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace graft {

class RaggedRows {
public:
  /// The class of the rows that \p Where, a node, selects: not 0, and the same
  /// for all whose condition is computed in the same way from the same tensors.
  uint32_t classOf(const Graph &G, NodeId Where);

private:
  llvm::DenseMap<NodeId, uint32_t> Classes; ///< By Where.
  /// The first Where of each class, by a hash of what computes its condition.
  llvm::DenseMap<uint64_t, llvm::SmallVector<NodeId, 2>> First;
};

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_RAGGEDROWS_H
