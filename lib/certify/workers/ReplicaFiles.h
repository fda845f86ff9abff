//===- lib/certify/workers/ReplicaFiles.h - a replica in each file --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The files of workers that run one replica each (split-workers). They are one
// graph, told apart by devices, seeds and what worker 0 alone does, so the
// program of all is that of worker 0 with the rest taken for copies:
//
//     worker 0: v = Assign(w, i/broadcast)          v = Assign*(w, i)
//     worker 1: v = Assign(w, i/broadcast)      →
//               i/broadcast = CollectiveBcastRecv()
//
// All workers run the same (docs/Workers.md), so who runs a name of one runs it
// on all. What is there once in the program each worker computes for itself:
// it may follow only from what all have.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_REPLICAFILES_H
#define GRAFT_LIB_CERTIFY_WORKERS_REPLICAFILES_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <memory>

namespace graft {

/// How many workers \p G, a file of such a worker, is made for; 0: it is none.
int64_t replicaWorkersOf(const Graph &G);

/// The replicated program that \p Files, one for each worker, in any order,
/// are the graphs of. Null after an error.
std::unique_ptr<Graph>
programOfReplicaFiles(const Graph &In, llvm::ArrayRef<const Graph *> Files,
                      DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_REPLICAFILES_H
