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

/// Whether \p G carries the stamp of an expansion, and for how many replicas;
/// 0 when it does not.
unsigned stampedReplicas(const Graph &G);

/// The replicas of \p Lowered by its stamp. Where nothing is split or merged
/// there is none, and names of copies of nodes of \p Input tell; 0 when there
/// are none either.
unsigned countReplicas(const Graph &Lowered, const Graph &Input);

/// The replicated program that \p Lowered, a graph that expand-replicas wrote,
/// is the expansion of. Copies are found by their names, and every copy must be
/// the image of the others: one node per replica, inputs from its own replica,
/// one device each. Null after an error.
///
/// \p Input tells which nodes were inserted: those whose name it does not have.
std::unique_ptr<Graph> foldReplicas(const Graph &Lowered, const Graph &Input,
                                    DiagnosticEngine &Diags);

/// The same without the input, as far as names of copies and stamps tell: what
/// was inserted is not known, and what a program does not show is not checked.
/// Null for a graph of fewer than two replicas, or one that does not fold.
std::unique_ptr<Graph> foldAlone(const Graph &Lowered);

/// Folds \p Lowered and certifies the result against \p Input. If \p
/// IsComputation, what nothing reads need not be in it under its name.
bool certifyLowered(const Graph &Input, const Graph &Lowered,
                    DiagnosticEngine &Diags, bool IsComputation = false);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FOLD_FOLD_H
