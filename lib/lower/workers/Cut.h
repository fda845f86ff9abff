//===- lib/lower/workers/Cut.h - one graph, cut between tasks ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The graph for all tasks, cut into one graph for each worker, which runs it in
// a session of its own. What one worker gives another goes through a queue that
// both have under one shared name:
//
//     g = MatMul(..) @/job:worker/task:1     worker 1: put = QueueEnqueueV2(
//     s = AddN(.., g) @/job:ps/task:0            g/to_0, g) @/job:ps/task:0
//                                        →   worker 0: g/get = QueueDequeueV2(
//                                                g/to_0) @/job:ps/task:0
//                                            s = AddN(.., g/get)
//
// A node belongs to the worker whose device it is on, and all else that is made
// of rows to worker 0, the chief. What is made of no rows, such as variables,
// their initial values and checkpoints, every graph has. A name that is fetched
// or run, as the train op, every graph has as well: worker 0's waits for what
// it sends, and that of another worker sends what worker 0 needs and takes the
// value, or waits for the end of the step.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_CUT_H
#define GRAFT_LIB_LOWER_WORKERS_CUT_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <string>
#include <vector>

namespace graft {

/// What is the same for all workers.
struct CutPlan {
  /// `/job:worker/task:0` and so on, the chief first.
  std::vector<std::string> Tasks;
  /// The names that every graph has: those of the step that can be run.
  std::vector<std::string> Names;
  /// Where queues are whose reader is on no server.
  std::string Server;
};

/// Makes the shape of \p Feed that of the rows of one of \p Workers, if the
/// graph says how many there are along \p Axis.
void shrinkFeed(Graph &G, NodeId Feed, int64_t Axis, unsigned Workers);

/// Makes \p G, the graph for all tasks, that of worker \p Worker. False after
/// an error.
bool cutWorker(Graph &G, const CutPlan &Plan, unsigned Worker,
               DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_CUT_H
