//===- lib/strategy/Slots.h - what is updated together ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_SLOTS_H
#define GRAFT_LIB_STRATEGY_SLOTS_H

#include "lib/analysis/Variables.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// An op that updates a variable with its slots takes all of them from one
/// place: gives slots the policy and the synchronizer of the variable that they
/// are updated with. A slot of two variables that differ in them is an error.
/// Sets \p Changed if it wrote something.
bool slotsFollow(Graph &G, const VariableIndex &Vars, bool &Changed,
                 DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_SLOTS_H
