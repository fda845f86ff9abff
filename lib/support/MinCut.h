//===- lib/support/MinCut.h - the cheapest cut of a network -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the nodes of a directed network that stay with the source in a minimal
// cut from the sink. It computes a maximum flow in phases of shortest paths (E.
// A. Dinic, "Algorithm for solution of a problem of maximum flow in networks
// with power estimation", 1970). The result is the minimal cut with the fewest
// nodes at the source, so it does not depend on the order of edges.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_MINCUT_H
#define GRAFT_LIB_SUPPORT_MINCUT_H

#include <cstdint>
#include <vector>

namespace graft {

class MinCut {
public:
  using Index = uint32_t;
  static constexpr Index Source = 0, Sink = 1;
  /// The capacity of uncuttable edges. All other capacities are at most
  /// MaxCapacity.
  static constexpr int64_t Infinite = INT64_MAX / 4;
  static constexpr int64_t MaxCapacity = int64_t(1) << 40;

  MinCut() : FirstEdge(2, None) {}

  Index addNode() {
    FirstEdge.push_back(None);
    return static_cast<Index>(FirstEdge.size() - 1);
  }
  /// Adds an edge. A cut between \p From at the source side and \p To costs
  /// \p Capacity.
  void addEdge(Index From, Index To, int64_t Capacity);

  /// Returns a flag for each node: true if the node stays with the source.
  std::vector<bool> solve();
  /// The cost of the cut, after solve().
  int64_t flow() const { return Flow; }

private:
  static constexpr Index None = ~Index(0);
  /// Edges I and I ^ 1 are the two directions of one edge.
  struct Edge {
    Index To, Next;
    int64_t Left; ///< The unused capacity.
  };
  bool findLevels();
  void sendFlow();

  std::vector<Index> FirstEdge; ///< By node.
  std::vector<Edge> Edges;
  std::vector<Index> Level, NextEdge; ///< By node, of this phase.
  int64_t Flow = 0;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_MINCUT_H
