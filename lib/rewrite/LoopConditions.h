//===- lib/rewrite/LoopConditions.h - shares loop conditions ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A decoder runs until all rows have ended: the number of iterations depends on
// the rows of all replicas, but replicas cannot exchange values inside a loop.
// So every replica computes the few nodes that decide an iteration on the rows
// of all replicas, which are gathered before the loop. If the rest of the loop
// also reads such a node, a node of kind Inserted::Again repeats it:
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

/// A loop whose condition or branch is computed from the rows of all replicas.
struct SharedLoop {
  struct Edge {
    NodeId User;
    unsigned Index;
    Endpoint Was;
  };
  NodeId Nest;                  ///< The first node of the loop.
  Use Decided;                  ///< The condition or branch operand.
  std::vector<Edge> Edges;      ///< Edges that were redirected.
  std::vector<NodeId> Inserted; ///< In order.
  std::vector<NodeId> Joined;   ///< Nodes with all rows.
};

/// Makes replicas run as many iterations of each loop as the single device, and
/// the same branches. Skips a loop if the repeated work is more than a third of
/// the loop's work, or if types do not prove the result.
std::vector<SharedLoop> shareLoopConditions(Module &M, DiagnosticEngine &Diags);

/// Undoes and removes all entries of a loop in \p Loops if \p IsGone returns
/// true for one of its entries. Returns true if it removed any.
bool dropLoops(Graph &G, std::vector<SharedLoop> &Loops,
               llvm::function_ref<bool(const SharedLoop &)> IsGone);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_LOOPCONDITIONS_H
