//===- lib/program/forms/Accumulator.cpp - sums in accumulators -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/Accumulator.h"

#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

bool isAccumulatorPart(const Graph &G, NodeId N, StringRef Op) {
  return G.node(N).Kind == Inserted::Accumulate && G.isOp(N, Op);
}

NodeId putOf(const Graph &G, NodeId Take) {
  if (G.node(Take).NumData != 2 ||
      !isAccumulatorPart(G, G.input(Take, 0).Node, op::ConditionalAccumulator))
    return NoNode;
  NodeId Put = NoNode;
  bool Others = G.anyUse(G.input(Take, 0).Node, [&](Use U) {
    if (U.User == Take)
      return U.Index != 0;
    if (U.Index != 0 || Put != NoNode || G.node(U.User).NumData != 3 ||
        !isAccumulatorPart(G, U.User, op::AccumulatorApplyGradient))
      return true;
    Put = U.User;
    return false;
  });
  return Others ? NoNode : Put;
}

} // namespace graft
