//===- test/unit/VerifierTest.cpp - the verifier and devices ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"
#include "lib/graph/DeviceName.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

/// Returns the messages about \p G.
std::vector<std::string> verify(const Graph &G) {
  DiagnosticEngine Diags;
  bool Good = verifyGraph(G, Diags);
  CHECK(Good == !Diags.hasErrors());
  std::vector<std::string> Result;
  for (const Diagnostic &D : Diags.all())
    Result.push_back(D.Node + ": " + D.Message);
  return Result;
}

std::string fullDevice(llvm::StringRef Text) {
  auto D = DeviceName::parse(Text);
  return D ? D->str() : "illegal";
}

} // namespace

TEST_CASE("edited graphs are verified like read ones", "[verifier]") {
  Graph G;
  NodeId X = G.addNode("x", "Placeholder", {}, NoNode);
  NodeId Y = G.addNode("y", "Identity", {{X, 0}}, X);
  NodeId Z = G.addNode("z", "NoOp", {{Y, ControlPort}}, Y);
  CHECK(verify(G).empty());

  SECTION("a cycle made by an edit") {
    G.addControlInput(X, Z);
    std::vector<std::string> Errors = verify(G);
    REQUIRE(Errors.size() == 1);
    CHECK(
        Errors[0] ==
        "x: is on a cycle: x -> y -> z -> x; only a NextIteration that a Merge "
        "reads may close a loop");
  }
  SECTION("a port that does not exist") {
    G.setInput(Y, 0, {X, 1});
    CHECK(verify(G) == std::vector<std::string>{
                           "y: input 'x:1' does not exist: Placeholder has 1 "
                           "output"});
  }
  SECTION("a dead node is not looked at") {
    G.setDevice(Z, "nowhere");
    CHECK(verify(G).size() == 1);
    G.remove(Z);
    CHECK(verify(G).empty());
  }
  SECTION("colocation with a node that was renamed") {
    std::string Where = encodeStringListAttr({"loc:@x"});
    G.setAttr(Y, "_class", Where);
    CHECK(verify(G).empty());
    G.rename(X, "w");
    CHECK(verify(G).size() == 1);
  }
}

TEST_CASE("a long chain does not recurse", "[verifier]") {
  Graph G;
  NodeId Last = G.addNode("n", "NoOp", {}, NoNode);
  for (unsigned I = 0; I < 200000; ++I)
    Last =
        G.addNode("n" + std::to_string(I), "NoOp", {{Last, ControlPort}}, Last);
  CHECK(verify(G).empty());
}

TEST_CASE("the number of errors is capped", "[verifier]") {
  Graph G;
  for (unsigned I = 0; I < 30; ++I)
    G.addNode("_" + std::to_string(I), "NoOp", {}, NoNode);
  std::vector<std::string> Errors = verify(G);
  REQUIRE(Errors.size() == 11);
  CHECK(Errors.back() == ": and 20 more illegal names");
}

TEST_CASE("device strings", "[device]") {
  CHECK(fullDevice("") == "");
  CHECK(fullDevice("/device:CPU:1") == "/device:CPU:1");
  CHECK(fullDevice("/CPU:1") == "/device:CPU:1");
  CHECK(fullDevice("cpu:1") == "/device:CPU:1");
  CHECK(fullDevice("/gpu:0") == "/device:GPU:0");
  CHECK(fullDevice("/device:CPU:*") == "/device:CPU:*");
  CHECK(fullDevice("/device:*:*") == "");
  CHECK(fullDevice("/job:ps") == "/job:ps");
  CHECK(fullDevice("/task:1/job:w/device:XPU:3/replica:0") ==
        "/job:w/replica:0/task:1/device:XPU:3");
  for (llvm::StringRef Bad :
       {"nonsense", "/job:", "/job:1x", "/device:CPU:x", "/device:CPU:-1",
        "/device", "//device:CPU:0", "/task:a", "/CPU:1:2", "a/CPU:0"})
    CHECK(fullDevice(Bad) == "illegal");
}
