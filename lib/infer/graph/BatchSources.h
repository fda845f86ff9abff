//===- lib/infer/graph/BatchSources.h - where batches come from -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_BATCHSOURCES_H
#define GRAFT_LIB_INFER_GRAPH_BATCHSOURCES_H

#include "lib/graph/Graph.h"

#include <optional>
#include <string>

namespace graft {

/// On a read that each replica does for itself, by output: the axis along which
/// the rows of all replicas are the batch of the step, or -1. It stays in the
/// output, so that this can be checked again as a program.
inline constexpr llvm::StringRef BatchAttr = "_graft_batch";

/// Whether \p Op takes elements from a queue or an iterator.
bool isBatchRead(llvm::StringRef Op);

/// The axes in BatchAttr if \p N is a read that each replica does for itself.
std::optional<llvm::SmallVector<int64_t, 4>> ownBatchAxes(const Graph &G,
                                                          NodeId N);

/// Whether \p Op puts elements into a queue, an iterator or a table.
bool fillsPipeline(llvm::StringRef Op);

/// The shape that the graph declares for the placeholder, or the output of a
/// queue's or iterator's read, \p E; where that has no rank, the one that
/// set_shape gave it (`_output_shapes`, which an export writes). Nothing for
/// another tensor, or if none is declared. The axis that QueueDequeueMany adds
/// is known when its number is a constant.
std::optional<ShapeValue> sourceShape(const Graph &G, Endpoint E);

/// The first output of the ParseExample \p N that is a dense feature. It has a
/// tensor of indices, of values and of a shape for every sparse feature first.
unsigned firstDenseFeature(const Graph &G, NodeId N);

/// What the user calls \p E, a feed: NAME, or NAME:PORT.
std::string feedName(const Graph &G, Endpoint E);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_BATCHSOURCES_H
