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

/// A feed and the axis along which it is split. -1: every replica reads the
/// whole feed.
struct Feed {
  Endpoint At;
  int Axis;
  bool Named = false;   ///< Set if a rule of the user names it.
  bool Sparse = false;  ///< Set for a part of a sparse tensor, read whole.
  bool Ragged = false;  ///< Set for a part of a ragged tensor or segment sum.
  bool Parts = false;   ///< Set for a Ragged feed that assigns values to rows.
  bool InRows = false;  ///< Set if each replica reads the entries of its rows.
  bool Scalar = false;  ///< Set if the rank is unknown but ops need a scalar.
  bool Guessed = false; ///< Set if the rank is unknown and assumed to be 0.
  int Batch = -1;       ///< The group of feeds with equally many rows, or -1.
};

/// Decides which used placeholders of \p G, and which tensors that the step
/// reads from a queue or an iterator, are split.
/// The \p Rules of the user come first. They have the form
/// NAME[:PORT][+NAME...]=split|split(AXIS)|copy|sparse, and may name any other
/// tensor, too. Feeds that one rule splits have equally many rows. A name with
/// `*` or `?` stands for all feeds that match it.
/// Without a rule, a feed is split if the size of its axis 0 is unknown, or if
/// it has an axis whose inferred size is the rows of split feeds. If all feeds
/// before an update are static, graft splits the feeds whose split distributes
/// most of the step. It splits another static feed if \p Replicas divides its
/// rows, and a reshape or another op relates them to the rows of split feeds.
/// If \p Defaults is set, a feed that is only read to compute the default of a
/// split feed is not split. A feed of unknown rank is assumed to be a scalar.
/// Returns nothing after an error: a rule names no tensor, or the batch axis is
/// ambiguous. The caller must call warnOfRanks() unless an error makes the
/// ranks irrelevant.
std::optional<std::vector<Feed>> chooseFeeds(const Graph &G,
                                             llvm::ArrayRef<std::string> Rules,
                                             unsigned Replicas, bool Defaults,
                                             DiagnosticEngine &Diags);

/// Warns of each of \p Feeds that is only assumed to be a scalar.
void warnOfRanks(const Graph &G, llvm::ArrayRef<Feed> Feeds,
                 DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FEEDS_H
