//===- lib/infer/graph/References.h - the memory of variables ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An Identity of a reference variable passes on the memory of the variable. A
// user that runs after an update sees the new value, not the value when the
// Identity ran.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_REFERENCES_H
#define GRAFT_LIB_INFER_GRAPH_REFERENCES_H

#include "lib/infer/graph/Variables.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Returns true if \p N may pass on the memory of its first input, as an
/// Identity or a Transpose that moves no axis does.
bool passesMemoryOn(const Graph &G, NodeId N);
/// Returns true if the user of \p U may pass on the memory of that operand. An
/// op that reads a part of each row of a variable makes a copy.
bool passesMemoryOn(const Graph &G, const VariableIndex &Vars, Use U);

/// Returns true if \p N updates a variable by a constant, as a counter does. A
/// node after a counter may still belong to the same step.
bool isCounter(const Graph &G, const VariableIndex &Vars, NodeId N);

/// Finds the nodes that run after an update of some reference variables.
class LateReads {
public:
  LateReads(const Graph &G, const VariableIndex &Vars) : G(G), Vars(Vars) {}

  /// Adds the nodes after an update of \p Var, unless \p Var is a handle.
  void add(NodeId Var);
  /// Returns true if \p N runs after an update.
  bool isLate(NodeId N) const { return N < After.size() && After[N]; }
  /// Returns a node that passes the memory of \p Read on to a node after an
  /// update, or NoNode. A direct user of \p Read counts only if it is a Merge.
  /// A node that \p Copies accepts passes no memory on.
  NodeId lateView(NodeId Read,
                  llvm::function_ref<bool(NodeId)> Copies = nullptr) const;

private:
  const Graph &G;
  const VariableIndex &Vars;
  llvm::BitVector After; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_REFERENCES_H
