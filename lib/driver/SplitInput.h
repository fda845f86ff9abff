//===- lib/driver/SplitInput.h - several inputs in one file -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_SPLITINPUT_H
#define GRAFT_LIB_DRIVER_SPLITINPUT_H

#include "lib/driver/Options.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace graft {

/// The beginning of a line between two inputs.
inline constexpr llvm::StringLiteral SplitMarker = "# -----";

bool hasSplitMarker(llvm::StringRef Text);

/// Runs on each input in \p Buffer separately and writes all into one output.
/// Returns the exit status of the program.
int runSplit(const ToolOptions &O, const llvm::MemoryBuffer &Buffer);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_SPLITINPUT_H
