//===- lib/driver/Information.h - flags that only print ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_INFORMATION_H
#define GRAFT_LIB_DRIVER_INFORMATION_H

#include "lib/driver/Options.h"

#include "llvm/Support/Error.h"

#include <string>

namespace graft {

/// The pipeline that is printed: the input has a say in it. Otherwise the input
/// is not read before everything else is known to be right.
llvm::Expected<std::string> pipelineFor(const ToolOptions &O);

/// Prints what flags ask for that end the program; false if none does.
/// \p Manager has the pipeline.
bool printInformation(const ToolOptions &O, const PassRegistry &Registry,
                      const PassManager &Manager);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_INFORMATION_H
