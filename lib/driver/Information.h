//===- lib/driver/Information.h - flags that only print ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_INFORMATION_H
#define GRAFT_LIB_DRIVER_INFORMATION_H

#include "lib/driver/Options.h"

#include "llvm/Support/Error.h"

namespace graft {

/// Prints what flags ask for that end the program; false if none does.
llvm::Expected<bool> printInformation(const ToolOptions &O,
                                      const PassRegistry &Registry);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_INFORMATION_H
