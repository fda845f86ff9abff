//===- lib/program/forms/Proxy.h - copies of shared variables ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A proxy is a variable on each replica with the value of a shared variable of
// the input. Its nodes, all of kind `proxy`:
//
//     P = VarHandleOp*()                  the proxy of V
//     RP = ReadVariableOp*(P)             the read of V on replicas
//     W = ReadVariableOp(V, ^U)           the value that the update U left
//     F = AssignVariableOp*(P, W, ^RP)    the refresh
//     N = NoOp(^F)                        U and its refresh: N has the name of
//         or Identity(U, ^F)              U, and nodes wait for N instead of U
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_PROXY_H
#define GRAFT_LIB_PROGRAM_FORMS_PROXY_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Returns true if \p U, a use of the handle or reference of a variable, is
/// proved not to write the variable. Returns false if \p U passes the variable
/// to a loop, or to an op that is not in the op table.
bool leavesVariable(const Graph &G, Use U);

/// Returns true if \p N looks up rows of the variable at its input 0.
bool looksUpRows(const Graph &G, NodeId N);

/// Returns the proxy of the shared variable \p Var, or NoNode.
NodeId proxyOf(const Graph &G, NodeId Var);

/// Returns true if dependencies order all of \p Updates, none of which is a
/// plain assignment. Nodes that wait for an update depend on \p Gate(update).
bool areOrdered(const Graph &G, llvm::ArrayRef<NodeId> Updates,
                llvm::function_ref<NodeId(NodeId)> Gate);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_PROXY_H
