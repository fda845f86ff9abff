//===- test/unit/infer/TopologyTest.cpp -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/Topology.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

using Ids = std::vector<NodeId>;

NodeId add(Graph &G, llvm::StringRef Op, llvm::ArrayRef<Endpoint> Inputs) {
  return G.addNode("n" + std::to_string(G.size()), Op, Inputs, NoNode);
}

} // namespace

TEST_CASE("the order of the file is kept where it can be", "[topology]") {
  Graph G;
  NodeId A = add(G, "Const", {});
  NodeId B = add(G, "Neg", {{A, 0}});
  NodeId C = add(G, "Neg", {{A, 0}});
  NodeId Dead = add(G, "Const", {});
  NodeId D = add(G, "NoOp", {{C, ControlPort}});
  G.remove(Dead);
  CHECK(topologicalOrder(G) == Ids{A, B, C, D});
  // A late source moves forward, together with its inputs.
  NodeId Source = add(G, "Const", {});
  NodeId Late = add(G, "Neg", {{Source, 0}});
  G.setInput(B, 0, {Late, 0});
  CHECK(topologicalOrder(G) == Ids{A, Source, Late, B, C, D});
}

TEST_CASE("loops have an order, cycles too", "[topology]") {
  Graph G;
  NodeId A = add(G, "Const", {});
  NodeId Merge = add(G, "Merge", {{A, 0}, {A, 0}});
  NodeId Body = add(G, "Neg", {{Merge, 0}});
  NodeId Next = add(G, "NextIteration", {{Body, 0}});
  G.setInput(Merge, 1, {Next, 0});
  CHECK(topologicalOrder(G) == Ids{A, Merge, Body, Next});
  G.setOp(Next, "Neg"); // refused by the verifier, but nothing hangs
  CHECK(topologicalOrder(G).size() == 4);
}
