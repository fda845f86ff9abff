//===- lib/lower/workers/Async.h - workers that do not wait -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The graph of a worker that does not wait for other workers: the step on the
// worker's own rows and devices, with the shared variables where they are. It
// is made from the graph of the chief and differs only in the devices.
//
//     w = VarHandleOp() @/job:ps/task:0           w, step: the same
//     g = MatMul(..) @/job:worker/task:0      →   g = MatMul(..)
//     step = ResourceApplyAdam(w, .., g)              @/job:worker/task:1
//         @/job:ps/task:0
//
// An update locks its variable. If the staleness bound is s steps, a variable
// on a server counts the steps of each worker. An update then waits until no
// worker is more than s steps behind the worker that updates
// (lib/program/forms/StepCount.h).
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_ASYNC_H
#define GRAFT_LIB_LOWER_WORKERS_ASYNC_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <string>
#include <vector>

namespace graft {

/// The settings that all workers share.
struct AsyncPlan {
  /// `/job:worker/task:0` and so on, the chief first.
  std::vector<std::string> Tasks;
  /// The device type of nodes for which the input graph states no type. May be
  /// empty.
  std::string DeviceType;
  /// Variables with a copy on each worker.
  std::vector<NodeId> Local;
  /// The number of steps that a worker may be ahead; 0: any number.
  unsigned Staleness = 0;
  // Only used if there is a staleness bound:
  std::vector<std::string> Names; ///< The names of the step that can be run.
  std::vector<NodeId> Trained;    ///< Variables that have gradients.
  std::string Server;             ///< The device that counts steps.
};

/// Turns \p G, the graph of the chief, into the graph of worker \p Worker.
/// Returns false after an error.
bool assignWorker(Graph &G, const AsyncPlan &Plan, unsigned Worker,
                  DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_ASYNC_H
