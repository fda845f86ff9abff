//===- lib/lower/Contexts.h - control flow contexts, lowered ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_CONTEXTS_H
#define GRAFT_LIB_LOWER_CONTEXTS_H

#include "lib/io/Module.h"

namespace graft {

/// Makes the collections of conditionals and loops of version 1 name the nodes
/// of replica 0 that expand-replicas writes. TensorFlow looks all of them up
/// when it imports the graph.
void lowerContexts(Module &M);

/// Takes what is not in the graph any more, because it was inlined, out of what
/// these collections name.
void pruneContexts(Module &M);

} // namespace graft

#endif // GRAFT_LIB_LOWER_CONTEXTS_H
