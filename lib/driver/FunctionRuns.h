//===- lib/driver/FunctionRuns.h - functions of a SavedModel ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_FUNCTIONRUNS_H
#define GRAFT_LIB_DRIVER_FUNCTIONRUNS_H

#include "lib/driver/Options.h"
#include "lib/driver/Report.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/Progress.h"

namespace graft {

/// Whether what is asked for is done to the functions of \p M that TensorFlow 2
/// runs, and not to its graph, which calls them.
bool rewritesFunctions(const ToolOptions &O, const Module &M);

/// Rewrites them, each as a graph of its own, and puts the bodies into the
/// library of \p M. What is said of one is printed. With a format that is for
/// people \p Shown gets what they are then, and \p M stays as it is. \p Made
/// counts, \p All collects what was said, \p Line says which one it is at;
/// false after an error.
bool runFunctions(Module &M, const ToolOptions &O, llvm::StringRef File,
                  Progress &Line, std::string &Shown, Summary &Made,
                  DiagnosticEngine &All);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_FUNCTIONRUNS_H
