//===- lib/rewrite/KeepOnce.h - what is not proved is computed once -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What no type rule relates is computed once, on the whole batch: it reads what
// all replicas have together, and every replica takes its rows of what it
// gives:
//
//     s = Sort*(x/split)              s = Sort(x)
//     y = Mul*(s, x/split)       →    s/split = _ToReplicas(s)
//                                     y = Mul*(s/split, x/split)
//
// That is the step of the single device, and not spread. Which nodes these are
// is in lib/infer/types/KeptNodes.cpp.
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
  /// Where nothing related replicas, by name, and why.
  std::vector<std::pair<std::string, std::string>> Causes;
};

/// Has what is not proved of \p M computed once, as far as that can be, and the
/// tensors that people feed instead; \p Fetched are
/// names of tensors whose value is wanted; \p LocalBatchNorm: as in
/// KeepOptions. Those of \p Loops that are kept as a whole are undone. \p
/// Gather gives the rows of all replicas to the nodes that demand them, where
/// they give others sizes by that.
KeptOnce keepOnce(Module &M, llvm::ArrayRef<std::string> Fetched,
                  bool LocalBatchNorm, std::vector<SharedLoop> Loops,
                  llvm::function_ref<void(const ProgramFacts &)> Gather,
                  DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_KEEPONCE_H
