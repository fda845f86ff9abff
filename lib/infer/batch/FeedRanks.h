//===- lib/infer/batch/FeedRanks.h - feeds of unknown rank ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Infers the rank of a feed from the ops that read it. graft writes the rank
// into the shape of the placeholder, so TensorFlow refuses a feed of another
// rank.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_FEEDRANKS_H
#define GRAFT_LIB_INFER_BATCH_FEEDRANKS_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <optional>

namespace graft {

/// Returns true if the readers show that \p Feed, whose rank the graph does not
/// declare, is a scalar. Either an op requires a scalar for the feed or for a
/// value computed from the feed, or the feed is the rate of a dropout. Such a
/// rate is only compared with random numbers, added to them, or used as a
/// factor.
bool isScalarFeed(const Graph &G, Endpoint Feed);

/// Returns the rank of a tensor, or nothing.
using RankOf = llvm::function_ref<std::optional<unsigned>(Endpoint)>;

/// Returns the rank of \p Feed, which the graph does not declare: the rank that
/// an op requires of the feed or of a tensor computed from it, or 1 for a list
/// of scalars. A slice of several axes implies a rank, too. Returns nothing if
/// no user implies a rank, or if users disagree. \p Known returns the ranks of
/// other operands, such as the table of a lookup.
std::optional<unsigned> rankOfFeed(const Graph &G, Endpoint Feed, RankOf Known);

/// Returns true if \p U reads one element of a vector, at a constant index.
bool takesElement(const Graph &G, Use U);

/// Declares the ranks that users imply for placeholders of unknown rank in \p
/// G. The rank of labels follows from the logits of their loss. Declares no
/// scalars.
void declareRanks(Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FEEDRANKS_H
