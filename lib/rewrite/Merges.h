//===- lib/rewrite/Merges.h - what is of all or one replica -----*- C++ -*-===//
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

/// The sizes that all replicas have together of \p E, which holds those of one:
/// each times the number of replicas, its power of \p Powers times.
Endpoint insertSizes(Graph &G, Endpoint E, llvm::ArrayRef<int64_t> Powers,
                     llvm::StringRef Base);

/// The true value of \p E, rows of type \p Type that every replica has in
/// \p Blocks blocks (TypeAnalysis::blocks).
Endpoint insertBlocks(Graph &G, Endpoint E, ReplicationType Type,
                      unsigned Blocks, llvm::StringRef Base);

/// The share of a replica along axis \p Axis of \p E, which all have: a node
/// called \p Name, or like it.
NodeId insertSplit(Graph &G, const llvm::Twine &Name, Endpoint E, int Axis);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_MERGES_H
