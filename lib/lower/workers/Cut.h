//===- lib/lower/workers/Cut.h - one graph, cut between tasks ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The graph for all tasks, cut into one graph for each worker, which runs it in
// a session of its own. What one worker gives another goes through a queue that
// both have under one shared name, as a message that begins with the number of
// the run (Messages.h):
//
//     g = MatMul(..) @/job:worker/task:1     worker 1: q/put = QueueEnqueueV2(
//     s = AddN(.., g) @/job:ps/task:0            q, number, g) @/job:ps/task:0
//                                        →   worker 0: s = AddN(.., q/get)
//
// One message has all that the same names need of one worker at the same time
// on one server. Queues of what no server reads are on the chief.
//
// A copy of a replica belongs to the worker that has the replica, wherever it
// stands, and all else that is made of rows to worker 0, the chief. What is
// made of no rows, such as variables, their initial values and checkpoints,
// every graph has. A name that is fetched
// or run, as the train op, every graph has as well: worker 0's waits for what
// it sends, and that of another worker sends what worker 0 needs and takes the
// value, or waits for the end of the step.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_CUT_H
#define GRAFT_LIB_LOWER_WORKERS_CUT_H

#include "lib/graph/CopyWord.h"
#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <string>
#include <vector>

namespace graft {

/// What is the same for all workers.
struct CutPlan {
  /// `/job:worker/task:0` and so on, the chief first.
  std::vector<std::string> Tasks;
  /// By replica: its worker, in the order of the workers.
  std::vector<unsigned> WorkerOf;
  /// What copies are called, see CopyWord.h.
  std::string Word = UsualCopyWord.str();
  /// The names that every graph has: those of the step that can be run.
  std::vector<std::string> Names;
  /// What has copies take the value of their variable, which anybody may do:
  /// the names that copies of it are called after.
  std::vector<std::string> Refreshes;
  /// The device of a server that all workers reach, if there is one.
  std::string Server;
  /// A node without a use that runs what prepares a session; or NoNode.
  NodeId LocalInit = NoNode;
};

/// Makes the shape of \p Feed that of \p Mine of \p All equal parts of its
/// rows, if the graph says how many there are along \p Axis.
void shrinkFeed(Graph &G, NodeId Feed, int64_t Axis, unsigned Mine,
                unsigned All);

/// Makes \p G, the graph for all tasks, that of worker \p Worker. False after
/// an error.
bool cutWorker(Graph &G, const CutPlan &Plan, unsigned Worker,
               DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_CUT_H
