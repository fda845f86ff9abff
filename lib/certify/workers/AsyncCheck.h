//===- lib/certify/workers/AsyncCheck.h - workers that do not wait *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// The files of workers that update the variables of all when they like.
// Together they are no step of a single device. What holds is checked:
//
//   - each file alone is the step of the input, but for the locks of updates:
//     with the file of the chief this is for fold/, and the others are compared
//     with it node for node;
//   - a variable of all is one in all files, on one device, under one name;
//     one that is in `local_variables` only is each worker's own;
//   - an update of a variable of all is made under its lock, so that none is
//     lost;
//   - what else a worker has is on its own task, or where all have it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_ASYNCCHECK_H
#define GRAFT_LIB_CERTIFY_WORKERS_ASYNCCHECK_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

#include <memory>

namespace graft {

/// Whether \p G says that it is a file of such a worker.
bool isAsync(const Graph &G);

/// The graph of the chief as the step of the input, if \p Files, in any order,
/// are as above. \p Local are the variables that each worker has. Null after an
/// error.
std::unique_ptr<Graph> chiefOfAsync(const Graph &In,
                                    const llvm::StringSet<> &Local,
                                    llvm::ArrayRef<const Graph *> Files,
                                    DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_ASYNCCHECK_H
