//===- lib/driver/Driver.h - the run of the program -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_DRIVER_H
#define GRAFT_LIB_DRIVER_DRIVER_H

#include "lib/driver/Options.h"

namespace graft {

/// Does what \p O asks for and prints all messages. Returns the exit status.
/// The program must end then: large objects are not destroyed.
int runTool(const ToolOptions &O, const PassRegistry &Registry);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_DRIVER_H
