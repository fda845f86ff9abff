//===- lib/driver/WorkerFiles.h - a file for each worker --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_WORKERFILES_H
#define GRAFT_LIB_DRIVER_WORKERFILES_H

#include "lib/driver/BuildPipeline.h"
#include "lib/io/Module.h"
#include "lib/io/write/Write.h"
#include "lib/report/Drawing.h"
#include "lib/support/Diagnostics.h"

#include "llvm/Support/Error.h"

namespace graft {

/// Returns the file of worker \p Worker: \p Output with the number for `%d`.
std::string workerPath(llvm::StringRef Output, unsigned Worker);

/// Warns that workers that do not wait for each other do not compute the
/// single-device step. With --strict this is an error.
void sayAsync(const StrategyOptions &S, DiagnosticEngine &Diags);

/// Cuts the lowered graph of \p M, which is for all workers, into a graph for
/// each worker. Writes all graphs that \p S selects, or none of them after an
/// error. If \p Verify is true, all graphs together must compute the step of
/// the input.
llvm::Error writeWorkerFiles(const Module &M, const StrategyOptions &S,
                             llvm::StringRef Output,
                             const WriteOptions &Options,
                             const DrawingOptions &Drawing, bool Verify,
                             DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_WORKERFILES_H
