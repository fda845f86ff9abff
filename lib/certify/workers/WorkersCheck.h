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

/// Returns the number of workers that a stamp of \p G states, or 0 if there is
/// no stamp.
int64_t workersOf(const Graph &G);

/// Joins \p Files, one for each worker, in any order, to the graph for all
/// workers. Checks their messages and the order of reads and writes. \p In is
/// the input, and \p Ends are its nodes without users. Null after an error.
std::unique_ptr<Graph> joinWorkers(const Graph &In,
                                   const llvm::StringSet<> &Ends,
                                   llvm::ArrayRef<const Graph *> Files,
                                   DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_WORKERSCHECK_H
