//===- lib/program/forms/WorkerParts.h - graphs of workers ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What the graph of one worker has that the graph for all workers does not, by
// an attribute that stays in the file. A check of the files begins with it, and
// looks at the nodes for whether they are that.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_WORKERPARTS_H
#define GRAFT_LIB_PROGRAM_FORMS_WORKERPARTS_H

#include "lib/graph/Graph.h"

namespace graft {

/// What a node is for: one of the words below.
inline constexpr llvm::StringLiteral PartAttr = "_graft_part";
/// The number of the worker, and of all workers, on part::Number, part::Shared,
/// part::Local and part::Replica.
inline constexpr llvm::StringLiteral WorkerAttr = "_graft_worker";
inline constexpr llvm::StringLiteral WorkersAttr = "_graft_workers";
/// How many steps a worker may be ahead, on the same of workers that wait.
inline constexpr llvm::StringLiteral StalenessAttr = "_graft_staleness";
/// The axis of the rows of a feed, or of a fetch, of a worker.
inline constexpr llvm::StringLiteral RowsAxisAttr = "_graft_rows";
/// Which of what a message waited for part::End stands for.
inline constexpr llvm::StringLiteral IndexAttr = "_graft_index";
/// What part::Outside in a loop read before it was made a read outside.
inline constexpr llvm::StringLiteral InputAttr = "_graft_input";

namespace part {
// Of the exchange of messages (Messages.h):
inline constexpr llvm::StringLiteral Number = "number";
inline constexpr llvm::StringLiteral Put = "put";
inline constexpr llvm::StringLiteral Get = "get";
/// The end of a node of another worker.
inline constexpr llvm::StringLiteral End = "end";
/// A name that all workers have, and the node that had it before.
inline constexpr llvm::StringLiteral Name = "name";
inline constexpr llvm::StringLiteral Step = "step";
/// The reads of a worker that a write waits for; what all have given before.
inline constexpr llvm::StringLiteral Reads = "reads";
inline constexpr llvm::StringLiteral AllGiven = "all-given";
/// The value of a read, which the worker has.
inline constexpr llvm::StringLiteral Taken = "taken";
/// A node that reads a variable, or is made of one, once more for the step.
inline constexpr llvm::StringLiteral Own = "own";
/// A read before a loop in the place of one in it.
inline constexpr llvm::StringLiteral Outside = "outside";
/// What leaves a conditional before it is sent, and enters it behind.
inline constexpr llvm::StringLiteral Branch = "branch";
/// Rows of a feed for another worker, and the feed of all.
inline constexpr llvm::StringLiteral Given = "given";
inline constexpr llvm::StringLiteral Whole = "whole";
/// What prepares a session, as far as it is the worker's.
inline constexpr llvm::StringLiteral LocalInit = "local-init";
/// Says when that may be run.
inline constexpr llvm::StringLiteral Ready = "ready";
// Of workers that do not wait, on variables: all have it, or each its own.
inline constexpr llvm::StringLiteral Shared = "shared";
inline constexpr llvm::StringLiteral Local = "local";
// Of those whose steps are counted (StepCount.h), beside Name: the variable
// that counts, what makes it zeros, and what updates wait for.
inline constexpr llvm::StringLiteral Steps = "steps";
inline constexpr llvm::StringLiteral Zeros = "zeros";
inline constexpr llvm::StringLiteral Gate = "gate";
// Of workers that run one replica each, on what is a worker's own: rows that
// are fed, fetched or taken of a whole, scales, what is sent or combined.
inline constexpr llvm::StringLiteral Replica = "replica";
} // namespace part

/// Whether \p N is for \p What.
inline bool isPart(const Graph &G, NodeId N, llvm::StringRef What) {
  return G.node(N).Flags & NF_MayHaveGraft && G.stringAttr(N, PartAttr) == What;
}

/// A scope that no node of \p G is in, for all that a worker has besides.
std::string freeScope(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_WORKERPARTS_H
