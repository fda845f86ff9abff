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

/// Warns if no op of the graph, or of a function, updates a variable with more
/// than an initial or a restored value. An op that assigns a value counts if
/// the value depends on the batch or on a variable.
void warnOfNoUpdate(const Module &M, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_NOUPDATE_H
