//===- lib/certify/compare/LoopCheck.h - are loops whole? -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The part of the certificate for loops, tensor arrays and stacks.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_LOOPCHECK_H
#define GRAFT_LIB_CERTIFY_COMPARE_LOOPCHECK_H

#include "lib/infer/graph/Loops.h"
#include "lib/infer/sizes/Dims.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace graft {

/// Checks that each loop is per-replica or unreplicated as a whole, with arrays
/// and stacks, and that only recomputed nodes were inserted into it.
void checkLoops(const Graph &G, const LoopInfo &Loops,
                llvm::function_ref<void(NodeId, const llvm::Twine &)> Error);

/// Returns true if \p Now states the shape \p Was of statedShape() of \p N, but
/// with the sizes of one of \p Replicas where they follow the batch.
bool isLocalStatedShape(const Graph &G, const DimAnalysis &Dims, NodeId N,
                        llvm::StringRef Was, std::optional<llvm::StringRef> Now,
                        unsigned Replicas);

/// Returns true if all elements of the constant \p N have one value, the same
/// as in \p Was, and its shape differs only in per-replica sizes.
bool isLocalSplat(const Graph &G, const DimAnalysis &Dims, NodeId N,
                  llvm::StringRef Was, unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_LOOPCHECK_H
