//===- lib/rewrite/ReducedWrites.h - reductions of writes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the reductions from which the written value of a variable is computed.
// The node that demands a reduction is not always the write: for a clipped
// gradient it is the node that computes the norm.
//
//   g -> _Reduce --> L2Loss -> Sqrt -> RealDiv
//              \                         |
//               `-----------------> Mul <' -> ApplyGradientDescent
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_REDUCEDWRITES_H
#define GRAFT_LIB_REWRITE_REDUCEDWRITES_H

#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/SetVector.h"

namespace graft {

/// Returns, for each demand of \p Facts, the variables whose writes use its
/// combined value. \p Facts must be from before the reductions are inserted. On
/// the path to the write there is no other reduction, and each op is
/// elementwise, linear, or moves elements.
std::vector<llvm::SetVector<NodeId>> variablesOf(const Graph &G,
                                                 const ProgramFacts &Facts);

/// Returns the variables that \p Update writes.
llvm::SmallVector<NodeId, 4>
variablesWritten(const Graph &G, const VariableIndex &Vars, NodeId Update);

/// Returns the names of \p Nodes in the input graph.
std::vector<std::string> originNames(const Graph &G,
                                     llvm::ArrayRef<NodeId> Nodes);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_REDUCEDWRITES_H
