//===- lib/infer/graph/References.h - the memory of variables ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What reads a reference variable through an Identity has the variable's own
// memory: an op that takes it and runs after an update sees what was written,
// not what the variable was when the Identity ran.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_REFERENCES_H
#define GRAFT_LIB_INFER_GRAPH_REFERENCES_H

#include "lib/infer/graph/Variables.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Whether \p N may pass on the memory of its first input: a Transpose that
/// moves no axis does, too.
bool passesMemoryOn(const Graph &G, NodeId N);
/// Returns true if the user of \p U may pass on the memory that it reads there.
/// An op that reads a part of each row of a variable copies.
bool passesMemoryOn(const Graph &G, const VariableIndex &Vars, Use U);

/// Whether \p N counts, by a number: nothing behind it is of another step.
bool isCounter(const Graph &G, const VariableIndex &Vars, NodeId N);

/// What runs after an update of some reference variables.
class LateReads {
public:
  LateReads(const Graph &G, const VariableIndex &Vars) : G(G), Vars(Vars) {}

  /// Adds what is reached from an update of \p Var, unless that is a handle.
  void add(NodeId Var);
  /// Whether \p N runs after an update.
  bool isLate(NodeId N) const { return N < After.size() && After[N]; }
  /// A node that passes the memory that \p Read gives on to what runs after an
  /// update, other than \p Read itself; or NoNode. What \p Copies is true of
  /// does not.
  NodeId lateView(NodeId Read,
                  llvm::function_ref<bool(NodeId)> Copies = nullptr) const;

private:
  const Graph &G;
  const VariableIndex &Vars;
  llvm::BitVector After; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_REFERENCES_H
