//===- lib/rewrite/Spread.h - how much of a step is spread ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_SPREAD_H
#define GRAFT_LIB_REWRITE_SPREAD_H

#include "lib/infer/facts/ProgramFacts.h"

namespace graft {

/// The work that updates of variables need and that grows with the rows: in
/// operations for one row of the batch, as far as sizes are known; an axis of
/// unknown size counts as one.
struct Spread {
  double Split = 0; ///< Of what replicas compute for their rows.
  double Once = 0;  ///< Of what is computed once, for all rows.
  unsigned OnceNodes = 0;

  /// The share that is split, from 0 to 1.
  double share() const { return Split + Once > 0 ? Split / (Split + Once) : 1; }
};

/// Unless it \p IsWanted in any case, nothing is counted where nothing is
/// computed once.
Spread spreadOf(const Graph &G, const ProgramFacts &Facts, bool IsWanted);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_SPREAD_H
