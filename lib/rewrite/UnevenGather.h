//===- lib/rewrite/UnevenGather.h - rows of any number ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_UNEVENGATHER_H
#define GRAFT_LIB_REWRITE_UNEVENGATHER_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Turns the `_Gather` \p N of tensors with \p Rank axes into the form of
/// lib/program/forms/LengthGather.h. \p Gather(tensor, suffix of a name) adds
/// the members of a collective, a barrier, and the node that reads the result.
void gatherByLengths(
    Graph &G, NodeId N, int64_t Rank,
    llvm::function_ref<Endpoint(Endpoint, llvm::StringRef)> Gather);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_UNEVENGATHER_H
