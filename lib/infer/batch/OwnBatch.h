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

/// Makes the reads of queues and iterators among \p Feeds that hold the batch
/// per-replica, and takes them out of \p Feeds. The step is then that of the
/// batches of all replicas together. Returns the reads; nothing after an error:
/// there is no such read.
std::optional<std::vector<NodeId>>
giveOwnBatches(Graph &G, std::vector<Feed> &Feeds, DiagnosticEngine &Diags);

/// Whether the step on all those batches together is what was meant: a graph
/// for a batch of a fixed size has that size in it as a number, which then is
/// the size of one replica's batch only. \p Reads and what depends on them are
/// per-replica. Says what is in the way. The constants that hold sizes of the
/// batch as shapes become per-replica, and what depends on them.
bool checkOwnBatches(Graph &G, const VariableIndex &Vars,
                     llvm::ArrayRef<NodeId> Reads, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_OWNBATCH_H
