//===- lib/diff/Match.h - the same nodes in two graphs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Pairs nodes of two graphs by structure. The color of a node is a hash of its
// ancestors, back to the feeds, and its descendants, up to the end. Colors of
// neighbors are mixed in as long as that tells more nodes apart (Weisfeiler,
// Leman 1968). Then these are pairs:
//
//   1. nodes of equal color, and their neighbors of equal color: this pairs
//      graphs that differ only in names and order;
//   2. nodes with equal ancestors, then nodes with equal descendants: this
//      leaves only nodes that are behind one change and before another;
//   3. neighbors of pairs that have the same op: inputs with the same index,
//      and each user that is the only one with its op and input index;
//   4. nodes with the same name, then the neighbors of these as in 3.
//
// Among equal nodes, nodes with the same inputs are paired first, then nodes
// with the same name, then any two. A node without a pair is in one graph only.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DIFF_MATCH_H
#define GRAFT_LIB_DIFF_MATCH_H

#include "lib/graph/Graph.h"

#include <vector>

namespace graft {

/// The pair of each node in the other graph, or NoNode.
struct Matching {
  std::vector<NodeId> InB; ///< By node of the first graph.
  std::vector<NodeId> InA; ///< By node of the second.
};

/// Pairs the nodes of \p A and \p B. Time and memory grow with nodes and edges.
Matching matchNodes(const Graph &A, const Graph &B);

} // namespace graft

#endif // GRAFT_LIB_DIFF_MATCH_H
