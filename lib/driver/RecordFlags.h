//===- lib/driver/RecordFlags.h - flags of records --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flags that say how a strategy decides of each variable.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_RECORDFLAGS_H
#define GRAFT_LIB_DRIVER_RECORDFLAGS_H

#include "lib/driver/BuildPipeline.h"

#include "llvm/Support/Error.h"

#include <string>

namespace graft {

/// Checks them and puts them into \p S, with what is in the file \p Strategy if
/// it is one.
llvm::Error checkRecordFlags(StrategyOptions &S, const std::string &Strategy);

/// The first of them that is given, or "".
std::string recordFlag();

/// Checks that \p Strategy is the name of one, or else a file.
llvm::Error checkStrategyName(const std::string &Strategy);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_RECORDFLAGS_H
