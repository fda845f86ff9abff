//===- lib/rewrite/Slots.h - where shared variables are ---------*- C++ -*-===//
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

/// Calls \p Do with each op that updates a variable with slots, the variable
/// and one of the slots, until it says false. Whether it never did.
bool forEachSlot(
    const Graph &G, const VariableIndex &Vars,
    llvm::function_ref<bool(NodeId Update, NodeId Var, NodeId Slot)> Do);

/// An op that updates a variable with its slots takes all of them from one
/// place: gives slots the policy and the synchronizer of the variable that they
/// are updated with. A slot of two variables that differ in them is an error.
/// Sets \p Changed if it wrote something.
bool slotsFollow(Graph &G, const VariableIndex &Vars, bool &Changed,
                 DiagnosticEngine &Diags);

/// The device that the synchronizer of \p Var asks for, empty if it asks for
/// none; nothing after an error.
std::optional<std::string> destinationOf(const Graph &G, NodeId Var,
                                         const Mesh &Devices,
                                         DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_SLOTS_H
