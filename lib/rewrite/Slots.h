//===- lib/rewrite/Slots.h - devices of shared variables --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_SLOTS_H
#define GRAFT_LIB_REWRITE_SLOTS_H

#include "lib/infer/graph/Variables.h"
#include "lib/program/Program.h"
#include "lib/support/Diagnostics.h"

#include <optional>
#include <string>

namespace graft {

/// Calls \p Do(op, variable, slot) for each slot that an op updates together
/// with a variable. Stops and returns false if \p Do returns false.
bool forEachSlot(
    const Graph &G, const VariableIndex &Vars,
    llvm::function_ref<bool(NodeId Update, NodeId Var, NodeId Slot)> Do);

/// Copies the policy and synchronizer of a variable to its slots, because the
/// op that updates them requires one device for all. Reports an error if a slot
/// belongs to two variables that differ in policy or synchronizer. Sets \p
/// Changed if a slot changed.
bool slotsFollow(Graph &G, const VariableIndex &Vars, bool &Changed,
                 DiagnosticEngine &Diags);

/// Returns the destination in the synchronizer of \p Var. Empty if there is
/// none, nullopt after an error.
std::optional<std::string> destinationOf(const Graph &G, NodeId Var,
                                         const Mesh &Devices,
                                         DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_SLOTS_H
