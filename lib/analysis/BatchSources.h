//===- lib/analysis/BatchSources.h - where batches come from ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_BATCHSOURCES_H
#define GRAFT_LIB_ANALYSIS_BATCHSOURCES_H

#include "lib/graph/Graph.h"

#include <optional>

namespace graft {

/// Whether \p Op takes elements from a queue or an iterator.
bool isBatchRead(llvm::StringRef Op);

/// Whether \p Op puts elements into a queue, an iterator or a table.
bool fillsPipeline(llvm::StringRef Op);

/// The shape that the graph declares for the placeholder, or the output of a
/// queue's or iterator's read, \p E. Nothing for another tensor, or if none is
/// declared. The axis that QueueDequeueMany adds is known when its number is a
/// constant.
std::optional<ShapeValue> sourceShape(const Graph &G, Endpoint E);

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_BATCHSOURCES_H
