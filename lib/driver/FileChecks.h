//===- lib/driver/FileChecks.h - files that are written ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_FILECHECKS_H
#define GRAFT_LIB_DRIVER_FILECHECKS_H

#include "lib/driver/Options.h"

#include "llvm/Support/Error.h"

namespace graft {

/// Returns an error if an output is an input under another name, or if two
/// outputs are one file. With --in-place, \p Output may be one of \p Graph, the
/// files from which the graph was read.
llvm::Error checkFiles(const ToolOptions &O, llvm::StringRef Output,
                       llvm::ArrayRef<std::string> Graph);

/// Returns an error if the SavedModel in the folder O.Input cannot be written
/// to the folder \p Output. Neither folder may contain the other. No further
/// input may be in \p Output. No other file that graft writes may be in either
/// folder.
llvm::Error checkFolder(const ToolOptions &O, llvm::StringRef Output);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_FILECHECKS_H
