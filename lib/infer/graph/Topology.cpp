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
  std::vector<uint8_t> IsBackEdgeOp(G.numOps()), IsExitOp(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    IsBackEdgeOp[Op] = isBackEdgeOp(Name);
    IsExitOp[Op] = Name == op::Exit || Name == op::RefExit;
  }
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
  // Returns the last node of an iteration that must come before the Exit N, so
  // that a reader of a loop variable follows the nodes that write it.
  auto MissingEnd = [&](NodeId N) {
    if (!IsExitOp[G.node(N).Op] || G.node(N).NumData == 0)
      return NoNode;
    NodeId Switch = G.input(N, 0).Node;
    NodeId Merge =
        G.node(Switch).NumData == 2 ? G.input(Switch, 0).Node : NoNode;
    if (Merge != NoNode)
      for (Endpoint E : G.dataInputs(Merge))
        if (IsBackEdgeOp[G.node(E.Node).Op] && !Placed[E.Node])
          return E.Node;
    return NoNode;
  };
  std::vector<NodeId> Order;
  Order.reserve(G.numLive());
  std::vector<std::pair<NodeId, uint32_t>> Stack;
  for (NodeId Root = 0; Root < G.size(); ++Root) {
    if (Placed[Root] || !G.isLive(Root))
      continue;
    Placed[Root] = true;
    if (NextMissing(Root, 0) == G.node(Root).NumInputs &&
        MissingEnd(Root) == NoNode) {
      Order.push_back(Root);
      continue;
    }
    Stack.push_back({Root, 0});
    while (!Stack.empty()) {
      auto [N, From] = Stack.back();
      uint32_t I = NextMissing(N, From);
      NodeId Source =
          I < G.node(N).NumInputs ? G.input(N, I).Node : MissingEnd(N);
      if (Source == NoNode) {
        Order.push_back(N);
        Stack.pop_back();
        continue;
      }
      Stack.back().second = std::min(I + 1, G.node(N).NumInputs);
      Placed[Source] = true;
      Stack.push_back({Source, 0});
    }
  }
  return Order;
}

} // namespace graft
