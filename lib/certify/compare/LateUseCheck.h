//===- lib/certify/compare/LateUseCheck.h - memory of a task ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_LATEUSECHECK_H
#define GRAFT_LIB_CERTIFY_COMPARE_LATEUSECHECK_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Whether all that is used after an update of a reference variable, and was
/// read before it, is in the task of the variable: elsewhere it is a copy of
/// what the variable was (lib/infer/graph/LateUses.h). \p G is a program or
/// what was made of one.
bool checkLateUses(const Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_LATEUSECHECK_H
