//===- lib/program/forms/Accumulator.h - sums in accumulators ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_ACCUMULATOR_H
#define GRAFT_LIB_PROGRAM_FORMS_ACCUMULATOR_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns true if \p N belongs to an inserted accumulator and has the op \p
/// Op.
bool isAccumulatorPart(const Graph &G, NodeId N, llvm::StringRef Op);

/// Returns the only node that applies a gradient to the accumulator that \p
/// Take reads. Returns NoNode if the accumulator has other users.
NodeId putOf(const Graph &G, NodeId Take);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_ACCUMULATOR_H
