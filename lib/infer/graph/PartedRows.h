//===- lib/infer/graph/PartedRows.h - rows sent to parts --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A lookup in a table of several parts sends each index to its part, by
// DynamicPartition, and puts the rows that are found there where they belong by
// a stitch: the positions are the numbers of all rows, sent in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H
#define GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H

#include "lib/graph/Graph.h"

namespace graft {

/// The Range node whose numbers \p Partition, a DynamicPartition, sends to the
/// parts, in whatever shape; NoNode if it sends something else.
NodeId numbersParted(const Graph &G, NodeId Partition);

/// The DynamicPartition of such numbers of which every output is one index
/// operand of \p Stitch, a DynamicStitch or ParallelDynamicStitch, and nothing
/// else is: every position is written once. NoNode if there is none.
NodeId partitionStitched(const Graph &G, NodeId Stitch);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_PARTEDROWS_H
