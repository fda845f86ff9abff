//===- lib/support/MinCut.h - the cheapest cut of a network -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a directed network stay with the source when it is cut from
// the sink where that costs least: by a maximum flow, which is found in phases
// of shortest ways (E. A. Dinic, "Algorithm for solution of a problem of
// maximum flow in networks with power estimation", 1970). Of all cuts that cost
// as little it is the one with the fewest nodes at the source, so the result
// does not depend on the order of edges.
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
  /// What is never cut. Other capacities are at most MaxCapacity.
  static constexpr int64_t Infinite = INT64_MAX / 4;
  static constexpr int64_t MaxCapacity = int64_t(1) << 40;

  MinCut() : FirstEdge(2, None) {}

  Index addNode() {
    FirstEdge.push_back(None);
    return static_cast<Index>(FirstEdge.size() - 1);
  }
  /// Cutting \p To, on the side of the sink, from \p From costs \p Capacity.
  void addEdge(Index From, Index To, int64_t Capacity);

  /// By node, whether it stays with the source.
  std::vector<bool> solve();
  /// What the cut costs, after solve().
  int64_t flow() const { return Flow; }

private:
  static constexpr Index None = ~Index(0);
  /// Edge I and I ^ 1 are the two directions of one.
  struct Edge {
    Index To, Next;
    int64_t Left; ///< The capacity that is not used yet.
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
