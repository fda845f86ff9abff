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
// A message has all values that the same names need of one worker at the same
// time on one server. Queues that no server reads are on the chief, or with the
// state of runs (Cutter::findHome).
//
// A copy of a replica belongs to the worker that has the replica, wherever the
// copy is placed. All other nodes that depend on rows belong to worker 0, the
// chief. Every graph has the nodes that depend on no rows, such as variables,
// their initial values and checkpoints. Every graph also has each name that is
// fetched or run, such as the train op. On worker 0 the name waits for the
// messages that the worker sends. On another worker the name sends the values
// that worker 0 needs. It then returns the value of worker 0, or waits for the
// end of the step.
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
  /// Nodes that refresh copies of variables, which any worker may do: the names
  /// that copies of these nodes are called after.
  std::vector<std::string> Refreshes;
  /// The device of a server that all workers reach, if there is one.
  std::string Server;
  /// A node without a use that runs the preparation of a session; or NoNode.
  NodeId LocalInit = NoNode;
};

/// Shrinks the shape of \p Feed to \p Mine of \p All equal parts of its rows,
/// if the graph has the number of rows along \p Axis.
void shrinkFeed(Graph &G, NodeId Feed, int64_t Axis, unsigned Mine,
                unsigned All);

/// Turns \p G, the graph for all tasks, into that of worker \p Worker. Returns
/// false after an error.
bool cutWorker(Graph &G, const CutPlan &Plan, unsigned Worker,
               DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_CUT_H
