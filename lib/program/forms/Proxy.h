//===- lib/program/forms/Proxy.h - copies of shared variables ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A proxy is a variable of each replica that has the value of a shared variable
// of the input. What belongs to one (all of kind `proxy`):
//
//     P = VarHandleOp*()                  the proxy of V
//     RP = ReadVariableOp*(P)             what replicas read in place of V
//     W = ReadVariableOp(V, ^U)           the value that the update U left
//     F = AssignVariableOp*(P, W, ^RP)    the refresh
//     N = NoOp(^F)                        U and its refresh: what waited for U
//         or Identity(U, ^F)              waits for N, which has its name
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_PROXY_H
#define GRAFT_LIB_PROGRAM_FORMS_PROXY_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Whether input \p U.Index of the op, which is a handle or a reference of a
/// variable, is known not to write it, nor to pass it on to a loop or to what
/// the op table does not know.
bool leavesVariable(const Graph &G, Use U);

/// Whether \p N looks up rows of the variable that is its input 0.
bool looksUpRows(const Graph &G, NodeId N);

/// The proxy of the shared variable \p Var, or NoNode.
NodeId proxyOf(const Graph &G, NodeId Var);

/// Marks what comes after \p Work, itself included.
void markAfter(const Graph &G, std::vector<NodeId> Work,
               std::vector<bool> &Marked);

/// Whether all of \p Updates, which do more than assign, come one after the
/// other, where what waits for an update waits for \p Gate(update).
bool areOrdered(const Graph &G, llvm::ArrayRef<NodeId> Updates,
                llvm::function_ref<NodeId(NodeId)> Gate);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_PROXY_H
