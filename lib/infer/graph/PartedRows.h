//===- lib/infer/graph/PartedRows.h - rows sent to parts --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A lookup in a partitioned table sends each index to its part by
// DynamicPartition, and puts the rows found there in place by a stitch. The
// positions for the stitch are the numbers of all rows, sent to the parts in
// the same way.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H
#define GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns the Range node whose numbers \p Partition, a DynamicPartition, sends
/// to the parts, in any shape; NoNode if it sends something else.
NodeId numbersParted(const Graph &G, NodeId Partition);

/// Returns the DynamicPartition of such numbers whose outputs are the index
/// operands of \p Stitch, a DynamicStitch or ParallelDynamicStitch. Each output
/// is one operand, so that every position is written once. NoNode if there is
/// none.
NodeId partitionStitched(const Graph &G, NodeId Stitch);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H
