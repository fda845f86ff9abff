//===- lib/infer/batch/FeedRanks.h - feeds of unknown rank ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What reads a feed says how many axes it has. What is concluded goes into the
// shape of the placeholder, so that TensorFlow refuses to feed anything else.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_FEEDRANKS_H
#define GRAFT_LIB_INFER_BATCH_FEEDRANKS_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <optional>

namespace graft {

/// Whether \p Feed, of which the graph does not say the rank, is a scalar: an
/// op needs one, where it or what is computed of it and numbers goes; or it is
/// the rate of a dropout: what is computed of it is compared with, or added to,
/// random numbers, and is a factor, and nothing else.
bool isScalarFeed(const Graph &G, Endpoint Feed);

/// How many axes \p Feed has, of which the graph does not say the rank: as many
/// as an op wants where it goes, or as it is sliced along; one if it is a list
/// of scalars. Nothing if that is not said, or in more than one way.
std::optional<unsigned> rankOfFeed(const Graph &G, Endpoint Feed);

/// Whether \p U takes one element of a vector, the same in every step.
bool takesElement(const Graph &G, Use U);

/// Says of the placeholders of \p G without a rank how many axes they have, as
/// far as that is known. Labels have as many as the logits of a loss. Scalars
/// are left as they are.
void declareRanks(Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FEEDRANKS_H
