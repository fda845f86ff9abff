//===- lib/driver/Inspect.h - a verdict on one file -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// `graft-opt FILE` without an output or another task says what is in the file
// and tries to distribute it over two replicas. It writes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_INSPECT_H
#define GRAFT_LIB_DRIVER_INSPECT_H

#include "lib/driver/Options.h"

#include "llvm/Support/MemoryBuffer.h"

namespace graft {

/// Prints a description of the input of \p O and the result of the trial, as
/// text or as JSON. \p O has the strategy of the trial and no output. Returns
/// the exit status: 0 if the input is a graph, whatever the verdict.
int inspectFile(const ToolOptions &O,
                std::unique_ptr<llvm::MemoryBuffer> Buffer);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_INSPECT_H
