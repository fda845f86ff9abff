//===- lib/rewrite/Reductions.h - variables of a reduction ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_REDUCTIONS_H
#define GRAFT_LIB_REWRITE_REDUCTIONS_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/strategy/Record.h"

namespace graft {

/// An attribute of `_Reduce`: the `communication_hint` of its collective.
inline constexpr llvm::StringRef HintAttr = "hint";

/// Returns "auto", "nccl" or "ring".
llvm::StringRef specName(Synchronizer::SpecType Spec);

/// The variables whose gradient is a reduced value.
struct ReductionUse {
  /// Variables, ordered by name, whose updates the value reaches through
  /// tensors of its size.
  llvm::SmallVector<NodeId, 2> Variables;
  /// The synchronizer of these variables, unless two of them differ.
  std::optional<Synchronizer> Sync;
};

/// Follows \p Reduced to the updates of variables.
ReductionUse useOfReduction(const Graph &G, const ProgramFacts &Facts,
                            Endpoint Reduced);

/// Returns true if \p Is holds for the synchronizer of a variable of \p G.
bool anySynchronizer(const Graph &G,
                     llvm::function_ref<bool(NodeId, const Synchronizer &)> Is);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_REDUCTIONS_H
