//===- lib/rewrite/Reductions.h - whose reduction it is ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_REDUCTIONS_H
#define GRAFT_LIB_REWRITE_REDUCTIONS_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/strategy/Record.h"

namespace graft {

/// On a `_Reduce`: what its collective is to be called with
/// (`communication_hint`).
inline constexpr llvm::StringRef HintAttr = "hint";

/// "auto", "nccl" or "ring".
llvm::StringRef specName(Synchronizer::SpecType Spec);

/// The variables that a reduced value is a gradient of.
struct ReductionUse {
  /// What the value reaches through tensors of the same size, by name.
  llvm::SmallVector<NodeId, 2> Variables;
  /// What is written on them, if it is one thing.
  std::optional<Synchronizer> Sync;
};

/// Follows \p Reduced to the updates of variables.
ReductionUse useOfReduction(const Graph &G, const ProgramFacts &Facts,
                            Endpoint Reduced);

/// Whether a variable of \p G has a synchronizer for which \p Is holds.
bool anySynchronizer(const Graph &G,
                     llvm::function_ref<bool(NodeId, const Synchronizer &)> Is);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_REDUCTIONS_H
