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
//   - what else a worker has is on its own task, or where all have it;
//   - with a bound no worker is further ahead of the slowest (BoundCheck.h).
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

/// How many steps the worker whose file \p G is may be ahead; 0: any number.
int64_t aheadOf(const Graph &G);

/// What is known of the input by name.
struct AsyncNames {
  const llvm::StringSet<> &Local;   ///< Variables that each worker has.
  const llvm::StringSet<> &Trained; ///< Variables that gradients are for.
  const llvm::StringSet<> &Runs;    ///< What is run.
};

/// The graph of the chief as the step of the input, if \p Files, in any order,
/// are as above. Null after an error.
std::unique_ptr<Graph> chiefOfAsync(const Graph &In, const AsyncNames &Names,
                                    llvm::ArrayRef<const Graph *> Files,
                                    DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_ASYNCCHECK_H
