//===- lib/rewrite/OnceCut.h - where the part computed once ends *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What is computed once reads the rows of all replicas, and replicas read their
// rows of what it gives. Which tensors these are may be chosen: an op before or
// behind that every replica could compute for its rows may be computed for all
// rows instead, if less is sent then.
//
//     h = OneHot*(labels)             h = OneHot(all)
//     s = Sort(_FromReplicas(h)) →    s = Sort(h)
//
// That is a minimal cut of the graph, between what is computed once and what
// must be spread. Each tensor costs what is sent of it where the cut goes
// through it, each node on the side of what is computed once the work that no
// longer is spread.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_ONCECUT_H
#define GRAFT_LIB_REWRITE_ONCECUT_H

#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/DenseSet.h"

namespace graft {

/// The nodes of \p G, besides those that are, that had better be computed once,
/// in node order, none of them \p Fixed. Together they are a hundredth of the
/// work at most.
std::vector<NodeId> cheaperOnce(const Graph &G, const ProgramFacts &Facts,
                                const llvm::DenseSet<NodeId> &Fixed);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_ONCECUT_H
