//===- lib/infer/facts/Explain.h - explanations of types --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_EXPLAIN_H
#define GRAFT_LIB_INFER_FACTS_EXPLAIN_H

#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Returns the node that is called \p Name in the input or, if there is none,
/// the inserted node of that name; NoNode if there is neither.
NodeId findOrigin(const Graph &G, llvm::StringRef Name);

/// Explains how the replication type of \p N was inferred, with a line for each
/// node:
///
///     grad = MatMul: Partial(sum) k=1, because rule MatMul: input 0 'x/split'
///     is Sharded(0), ...
///
/// The line of \p N comes first. The lines of the inputs that bear on its type
/// follow, breadth first, back to the feeds that are split. After \p MaxLines
/// nodes the rest is only counted, which takes a walk over all of it, unless
/// \p CountsRest is false.
std::string explainType(const Graph &G, const ProgramFacts &Facts, NodeId N,
                        unsigned MaxLines = 20, bool CountsRest = true);

/// Explains each of \p Nodes, one after the other. For several nodes the text
/// says that there are more lines, but not how many: each walk stops at the
/// last line.
std::string explainTypes(const Graph &G, const ProgramFacts &Facts,
                         llvm::ArrayRef<NodeId> Nodes);

/// Calls \p Do with each node of \p Facts.Order and its line, without the
/// break at the end.
void explainEach(const Graph &G, const ProgramFacts &Facts,
                 llvm::function_ref<void(NodeId N, llvm::StringRef Line)> Do);

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_EXPLAIN_H
