//===- lib/infer/graph/Marks.h - marks along edges --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_MARKS_H
#define GRAFT_LIB_INFER_GRAPH_MARKS_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/STLExtras.h"

#include <array>
#include <vector>

namespace graft {

/// A set of up to Size marks for each node. One sweep over the graph propagates
/// the marks along all edges.
class Marks {
public:
  static constexpr size_t Words = 4, Bits = 64, Size = Bits * Words;
  using Set = std::array<uint64_t, Words>;

  explicit Marks(const Graph &G) : G(G), Sets(G.size()) {}

  void mark(NodeId N, size_t I) { Sets[N][I / Bits] |= bit(I); }
  void unmark(NodeId N, size_t I) { Sets[N][I / Bits] &= ~bit(I); }
  /// Passes the marks of each node on to its users, in \p Order. Returns true
  /// if a node got a new mark. Loops require several sweeps.
  bool spread(llvm::ArrayRef<NodeId> Order) {
    bool New = false;
    for (NodeId N : Order)
      for (Endpoint E : G.inputs(N))
        New |= add(N, E.Node);
    return New;
  }
  /// Passes the marks of each node on to its inputs.
  bool spreadBack(llvm::ArrayRef<NodeId> Order) {
    bool New = false;
    for (NodeId N : llvm::reverse(Order))
      for (Endpoint E : G.inputs(N))
        New |= add(E.Node, N);
    return New;
  }

  const Set &operator[](NodeId N) const { return Sets[N]; }
  bool has(NodeId N, size_t I) const { return has(Sets[N], I); }
  static bool has(const Set &In, size_t I) { return In[I / Bits] & bit(I); }
  /// Returns true if \p A and \p B have a mark in common.
  bool share(NodeId A, NodeId B) const {
    uint64_t Both = 0;
    for (size_t W = 0; W < Words; ++W)
      Both |= Sets[A][W] & Sets[B][W];
    return Both != 0;
  }

private:
  static uint64_t bit(size_t I) { return uint64_t(1) << I % Bits; }
  bool add(NodeId To, NodeId From) {
    uint64_t New = 0;
    for (size_t W = 0; W < Words; ++W) {
      New |= Sets[From][W] & ~Sets[To][W];
      Sets[To][W] |= Sets[From][W];
    }
    return New != 0;
  }

  const Graph &G;
  std::vector<Set> Sets;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_MARKS_H
