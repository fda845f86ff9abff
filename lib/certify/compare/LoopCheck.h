//===- lib/certify/compare/LoopCheck.h - are loops whole? -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The part of the certificate that is about loops, tensor arrays and stacks.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_LOOPCHECK_H
#define GRAFT_LIB_CERTIFY_COMPARE_LOOPCHECK_H

#include "lib/infer/graph/Loops.h"
#include "lib/infer/sizes/Dims.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace graft {

/// Every loop is run by each replica or exists once, as a whole, with its
/// arrays and stacks; and nothing is exchanged inside one that replicas run.
void checkLoops(const Graph &G, const LoopInfo &Loops,
                llvm::function_ref<void(NodeId, const llvm::Twine &)> Error);

/// Whether \p Now says of \p N what statedShape() said in \p Was, but for the
/// sizes that follow the batch, which are those of one of \p Replicas.
bool isLocalStatedShape(const Graph &G, const DimAnalysis &Dims, NodeId N,
                        llvm::StringRef Was, std::optional<llvm::StringRef> Now,
                        unsigned Replicas);

/// Whether the constant \p N, whose value was \p Was, has one value in all
/// elements, the same as then, and only fewer rows.
bool isLocalSplat(const Graph &G, const DimAnalysis &Dims, NodeId N,
                  llvm::StringRef Was, unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_LOOPCHECK_H
