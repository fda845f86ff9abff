//===- lib/infer/facts/GradientWrites.h - writes of a step ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the training step of a graph that does not name one: a fetch whose run
// writes a gradient to a variable.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_GRADIENTWRITES_H
#define GRAFT_LIB_INFER_FACTS_GRADIENTWRITES_H

#include "lib/infer/graph/Variables.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

struct GradientWrites {
  /// Finds the writes to the variables that \p IsCounted accepts. \p Trained
  /// lists the trained variables.
  static GradientWrites find(const Graph &G, const VariableIndex &Vars,
                             llvm::ArrayRef<NodeId> Trained,
                             llvm::function_ref<bool(NodeId)> IsCounted);

  /// Optimizer ops, and updates of trained variables whose value is computed
  /// from inputs of the step (feeds, random draws, batches) and from variables.
  std::vector<NodeId> Writes;
  /// Assignments of initial values, or of values of a checkpoint, to trained
  /// variables. Such a value is not computed from trained variables, and the
  /// assignment does not run together with one of Writes.
  std::vector<NodeId> Starts;
  /// By node: true if a run of the node runs one of Writes.
  std::vector<bool> Runs;
  /// By node: true if it is inside a loop, so that no run can fetch it.
  std::vector<bool> InLoop;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_GRADIENTWRITES_H
