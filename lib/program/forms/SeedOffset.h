//===- lib/program/forms/SeedOffset.h - draws of random numbers -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_SEEDOFFSET_H
#define GRAFT_LIB_PROGRAM_FORMS_SEEDOFFSET_H

#include "lib/graph/Graph.h"

namespace graft {

/// What the inputs of an op that draws random numbers are, by index; -1: none.
/// What is none of these is a parameter of the distribution.
struct DrawOperands {
  int Sizes = -1; ///< The shape of the result, or its leading part.
  int Rows = -1;  ///< A parameter for each row, whose axes end that shape.
  int Seed = -1;  ///< What numbers to draw; else the op has a state.
};

/// The inputs of \p Op, which has the type rule Random.
DrawOperands drawOperands(llvm::StringRef Op);

/// Whether \p Op is a function of its seed.
bool isSeededDraw(llvm::StringRef Op);

/// Whether node \p N adds its number to a seed for each replica, which makes it
/// another seed on each: AddV2(seed, i), i being the slice of Range(0, N, 1),
/// possibly cast. The seed is its input 0.
bool offsetsSeed(const Graph &G, NodeId N, unsigned Replicas);

/// \p E, input \p K of node \p N, without such an offset if it is a seed.
Endpoint withoutOffset(const Graph &G, NodeId N, unsigned K, Endpoint E,
                       unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_SEEDOFFSET_H
