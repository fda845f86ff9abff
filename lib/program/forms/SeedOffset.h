//===- lib/program/forms/SeedOffset.h - draws of random numbers -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_SEEDOFFSET_H
#define GRAFT_LIB_PROGRAM_FORMS_SEEDOFFSET_H

#include "lib/graph/Graph.h"

namespace graft {

/// The inputs of an op that draws random numbers, by index; -1: none. Other
/// inputs are parameters of the distribution.
struct DrawOperands {
  int Sizes = -1; ///< The shape of the result, or its leading part.
  int Rows = -1;  ///< A parameter per row, such as the alpha of RandomGamma.
  int Seed = -1;  ///< The seed. An op without a seed has a state.
};

/// Returns the inputs of \p Op, which has the type rule Random.
DrawOperands drawOperands(llvm::StringRef Op);

/// Returns true if \p Op computes its numbers from a seed.
bool isSeededDraw(llvm::StringRef Op);

/// Returns true if \p N adds the replica number to a seed, so that each replica
/// has a different seed: AddV2(seed, i), where i is the shard of Range(0, N,
/// 1), possibly cast. The seed is its input 0.
bool offsetsSeed(const Graph &G, NodeId N, unsigned Replicas);

/// Returns the seed without the offset if \p E, input \p K of node \p N, is a
/// seed with such an offset. Otherwise returns \p E.
Endpoint withoutOffset(const Graph &G, NodeId N, unsigned K, Endpoint E,
                       unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_SEEDOFFSET_H
