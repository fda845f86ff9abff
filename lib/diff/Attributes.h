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

/// The attributes that can change the results of a graph. Defaults are left
/// out, as are attributes that TensorFlow infers (`_output_shapes`) or graft
/// adds (`_graft_*`). Colocation is compared separately by colocations(),
/// because it names nodes.
class Attributes {
public:
  explicit Attributes(const Graph &G);

  /// Returns the attributes of \p N, sorted by key.
  llvm::SmallVector<AttrEntry, 8> of(NodeId N) const;
  /// Returns a hash that is equal for nodes with byte-equal attributes.
  uint64_t hash(NodeId N) const;

private:
  bool isDefault(NodeId N, const AttrEntry &A) const;

  const Graph &G;
  /// By op: the attributes that have a default, with the bytes of the default.
  std::vector<std::vector<std::pair<llvm::StringRef, std::string>>> Defaults;
};

/// Returns true if two AttrValues are equal, even if their bytes differ: a
/// tensor has several encodings.
bool isSameValue(llvm::StringRef A, llvm::StringRef B);

/// Returns the nodes that `_class` of \p N names, sorted, without \p N itself.
llvm::SmallVector<NodeId, 2> colocations(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_DIFF_ATTRIBUTES_H
