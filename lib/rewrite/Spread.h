//===- lib/rewrite/Spread.h - how much of a step is spread ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_SPREAD_H
#define GRAFT_LIB_REWRITE_SPREAD_H

#include "lib/infer/facts/ProgramFacts.h"

namespace graft {

/// The rows that replicas have and that are joined for what is computed once.
struct Joined {
  double Bytes = 0;     ///< A step, where sizes are known.
  double RowBytes = 0;  ///< For each row of the batch, where that is not known.
  unsigned Unknown = 0; ///< Tensors of which no more is known.

  /// "1.20 MB gathered a step", or nothing.
  std::string str() const;
};

/// The work that updates of variables need and that grows with the rows: in
/// operations for one row of the batch, as far as sizes are known; an axis of
/// unknown size counts as one.
struct Spread {
  double Split = 0; ///< Of what replicas compute for their rows.
  double Once = 0;  ///< Of what is computed once, for all rows.
  unsigned OnceNodes = 0;
  Joined Rows;

  /// The share that is split, from 0 to 1.
  double share() const { return Split + Once > 0 ? Split / (Split + Once) : 1; }
};

/// Unless it \p IsWanted in any case, nothing is counted where nothing is
/// computed once.
Spread spreadOf(const Graph &G, const ProgramFacts &Facts, bool IsWanted);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_SPREAD_H
