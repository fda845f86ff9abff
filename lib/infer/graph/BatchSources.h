//===- lib/infer/graph/BatchSources.h - where batches come from -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_BATCHSOURCES_H
#define GRAFT_LIB_INFER_GRAPH_BATCHSOURCES_H

#include "lib/graph/Graph.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace graft {

/// Marks a read of which each replica has a separate copy. The attribute lists,
/// for each output, the axis along which the rows of all replicas form the
/// batch of the step, or -1. The attribute stays in the written file, so that
/// the file can be checked again as a program.
inline constexpr llvm::StringRef BatchAttr = "_graft_batch";

/// Returns true if \p N returns the value of the Optional that
/// IteratorGetNextAsOptional reads. Other Optionals carry values from a branch
/// to its gradient.
bool isElementOfOptional(const Graph &G, NodeId N);

/// Returns true if \p N returns a batch: elements of a queue or an iterator,
/// the value of an Optional with such elements, or a joined batch
/// (lib/program/JoinedBatches.h).
bool readsBatch(const Graph &G, NodeId N);

/// Returns the reads of iterators in \p G, if the elements of all reads can be
/// joined (lib/program/JoinedBatches.h). Returns nothing if the graph has
/// another read of a queue or an iterator, since elements of both may belong
/// together.
std::vector<NodeId> findJoinableReads(const Graph &G);

/// Returns the outputs of \p N that nodes read, in order.
std::set<uint32_t> readOutputs(const Graph &G, NodeId N);

/// Returns the axes in BatchAttr if \p N has this attribute.
std::optional<llvm::SmallVector<int64_t, 4>> ownBatchAxes(const Graph &G,
                                                          NodeId N);

/// Returns true if \p Op puts elements into a queue, an iterator or a table.
bool fillsPipeline(llvm::StringRef Op);

/// Returns the shape that the graph declares for \p E, a placeholder or an
/// output of a read from a queue or iterator. If the rank is unknown, returns
/// the shape of set_shape, which an export writes as `_output_shapes`. Returns
/// nothing for another tensor, or if no shape is declared. QueueDequeueMany
/// adds an axis, whose size is known if the number of elements is a constant.
std::optional<ShapeValue> sourceShape(const Graph &G, Endpoint E);

/// Returns the first output of the ParseExample \p N that is a dense feature.
/// The indices, values and shapes of all sparse features come before it.
unsigned firstDenseFeature(const Graph &G, NodeId N);

/// Returns the name of the feed \p E in messages: NAME, or NAME:PORT.
std::string feedName(const Graph &G, Endpoint E);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_BATCHSOURCES_H
