//===- lib/certify/fold/Fold.h - a lowered graph back to a program *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FOLD_FOLD_H
#define GRAFT_LIB_CERTIFY_FOLD_FOLD_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <memory>

namespace graft {

/// Returns the number of replicas that the marker attribute of \p G states; 0
/// if \p G has none.
unsigned stampedReplicas(const Graph &G);

/// Returns the number of replicas of \p Lowered, as the marker attribute states
/// it. A graph without splits and merges has no marker: then the names of
/// copies of nodes of \p Input give the number. Returns 0 if there are no
/// copies.
unsigned countReplicas(const Graph &Lowered, const Graph &Input);

/// Returns the replicated program whose expansion is \p Lowered, a graph that
/// expand-replicas wrote. Copies are found by their names. All copies of a node
/// must be alike: one copy per replica, on the device of that replica, with no
/// inputs from another replica. Returns null after an error.
///
/// Nodes whose name \p Input does not have count as inserted.
std::unique_ptr<Graph> foldReplicas(const Graph &Lowered, const Graph &Input,
                                    DiagnosticEngine &Diags);

/// Folds without the input, by names of copies and marker attributes. It cannot
/// tell which nodes were inserted, and does not call checkCopies(). Returns
/// null for a graph that has fewer than two replicas or does not fold.
std::unique_ptr<Graph> foldAlone(const Graph &Lowered);

/// Folds \p Lowered and certifies the result against \p Input. If \p
/// IsComputation, \p Lowered may lack the names of results without users.
bool certifyLowered(const Graph &Input, const Graph &Lowered,
                    DiagnosticEngine &Diags, bool IsComputation = false);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FOLD_FOLD_H
