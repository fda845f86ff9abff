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

/// Makes the reads of queues and iterators that \p Feeds splits per-replica,
/// and removes them from \p Feeds. The step then is that of the batches of all
/// replicas together. Returns the reads, or nothing after an error: no read
/// holds the batch.
std::optional<std::vector<NodeId>>
giveOwnBatches(Graph &G, std::vector<Feed> &Feeds, DiagnosticEngine &Diags);

/// Checks that the graph computes the single-device step on all those batches
/// together, and reports the node that prevents it. A graph for a fixed batch
/// size contains that size as a number, which is then the size of one replica's
/// batch only. \p Reads and all nodes that depend on them are per-replica.
/// Constants that hold sizes of the batch as shapes become per-replica, and so
/// do the nodes that depend on them.
bool checkOwnBatches(Graph &G, const VariableIndex &Vars,
                     llvm::ArrayRef<NodeId> Reads, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_OWNBATCH_H
