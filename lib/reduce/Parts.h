//===- lib/reduce/Parts.h - parts of a graph to leave out -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REDUCE_PARTS_H
#define GRAFT_LIB_REDUCE_PARTS_H

#include "lib/io/Module.h"

#include <memory>
#include <string>
#include <vector>

namespace graft {

/// A kind of parts that can be left out of a graph. The order of parts depends
/// on the graph alone, and related parts are next to each other.
class PartKind {
public:
  virtual ~PartKind() = default;
  /// Returns the name for the line of progress: "nodes".
  virtual llvm::StringRef name() const = 0;
  /// Returns the number of parts in \p M.
  virtual size_t count(const Module &M) const = 0;
  /// Removes from \p M the parts for which \p Gone is true. TensorFlow can load
  /// the remaining graph.
  virtual void leaveOut(Module &M, const std::vector<bool> &Gone) const = 0;
};

/// Returns all kinds in the order to try them: those that remove most are
/// first.
std::vector<std::unique_ptr<PartKind>> allPartKinds();

} // namespace graft

#endif // GRAFT_LIB_REDUCE_PARTS_H
