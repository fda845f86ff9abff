//===- test/unit/infer/ConditionsTest.cpp - conditions of nodes -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

#include "lib/infer/graph/Conditions.h"

using namespace graft;

namespace {

using Strings = std::vector<std::string>;

/// s [b,4], r [4], and two conditionals: on `all`, which is equal on all
/// replicas, and on `own`, which differs.
struct Branches : Builder {
  Branches() {
    feed("x", {-1, 4});
    op("Identity", "s", {"x/split"});
    ints("axes", {0, 1});
    floats("r", {4}, 1);
    placeholder("all", {}, DT_BOOL);
    op("SomebodysOp", "odd", {"s"});
    op("IsNan", "own", {"odd"});
    for (std::string P : {"all", "own"}) {
      op("Switch", P + "/switch", {P, P}, DT_BOOL);
      op("Identity", P + "/on", {P + "/switch:1"}, DT_BOOL);
      op("Identity", P + "/off", {P + "/switch"}, DT_BOOL);
      op("Identity", P + "/a", {"r", "^" + P + "/on"});
      op("Identity", P + "/b", {"r", "^" + P + "/off"});
      op("Merge", P + "/merge", {P + "/a", P + "/b"});
    }
  }
};

} // namespace

TEST_CASE("conditions: what runs under a local predicate has no value",
          "[types]") {
  Branches B;
  CHECK(B.type("all/a") == "Replicated");
  CHECK(B.type("all/merge") == "Replicated");
  CHECK(B.type("all/merge:1") == "Replicated");
  CHECK(B.type("own/a") == "Varying");
  CHECK(B.type("own/merge") == "Varying");
  CHECK(B.type("own/merge:1") == "Varying");
  // A conditional in a branch does not end the one outside.
  B.op("Switch", "in", {"own/a", "all"});
  B.op("Merge", "inner", {"in", "in:1"});
  B.op("Identity", "inside", {"r", "^inner"});
  CHECK(B.type("inside") == "Varying");
  // After the end of a conditional, each replica runs the node again.
  B.op("Identity", "behind", {"r", "^own/merge"});
  CHECK(B.type("behind") == "Replicated");
  // One side alone is no end.
  B.op("Merge", "half", {"own/a", "r"});
  B.op("Identity", "late", {"r", "^half"});
  CHECK(B.type("late") == "Varying");
}

TEST_CASE("conditions: the predicate may be found to be equal later",
          "[types]") {
  Branches B;
  B.op("IsNan", "nan", {"s"});
  B.op("Any", "any", {"nan", "axes"});
  B.op("Switch", "switch", {"s", "any"});
  B.op("Identity", "under", {"r", "^switch"});
  CHECK(B.type("switch") == "Sharded(0)");
  CHECK(B.type("under") == "Replicated");
  CHECK(B.demands() == Strings{"reduce any or 0"});
}

TEST_CASE("conditions: more choices than are told apart", "[types]") {
  Branches B;
  auto Nest = [&](const std::string &Prefix, size_t Local) {
    std::string At = "r";
    for (size_t I = 0; I < Conditions::MaxChoices + 3; ++I) {
      std::string P = Prefix + std::to_string(I);
      B.placeholder(P, {}, DT_BOOL);
      B.op("Switch", P + "/switch", {At, I == Local ? "own" : P});
      At = P + "/switch:1";
    }
    return At;
  };
  std::string Good = Nest("p", ~size_t(0));
  for (size_t Local : {size_t(0), Conditions::MaxChoices + 1}) {
    std::string Prefix = "q" + std::to_string(Local) + "_";
    std::string Bad = Nest(Prefix, Local);
    std::string Before =
        Prefix + std::to_string(Conditions::MaxChoices) + "/switch:1";
    CHECK(B.type(Before) == (Local == 0 ? "Varying" : "Replicated"));
    CHECK(B.type(Bad) == "Varying");
    // The same by control dependencies alone.
    B.op("NoOp", Prefix + "waits", {"^" + Prefix + "258/switch"});
    B.op("NoOp", Prefix + "waits/on", {"^" + Prefix + "waits"});
    B.op("Identity", Prefix + "after", {"r", "^" + Prefix + "waits/on"});
    CHECK(B.type(Prefix + "after") == "Varying");
  }
  B.op("Neg", "late", {Good});
  B.op("Merge", "end", {"late", "p258/switch"});
  CHECK(B.type("end") == "Replicated");
}

TEST_CASE("conditions: one of many predicates is found to be equal later",
          "[types]") {
  Branches B;
  B.op("IsNan", "nan", {"s"});
  B.op("Any", "any", {"nan", "axes"});
  B.op("Switch", "any/switch", {"s", "any"});
  std::string At = "any/switch:1";
  for (size_t I = 0; I < Conditions::MaxChoices + 1; ++I) {
    std::string P = "p" + std::to_string(I);
    B.placeholder(P + "/of", {}, DT_BOOL);
    B.op("Switch", P, {At, P + "/of"});
    At = P + ":1";
  }
  B.op("Identity", "under", {"r", "^p256"});
  CHECK(B.type("under") == "Replicated");
}

TEST_CASE("conditions: a predicate has one tensor for all its conditionals",
          "[types]") {
  Branches B;
  std::vector<NodeId> Order;
  for (int I = 0; I < 5; ++I) {
    std::string P = "p" + std::to_string(I);
    B.op("Identity", P, {"all"}, DT_BOOL);
    B.op("Switch", P + "/switch", {"r", P});
  }
  // A copy that may not run when its input runs.
  B.op("Identity", "p", {"all", "^own/on"}, DT_BOOL);
  B.op("Switch", "p/switch", {"r", "p"});
  for (NodeId N = 0; N < B.G.size(); ++N)
    Order.push_back(N);
  Conditions When(B.G, Order);
  uint32_t P = When.predicateOf(B.end("p0/switch").Node);
  CHECK(When.predicateOf(B.end("p4/switch").Node) == P);
  CHECK(When.predicateOf(B.end("p/switch").Node) == P);
  CHECK(When.tensors(P).size() == 2);
  CHECK(B.type("p0/switch") == "Replicated");
  CHECK(B.type("p/switch") == "Varying");
}

TEST_CASE("conditions: an update under a local predicate is not proved",
          "[types]") {
  Branches B;
  B.variable("v", {});
  B.op("AssignAddVariableOp", "good", {"v", "r", "^all/on"});
  B.op("AssignAddVariableOp", "bad", {"v", "r", "^own/on"});
  const auto &Unproved = B.facts().Types.unprovedWrites();
  REQUIRE(Unproved.size() == 1);
  CHECK(Unproved[0].first == B.end("bad").Node);
}

TEST_CASE("conditions: a sum is reduced before the conditional", "[types]") {
  Branches B;
  B.op("Sum", "g", {"s", "axes"});
  B.op("Switch", "branch", {"g", "all"});
  B.op("ZerosLike", "zero", {"branch"});
  B.op("Neg", "minus", {"branch:1"});
  B.op("Merge", "m", {"zero", "minus"});
  CHECK(B.type("m") == "Partial(sum)");
  CHECK(B.demands() == Strings{});
  B.op("Sqrt", "root", {"branch:1"});
  CHECK(B.demands() == Strings{"reduce g sum 0"});
}

TEST_CASE("conditions: branches that differ are made true values", "[types]") {
  Branches B;
  B.op("Sum", "g", {"s", "axes"});
  B.op("Switch", "branch", {"g", "all"});
  B.op("Sqrt", "one", {"branch"});
  B.op("Mean", "mean", {"s", "axes"});
  B.op("Switch", "other", {"mean", "all"});
  B.op("Merge", "m", {"one", "other:1"});
  CHECK(B.type("m") == "Replicated");
  CHECK(B.demands() == Strings{"reduce g sum 0", "reduce mean sum -1"});
  B.op("Merge", "rows", {"one", "s"});
  CHECK(B.type("rows") == "Varying");
}

TEST_CASE("conditions: both sides of a Switch are the variable",
          "[variables]") {
  Branches B;
  NodeId V = B.variable("v", {4});
  B.op("Switch", "branch", {"v", "all"}, DT_RESOURCE);
  CHECK(B.facts().Vars.variableOf(B.end("branch:1")) == V);
  CHECK(B.facts().Vars.variableOf(B.end("all/switch:1")) == NoNode);
}
