//===- lib/diff/Match.h - the same nodes in two graphs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Pairs nodes of two graphs by structure. A node has a color: a hash of what it
// is made of, back to the feeds, of what is made of it, up to the end, and of
// the colors around it, as often as that tells more nodes apart (Weisfeiler,
// Leman 1968). Then pairs are
//
//   1. nodes of one color, and what they read and what reads them, if that has
//      one color, too: a graph with other names and another order is paired
//      by that;
//   2. nodes that are made of the same, then those of which the same is made:
//      all that is not both behind one change and before another;
//   3. from pairs on, what they read at the same place, and what alone reads
//      them there, if it is the same op;
//   4. nodes of one name, and again 3.
//
// Where several are equal, those that read the same are a pair, then those of
// one name. What is left in one graph is not in the other.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DIFF_MATCH_H
#define GRAFT_LIB_DIFF_MATCH_H

#include "lib/graph/Graph.h"

#include <vector>

namespace graft {

/// By node: the one that it is in the other graph, or NoNode.
struct Matching {
  std::vector<NodeId> InB; ///< By node of the first graph.
  std::vector<NodeId> InA; ///< By node of the second.
};

/// Time and memory grow with nodes and edges.
Matching matchNodes(const Graph &A, const Graph &B);

} // namespace graft

#endif // GRAFT_LIB_DIFF_MATCH_H
