//===- lib/diff/Attributes.h - attributes that count ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DIFF_ATTRIBUTES_H
#define GRAFT_LIB_DIFF_ATTRIBUTES_H

#include "lib/graph/Graph.h"

#include <string>
#include <utility>
#include <vector>

namespace graft {

/// The attributes of nodes that bear on what a graph computes: without those
/// that have their default, without what TensorFlow infers (`_output_shapes`)
/// and what graft notes (`_graft_*`), and without colocation, which is about
/// nodes (colocations()).
class Attributes {
public:
  explicit Attributes(const Graph &G);

  /// Those of \p N, sorted by key.
  llvm::SmallVector<AttrEntry, 8> of(NodeId N) const;
  /// Equal for nodes with equal attributes in equal bytes.
  uint64_t hash(NodeId N) const;

private:
  bool isDefault(NodeId N, const AttrEntry &A) const;

  const Graph &G;
  /// By op: attributes with a default, and its bytes.
  std::vector<std::vector<std::pair<llvm::StringRef, std::string>>> Defaults;
};

/// Whether two AttrValues say the same, in whatever bytes: a tensor has several
/// forms.
bool isSameValue(llvm::StringRef A, llvm::StringRef B);

/// The nodes that `_class` of \p N names, sorted, without \p N itself.
llvm::SmallVector<NodeId, 2> colocations(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_DIFF_ATTRIBUTES_H
