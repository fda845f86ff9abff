//===- test/unit/infer/ConditionsTest.cpp - what runs when ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

using namespace graft;

namespace {

using Strings = std::vector<std::string>;

/// s [b,4], r [4], and two conditionals: on `all`, which is equal everywhere,
/// and on `own`, which replicas disagree on.
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
  // Behind the end of a conditional everything runs again.
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
