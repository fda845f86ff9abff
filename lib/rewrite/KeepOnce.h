//===- lib/rewrite/KeepOnce.h - computes unproved nodes once --------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A node that no type rule relates to the global value becomes unreplicated: it
// reads the whole batch, and each replica reads its shard of the result:
//
//     s = Sort*(x/split)              s = Sort(x)
//     y = Mul*(s, x/split)       →    s/split = _ToReplicas(s)
//                                     y = Mul*(s/split, x/split)
//
// This computes the single-device step, but does not distribute the work.
// lib/infer/types/KeptNodes.cpp selects the nodes.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_KEEPONCE_H
#define GRAFT_LIB_REWRITE_KEEPONCE_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/io/Module.h"
#include "lib/rewrite/LoopConditions.h"

namespace graft {

struct KeptOnce {
  bool Any = false;
  /// The name of each origin of unknown types, and why its type is unknown.
  std::vector<std::pair<std::string, std::string>> Causes;
};

/// Makes unproved nodes of \p M unreplicated as far as possible. Also makes
/// computed tensors unreplicated if users replace them by feeds. \p Fetched has
/// the names of fetched tensors. \p LocalBatchNorm is as in KeepOptions. Undoes
/// \p Loops that become unreplicated. \p Gather gathers the rows of all
/// replicas for nodes that demand them. keepOnce() calls it if the gather
/// changes the output sizes of such a node.
KeptOnce keepOnce(Module &M, llvm::ArrayRef<std::string> Fetched,
                  bool LocalBatchNorm, std::vector<SharedLoop> Loops,
                  llvm::function_ref<void(const ProgramFacts &)> Gather,
                  DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_KEEPONCE_H
