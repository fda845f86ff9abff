//===- lib/certify/compare/NodeChecks.h - what each node has ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_NODECHECKS_H
#define GRAFT_LIB_CERTIFY_COMPARE_NODECHECKS_H

#include "lib/certify/forms/Comparison.h"

namespace graft {

/// Checks that each node takes and gives what it may, by types that were
/// inferred from scratch.
void checkNodes(Comparison &C, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_NODECHECKS_H
