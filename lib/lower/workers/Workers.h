//===- lib/lower/workers/Workers.h - between-graph replication --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One replica of a program as a graph of its own, for the process that runs it.
// Other replicas are reached through collectives only. The graph is not
// multiplied, so it is edited in place.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_WORKERS_H
#define GRAFT_LIB_LOWER_WORKERS_WORKERS_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

#include <vector>

namespace graft {

/// Values that every worker must have from worker 0: initial values, what is
/// restored, and what is drawn or read once.
struct WorkerBroadcast {
  Endpoint Value;
  ShapeValue Shape;
  std::vector<Use> Uses; ///< What reads the value of worker 0.
};

/// Finds them, in the order of names, which is the same for all workers.
/// What cannot be sent is reported as not proved.
std::vector<WorkerBroadcast> findBroadcasts(Module &M, DiagnosticEngine &Diags);

/// Makes the program of \p M the graph of worker \p Worker of the mesh. False
/// after an error.
bool splitWorker(Module &M, unsigned Worker, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_WORKERS_H
