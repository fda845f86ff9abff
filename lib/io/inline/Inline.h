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
  /// Calls whose outputs somebody asks for by name.
  llvm::StringSet<> Kept;
  /// If given, what this graph has under the name of a call says whether it
  /// was inlined and whether its name was kept: it was made of the result.
  const Graph *Like = nullptr;
};

struct InlineResult {
  unsigned Calls = 0;    ///< That were replaced by their bodies.
  unsigned Branches = 0; ///< If and Case.
  unsigned Loops = 0;
  /// Calls that stay, and why.
  std::vector<std::pair<NodeId, std::string>> Left;
  /// What is wrong with the library, as (node, message).
  std::vector<std::pair<std::string, std::string>> Errors;
  bool changed() const { return Calls + Branches + Loops != 0; }
};

/// Whether \p G has an op that inlineCalls looks at.
bool mayCall(const Graph &G);

/// Replaces calls of functions by the nodes of the functions, and If, Case and
/// While by what version 1 has: the same step, with everything in sight. The
/// result depends on the graph and the options only.
InlineResult inlineCalls(Graph &G, const InlineOptions &Options = {});

} // namespace graft

#endif // GRAFT_LIB_IO_INLINE_INLINE_H
