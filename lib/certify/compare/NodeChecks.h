//===- lib/certify/compare/NodeChecks.h - checks of each node ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_NODECHECKS_H
#define GRAFT_LIB_CERTIFY_COMPARE_NODECHECKS_H

#include "lib/certify/forms/Comparison.h"

namespace graft {

/// Checks the inputs, outputs and name of each node, with types inferred from
/// scratch.
void checkNodes(Comparison &C, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_NODECHECKS_H
