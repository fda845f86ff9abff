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

/// Returns the node of the input graph that is called \p Name. If there is
/// none, returns the inserted node of that name, or NoNode.
NodeId findOrigin(const Graph &G, llvm::StringRef Name);

/// Explains how the replication type of \p N was inferred, with a line for each
/// node:
///
///     grad = MatMul: Partial(sum) k=1, because rule MatMul: input 0 'x/split'
///     is Sharded(0), ...
///
/// The line of \p N comes first. The lines of the inputs that affect its type
/// follow, breadth first, back to the sharded feeds. There are at most \p
/// MaxLines lines. With \p CountsRest, the walk goes on after the last line and
/// counts the omitted nodes.
std::string explainType(const Graph &G, const ProgramFacts &Facts, NodeId N,
                        unsigned MaxLines = 20, bool CountsRest = true);

/// Explains each of \p Nodes, one after the other. For several nodes, each walk
/// stops at its last line, so the text marks omitted lines but does not count
/// them.
std::string explainTypes(const Graph &G, const ProgramFacts &Facts,
                         llvm::ArrayRef<NodeId> Nodes);

/// Calls \p Do with each node of \p Facts.Order and its line, without the line
/// break at the end.
void explainEach(const Graph &G, const ProgramFacts &Facts,
                 llvm::function_ref<void(NodeId N, llvm::StringRef Line)> Do);

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_EXPLAIN_H
