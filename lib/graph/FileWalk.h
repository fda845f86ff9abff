//===- lib/graph/FileWalk.h - walks over a large mapped file ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_FILEWALK_H
#define GRAFT_LIB_GRAPH_FILEWALK_H

#include "lib/graph/Graph.h"

namespace graft {

/// A walk over nodes in about the order of the file that asks for their names
/// or attributes. Of a large input the pages behind it are given back to the
/// system, which reads them again from the file (mostly: from its cache) when
/// somebody asks: what is resident is a window, not the file. Costs one compare
/// per node; does nothing for inputs that are not mapped or not large.
class FileWalk {
public:
  explicit FileWalk(const Graph &G)
      : G(G), Next(G.largeParts().empty() ? UINT32_MAX : 0) {}

  /// The walk is at \p N.
  void at(NodeId N) {
    if (N >= Next && N < G.numInputNodes())
      step(N);
  }

  /// Gives back all pages of the input of \p G, if it is large.
  static void releaseAll(const Graph &G);

private:
  void step(NodeId N);

  const Graph &G;
  const char *From = nullptr; ///< Where the window begins.
  NodeId Next;                ///< The node to look at next.
};

/// Calls \p Visit with each node of \p Order, which reads attributes.
template <typename Fn>
void walkAttrs(const Graph &G, llvm::ArrayRef<NodeId> Order, Fn Visit) {
  constexpr size_t Ahead = 6;
  FileWalk Walk(G);
  for (size_t I = 0; I < Order.size(); ++I) {
    if (I + Ahead < Order.size())
      G.prefetchAttrs(Order[I + Ahead]);
    Walk.at(Order[I]);
    Visit(Order[I]);
  }
}

} // namespace graft

#endif // GRAFT_LIB_GRAPH_FILEWALK_H
