//===- lib/rewrite/LoopConditions.h - how often a loop runs -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A decoder goes on until all rows have ended: how often is a matter of the
// rows of all replicas, and inside a loop nothing is exchanged. What little of
// an iteration decides it is computed by every replica on the rows of all,
// which are joined before the loop. A node that the rest of the loop reads,
// too, is there once more, as a node of kind Inserted::Again that says which it
// is:
//
//     f = Merge*(Enter*(ended), NextIteration*(g))
//     g = Or*(f, GreaterEqual*(time, Enter*(length)))
//     LoopCond*(Not*(All*(f)));  Select*(f, ...)
//  →
//     f' = Merge*(Enter'*(_Gather*(ended)), NextIteration'*(g'))
//     g' = Or'*(f', GreaterEqual'*(time, Enter'*(_Gather*(length))))
//     LoopCond*(Not*(All*(f')));  Select*(f, ...)
//
// All replicas take as many turns as the single device then.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_LOOPCONDITIONS_H
#define GRAFT_LIB_REWRITE_LOOPCONDITIONS_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

struct ProgramFacts;

/// What decides in a loop is that of the rows of all replicas.
struct SharedLoop {
  struct Edge {
    NodeId User;
    unsigned Index;
    Endpoint Was;
  };
  NodeId Nest;                  ///< The first node of the loop.
  Use Decided;                  ///< What takes the decision.
  std::vector<Edge> Edges;      ///< Those that lead elsewhere now.
  std::vector<NodeId> Inserted; ///< In order.
  std::vector<NodeId> Joined;   ///< What has the rows of all replicas.
};

/// Has the replicas take as many turns of each loop as the single device, and
/// the same branches in it, where what decides that is at most a third of the
/// loop and types agree to it.
std::vector<SharedLoop> shareLoopConditions(Module &M, DiagnosticEngine &Diags);

/// Makes what it was each loop of which \p IsGone says so of one of \p Loops,
/// and forgets it. Returns whether there was any.
bool dropLoops(Graph &G, std::vector<SharedLoop> &Loops,
               llvm::function_ref<bool(const SharedLoop &)> IsGone);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_LOOPCONDITIONS_H
