//===- lib/io/write/Print.h - graphs for people -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_PRINT_H
#define GRAFT_LIB_IO_WRITE_PRINT_H

#include "lib/graph/Graph.h"

namespace graft {

/// What is said of a node in a summary, part by part.
struct NodeText {
  std::string Name;
  std::string Op; ///< With `*N` if it exists once per replica.
  std::vector<std::string> Inputs, Controls;
  std::string Device;
  std::vector<std::pair<std::string, std::string>> Attrs; ///< By key.

  /// The line of a summary, without its end.
  std::string str() const;
  bool operator==(const NodeText &) const = default;
};

/// The nodes of \p G in their order.
std::vector<NodeText> nodeTexts(const Graph &G);

/// One line a node: `name = Op(in, in:1, ^ctl) @device attr=value ...`, `*N`
/// after the op of a node that exists once per replica.
std::string summaryText(const Graph &G);

/// An AttrValue (wire bytes), short.
std::string attrText(llvm::StringRef Value);

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_PRINT_H
