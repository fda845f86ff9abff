//===- lib/lower/workers/Workers.h - between-graph replication --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes one replica of a program as the graph of one process. The replica
// exchanges values with others through collectives only. The graph is edited in
// place, since its nodes have no copies.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_WORKERS_H
#define GRAFT_LIB_LOWER_WORKERS_WORKERS_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

#include <vector>

namespace graft {

/// A value that worker 0 computes and sends to every worker: an initial or
/// restored value, a random sample, or a read of a file, queue or iterator.
struct WorkerBroadcast {
  Endpoint Value;
  ShapeValue Shape;
  std::vector<Use> Uses; ///< Uses that read the value of worker 0.
};

/// Finds the values to broadcast, in the order of names, which is the same for
/// all workers. Warns about values that cannot be sent.
std::vector<WorkerBroadcast> findBroadcasts(Module &M, DiagnosticEngine &Diags);

/// Turns the program of \p M into the graph of worker \p Worker of the mesh.
/// Returns false after an error.
bool splitWorker(Module &M, unsigned Worker, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_WORKERS_H
