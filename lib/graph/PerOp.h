//===- lib/graph/PerOp.h - a byte for each op -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_PEROP_H
#define GRAFT_LIB_GRAPH_PEROP_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/STLExtras.h"

namespace graft {

/// A byte for each op of a graph, so that a walk over all nodes compares no
/// names. Ops that are added after construction have no byte.
class PerOp {
public:
  /// \p F(name of the op, its definition or null) returns the byte.
  template <typename Fn> PerOp(const Graph &G, Fn F) : Bytes(G.numOps()) {
    for (uint32_t Op = 0; Op < G.numOps(); ++Op)
      Bytes[Op] = static_cast<uint8_t>(F(G.opNameOf(Op), G.opDefOf(Op)));
  }

  /// Returns true if an op of the graph has a byte other than 0.
  bool any() const {
    return llvm::any_of(Bytes, [](uint8_t B) { return B; });
  }

  uint8_t operator[](const Node &N) const { return Bytes[N.Op]; }

private:
  std::vector<uint8_t> Bytes;
};

} // namespace graft

#endif // GRAFT_LIB_GRAPH_PEROP_H
