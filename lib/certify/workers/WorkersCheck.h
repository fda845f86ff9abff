//===- lib/certify/workers/WorkersCheck.h - files of all workers *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_WORKERSCHECK_H
#define GRAFT_LIB_CERTIFY_WORKERS_WORKERSCHECK_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

#include <memory>

namespace graft {

/// How many workers the file \p G of one of them is made for; 0 if it says
/// nothing.
int64_t workersOf(const Graph &G);

/// The graph for all workers that \p Files, one for each, in any order, are
/// the parts of: what they exchange is joined, and is sent, taken and counted
/// as it has to be. \p In is the input, and \p Ends are what nothing reads in
/// it. Null after an error.
std::unique_ptr<Graph> joinWorkers(const Graph &In,
                                   const llvm::StringSet<> &Ends,
                                   llvm::ArrayRef<const Graph *> Files,
                                   DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_WORKERSCHECK_H
