//===- lib/certify/workers/AsyncCheck.h - workers that do not wait *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks the files of asynchronous workers, which update shared variables
// without waiting for each other. Together they do not compute the
// single-device step. Instead:
//
//   - each file alone computes the single-device step, except that updates may
//     take locks: fold/ certifies the file of the chief, and the other files
//     are compared with it node for node;
//   - a shared variable has one device and one name in all files. Each worker
//     has its own copy of a variable that is in `local_variables` only;
//   - an update of a shared variable takes its lock, so that no update is lost;
//   - any other node is on the task of its worker, or on one device in all
//     files;
//   - no worker is ahead of the slowest by more than the bound (BoundCheck.h).
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_ASYNCCHECK_H
#define GRAFT_LIB_CERTIFY_WORKERS_ASYNCCHECK_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

#include <memory>

namespace graft {

/// Returns true if \p G is stamped as the file of an asynchronous worker.
bool isAsync(const Graph &G);

/// Returns the number of steps that the worker of the file \p G may be ahead,
/// or 0 if there is no bound.
int64_t aheadOf(const Graph &G);

/// Names of nodes in the input.
struct AsyncNames {
  const llvm::StringSet<> &Local;   ///< Variables local to a worker.
  const llvm::StringSet<> &Trained; ///< Variables that have gradients.
  const llvm::StringSet<> &Runs;    ///< Nodes that callers run.
};

/// Checks \p Files, in any order, as above. Returns the graph of the chief with
/// the updates of the input, for fold/ to certify. Returns null after an error.
std::unique_ptr<Graph> chiefOfAsync(const Graph &In, const AsyncNames &Names,
                                    llvm::ArrayRef<const Graph *> Files,
                                    DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_ASYNCCHECK_H
