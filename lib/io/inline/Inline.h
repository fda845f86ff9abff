//===- lib/io/inline/Inline.h - calls and functional control flow -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_INLINE_INLINE_H
#define GRAFT_LIB_IO_INLINE_INLINE_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/StringSet.h"

#include <string>
#include <vector>

namespace graft {

struct InlineOptions {
  /// Calls whose outputs are named by a user.
  llvm::StringSet<> Kept;
  /// Null, or an output that was made from an inlined graph. If it has a node
  /// with the name of a call, the name was kept. If the node also has the op of
  /// the call, the call was not inlined.
  const Graph *Like = nullptr;
};

struct InlineResult {
  unsigned Calls = 0;    ///< Calls that were replaced by their bodies.
  unsigned Branches = 0; ///< If and Case.
  unsigned Loops = 0;
  /// Calls that stay, with the reasons.
  std::vector<std::pair<NodeId, std::string>> Left;
  /// Faults of the library, as (node, message).
  std::vector<std::pair<std::string, std::string>> Errors;
  bool changed() const { return Calls + Branches + Loops != 0; }
};

/// Returns true if \p G has an op that inlineCalls may replace.
bool mayCall(const Graph &G);

/// Replaces calls of functions by the nodes of the functions, and If, Case and
/// While by version 1 control flow. The step stays the same, and all its nodes
/// are visible. The result depends only on the graph and the options.
InlineResult inlineCalls(Graph &G, const InlineOptions &Options = {});

} // namespace graft

#endif // GRAFT_LIB_IO_INLINE_INLINE_H
