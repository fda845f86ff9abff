//===- lib/infer/facts/Explain.h - why a type is what it is -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_EXPLAIN_H
#define GRAFT_LIB_INFER_FACTS_EXPLAIN_H

#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// The node of a program that is called \p Name in the input, or, when there is
/// none, the inserted node of that name; NoNode when there is neither.
NodeId findOrigin(const Graph &G, llvm::StringRef Name);

/// How the replication type of \p N was inferred, a line for each node:
///
///     grad = MatMul: Partial(sum) k=1, because rule MatMul: input 0 'x/split'
///     is Sharded(0), ...
///
/// The node comes first and then, breadth first, what made it not Replicated,
/// up to the feeds that are split. After \p MaxLines nodes the rest is counted,
/// which takes a walk over all of it, unless \p CountsRest is false.
std::string explainType(const Graph &G, const ProgramFacts &Facts, NodeId N,
                        unsigned MaxLines = 20, bool CountsRest = true);

/// The same of each of \p Nodes, one after the other. Of several it is said
/// that there are more lines, and not how many: nothing is walked more than
/// once for each line.
std::string explainTypes(const Graph &G, const ProgramFacts &Facts,
                         llvm::ArrayRef<NodeId> Nodes);

/// Calls \p Do with each node of \p Facts.Order and its line, without the
/// break at the end.
void explainEach(const Graph &G, const ProgramFacts &Facts,
                 llvm::function_ref<void(NodeId N, llvm::StringRef Line)> Do);

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_EXPLAIN_H
