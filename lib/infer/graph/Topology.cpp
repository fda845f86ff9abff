//===- lib/infer/graph/Topology.cpp - topological order ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/Topology.h"

#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

bool isBackEdgeOp(StringRef Op) {
  return Op == op::NextIteration || Op == op::RefNextIteration;
}

std::vector<NodeId> topologicalOrder(const Graph &G) {
  std::vector<uint8_t> IsBackEdgeOp(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    IsBackEdgeOp[Op] = isBackEdgeOp(G.opNameOf(Op));
  // Starts from the order of the file, which mostly is topological already, so
  // that the walk reads memory in order. If an input comes after its user, the
  // input and its own inputs move before the user.
  std::vector<uint8_t> Placed(G.size());
  auto NextMissing = [&](NodeId N, uint32_t I) {
    ArrayRef<Endpoint> In = G.inputs(N);
    while (I < In.size() &&
           (Placed[In[I].Node] || IsBackEdgeOp[G.node(In[I].Node).Op]))
      ++I;
    return I;
  };
  std::vector<NodeId> Order;
  Order.reserve(G.numLive());
  std::vector<std::pair<NodeId, uint32_t>> Stack;
  for (NodeId Root = 0; Root < G.size(); ++Root) {
    if (Placed[Root] || !G.isLive(Root))
      continue;
    Placed[Root] = true;
    if (NextMissing(Root, 0) == G.node(Root).NumInputs) {
      Order.push_back(Root);
      continue;
    }
    Stack.push_back({Root, 0});
    while (!Stack.empty()) {
      auto [N, From] = Stack.back();
      uint32_t I = NextMissing(N, From);
      if (I == G.node(N).NumInputs) {
        Order.push_back(N);
        Stack.pop_back();
        continue;
      }
      NodeId Source = G.input(N, I).Node;
      Stack.back().second = I + 1;
      Placed[Source] = true;
      Stack.push_back({Source, 0});
    }
  }
  return Order;
}

} // namespace graft
