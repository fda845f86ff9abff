//===- test/unit/InputGraphTest.cpp -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/InputGraph.h"

#include <catch2/catch.hpp>

using namespace graft;

TEST_CASE("no edit reaches a picture of the graph", "[input-graph]") {
  Graph G;
  NodeId A = G.addNode("a", "Const", {}, NoNode);
  NodeId B = G.addNode("b", "Neg", {{A, 0}}, NoNode);
  NodeId C = G.addNode("c", "NoOp", {{B, ControlPort}}, NoNode);
  NodeId Dead = G.addNode("dead", "NoOp", {}, NoNode);
  G.remove(Dead);
  G.setIntAttr(A, "value", 1);
  G.setIntAttr(A, "other", 2);
  InputGraph Picture(G);

  G.setIntAttr(A, "value", 3);
  G.removeAttr(A, "other");
  G.rename(B, "another");
  G.setOp(B, "Exp");
  NodeId New = G.addNode("b", "Const", {}, NoNode);
  G.setInputs(B, {{New, 0}, {A, ControlPort}, {New, ControlPort}});
  G.setInputs(C, {});
  G.remove(C);

  REQUIRE(Picture.size() == 4);
  CHECK(Picture.isLive(A));
  CHECK(Picture.isLive(C));
  CHECK_FALSE(Picture.isLive(Dead));
  CHECK(Picture.name(B) == "b");
  CHECK(Picture.opNames()[Picture.op(B)] == "Neg");
  CHECK(Picture.inputs(B) == llvm::ArrayRef<Endpoint>({{A, 0}}));
  CHECK(Picture.numData(B) == 1);
  CHECK(Picture.inputs(C) == llvm::ArrayRef<Endpoint>({{B, ControlPort}}));
  CHECK(Picture.numData(C) == 0);
  CHECK(Picture.attr(A, "value") == llvm::StringRef(encodeIntAttr(1)));
  CHECK(Picture.attr(A, "other") == llvm::StringRef(encodeIntAttr(2)));
  CHECK_FALSE(Picture.attr(A, "none"));
  AttrReader R(Picture.attrBytes(A));
  AttrEntry Entry;
  REQUIRE(R.next(Entry));
  CHECK(Entry.Key == "value");
  size_t Left = R.rest().size();
  REQUIRE(R.next(Entry));
  CHECK(Entry.Key == "other");
  CHECK(Entry.Whole.size() == Left);
  CHECK_FALSE(R.next(Entry));
}
