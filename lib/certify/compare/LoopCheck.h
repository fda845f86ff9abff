//===- lib/certify/compare/LoopCheck.h - check of loops ---------*- C++ -*-===//
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

/// Checks that the nodes of each loop are all per-replica or all unreplicated.
/// A per-replica node may use only per-replica arrays and stacks. No inserted
/// node other than a recomputed one may be in a loop.
void checkLoops(const Graph &G, const LoopInfo &Loops,
                llvm::function_ref<void(NodeId, const llvm::Twine &)> Error);

/// Returns true if the shape \p Now equals the shape \p Was, except that a size
/// that depends on the batch is a per-replica size. Both are values of the
/// attribute of \p N that statedShape() names.
bool isLocalStatedShape(const Graph &G, const DimAnalysis &Dims, NodeId N,
                        llvm::StringRef Was, std::optional<llvm::StringRef> Now,
                        unsigned Replicas);

/// Returns true if all elements of the constant \p N, and of its value \p Was
/// in the input, are equal. The shapes may differ in per-replica sizes only.
bool isLocalSplat(const Graph &G, const DimAnalysis &Dims, NodeId N,
                  llvm::StringRef Was, unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_LOOPCHECK_H
