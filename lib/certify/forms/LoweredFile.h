//===- lib/certify/forms/LoweredFile.h - a file that was written *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_LOWEREDFILE_H
#define GRAFT_LIB_CERTIFY_FORMS_LOWEREDFILE_H

#include "lib/graph/Graph.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace graft {

/// `replica_<i>/x` or `v/replica_<i>/x`.
struct CopyName {
  std::string Base;
  int Replica = -1;   ///< -1: this is no name of a copy.
  uint32_t Split = 0; ///< 0: at the front.
};

/// What the node called \p Name is a copy of, in a graph that was expanded from
/// \p In: nothing if the input has the name. \p Word stands in front of the
/// numbers. A replicated variable has copies `<v>/<i>`.
CopyName copyNameIn(const Graph &In, llvm::StringRef Word,
                    llvm::StringRef Name);

/// Which power of \p Replicas the factor \p Factor is, a constant of \p Type as
/// near to it as numbers of that type are.
std::optional<int64_t> powerOfReplicas(double Factor, unsigned Replicas,
                                       unsigned Type);

/// Gives \p Made, a `_Scale` of \p Program, the powers of \p Replicas by which
/// \p N of \p File multiplies or divides: one, or one for each element of a
/// vector of sizes. False if its constant is none.
bool takeScale(const Graph &File, NodeId N, unsigned Replicas, Graph &Program,
               NodeId Made);

/// What \p G has, without a trace of what was erased.
std::unique_ptr<Graph> compact(const Graph &G);

/// A graph that expand-replicas wrote, in which inserted nodes are recognized.
struct LoweredFile {
  /// \p Word is in the names of copies.
  LoweredFile(const Graph &G, const Graph &In, llvm::StringRef Word);

  /// Whether \p N has the stamp of a split, a merge or a scale.
  bool isStamped(NodeId N) const;

  const Graph &G;
  const Graph &In;
  std::vector<bool> Proxies; ///< By node: it belongs to a proxy.
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_LOWEREDFILE_H
