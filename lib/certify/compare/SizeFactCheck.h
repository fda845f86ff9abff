//===- lib/certify/compare/SizeFactCheck.h - facts of sizes -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_SIZEFACTCHECK_H
#define GRAFT_LIB_CERTIFY_COMPARE_SIZEFACTCHECK_H

#include "lib/infer/facts/SizeUses.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace graft {

/// Checks each fact about sizes on which the proof of program \p G relies. The
/// op that states the fact must compare sizes of several operands. It must run
/// whenever the node that uses the fact runs. Edges, predicates and loops show
/// this; the check shares nothing with the inference of sizes. Calls \p Error
/// with the node that uses the fact.
void checkSizeFacts(
    const Graph &G, llvm::ArrayRef<NodeId> Order, llvm::ArrayRef<SizeUse> Uses,
    llvm::function_ref<void(NodeId, const llvm::Twine &)> Error);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_SIZEFACTCHECK_H
