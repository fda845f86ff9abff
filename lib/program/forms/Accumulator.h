//===- lib/program/forms/Accumulator.h - sums in accumulators ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_ACCUMULATOR_H
#define GRAFT_LIB_PROGRAM_FORMS_ACCUMULATOR_H

#include "lib/graph/Graph.h"

namespace graft {

/// Whether \p N is the \p Op of an accumulator that a pass inserted.
bool isAccumulatorPart(const Graph &G, NodeId N, llvm::StringRef Op);

/// The only node that puts into the accumulator from which only \p Take takes,
/// or NoNode.
NodeId putOf(const Graph &G, NodeId Take);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_ACCUMULATOR_H
