//===- tools/graft-opt/RecordFlags.h - flags of records ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flags that say how a strategy decides of each variable.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_TOOLS_GRAFT_OPT_RECORDFLAGS_H
#define GRAFT_TOOLS_GRAFT_OPT_RECORDFLAGS_H

#include "lib/strategy/Pipeline.h"

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

#endif // GRAFT_TOOLS_GRAFT_OPT_RECORDFLAGS_H
