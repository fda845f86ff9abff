//===- lib/program/forms/WorkerParts.h - graphs of workers ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Marks nodes that are in the graph of one worker and not in the graph for all
// workers. The attribute stays in the file. A check of the files verifies that
// each node has the stated purpose.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_WORKERPARTS_H
#define GRAFT_LIB_PROGRAM_FORMS_WORKERPARTS_H

#include "lib/graph/Graph.h"

namespace graft {

/// The purpose of a node: one of the words below.
inline constexpr llvm::StringLiteral PartAttr = "_graft_part";
/// On part::Number, part::Shared, part::Local and part::Replica: the number of
/// the worker.
inline constexpr llvm::StringLiteral WorkerAttr = "_graft_worker";
/// On the same nodes: the number of workers.
inline constexpr llvm::StringLiteral WorkersAttr = "_graft_workers";
/// On the same nodes, if the staleness of workers is bounded: the number of
/// steps that a worker may be ahead.
inline constexpr llvm::StringLiteral StalenessAttr = "_graft_staleness";
/// On a feed or a fetch of a worker: the axis of its rows.
inline constexpr llvm::StringLiteral RowsAxisAttr = "_graft_rows";
/// On part::End: the index of the node of another worker, among the nodes for
/// which the message waited.
inline constexpr llvm::StringLiteral IndexAttr = "_graft_index";
/// On a part::Outside in a loop: the input that it had before the read moved
/// out of the loop.
inline constexpr llvm::StringLiteral InputAttr = "_graft_input";

namespace part {
// The exchange of messages (Messages.h):
inline constexpr llvm::StringLiteral Number = "number";
inline constexpr llvm::StringLiteral Put = "put";
inline constexpr llvm::StringLiteral Get = "get";
/// Runs after a node of another worker has run.
inline constexpr llvm::StringLiteral End = "end";
/// A node that has the same name in the graphs of all workers.
inline constexpr llvm::StringLiteral Name = "name";
/// The node that had the name of part::Name before.
inline constexpr llvm::StringLiteral Step = "step";
/// A barrier between the reads of a worker and a write.
inline constexpr llvm::StringLiteral Reads = "reads";
/// A barrier between all messages of a run and a write of the chief.
inline constexpr llvm::StringLiteral AllGiven = "all-given";
/// The worker's copy of the value of a read.
inline constexpr llvm::StringLiteral Taken = "taken";
/// A copy, for the step, of a node that reads a variable or depends on one.
inline constexpr llvm::StringLiteral Own = "own";
/// A read before a loop that replaces a read in the loop.
inline constexpr llvm::StringLiteral Outside = "outside";
/// Nodes that move a value out of a conditional to send it, or into one.
inline constexpr llvm::StringLiteral Branch = "branch";
/// The rows of a feed that one worker sends to others.
inline constexpr llvm::StringLiteral Given = "given";
/// The whole feed, concatenated from the rows of all workers.
inline constexpr llvm::StringLiteral Whole = "whole";
/// The worker's part of the initialization of a session.
inline constexpr llvm::StringLiteral LocalInit = "local-init";
/// Tests if the initialization of LocalInit may run.
inline constexpr llvm::StringLiteral Ready = "ready";
// On variables of asynchronous workers: shared by all, or local to each.
inline constexpr llvm::StringLiteral Shared = "shared";
inline constexpr llvm::StringLiteral Local = "local";
// If workers count steps (StepCount.h), in addition to Name: the step counter,
// its assignment of zeros, and the gate of updates.
inline constexpr llvm::StringLiteral Steps = "steps";
inline constexpr llvm::StringLiteral Zeros = "zeros";
inline constexpr llvm::StringLiteral Gate = "gate";
// If each worker has one replica, on nodes of this worker: rows that are fed,
// fetched or sliced, scales, and values that are sent or combined.
inline constexpr llvm::StringLiteral Replica = "replica";
} // namespace part

/// Returns true if \p N is marked as \p What.
inline bool isPart(const Graph &G, NodeId N, llvm::StringRef What) {
  return G.node(N).Flags & NF_MayHaveGraft && G.stringAttr(N, PartAttr) == What;
}

/// Returns a name scope without nodes in \p G, for nodes that only a worker
/// has.
std::string freeScope(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_WORKERPARTS_H
