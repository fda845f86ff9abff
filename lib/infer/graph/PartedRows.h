//===- lib/infer/graph/PartedRows.h - rows sent to parts --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A lookup in a partitioned table sends each index to its part by a
// DynamicPartition. A stitch puts the rows from all parts in their original
// order. The stitch reads their positions from a second DynamicPartition, which
// sends the numbers of all rows (a Range) to the parts in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H
#define GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns the Range whose numbers the DynamicPartition \p Partition sends to
/// the parts. Looks through Reshape ops. Returns NoNode if Partition sends
/// something else.
NodeId numbersParted(const Graph &G, NodeId Partition);

/// Returns the DynamicPartition that sends the numbers of a Range to the index
/// operands of \p Stitch, a DynamicStitch or ParallelDynamicStitch. Each output
/// of the partition is exactly one operand, so every position is written once.
/// Returns NoNode if there is none.
NodeId partitionStitched(const Graph &G, NodeId Stitch);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H
