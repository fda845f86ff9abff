//===- lib/infer/batch/Feeds.h - which feeds hold the batch -----*- C++ -*-===//
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

/// A feed, and the axis along which it is split, or -1: every replica reads it
/// whole.
struct Feed {
  Endpoint At;
  int Axis;
  bool Named = false;   ///< By the user.
  bool Sparse = false;  ///< A part of a sparse tensor, read whole.
  bool Ragged = false;  ///< Of a ragged one, or with the segments of values.
  bool Parts = false;   ///< Of Ragged: says which values belong together.
  bool InRows = false;  ///< Of one of which replicas read the rows.
  bool Scalar = false;  ///< Of unknown rank, and a scalar as the graph uses it.
  bool Guessed = false; ///< Of unknown rank, and only taken for a scalar.
  int Batch = -1; ///< Which feeds have as many rows, as the user says, or -1.
};

/// Decides for every placeholder of \p G that is used, and for every tensor
/// that the step takes from a queue or an iterator. \p Option has the user's
/// rules, NAME[:PORT][+NAME...]=split|split(AXIS)|copy separated by `;`, for
/// these or any other tensor; feeds that one rule splits have equally many
/// rows; a name with `*` or `?` is all feeds that are called so. Else a feed is
/// split whose axis 0 is unknown, or has rows where those that are split have
/// some; when all that lead to an update are static, those with which most of
/// the step is spread. Beside those, static ones are split whose rows a reshape
/// or an op relates to theirs, if \p Replicas divides them. With \p Defaults, a
/// feed that only makes the default of another, which is split, is not. A feed
/// of which not even the rank is known is taken for a scalar. Nothing after an
/// error: no such tensor, or it is not clear which dimension it is. Who called
/// is to warn of ranks (warnOfRanks) unless there is an error that makes them
/// irrelevant.
std::optional<std::vector<Feed>> chooseFeeds(const Graph &G,
                                             llvm::ArrayRef<std::string> Rules,
                                             unsigned Replicas, bool Defaults,
                                             DiagnosticEngine &Diags);

/// Warns of those of \p Feeds that are only taken for scalars.
void warnOfRanks(const Graph &G, llvm::ArrayRef<Feed> Feeds,
                 DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_FEEDS_H
