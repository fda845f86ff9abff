//===- lib/analysis/Topology.cpp - topological order ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Topology.h"

using namespace llvm;

namespace graft {

std::vector<NodeId> topologicalOrder(const Graph &G) {
  std::vector<bool> IsBackEdgeOp(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    IsBackEdgeOp[Op] = G.opNameOf(Op) == "NextIteration" ||
                       G.opNameOf(Op) == "RefNextIteration";
  std::vector<uint32_t> Waiting(G.size());
  std::vector<NodeId> Order;
  Order.reserve(G.numLive());
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    for (Endpoint E : G.inputs(N))
      Waiting[N] += !IsBackEdgeOp[G.node(E.Node).Op];
    if (Waiting[N] == 0)
      Order.push_back(N);
  }
  for (size_t I = 0; I < Order.size(); ++I) {
    NodeId N = Order[I];
    if (IsBackEdgeOp[G.node(N).Op])
      continue;
    G.forEachUse(N, [&](Use U) {
      if (--Waiting[U.User] == 0)
        Order.push_back(U.User);
    });
  }
  return Order;
}

} // namespace graft
