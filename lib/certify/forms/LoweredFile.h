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

/// The parts of a name of a copy: `replica_<i>/x` or `v/replica_<i>/x`.
struct CopyName {
  std::string Base;
  int Replica = -1;   ///< -1: not the name of a copy.
  uint32_t Split = 0; ///< The offset of the replica in Base; 0: in front.
};

/// Parses \p Name, of a graph that was expanded from \p In, as the name of a
/// copy. A name that the input has is not the name of a copy. \p Word precedes
/// the number of the replica. Copies of a variable may have names `<v>/<i>`
/// without the word.
CopyName copyNameIn(const Graph &In, llvm::StringRef Word,
                    llvm::StringRef Name);

/// Returns the k for which \p Factor is the k-th power of \p Replicas, up to
/// the rounding of a constant of \p Type.
std::optional<int64_t> powerOfReplicas(double Factor, unsigned Replicas,
                                       unsigned Type);

/// Sets the powers of \p Made, a `_Scale` of \p Program, from the factor by
/// which \p N of \p File multiplies or divides. The factor is a power of \p
/// Replicas, a vector with such a power for each size, or a lookup in a table
/// (RowRepeat.h). Returns false if it is none of these.
bool takeScale(const Graph &File, NodeId N, unsigned Replicas, Graph &Program,
               NodeId Made);

/// Returns a copy of \p G without the erased nodes.
std::unique_ptr<Graph> compact(const Graph &G);

/// A graph that expand-replicas wrote, in which inserted nodes are recognized.
struct LoweredFile {
  /// \p Word is the word in the names of copies.
  LoweredFile(const Graph &G, const Graph &In, llvm::StringRef Word);

  /// Returns true if \p N has the marker of a split, a merge or a scale.
  bool isStamped(NodeId N) const;

  const Graph &G;
  const Graph &In;
  std::vector<bool> Proxies; ///< By node: it belongs to a proxy.
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_LOWEREDFILE_H
