//===- lib/rewrite/Merges.h - what replicas have together -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_MERGES_H
#define GRAFT_LIB_REWRITE_MERGES_H

#include "lib/infer/types/Types.h"

namespace graft {

/// Adds what makes the true value of \p E, which every replica has: replicas
/// have values of type \p Type (of Varying, that of replica 0 is taken). Called
/// after \p Base; \p Picked: of a value that is equal on all replicas there is
/// a node, too.
Endpoint insertMerge(Graph &G, Endpoint E, ReplicationType Type,
                     llvm::StringRef Base, bool Picked);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_MERGES_H
