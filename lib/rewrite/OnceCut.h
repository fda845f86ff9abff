//===- lib/rewrite/OnceCut.h - the border of unreplicated nodes -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Unreplicated nodes read the rows of all replicas, and replicas read their
// shards of the results. This border can be moved. Each replica could compute
// an op near the border on its shard, but computing the op once, on all rows,
// may send fewer bytes.
//
//     h = OneHot*(labels)             h = OneHot(all)
//     s = Sort(_FromReplicas(h)) →    s = Sort(h)
//
// The new border is a minimal cut of the graph between the unreplicated nodes
// and the nodes that must be replicated. The cost of each tensor that the cut
// crosses is the bytes that are sent. The cost of each unreplicated node is the
// work that is no longer distributed.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_ONCECUT_H
#define GRAFT_LIB_REWRITE_ONCECUT_H

#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/DenseSet.h"

namespace graft {

/// Returns the per-replica nodes of \p G that are cheaper to compute once, in
/// node order and without \p Fixed. Together they do at most 1 % of the work.
std::vector<NodeId> cheaperOnce(const Graph &G, const ProgramFacts &Facts,
                                const llvm::DenseSet<NodeId> &Fixed);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_ONCECUT_H
