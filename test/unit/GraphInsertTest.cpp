//===- test/unit/GraphInsertTest.cpp - inserted nodes -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"

#include <catch2/catch.hpp>

using namespace graft;
using llvm::StringRef;

static std::string attrsOf(const Graph &G, NodeId N) {
  return std::string(G.node(N).AttrData, G.node(N).AttrSize);
}

TEST_CASE("insertNode does what addNode and an attribute at a time do") {
  Graph G;
  NodeId X = G.addNode("x", "Placeholder", {}, NoNode);
  NodeId Y = G.addNode("y", "NoOp", {}, NoNode);
  std::string Long(300, 'n');
  AttrRun Run;
  Run.type("T", DT_FLOAT).integer("power", -1).integer("axis", 0);
  Run.boolean("_graft_assumed", true).string("combine", "sum");
  Run.strings("_class", "loc:@" + Long).raw("shape", encodeShapeAttr({}));
  Run.string("", "");
  NodeId A =
      G.insertNode("a", "Op", {Endpoint{X, 1}, {Y, ControlPort}}, X, Run);
  NodeId B = G.addNode("b", "Op", {Endpoint{X, 1}, {Y, ControlPort}}, X);
  G.setTypeAttr(B, "T", DT_FLOAT);
  G.setIntAttr(B, "power", -1);
  G.setIntAttr(B, "axis", 0);
  G.setBoolAttr(B, "_graft_assumed", true);
  G.setStringAttr(B, "combine", "sum");
  G.setAttr(B, "_class", encodeStringListAttr(StringRef("loc:@" + Long)));
  G.setAttr(B, "shape", encodeShapeAttr({}));
  G.setStringAttr(B, "", "");
  CHECK(attrsOf(G, A) == attrsOf(G, B));
  CHECK(G.node(A).Flags == G.node(B).Flags);
  CHECK(G.inputs(A) == G.inputs(B));
  CHECK(G.node(A).NumData == 1);
  CHECK(G.uses(X).size() == 2);
  CHECK(G.anyUse(Y, [&](Use U) { return U.User == A && U.Index == 1; }));
  CHECK_FALSE(G.anyUse(A, [](Use) { return true; }));
}

TEST_CASE("inserted nodes have names of their own and may share attributes") {
  Graph G;
  AttrRun Run;
  Run.type("T", DT_INT32);
  NodeId A = G.insertNode("a", "Op", {}, NoNode, Run);
  NodeId B = G.insertNode("a", "Op", {}, NoNode, Run);
  NodeId C = G.insertNode("a", "Op", {}, NoNode, {});
  CHECK(G.name(B) == "a_1");
  CHECK(G.name(C) == "a_2");
  CHECK(G.find("a_2") == C);
  G.setTypeAttr(A, "T", DT_HALF);
  CHECK(G.typeAttr(A, "T") == DT_HALF);
  CHECK(G.typeAttr(B, "T") == DT_INT32);
  CHECK_FALSE(G.hasAttr(C, "T"));
}
