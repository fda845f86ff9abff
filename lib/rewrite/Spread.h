//===- lib/rewrite/Spread.h - the distributed share of a step ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_SPREAD_H
#define GRAFT_LIB_REWRITE_SPREAD_H

#include "lib/infer/facts/ProgramFacts.h"

namespace graft {

/// The shards that are concatenated for unreplicated nodes.
struct Joined {
  double Bytes = 0;     ///< Bytes per step of tensors of known size.
  double RowBytes = 0;  ///< Bytes per row of tensors of the batch size.
  unsigned Unknown = 0; ///< The number of tensors of unknown size.

  /// Returns "1.20 MB gathered in each step", or "".
  std::string str() const;
};

/// The work of a step in operations for one row of the batch. Counts only work
/// that grows with the row count and on which updates of variables depend. An
/// axis of unknown size counts as one.
struct Spread {
  double Split = 0; ///< Work of replicas on their shards.
  double Once = 0;  ///< Work of unreplicated nodes, on all rows.
  unsigned OnceNodes = 0;
  Joined Rows;

  /// The distributed share of the work, from 0 to 1.
  double share() const { return Split + Once > 0 ? Split / (Split + Once) : 1; }
};

/// Returns the work of \p G, or zeros if no node is computed once and \p
/// IsWanted is false.
Spread spreadOf(const Graph &G, const ProgramFacts &Facts, bool IsWanted);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_SPREAD_H
