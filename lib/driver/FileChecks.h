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

/// Refuses outputs that are inputs, under whatever name: \p Output only with
/// --in-place, and only the graph, which was read from \p Graph. No two
/// outputs are one file.
llvm::Error checkFiles(const ToolOptions &O, llvm::StringRef Output,
                       llvm::ArrayRef<std::string> Graph);

/// Refuses \p Output as the folder for what is made of the folder O.Input: one
/// is not in the other, and no file that is read, or written beside it, is in
/// the output.
llvm::Error checkFolder(const ToolOptions &O, llvm::StringRef Output);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_FILECHECKS_H
