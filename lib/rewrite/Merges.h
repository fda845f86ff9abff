//===- lib/rewrite/Merges.h - inserts merges and splits ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_MERGES_H
#define GRAFT_LIB_REWRITE_MERGES_H

#include "lib/infer/types/Types.h"

namespace graft {

/// Adds nodes that combine the local values of \p E, of type \p Type, into the
/// global value. If the layout is Varying, they return the value of replica 0.
/// Node names begin with \p Base. If \p Picked, adds a node even for a value
/// that is equal on all replicas.
Endpoint insertMerge(Graph &G, Endpoint E, ReplicationType Type,
                     llvm::StringRef Base, bool Picked);

/// Adds nodes that compute global sizes from the vector of local sizes \p E.
/// Element i is multiplied by the number of replicas to the power \p Powers[i].
Endpoint insertSizes(Graph &G, Endpoint E, llvm::ArrayRef<int64_t> Powers,
                     llvm::StringRef Base);

/// Adds nodes for the global value of \p E, whose local rows of type \p Type
/// are in \p Blocks blocks (TypeAnalysis::blocks).
Endpoint insertBlocks(Graph &G, Endpoint E, ReplicationType Type,
                      unsigned Blocks, llvm::StringRef Base);

/// Adds a node that gives each replica its shard along \p Axis of \p E, an
/// unreplicated tensor. Its name begins with \p Name.
NodeId insertSplit(Graph &G, const llvm::Twine &Name, Endpoint E, int Axis);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_MERGES_H
