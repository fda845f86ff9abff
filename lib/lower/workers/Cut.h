//===- lib/lower/workers/Cut.h - one graph, cut between tasks ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The graph for all tasks, cut into one graph for each worker, which runs it in
// a session of its own. A value of another worker goes through a queue with a
// shared name, as a message that begins with the number of the run
// (Messages.h):
//
//     g = MatMul(..) @/job:worker/task:1     worker 1: q/put = QueueEnqueueV2(
//     s = AddN(.., g) @/job:ps/task:0            q, number, g) @/job:ps/task:0
//                                        →   worker 0: s = AddN(.., q/get)
//
// A message carries all values that one worker sends to one server for the same
// names at the same time. A queue that no server reads is on the chief, or on
// the device that keeps the state of runs (Cutter::findHome).
//
// A copy of a replica belongs to the worker that has the replica, wherever the
// copy is placed. All other nodes that depend on rows belong to worker 0, the
// chief. Every graph has the nodes that depend on no rows, such as variables,
// their initial values and checkpoints. Every graph also has a node for each
// name that is fetched or run, such as the train op. On worker 0 this node
// waits for the messages that the worker sends. On another worker the node
// sends the values that worker 0 needs. It then returns the value of worker 0,
// or waits for the end of the step.
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

/// The settings that all workers share.
struct CutPlan {
  /// `/job:worker/task:0` and so on, the chief first.
  std::vector<std::string> Tasks;
  /// By replica: its worker, in the order of the workers.
  std::vector<unsigned> WorkerOf;
  /// The word in the names of copies, see CopyWord.h.
  std::string Word = UsualCopyWord.str();
  /// The names that every graph has: those of the step that can be run.
  std::vector<std::string> Names;
  /// The names of nodes that refresh copies of variables. Any worker may run
  /// copies of these nodes.
  std::vector<std::string> Refreshes;
  /// The device of a server that all workers reach, if there is one.
  std::string Server;
  /// A node without users that prepares a session (local init); or NoNode.
  NodeId LocalInit = NoNode;
};

/// Shrinks the size of \p Feed along \p Axis to \p Mine of \p All equal parts,
/// if the size is static.
void shrinkFeed(Graph &G, NodeId Feed, int64_t Axis, unsigned Mine,
                unsigned All);

/// Turns \p G, the graph for all tasks, into the graph of worker \p Worker.
/// Returns false after an error.
bool cutWorker(Graph &G, const CutPlan &Plan, unsigned Worker,
               DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_CUT_H
