//===- lib/infer/batch/Feeds.h - feeds that hold the batch ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_FEEDS_H
#define GRAFT_LIB_INFER_BATCH_FEEDS_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// A feed and the axis along which it is split; -1 if every replica reads it
/// whole.
struct Feed {
  Endpoint At;
  int Axis;
  bool Named = false;   ///< Set if a rule of the user names it.
  bool Sparse = false;  ///< Set for a part of a sparse tensor, read whole.
  bool Ragged = false;  ///< Set for a part of a ragged tensor or of segments.
  bool Parts = false;   ///< Set for a Ragged feed that assigns values to rows.
  bool InRows = false;  ///< Set if each replica reads the entries of its rows.
  bool Scalar = false;  ///< Set if the rank is unknown but users show a scalar.
  bool Guessed = false; ///< Set if the rank is unknown and assumed to be 0.
  int Batch = -1;       ///< The group of feeds with equally many rows, or -1.
};

/// Decides for each used placeholder of \p G, and for each tensor that the step
/// reads from a queue or an iterator, if it is split.
/// The \p Rules of the user come first. They have the form
/// NAME[:PORT][+NAME...]=split|split(AXIS)|copy|sparse, and may name any other
/// tensor, too. Feeds that one rule splits have equally many rows. A name with
/// `*` or `?` stands for all feeds that match it.
/// Without a rule, a feed is split if the size of its axis 0 is unknown, or if
/// the inferred sizes show rows of split feeds in it. If all feeds that lead to
/// an update are static, those are split that distribute most of the step.
/// Further static feeds are split if a reshape or an op relates their rows to
/// the rows of split feeds and \p Replicas divides them. With \p Defaults, a
/// feed that only makes the default of a split feed is not split. A feed of
/// unknown rank is assumed to be a scalar.
/// Returns nothing after an error: a rule names no tensor, or the batch axis is
/// ambiguous. The caller must call warnOfRanks() unless an error makes the
/// ranks irrelevant.
std::optional<std::vector<Feed>> chooseFeeds(const Graph &G,
                                             llvm::ArrayRef<std::string> Rules,
                                             unsigned Replicas, bool Defaults,
                                             DiagnosticEngine &Diags);

/// Warns of the \p Feeds that are only assumed to be scalars.
void warnOfRanks(const Graph &G, llvm::ArrayRef<Feed> Feeds,
                 DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FEEDS_H
