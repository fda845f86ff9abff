//===- lib/rewrite/ApplyRecord.h - a record to its variables ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_APPLYRECORD_H
#define GRAFT_LIB_REWRITE_APPLYRECORD_H

#include "lib/infer/graph/Variables.h"
#include "lib/strategy/Record.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Returns the synchronizer of variables that are not in \p Record: all-reduce,
/// or, if every entry is on a server, a PS on \p FirstServer.
Synchronizer defaultSynchronizer(const StrategyRecord &Record,
                                 llvm::StringRef FirstServer);

/// Writes the strategies of \p Record to the variables of \p G. A slot (a
/// variable of the same shape that an op updates together with a variable) gets
/// the strategy of its variable unless the record has an entry for the slot.
/// All other variables get \p Default. A variable that has a policy keeps it.
/// Errors name \p Source and the entry. Returns false and writes nothing after
/// an error.
bool applyRecord(Graph &G, const VariableIndex &Vars,
                 const StrategyRecord &Record, const Synchronizer &Default,
                 llvm::StringRef Source, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_APPLYRECORD_H
