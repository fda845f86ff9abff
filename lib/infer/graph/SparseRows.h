//===- lib/infer/graph/SparseRows.h - sparse tensors by rows ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A sparse tensor that is made from dense rows (Where and GatherNd), or from
// their numbers, has its elements in the order of rows. If SparseFillEmptyRows
// filled the empty rows, each row is a segment of its elements.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H
#define GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns true if \p Indices, of a sparse tensor, follow from row numbers that
/// the graph computes.
bool areMadeOfRows(const Graph &G, Endpoint Indices);

/// Returns the column of a matrix, from the left, that \p N, a StridedSlice,
/// takes of all rows; nothing if it takes something else.
std::optional<int64_t> columnTaken(const Graph &G, NodeId N);

/// Returns the SparseFillEmptyRows whose row numbers are \p Segments, all of
/// column 0 of its indices; NoNode if these are something else.
NodeId filledBy(const Graph &G, Endpoint Segments);

/// Returns true if a lookup of rows takes output 1 of \p Unique as indices: for
/// each element, the number of its distinct value.
bool isLookedUp(const Graph &G, NodeId Unique);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H
