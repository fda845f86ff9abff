//===- lib/analysis/Feeds.h - which feeds hold the batch --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_FEEDS_H
#define GRAFT_LIB_ANALYSIS_FEEDS_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <optional>
#include <vector>

namespace graft {

/// A feed, and the axis along which it is split, or -1: every replica reads it
/// whole.
struct Feed {
  NodeId Node;
  int Axis;
  bool Named = false; ///< By the user.
};

/// Decides for every placeholder of \p G that is used. \p Option has the user's
/// rules, NAME=split|split(AXIS)|copy separated by `;`. Else a feed is split
/// whose axis 0 is unknown, or is the same dimension as a split feed's; when
/// all are static, the dimension that most of them begin with is the batch.
/// Nothing after an error: no such feed, or it is not clear which dimension it
/// is.
std::optional<std::vector<Feed>>
chooseFeeds(const Graph &G, llvm::StringRef Option, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_FEEDS_H
