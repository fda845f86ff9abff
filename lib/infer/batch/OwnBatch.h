//===- lib/infer/batch/OwnBatch.h - a batch for each replica ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_OWNBATCH_H
#define GRAFT_LIB_INFER_BATCH_OWNBATCH_H

#include "lib/infer/batch/Feeds.h"
#include "lib/infer/graph/Variables.h"

namespace graft {

/// Makes the split reads of queues and iterators in \p Feeds per-replica, and
/// removes them from \p Feeds. The batch of the step is then the concatenation
/// of the batches of all replicas. Returns the reads, or nothing after an
/// error: no read holds the batch.
std::optional<std::vector<NodeId>>
giveOwnBatches(Graph &G, std::vector<Feed> &Feeds, DiagnosticEngine &Diags);

/// Checks that the graph computes the single-device step on the concatenated
/// batches, and reports a node that does not. A graph for a fixed batch size
/// contains that size as a number, but the concatenated batch is N times as
/// large. \p Reads and all nodes that depend on them are per-replica. Constants
/// that are shapes with the batch size become per-replica, with the nodes that
/// depend on them.
bool checkOwnBatches(Graph &G, const VariableIndex &Vars,
                     llvm::ArrayRef<NodeId> Reads, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_OWNBATCH_H
