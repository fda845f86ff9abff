//===- lib/report/Drawing.h - a graph for Graphviz --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REPORT_DRAWING_H
#define GRAFT_LIB_REPORT_DRAWING_H

#include "lib/graph/Graph.h"

#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// What is drawn of a graph.
struct DrawingOptions {
  std::string Around; ///< `NODE[:HOPS]`: what is near a node; empty: all.
  std::vector<std::string> Scopes; ///< Patterns of scopes; empty: all.
};

/// What a node of a graph that is drawn is a copy of.
struct DrawnNode {
  std::string Name;                ///< In the input, or else in the program.
  std::optional<unsigned> Replica; ///< None: there is one for all of them.
  Inserted Kind = Inserted::No;
};

/// \p G, whose nodes are those of \p Nodes, in the language of Graphviz: a
/// cluster for each replica and for each scope in it, colors for devices and
/// for what was inserted. Of more nodes than a page has room for, those of a
/// scope are one box, from that depth of scopes on at which it has.
llvm::Expected<std::string> drawGraph(const Graph &G,
                                      llvm::ArrayRef<DrawnNode> Nodes,
                                      const DrawingOptions &O);

} // namespace graft

#endif // GRAFT_LIB_REPORT_DRAWING_H
