//===- lib/rewrite/ReducedWrites.h - what writes are made of ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Which reductions the value is made of that a variable gets. The node that
// asked for one is not always the write: a clipped gradient is asked for by
// what computes its norm.
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

/// By the demands of \p Facts, which are not met yet: the variables whose
/// writes lead up to what it combines, by ops that work element by element,
/// move elements, or are linear in the operand that leads there, with no other
/// reduction in between.
std::vector<llvm::SetVector<NodeId>> variablesOf(const Graph &G,
                                                 const ProgramFacts &Facts);

/// The variables that \p Update writes.
llvm::SmallVector<NodeId, 4>
variablesWritten(const Graph &G, const VariableIndex &Vars, NodeId Update);

/// What nodes are called in the input.
std::vector<std::string> originNames(const Graph &G,
                                     llvm::ArrayRef<NodeId> Nodes);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_REDUCEDWRITES_H
