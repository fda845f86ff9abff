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

/// Returns true if the functions of \p M that TensorFlow 2 runs are rewritten,
/// instead of the graph that calls them.
bool rewritesFunctions(const ToolOptions &O, const Module &M);

/// Rewrites each function as a graph of its own and puts the bodies into the
/// library of \p M. Prints the messages about each function and collects them
/// in \p All. If the output format is for people, stores the text in \p Shown
/// and does not change the bodies. Stores the counts in \p Made and shows the
/// progress on \p Line. Returns false after an error.
bool runFunctions(Module &M, const ToolOptions &O, llvm::StringRef File,
                  Progress &Line, std::string &Shown, Summary &Made,
                  DiagnosticEngine &All);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_FUNCTIONRUNS_H
