//===- lib/certify/workers/ReplicaFiles.h - a replica in each file --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes the program of workers that run one replica each (split-workers). Their
// files are one graph, except for devices, seeds and the nodes that worker 0
// alone runs. So the program is the file of worker 0, and the others are its
// copies:
//
//     worker 0: v = Assign(w, i/broadcast)          v = Assign*(w, i)
//     worker 1: v = Assign(w, i/broadcast)      →
//               i/broadcast = CollectiveBcastRecv()
//
// All workers run the same names (docs/Workers.md), so a run of a name on one
// worker runs it on all. Each worker computes every unreplicated node, so these
// nodes may depend only on values that all workers have.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_REPLICAFILES_H
#define GRAFT_LIB_CERTIFY_WORKERS_REPLICAFILES_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <memory>

namespace graft {

/// Returns the number of workers of the step that \p G belongs to, or 0 if \p G
/// is no file of a worker with one replica.
int64_t replicaWorkersOf(const Graph &G);

/// Returns the replicated program of \p Files, one for each worker, in any
/// order. Null after an error.
std::unique_ptr<Graph>
programOfReplicaFiles(const Graph &In, llvm::ArrayRef<const Graph *> Files,
                      DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_REPLICAFILES_H
