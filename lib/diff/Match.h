//===- lib/diff/Match.h - the same nodes in two graphs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Pairs nodes of two graphs by structure. The color of a node is a hash of its
// ancestors, back to the feeds, and its descendants, up to the end. Colors of
// neighbors are mixed in as long as that tells more nodes apart (Weisfeiler,
// Leman 1968). Then these are pairs:
//
//   1. nodes of one color, and their inputs and users if these have one color,
//      too: this pairs graphs that differ only in names and order;
//   2. nodes with equal ancestors, then nodes with equal descendants: all
//   except
//      those both behind one change and before another;
//   3. from pairs on, inputs at the same place, and the only users at a place,
//      if they have the same op;
//   4. nodes of one name, then 3. again.
//
// Among equal nodes, those with the same inputs are paired first, then those
// with one name, in the end any. A node without a pair is only in one graph.
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
