//===- lib/reduce/Parts.h - what can be left out of a graph -----*- C++ -*-===//
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

/// A kind of parts. Parts are numbered; the order is the same for the same
/// graph, and what belongs together stands together.
class PartKind {
public:
  virtual ~PartKind() = default;
  /// In the line of progress: "nodes".
  virtual llvm::StringRef name() const = 0;
  /// How many there are in \p M.
  virtual size_t count(const Module &M) const = 0;
  /// Leaves those out of \p M for which \p Gone is true. The graph that is left
  /// is one that TensorFlow loads.
  virtual void leaveOut(Module &M, const std::vector<bool> &Gone) const = 0;
};

/// All kinds, in the order in which to try them: what takes most with it first.
std::vector<std::unique_ptr<PartKind>> allPartKinds();

} // namespace graft

#endif // GRAFT_LIB_REDUCE_PARTS_H
