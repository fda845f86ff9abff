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

/// Makes those reads of queues and iterators among \p Feeds that hold the batch
/// per-replica, and takes them out of \p Feeds. The step is then that of the
/// batches of all replicas together. Returns the reads, or nothing after an
/// error: there is no such read.
std::optional<std::vector<NodeId>>
giveOwnBatches(Graph &G, std::vector<Feed> &Feeds, DiagnosticEngine &Diags);

/// Checks that the step on all those batches together is the one that was
/// meant, and reports what prevents it. A graph for a fixed batch size contains
/// that size as a number, which is then the size of one replica's batch only.
/// \p Reads and all nodes that depend on them are per-replica. Constants that
/// hold sizes of the batch as shapes become per-replica, and so do the nodes
/// that depend on them.
bool checkOwnBatches(Graph &G, const VariableIndex &Vars,
                     llvm::ArrayRef<NodeId> Reads, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_OWNBATCH_H
