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

/// Returns true if \p Feed, whose rank the graph does not declare, is a scalar.
/// This holds if an op requires a scalar for the feed or for a value computed
/// from the feed and constants. It also holds for the rate of a dropout, which
/// is only compared with random numbers, added to them, or used as a factor.
bool isScalarFeed(const Graph &G, Endpoint Feed);

/// Returns the rank of \p Feed, which the graph does not declare: the rank that
/// an op requires or a slice implies, or 1 for a list of scalars. Returns
/// nothing if no user implies a rank, or if users disagree.
std::optional<unsigned> rankOfFeed(const Graph &G, Endpoint Feed);

/// Returns true if \p U reads one element of a vector, at a constant index.
bool takesElement(const Graph &G, Use U);

/// Declares the unknown ranks of placeholders of \p G if their users imply
/// them. The rank of labels follows from the logits of their loss. Does not
/// declare scalars.
void declareRanks(Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FEEDRANKS_H
