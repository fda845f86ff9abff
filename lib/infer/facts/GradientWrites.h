//===- lib/infer/facts/GradientWrites.h - what makes a step -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What a training step is of a graph that says nothing of it: a run of a name
// that writes a gradient to a variable.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_GRADIENTWRITES_H
#define GRAFT_LIB_INFER_FACTS_GRADIENTWRITES_H

#include "lib/infer/graph/Variables.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

struct GradientWrites {
  /// \p Trained are variables, and \p IsCounted says of which the writes count.
  static GradientWrites find(const Graph &G, const VariableIndex &Vars,
                             llvm::ArrayRef<NodeId> Trained,
                             llvm::function_ref<bool(NodeId)> IsCounted);

  /// An optimizer's op, or what a variable that is trained gets that is made of
  /// what a step takes (feeds, draws, batches) and of what variables have.
  std::vector<NodeId> Writes;
  /// What gives a variable that is trained a value that is not made of those
  /// that are, and is run beside no write: its first one, or that of a
  /// checkpoint.
  std::vector<NodeId> Starts;
  /// By node: to run it is to run one of Writes.
  std::vector<bool> Runs;
  /// By node: it is inside a loop, where nothing can be run by itself.
  std::vector<bool> InLoop;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_GRADIENTWRITES_H
