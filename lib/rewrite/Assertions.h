//===- lib/rewrite/Assertions.h - inserts assertions ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_ASSERTIONS_H
#define GRAFT_LIB_REWRITE_ASSERTIONS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Adds an assertion of \p Condition, a scalar, that fails with \p Message.
/// Each replica checks a per-replica condition. Returns the gate of the
/// assertion, which has the name \p Name: nodes that the assertion guards wait
/// for it.
NodeId insertAssertion(Graph &G, llvm::StringRef Name, Endpoint Condition,
                       llvm::StringRef Message);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_ASSERTIONS_H
