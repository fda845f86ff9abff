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

/// What a variable has of which \p Record says nothing: it is mirrored, or, if
/// every entry is of a server, on the first of them.
Synchronizer defaultSynchronizer(const StrategyRecord &Record,
                                 llvm::StringRef FirstServer);

/// Writes on the variables of \p G what \p Record says of them. Slots, that is
/// what an op updates together with a variable and of its shape, are where it
/// is unless the record says otherwise, all other variables have \p Default. A
/// variable that has a policy keeps it. Errors name \p Source and the entry.
/// False after one, and nothing is written.
bool applyRecord(Graph &G, const VariableIndex &Vars,
                 const StrategyRecord &Record, const Synchronizer &Default,
                 llvm::StringRef Source, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_APPLYRECORD_H
