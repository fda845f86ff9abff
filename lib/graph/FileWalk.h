//===- lib/graph/FileWalk.h - walks over a large mapped file ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_FILEWALK_H
#define GRAFT_LIB_GRAPH_FILEWALK_H

#include "lib/graph/Graph.h"

namespace graft {

/// A walk that reads the names or attributes of nodes in about file order. If a
/// large input is mapped, the walk releases the pages behind it, so that only a
/// window of the file is resident. If a released page is read, the system loads
/// it again, mostly from its file cache. The walk costs one comparison per node
/// and has no effect on other inputs.
class FileWalk {
public:
  explicit FileWalk(const Graph &G)
      : G(G), Next(G.largeParts().empty() ? UINT32_MAX : 0) {}

  /// Moves the walk to \p N.
  void at(NodeId N) {
    if (N >= Next && N < G.numInputNodes())
      step(N);
  }

  /// Releases all pages of the input of \p G, if it is large.
  static void releaseAll(const Graph &G);

private:
  void step(NodeId N);

  const Graph &G;
  const char *From = nullptr; ///< The begin of the window.
  NodeId Next;                ///< The node from which on the window may move.
};

/// Calls \p Visit, which reads attributes, with each node of \p Order.
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
