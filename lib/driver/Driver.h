//===- lib/driver/Driver.h - what the program does --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_DRIVER_H
#define GRAFT_LIB_DRIVER_DRIVER_H

#include "lib/driver/Options.h"

namespace graft {

/// Does what \p O asks for, and prints all messages. The exit status of the
/// program, which is to end now: what is large is not taken apart.
int runTool(const ToolOptions &O, const PassRegistry &Registry);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_DRIVER_H
