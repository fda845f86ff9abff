//===- lib/rewrite/LoopConditions.h - shares loop conditions ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A decoder runs until all rows have ended: the number of iterations depends on
// the rows of all replicas, but replicas cannot exchange values inside a loop.
// So every replica computes the few nodes that decide an iteration on the rows
// of all replicas, which are joined before the loop. If the rest of the loop
// reads such a node as well, a node of kind Inserted::Again repeats it:
//
//     f = Merge*(Enter*(ended), NextIteration*(g))
//     g = Or*(f, GreaterEqual*(time, Enter*(length)))
//     LoopCond*(Not*(All*(f)));  Select*(f, ...)
//  →
//     f' = Merge*(Enter'*(_Gather*(ended)), NextIteration'*(g'))
//     g' = Or'*(f', GreaterEqual'*(time, Enter'*(_Gather*(length))))
//     LoopCond*(Not*(All*(f')));  Select*(f, ...)
//
// All replicas then run as many iterations as the single device.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_LOOPCONDITIONS_H
#define GRAFT_LIB_REWRITE_LOOPCONDITIONS_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

struct ProgramFacts;

/// A loop whose decision is computed from the rows of all replicas.
struct SharedLoop {
  struct Edge {
    NodeId User;
    unsigned Index;
    Endpoint Was;
  };
  NodeId Nest;                  ///< The first node of the loop.
  Use Decided;                  ///< The operand that decides.
  std::vector<Edge> Edges;      ///< Edges that were redirected.
  std::vector<NodeId> Inserted; ///< In order.
  std::vector<NodeId> Joined;   ///< Nodes with the rows of all.
};

/// Has the replicas run as many iterations of each loop as the single device,
/// and take the same branches in it. Skips loops if the deciding nodes are more
/// than a third of the loop, or if types do not prove the result.
std::vector<SharedLoop> shareLoopConditions(Module &M, DiagnosticEngine &Diags);

/// Undoes and forgets each loop for which \p IsGone returns true for one of
/// \p Loops. Returns true if there was any.
bool dropLoops(Graph &G, std::vector<SharedLoop> &Loops,
               llvm::function_ref<bool(const SharedLoop &)> IsGone);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_LOOPCONDITIONS_H
