//===- lib/io/write/Print.h - graphs for people -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_PRINT_H
#define GRAFT_LIB_IO_WRITE_PRINT_H

#include "lib/graph/Graph.h"

namespace graft {

/// The parts of a node's line in a summary.
struct NodeText {
  std::string Name;
  std::string Op; ///< With `*N` if the node is per-replica.
  std::vector<std::string> Inputs, Controls;
  std::string Device;
  std::vector<std::pair<std::string, std::string>> Attrs; ///< By key.

  /// The line of a summary, without its end.
  std::string str() const;
  bool operator==(const NodeText &) const = default;
};

/// Returns the nodes of \p G in their order.
std::vector<NodeText> nodeTexts(const Graph &G);

/// Returns one line per node: `name = Op(in, in:1, ^ctl) @device attr=value
/// ...`, with `*N` after the op of a per-replica node.
std::string summaryText(const Graph &G);

/// Returns an AttrValue (wire bytes) as short text.
std::string attrText(llvm::StringRef Value);

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_PRINT_H
