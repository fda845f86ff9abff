//===- lib/infer/graph/SparseRows.h - sparse tensors by rows ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A sparse tensor that is made of dense rows (Where and GatherNd), or of their
// numbers, has its elements row after row. Where empty rows are filled
// (SparseFillEmptyRows), each row is a segment of its elements.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H
#define GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Whether \p Indices, of a sparse tensor, come of numbers of rows that the
/// graph computes.
bool areMadeOfRows(const Graph &G, Endpoint Indices);

/// The column of a matrix, from the left, that \p N, a StridedSlice, takes of
/// all rows; nothing if it takes something else.
std::optional<int64_t> columnTaken(const Graph &G, NodeId N);

/// The SparseFillEmptyRows whose row numbers \p Segments are, all of them:
/// column 0 of its indices. NoNode if it is something else.
NodeId filledBy(const Graph &G, Endpoint Segments);

/// Whether rows are looked up by which of its distinct values \p Unique says
/// that each element is.
bool isLookedUp(const Graph &G, NodeId Unique);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H
