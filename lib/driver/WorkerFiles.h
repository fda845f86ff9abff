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

/// Says that the steps of workers that do not wait are no step of a single
/// device. That is an error under --strict.
void sayAsync(const StrategyOptions &S, DiagnosticEngine &Diags);

/// Cuts the graph that \p M is lowered to, which is for all workers, into one
/// for each, and writes those that \p S asks for: all files or none. With
/// \p Verify, the graphs must be the step of the input together.
llvm::Error writeWorkerFiles(const Module &M, const StrategyOptions &S,
                             llvm::StringRef Output,
                             const WriteOptions &Options,
                             const DrawingOptions &Drawing, bool Verify,
                             DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_WORKERFILES_H
