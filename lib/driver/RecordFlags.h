//===- lib/driver/RecordFlags.h - flags of records --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flags that set how a strategy chooses a policy for each variable.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_RECORDFLAGS_H
#define GRAFT_LIB_DRIVER_RECORDFLAGS_H

#include "lib/driver/BuildPipeline.h"

#include "llvm/Support/Error.h"

#include <string>

namespace graft {

/// Checks these flags and puts them into \p S. If \p Strategy is a file, puts
/// its contents into \p S, too.
llvm::Error checkRecordFlags(StrategyOptions &S, const std::string &Strategy);

/// Returns the first of these flags that is given, or "".
std::string recordFlag();

/// Checks that \p Strategy names a strategy or a file.
llvm::Error checkStrategyName(const std::string &Strategy);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_RECORDFLAGS_H
