//===- lib/driver/NoUpdate.h - graphs that train nothing --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_NOUPDATE_H
#define GRAFT_LIB_DRIVER_NOUPDATE_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Warns if neither the graph nor a function has an op that updates a variable.
/// An assignment is an update only if its value depends on the batch or on a
/// variable. Assignments of initial or restored values are no updates.
void warnOfNoUpdate(const Module &M, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_NOUPDATE_H
