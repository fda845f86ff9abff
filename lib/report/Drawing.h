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

/// The part of a graph to draw.
struct DrawingOptions {
  std::string Around; ///< `NODE[:HOPS]`: the nodes near a node; empty: all.
  std::vector<std::string> Scopes; ///< Patterns of scopes; empty: all.
};

/// The name and the replica of a node to draw.
struct DrawnNode {
  std::string Name;                ///< In the input or in the program.
  std::optional<unsigned> Replica; ///< None: one node for all replicas.
  Inserted Kind = Inserted::No;
};

/// Draws \p G, whose nodes \p Nodes describes, in the language of Graphviz.
/// Replicas and the scopes in them are clusters; colors show devices and
/// inserted nodes. If the nodes do not fit on a page, each scope becomes one
/// box, at the largest depth that fits.
llvm::Expected<std::string> drawGraph(const Graph &G,
                                      llvm::ArrayRef<DrawnNode> Nodes,
                                      const DrawingOptions &O);

} // namespace graft

#endif // GRAFT_LIB_REPORT_DRAWING_H
