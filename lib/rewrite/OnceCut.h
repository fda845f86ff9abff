//===- lib/rewrite/OnceCut.h - the border of unreplicated nodes -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Unreplicated nodes read the rows of all replicas, and replicas read their
// shards of the results. The tensors at this border can be chosen: an op near
// it that every replica could compute for its shard may be computed for all
// rows instead, if less is sent then.
//
//     h = OneHot*(labels)             h = OneHot(all)
//     s = Sort(_FromReplicas(h)) →    s = Sort(h)
//
// This is a minimal cut of the graph between the unreplicated nodes and those
// that must be replicated. Each tensor that the cut crosses costs the bytes
// that are sent; each node on the unreplicated side costs the work that is no
// longer distributed.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_ONCECUT_H
#define GRAFT_LIB_REWRITE_ONCECUT_H

#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/DenseSet.h"

namespace graft {

/// Returns the per-replica nodes of \p G that had better be computed once, in
/// node order, none of them \p Fixed. Together they are at most a hundredth of
/// the work.
std::vector<NodeId> cheaperOnce(const Graph &G, const ProgramFacts &Facts,
                                const llvm::DenseSet<NodeId> &Fixed);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_ONCECUT_H
