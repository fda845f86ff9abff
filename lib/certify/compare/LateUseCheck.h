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

/// Checks nodes that run after an update of a reference variable but use a read
/// from before the update. Such a node must be in the task of the variable:
/// another task has a copy of the old value (lib/infer/graph/LateUses.h). \p G
/// is a program or a graph made from a program.
bool checkLateUses(const Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_LATEUSECHECK_H
