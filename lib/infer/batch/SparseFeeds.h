//===- lib/infer/batch/SparseFeeds.h - feeds of sparse tensors --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_SPARSEFEEDS_H
#define GRAFT_LIB_INFER_BATCH_SPARSEFEEDS_H

#include "lib/infer/batch/Feeds.h"
#include "lib/infer/graph/Variables.h"

namespace graft {

/// Says of the feeds that are the indices, the values and the shape of a sparse
/// tensor that they are: an op takes them as such. Those that the user named
/// are left alone.
void findSparseFeeds(const Graph &G, std::vector<Feed> &Feeds);

/// Says of the feeds that part the values of a ragged tensor (row splits, row
/// lengths, the row of each value), and of those values, that they are sparse:
/// neither has a row for each row of the batch. Ops that read them tell.
void findRaggedFeeds(const Graph &G, std::vector<Feed> &Feeds);

/// A dense value that is made of a sparse one, and its axis of rows.
struct SparseRows {
  Endpoint At;
  int Axis;
};

/// A sparse tensor that is fed, of which each replica can do with the entries
/// of its rows: only what works on these reads them.
struct SparseFeed {
  Endpoint Indices, Values, Shape;
  /// The uses of Shape that replicas have to read theirs of.
  std::vector<Use> OfShape;
};

/// Finds them, and says of the feeds that they are.
std::vector<SparseFeed> sparseFeedsInRows(const Graph &G,
                                          std::vector<Feed> &Feeds);

/// Marks what is made of the other sparse \p Feeds as what exists once, up to
/// the dense rows that it gives. Returns those, to be split.
std::vector<SparseRows> keepSparseOnce(Graph &G, const VariableIndex &Vars,
                                       llvm::ArrayRef<Feed> Feeds);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_SPARSEFEEDS_H
