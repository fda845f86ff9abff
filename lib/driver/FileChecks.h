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

/// Returns an error if \p Output cannot be the folder for the rewritten folder
/// O.Input: neither folder may contain the other. The output may contain no
/// other file that is read or written.
llvm::Error checkFolder(const ToolOptions &O, llvm::StringRef Output);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_FILECHECKS_H
