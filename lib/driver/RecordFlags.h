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

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace graft {

/// The flags, and whether each is given.
std::vector<std::pair<const char *, bool>> recordFlags();

/// Checks them and puts them into \p S.
llvm::Error checkRecordFlags(StrategyOptions &S);

/// The file of --emit-strategy, or "".
std::string emittedStrategy();

/// Checks that \p Strategy is the name of one, or else a file.
llvm::Error checkStrategyName(const std::string &Strategy);

/// The devices of the replicas that the strategy file \p File lists.
llvm::Expected<std::vector<std::string>>
devicesOfStrategyFile(const std::string &File);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_RECORDFLAGS_H
