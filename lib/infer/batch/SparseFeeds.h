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

/// Marks the feeds that are the indices, the values and the shape of a sparse
/// tensor operand. Ignores feeds that the user named.
void findSparseFeeds(const Graph &G, std::vector<Feed> &Feeds);

/// Marks as sparse the values of a ragged tensor and the feeds that partition
/// these values (row splits, row lengths, the row of each value). None of these
/// feeds has a row for each row of the batch. The ops that read these feeds
/// identify them.
void findRaggedFeeds(const Graph &G, std::vector<Feed> &Feeds);

/// A dense tensor computed from a sparse one, and its batch axis.
struct SparseRows {
  Endpoint At;
  int Axis;
};

/// A fed sparse tensor of which each replica needs only the entries of its
/// rows, since all readers are ops on entries.
struct SparseFeed {
  Endpoint Indices, Values, Shape;
  /// The uses of Shape that must read the shape of the local rows.
  std::vector<Use> OfShape;
};

/// Finds the fed sparse tensors of which each replica needs only the entries of
/// its rows. Marks their feeds as Feed::InRows.
std::vector<SparseFeed> sparseFeedsInRows(const Graph &G,
                                          std::vector<Feed> &Feeds);

/// Marks as unreplicated the nodes between the sparse \p Feeds that are not
/// Feed::InRows and the dense rows that are computed from these feeds. Returns
/// these dense tensors, which must be split.
std::vector<SparseRows> keepSparseOnce(Graph &G, const VariableIndex &Vars,
                                       llvm::ArrayRef<Feed> Feeds);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_SPARSEFEEDS_H
