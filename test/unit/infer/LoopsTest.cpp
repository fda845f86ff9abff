//===- test/unit/infer/LoopsTest.cpp - loops and arrays ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

#include "lib/infer/graph/Loops.h"

using namespace graft;

namespace {

/// A loop of three iterations; `variable` adds a loop variable.
struct Loop : Builder {
  Loop() {
    feed("x", {-1, 4});
    ints("axes", {0});
    integer("zero", 0);
    integer("three", 3);
    floats("zeros", {4}, 0);
    enter("limit", "three", DT_INT32);
    variable("i", "zero", DT_INT32);
    op("Less", "less", {"i", "limit"}, DT_INT32);
    op("LoopCond", "cond", {"less"});
    op("Switch", "i/switch", {"i", "cond"}, DT_INT32);
    op("AddV2", "i/add", {"i/switch:1", "limit"}, DT_INT32);
    close("i", "i/add", DT_INT32);
  }
  void enter(const std::string &Name, const std::string &From,
             unsigned Type = DT_FLOAT) {
    G.setStringAttr(op("Enter", Name, {From}, Type), "frame_name", "loop");
  }
  /// Adds the Merge \p Name, and \p Name/switch:1 in an iteration.
  void variable(const std::string &Name, const std::string &From,
                unsigned Type = DT_FLOAT) {
    enter(Name + "/enter", From, Type);
    op("Merge", Name, {Name + "/enter", Name + "/enter"}, Type);
    if (Name != "i")
      op("Switch", Name + "/switch", {Name, "cond"}, Type);
  }
  void close(const std::string &Name, const std::string &Next,
             unsigned Type = DT_FLOAT) {
    NodeId N = op("NextIteration", Name + "/next", {Next}, Type);
    G.setInput(end(Name).Node, 1, {N, 0});
    op("Exit", Name + "/exit", {Name + "/switch"}, Type);
  }
};

} // namespace

TEST_CASE("loops: a variable has the type that it keeps", "[types]") {
  Loop B;
  B.enter("axes/enter", "axes", DT_INT32);
  B.variable("h", "x/split");
  B.op("Tanh", "h/body", {"h/switch:1"});
  B.close("h", "h/body");
  // Zeros become a partial sum when one is added to them.
  B.variable("sum", "zeros");
  B.op("Sum", "part", {"h/switch:1", "axes/enter"});
  B.op("AddV2", "sum/body", {"sum/switch:1", "part"});
  B.close("sum", "sum/body");
  CHECK(B.type("h/exit") == "Sharded(0)");
  CHECK(B.shape("h/exit") == "1*b,4");
  CHECK(B.type("sum/exit") == "Partial(sum)");
  CHECK(B.type("i/exit") == "Replicated");
  CHECK(B.demands().empty());
  CHECK(B.G.node(B.end("i/add").Node).Count == Copies::PerReplica);
}

TEST_CASE("loops: what an iteration changes has no type", "[types]") {
  Loop B;
  B.enter("axes/enter", "axes", DT_INT32);
  B.enter("x/enter", "x/split");
  B.floats("ones", {4}, 1);
  B.variable("h", "ones");
  B.op("Sum", "h/body", {"x/enter", "axes/enter"});
  B.close("h", "h/body");
  B.variable("square", "zeros");
  B.op("Square", "square/body", {"h/switch:1"});
  B.close("square", "square/body");
  // N equal terms are a partial sum, too, but with another scale exponent.
  CHECK(B.type("h") == "Varying");
  CHECK(B.type("square/exit") == "Varying");
}

TEST_CASE("loops: a size that grows is no longer the batch", "[dims]") {
  Loop B;
  B.enter("axis", "zero", DT_INT32);
  B.variable("h", "x/split");
  B.op("ConcatV2", "h/body", {"h/switch:1", "h/switch:1", "axis"});
  B.close("h", "h/body");
  CHECK(B.shape("h/enter") == "1*b,4");
  CHECK(B.shape("h/exit") == "?,4");
  CHECK(B.type("h/exit") == "Varying");
}

TEST_CASE("loops: readers have the type of what is written", "[types]") {
  Builder B;
  B.feed("x", {-1, 3, 4});
  B.integer("size", 3);
  B.integer("first", 0);
  B.ints("perm", {1, 0, 2});
  B.op("Transpose", "steps", {"x/split", "perm"});
  for (std::string A : {"a", "rows", "both"}) {
    B.ints(A + "/all", {0, 1, 2});
    B.op("TensorArrayV3", A, {"size"});
    std::string From = A == "rows" ? "x/split" : "steps";
    B.op("TensorArrayScatterV3", A + "/fill", {A, A + "/all", From, A + ":1"});
    B.op("TensorArrayReadV3", A + "/read", {A, "first", A + "/fill"});
    B.op("TensorArrayGatherV3", A + "/gather", {A, A + "/all", A + "/fill"});
  }
  B.floats("one", {4}, 1);
  B.op("TensorArrayWriteV3", "write", {"both", "first", "one", "both/fill"});
  CHECK(B.type("a/read") == "Sharded(0)");
  CHECK(B.type("a/gather") == "Sharded(1)");
  CHECK(B.type("rows/read") == "Varying");
  CHECK(B.type("both/gather") == "Varying");
  CHECK(B.G.node(B.end("a").Node).Count == Copies::PerReplica);
}

TEST_CASE("loops: equal rows have the order of those that follow", "[types]") {
  Loop B;
  B.enter("x/enter", "x/split");
  B.op("OnesLike", "ones", {"x/split"});
  B.variable("h", "ones");
  B.op("AddV2", "h/body", {"h/switch:1", "x/enter"});
  B.close("h", "h/body");
  // Rows along another axis do not have the type of equal rows.
  B.ints("order", {1, 0});
  B.op("Transpose", "across", {"ones", "order"});
  B.variable("t", "across");
  B.op("Tanh", "t/body", {"x/enter"});
  B.close("t", "t/body");
  CHECK(B.type("h/exit") == "Sharded(0)");
  CHECK(B.type("t/exit") == "Varying");
}

TEST_CASE("loops: gradients of one source are one array", "[types]") {
  Builder B;
  B.feed("x", {-1, 4});
  B.integer("size", 3);
  B.integer("first", 0);
  B.op("TensorArrayV3", "a", {"size"});
  for (std::string P : {"g1", "g2", "h"})
    B.G.setStringAttr(B.op("TensorArrayGradV3", P, {"a", "a:1"}), "source",
                      P == "h" ? "other" : "gradients");
  B.op("TensorArrayWriteV3", "write", {"g1", "first", "x/split", "g1:1"});
  B.op("TensorArrayReadV3", "same", {"g2", "first", "write"});
  B.op("TensorArrayReadV3", "empty", {"h", "first", "h:1"});
  CHECK(B.type("same") == "Sharded(0)");
  CHECK(B.type("empty") == "Zero");
}
