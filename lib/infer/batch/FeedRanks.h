//===- lib/infer/batch/FeedRanks.h - feeds of unknown rank ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Infers the rank of a feed from the ops that read it. The rank goes into the
// shape of the placeholder, so that TensorFlow refuses to feed any other.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_FEEDRANKS_H
#define GRAFT_LIB_INFER_BATCH_FEEDRANKS_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <optional>

namespace graft {

/// Returns true if \p Feed, whose rank the graph does not declare, is a scalar.
/// Either an op requires a scalar for the feed, or for a value computed from
/// the feed and constants. Or the feed is the rate of a dropout: it is only
/// compared with random numbers, added to them, or used as a factor.
bool isScalarFeed(const Graph &G, Endpoint Feed);

/// Returns the rank of \p Feed, which the graph does not declare: the rank that
/// an op requires or a slice shows, or 1 for a list of scalars. Returns nothing
/// if no user shows the rank, or if users disagree.
std::optional<unsigned> rankOfFeed(const Graph &G, Endpoint Feed);

/// Returns true if \p U reads one element of a vector, at a constant index.
bool takesElement(const Graph &G, Use U);

/// Declares the ranks of the placeholders of \p G that have none, as far as
/// their users show them. The rank of labels follows from the logits of their
/// loss. Scalars are left as they are.
void declareRanks(Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FEEDRANKS_H
