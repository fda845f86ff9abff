//===- lib/infer/graph/SparseRows.h - sparse tensors by rows ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// If a sparse tensor is computed from dense rows (Where and GatherNd), or from
// row numbers, its elements are in the order of the rows. After
// SparseFillEmptyRows, every row has elements, and the elements of a row are
// one segment.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H
#define GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns true if the graph computes \p Indices, the indices of a sparse
/// tensor, from row numbers.
bool areMadeOfRows(const Graph &G, Endpoint Indices);

/// Returns the matrix column that \p N, a StridedSlice, returns for all rows.
/// Returns nothing if it is not such a slice.
std::optional<int64_t> columnTaken(const Graph &G, NodeId N);

/// Returns the SparseFillEmptyRows whose row numbers, column 0 of its indices,
/// are \p Segments. Returns NoNode if there is none.
NodeId filledBy(const Graph &G, Endpoint Segments);

/// Returns true if output 1 of \p Unique, the index of the distinct value of
/// each element, is the indices operand of a lookup of rows.
bool isLookedUp(const Graph &G, NodeId Unique);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_SPARSEROWS_H
