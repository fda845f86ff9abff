//===- lib/graph/NodeView.h - a node and its attributes ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_NODEVIEW_H
#define GRAFT_LIB_GRAPH_NODEVIEW_H

#include "lib/graph/Graph.h"

namespace graft {

/// One node of a graph: the common part of the contexts of rules.
struct NodeView {
  const Graph &G;
  NodeId N = NoNode;

  const Node &node() const { return G.node(N); }
  llvm::StringRef opName() const { return G.opName(N); }
  bool isOp(llvm::StringRef Op) const { return G.isOp(N, Op); }
  auto intAttr(llvm::StringRef Key) const { return G.intAttr(N, Key); }
  auto typeAttr(llvm::StringRef Key) const { return G.typeAttr(N, Key); }
  auto stringAttr(llvm::StringRef Key) const { return G.stringAttr(N, Key); }
  auto intListAttr(llvm::StringRef Key) const { return G.intListAttr(N, Key); }
  auto shapeAttr(llvm::StringRef Key) const { return G.shapeAttr(N, Key); }
  auto shapeListAttr(llvm::StringRef Key) const {
    return G.shapeListAttr(N, Key);
  }
  /// Returns a boolean attribute, or false if it is missing.
  bool flag(llvm::StringRef Key) const {
    return G.boolAttr(N, Key).value_or(false);
  }
};

} // namespace graft

#endif // GRAFT_LIB_GRAPH_NODEVIEW_H
