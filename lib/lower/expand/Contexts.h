//===- lib/lower/expand/Contexts.h - control flow contexts, lowered -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_EXPAND_CONTEXTS_H
#define GRAFT_LIB_LOWER_EXPAND_CONTEXTS_H

#include "lib/io/Module.h"

#include <optional>

namespace graft {

/// Returns the name of copy 0 of \p N, which is on replica \p Number.
std::string primaryName(const Graph &G, NodeId N, unsigned Number,
                        llvm::StringRef Word);

/// Rewrites the collections of version 1 conditionals and loops so that they
/// name copy 0 of each node, as expand-replicas writes it, or the nodes of \p
/// Worker. TensorFlow looks up all of these names when it imports the graph.
void lowerContexts(Module &M, std::optional<unsigned> Worker = std::nullopt);

} // namespace graft

#endif // GRAFT_LIB_LOWER_EXPAND_CONTEXTS_H
