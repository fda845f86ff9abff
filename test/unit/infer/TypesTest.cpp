//===- test/unit/infer/TypesTest.cpp - replication types --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rules by family. In names, s is a slice of the batch, p a partial sum, m
// a partial mean (k=1), r a trivially replicated value.
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

using namespace graft;

namespace {

using Strings = std::vector<std::string>;

/// s [b,4], t [b,4], row [b], p [4], m [4], r [4], two [].
struct Basics : Builder {
  Basics() {
    feed("x", {-1, 4});
    feed("y", {-1, 4});
    op("Identity", "s", {"x/split"});
    op("Identity", "t", {"y/split"});
    ints("axis0", {0});
    ints("axis1", {1});
    ints("both", {0, 1});
    op("Sum", "p", {"s", "axis0"});
    op("Mean", "m", {"s", "axis0"});
    op("Sum", "row", {"s", "axis1"});
    floats("r", {4}, 1);
    number("two", 2);
  }
};

void transpose(Builder &B, NodeId N, const char *Attr) {
  B.G.setBoolAttr(N, Attr, true);
}

} // namespace

TEST_CASE("types: reductions", "[types]") {
  Basics B;
  for (const char *Op : {"Max", "Min", "Prod"})
    B.op(Op, Op, {"s", "axis0"});
  B.op("IsNan", "nan", {"s"});
  B.op("Any", "Any", {"nan", "axis0"});
  B.op("All", "All", {"nan", "axis0"});
  B.op("Mean", "mean1", {"s", "axis1"});
  B.op("Mean", "mean01", {"s", "both"});
  B.op("L2Loss", "l2", {"s"});
  B.placeholder("open", {1}, DT_INT32);
  B.op("Sum", "unknown", {"s", "open"});
  CHECK(B.type("s") == "Sharded(0)");
  CHECK(B.type("p") == "Partial(sum)");
  CHECK(B.type("m") == "Partial(sum) k=1");
  CHECK(B.type("Max") == "Partial(max)");
  CHECK(B.type("Min") == "Partial(min)");
  CHECK(B.type("Any") == "Partial(or)");
  CHECK(B.type("All") == "Partial(and)");
  CHECK(B.type("Prod") == "Varying");
  CHECK(B.type("mean1") == "Sharded(0)");
  CHECK(B.type("mean01") == "Partial(sum) k=1");
  CHECK(B.type("l2") == "Partial(sum)");
  CHECK(B.type("unknown") == "Varying");
  CHECK(B.demands().empty());
}

TEST_CASE("types: sums", "[types]") {
  Basics B;
  B.op("Add", "ss", {"s", "t"});
  B.op("Add", "sr", {"s", "r"});
  B.op("AddN", "pp", {"p", "p"});
  B.op("Add", "mr", {"m", "r"}); // N equal terms: r is Partial k=1
  B.op("Neg", "n", {"m"});
  B.floats("zeros", {4}, 0);
  B.op("Add", "p0", {"p", "zeros"});
  B.op("BiasAdd", "biased", {"s", "r"});
  CHECK(B.type("ss") == "Sharded(0)");
  CHECK(B.type("sr") == "Sharded(0)");
  CHECK(B.type("pp") == "Partial(sum)");
  CHECK(B.type("mr") == "Partial(sum) k=1");
  CHECK(B.type("n") == "Partial(sum) k=1");
  CHECK(B.type("p0") == "Partial(sum)");
  CHECK(B.type("biased") == "Sharded(0)");
  CHECK(B.demands().empty());
}

TEST_CASE("types: sums that do not fit ask for a reduction", "[types]") {
  Basics B;
  B.op("Add", "pr", {"p", "r"});
  CHECK(B.type("pr") == "Replicated");
  CHECK(B.demands() == Strings{"reduce p sum 0"});
}

TEST_CASE("types: a sum and a mean are scaled alike", "[types]") {
  Basics B;
  B.op("Add", "pm", {"p", "m"});
  CHECK(B.type("pm") == "Partial(sum)");
  CHECK(B.demands() == Strings{"scale pm:1 -1"});
}

TEST_CASE("types: products", "[types]") {
  Basics B;
  B.op("Mul", "st", {"s", "t"});
  B.op("Mul", "sr", {"s", "r"});
  B.op("Mul", "mr", {"m", "r"});
  B.op("RealDiv", "half", {"p", "two"});
  B.op("Exp", "exp", {"s"});
  B.op("ReluGrad", "grad", {"s", "t"});
  CHECK(B.type("st") == "Sharded(0)");
  CHECK(B.type("sr") == "Sharded(0)");
  CHECK(B.type("mr") == "Partial(sum) k=1");
  CHECK(B.type("half") == "Partial(sum)");
  CHECK(B.type("exp") == "Sharded(0)");
  CHECK(B.type("grad") == "Sharded(0)");
  CHECK(B.demands().empty());
}

TEST_CASE("types: a product of two partial sums reduces both", "[types]") {
  Basics B;
  B.op("Mul", "pm", {"p", "m"});
  CHECK(B.type("pm") == "Replicated");
  CHECK(B.demands() == Strings{"reduce p sum 0", "reduce m sum -1"});
}

TEST_CASE("types: rows of one replica do not meet rows of all", "[types]") {
  Basics B;
  B.placeholder("whole", {-1, 4});
  B.op("Add", "sum", {"s", "whole"});
  B.ints("perm", {1, 0});
  B.op("Transpose", "turned", {"t", "perm"});
  B.op("Mul", "outer", {"s", "turned"});
  CHECK(B.type("sum") == "Varying");
  CHECK(B.type("outer") == "Varying");
}

TEST_CASE("types: numbers made of sizes", "[types]") {
  Basics B;
  B.sizeOf("n", "s", 0);
  B.cast("count", "n", DT_INT32, DT_FLOAT);
  B.op("RealDiv", "mean", {"p", "count"});
  B.op("Mul", "total", {"m", "count"});
  B.op("Square", "squared", {"two"});
  CHECK(B.facts().Types.type(B.end("n")).Symbolic);
  CHECK(B.numberType("n") == "Replicated k=-1");
  CHECK(B.type("count") == "Replicated k=-1");
  CHECK(B.type("mean") == "Partial(sum) k=1");
  CHECK(B.type("total") == "Partial(sum)");
}

TEST_CASE("types: matrix products", "[types]") {
  Basics B;
  B.floats("w", {4, 3}, 1);
  B.floats("v", {3, 4}, 1);
  B.op("MatMul", "forward", {"s", "w"});
  transpose(B, B.op("MatMul", "contract", {"s", "t"}), "transpose_a");
  transpose(B, B.op("MatMul", "every", {"s", "t"}), "transpose_b");
  B.op("MatMul", "onward", {"contract", "w"});
  B.op("BiasAddGrad", "bias", {"s"});
  CHECK(B.type("forward") == "Sharded(0)");
  CHECK(B.type("contract") == "Partial(sum)");
  CHECK(B.type("every") == "Varying");
  CHECK(B.type("onward") == "Partial(sum)");
  CHECK(B.type("bias") == "Partial(sum)");
  CHECK(B.demands().empty());
}

TEST_CASE("types: convolutions", "[types]") {
  Builder B;
  B.feed("x", {-1, 8, 8, 3});
  B.feed("dy", {-1, 8, 8, 5});
  B.floats("f", {3, 3, 3, 5}, 1);
  B.ints("filter", {3, 3, 3, 5});
  B.op("Shape", "input", {"x/split"});
  auto Conv = [&](const char *Op, const char *Name, Strings Inputs) {
    NodeId N = B.op(Op, Name, Inputs);
    B.G.setAttr(N, "strides", encodeIntListAttr({1, 1, 1, 1}));
    B.G.setStringAttr(N, "padding", "SAME");
  };
  Conv("Conv2D", "y", {"x/split", "f"});
  Conv("Conv2DBackpropInput", "dx", {"input", "f", "dy/split"});
  Conv("Conv2DBackpropFilter", "df", {"x/split", "filter", "dy/split"});
  CHECK(B.type("y") == "Sharded(0)");
  CHECK(B.type("dx") == "Sharded(0)");
  CHECK(B.type("df") == "Partial(sum)");
  CHECK(B.shape("dx") == "1*b,8,8,3");
}

TEST_CASE("types: losses and softmax", "[types]") {
  Basics B;
  B.op("Softmax", "soft", {"s"});
  B.ints("perm", {1, 0});
  B.op("Transpose", "turned", {"s", "perm"});
  B.op("Softmax", "across", {"turned"});
  B.op("SoftmaxCrossEntropyWithLogits", "loss", {"s", "t"});
  CHECK(B.type("soft") == "Sharded(0)");
  CHECK(B.type("turned") == "Sharded(1)");
  CHECK(B.type("across") == "Varying");
  CHECK(B.type("loss") == "Sharded(0)");
  CHECK(B.type("loss:1") == "Sharded(0)");
}

TEST_CASE("types: rows and axes of unknown size in one", "[types]") {
  Builder B;
  B.feed("x", {-1, -1, 5});
  B.ints("flat", {-1, 5});
  B.ints("turn", {1, 0, 2});
  B.op("Transpose", "steps", {"x/split", "turn"});
  B.op("Reshape", "rows", {"x/split", "flat"});
  B.op("Reshape", "mixed", {"steps", "flat"});
  B.ints("cut", {-1, 10});
  B.op("Reshape", "pairs", {"x/split", "cut"});
  CHECK(B.type("rows") == "Sharded(0)");
  // The rows are in one block for each step.
  CHECK(B.type("mixed") == "Sharded(0) joined");
  // A replica with an odd number of rows fails in Reshape.
  CHECK(B.type("pairs") == "Sharded(0)");
}

TEST_CASE("types: layout", "[types]") {
  Basics B;
  B.ints("column", {-1, 1});
  B.op("Reshape", "flat", {"s", "column"});
  B.ints("apart", {4, -1});
  B.op("Reshape", "mixed", {"s", "apart"});
  NodeId P0 = B.op("Pack", "pack0", {"s", "t"});
  NodeId P1 = B.op("Pack", "pack1", {"s", "t"});
  B.G.setIntAttr(P0, "axis", 0);
  B.G.setIntAttr(P1, "axis", 1);
  B.integer("one", 1);
  B.integer("zero", 0);
  B.op("ConcatV2", "side", {"s", "t", "one"});
  B.op("ConcatV2", "end", {"s", "t", "zero"});
  B.ints("b", {0, 1});
  B.ints("n", {-1, 2});
  B.op("Slice", "columns", {"s", "b", "n"});
  B.ints("b1", {1, 0});
  B.op("Slice", "rows", {"s", "b1", "n"});
  B.op("ZerosLike", "zeros", {"s"});
  CHECK(B.type("flat") == "Sharded(0)");
  CHECK(B.type("mixed") == "Varying");
  CHECK(B.type("pack0") == "Sharded(1)");
  CHECK(B.type("pack1") == "Sharded(0)");
  CHECK(B.type("side") == "Sharded(0)");
  CHECK(B.type("end") == "Sharded(0) joined");
  CHECK(B.type("columns") == "Sharded(0)");
  CHECK(B.type("rows") == "Varying");
  CHECK(B.type("zeros") == "Sharded(0)");
  CHECK(B.facts().Types.type(B.end("zeros")).Zero);
}

TEST_CASE("types: a part as long as the batch is not its rows", "[types]") {
  Builder B;
  B.feed("x", {-1, 20});
  B.ints("turn", {1, 0});
  B.op("Transpose", "turned", {"x/split", "turn"});
  B.sizeOf("n", "x/split", 0);
  B.integer("four", 4);
  B.op("Pack", "size", {"n", "four"}, DT_INT32);
  B.op("Pack", "whole", {"four", "n"}, DT_INT32);
  B.ints("begin", {0, 0});
  B.op("Slice", "rows", {"turned", "begin", "size"});
  B.op("Slice", "columns", {"turned", "begin", "whole"});
  CHECK(B.type("rows") == "Varying");
  CHECK(B.type("columns") == "Sharded(1)");
}

TEST_CASE("types: equal rows are joined as if they were in order", "[types]") {
  Basics B;
  B.integer("zero", 0);
  B.op("ConcatV2", "end", {"s", "t", "zero"});
  B.op("ZerosLike", "nothing", {"t"});
  B.op("ConcatV2", "gradient", {"s", "nothing", "zero"});
  B.op("Mul", "product", {"end", "gradient"});
  CHECK(B.type("product") == "Sharded(0) joined");
}

TEST_CASE("types: a graph has as many orders of rows as it joins", "[types]") {
  Basics B;
  B.integer("zero", 0);
  B.integer("one", 1);
  std::string Last = "s";
  for (int I = 0; I < 300; ++I) {
    std::string Rows = "rows" + std::to_string(I);
    B.op("ConcatV2", Rows, {Last, "t", "zero"});
    B.sizeOf(Rows + "/size", Rows, 0);
    B.op("Range", Rows + "/numbers", {"zero", Rows + "/size", "one"}, DT_INT32);
    Last = Rows;
  }
  B.op("ConcatV2", "again", {"rows298", "t", "zero"});
  B.op("ConcatV2", "other", {"t", "rows298", "zero"});
  B.op("Mul", "same", {Last, "again"});
  B.op("Mul", "mixed", {Last, "other"});
  B.op("Sum", "sum", {"same", "axis0"});
  CHECK(B.type("same") == "Sharded(0) joined");
  CHECK(B.type("mixed") == "Varying");
  CHECK(B.type("sum") == "Partial(sum)");
  CHECK(B.facts().Types.type(B.end(Last + "/numbers")).isRowNumbers());
}

TEST_CASE("types: rows by index", "[types]") {
  Builder B;
  B.feed("ids", {-1}, DT_INT32);
  B.feed("x", {-1, 8});
  B.floats("table", {100, 8}, 1);
  B.integer("zero", 0);
  B.integer("count", 100);
  B.op("GatherV2", "looked", {"table", "ids/split", "zero"});
  B.op("GatherV2", "inside", {"x/split", "ids/split", "zero"});
  B.op("UnsortedSegmentSum", "summed", {"x/split", "ids/split", "count"});
  B.op("OneHot", "hot", {"ids/split", "count", "zero", "zero"});
  CHECK(B.type("looked") == "Sharded(0)");
  CHECK(B.type("inside") == "Varying");
  CHECK(B.type("summed") == "Partial(sum)");
  CHECK(B.type("hot") == "Sharded(0)");
  B.op("Unique", "unique", {"ids/split"}, DT_INT32);
  CHECK(B.type("unique") == "Replicated");
  CHECK(B.demands() == Strings{"gather unique:0 axis 0 0"});
}

TEST_CASE("types: random draws", "[types]") {
  Basics B;
  B.op("Shape", "shape", {"s"});
  B.op("RandomUniform", "rows", {"shape"}, DT_INT32);
  B.ints("fixed", {4});
  B.op("RandomUniform", "once", {"fixed"}, DT_INT32);
  CHECK(B.type("rows") == "Sharded(0)");
  CHECK(B.facts().Types.type(B.end("rows")).Assumes == AssumesRandomDraw);
  CHECK(B.type("once") == "Replicated");
  NodeId N = B.op("RandomUniform", "each", {"fixed"}, DT_INT32);
  B.G.node(N).Count = Copies::PerReplica;
  CHECK(B.type("each") == "Varying");
}

TEST_CASE("types: batch normalisation", "[types]") {
  Builder B;
  B.feed("x", {-1, 2, 2, 3});
  B.floats("scale", {3}, 1);
  NodeId Train = B.op("FusedBatchNormV3", "train",
                      {"x/split", "scale", "scale", "scale", "scale"});
  NodeId Infer = B.op("FusedBatchNormV3", "infer",
                      {"x/split", "scale", "scale", "scale", "scale"});
  B.G.setBoolAttr(Train, "is_training", true);
  B.G.setBoolAttr(Infer, "is_training", false);
  CHECK(B.type("train") == "Sharded(0)");
  CHECK(B.type("train:1") == "Partial(sum) k=1");
  CHECK(B.type("train:3") == "Varying");
  CHECK(B.facts().Types.type(B.end("train")).Assumes == AssumesLocalBatchNorm);
  CHECK(B.type("infer") == "Sharded(0)");
  CHECK(B.facts().Types.type(B.end("infer")).Assumes == 0);
}

TEST_CASE("types: sizes that need not go together are compared", "[types]") {
  Basics B;
  auto Equal = [&](const char *Name, const char *With) {
    B.G.setBoolAttr(B.op("Equal", Name, {"s", With}),
                    "incompatible_shape_error", false);
    return B.type(Name);
  };
  B.op("Tanh", "tanh", {"s"});
  CHECK(Equal("function", "tanh") == "Sharded(0)");
  CHECK(B.shape("function") == "1*b,4");
  CHECK(Equal("parameter", "r") == "Sharded(0)");
  CHECK(Equal("others", "t") == "Varying");
  CHECK(B.shape("others") == "unknown");
  B.op("Equal", "must", {"s", "t"});
  CHECK(B.type("must") == "Sharded(0)");
}

TEST_CASE("types: records that are selected may be none", "[types]") {
  Basics B;
  B.op("AsString", "text", {"row"});
  B.op("DecodeRaw", "all", {"text"});
  B.op("IsNan", "nan", {"row"});
  B.op("Where", "where", {"nan"}, DT_BOOL);
  B.ints("flat", {-1});
  B.op("Reshape", "numbers", {"where", "flat"}, DT_INT64);
  B.op("GatherV2", "some", {"text", "numbers", "axis0"});
  B.op("DecodeRaw", "decoded", {"some"});
  CHECK(B.type("some") == "Sharded(0)");
  CHECK(B.type("all") == "Sharded(0)");
  CHECK(B.type("decoded") == "Varying");
  CHECK(B.shape("decoded") == "unknown");
}

TEST_CASE("types: a gradient takes what its batch norm kept", "[types]") {
  Builder B;
  B.feed("x", {-1, 2, 2, 3});
  B.floats("scale", {3}, 1);
  B.ints("axes", {0, 1, 2});
  B.op("Prod", "own", {"x/split", "axes"});
  B.op("Sum", "sum", {"x/split", "axes"});
  B.op("FusedBatchNormV2", "train",
       {"x/split", "scale", "scale", "scale", "scale"});
  auto Grad = [&](const char *Name, std::string Mean, std::string Variance) {
    B.op("FusedBatchNormGradV2", Name,
         {"train", "x/split", "scale", std::move(Mean), std::move(Variance)});
    return B.type(Name);
  };
  CHECK(Grad("kept", "train:3", "train:4") == "Sharded(0)");
  B.op("Identity", "mean", {"train:3"});
  CHECK(Grad("copied", "mean", "train:4") == "Sharded(0)");
  CHECK(Grad("turned", "train:4", "train:3") == "Varying");
  CHECK(Grad("another", "scale", "own") == "Varying");
  CHECK(Grad("true", "scale", "sum") == "Sharded(0)");
  CHECK(B.demands().size() == 1);
}

TEST_CASE("types: branches and selections", "[types]") {
  Basics B;
  B.placeholder("once", {}, DT_BOOL);
  B.op("IsNan", "nan", {"s"});
  B.op("Any", "any", {"nan", "both"});
  B.op("Switch", "shared", {"s", "once"});
  NodeId Select = B.op("Select", "select", {"nan", "s", "t"});
  (void)Select;
  CHECK(B.type("shared") == "Sharded(0)");
  CHECK(B.type("shared:1") == "Sharded(0)");
  CHECK(B.type("select") == "Sharded(0)");
  B.op("Merge", "same", {"shared", "shared:1"});
  B.op("Neg", "half", {"shared"});
  B.op("Sum", "other", {"shared:1", "axis0"});
  B.op("Merge", "differ", {"half", "other"});
  CHECK(B.type("same") == "Sharded(0)");
  CHECK(B.type("differ") == "Varying");
  B.op("Switch", "reduced", {"s", "any"});
  CHECK(B.type("reduced") == "Sharded(0)");
  CHECK(B.demands() == Strings{"reduce any or 0"});
}

TEST_CASE("types: an op without a rule is the cause of what follows",
          "[types]") {
  Basics B;
  NodeId Odd = B.op("SomebodysOp", "odd", {"s"});
  B.op("Neg", "after", {"odd"});
  B.op("SomebodysOp", "true", {"r"});
  const TypeAnalysis &T = B.facts().Types;
  CHECK(B.type("odd") == "Varying");
  CHECK(T.type(B.end("after")).Cause == Odd);
  CHECK(T.reason(Odd) == "no rule for op SomebodysOp");
  CHECK(B.type("true") == "Replicated");
}

TEST_CASE("types: what comes round a loop counts", "[types]") {
  Basics B;
  B.op("Enter", "start", {"r"});
  NodeId Acc = B.op("Merge", "acc", {"start", "start"});
  B.op("SomebodysOp", "odd", {"s"});
  B.op("Add", "more", {"acc", "odd"});
  NodeId Next = B.op("NextIteration", "next", {"more"});
  B.G.setInput(Acc, 1, {Next, 0});
  B.op("Exit", "end", {"acc"});
  // No request causes a second iteration of the analysis; the loop does.
  CHECK(B.demands().empty());
  CHECK(B.type("next") == "Varying");
  CHECK(B.type("acc") == "Varying");
  CHECK(B.type("end") == "Varying");
}

TEST_CASE("demands move up to the raw gradient", "[types][demands]") {
  Basics B;
  B.op("Mul", "scaled", {"two", "m"});
  B.op("Neg", "negative", {"scaled"});
  B.op("Sqrt", "root", {"negative"});
  CHECK(B.type("root") == "Replicated");
  CHECK(B.demands() == Strings{"reduce m sum -1"});
  CHECK(B.facts().Types.type(B.end("m")).isTrue());
  CHECK(B.facts().Types.natural(B.end("m")).isPartial());
}

TEST_CASE("a demand names the first node that asks", "[types][demands]") {
  Basics B;
  NodeId Late = B.op("Sqrt", "late", {"two"});
  NodeId Root = B.op("Sqrt", "root", {"m"});
  B.op("Exp", "power", {"m"});
  REQUIRE(B.facts().Types.demands().size() == 1);
  CHECK(B.facts().Types.demands().front().Because == Root);
  // The order of visits does not matter: this node comes after m, but has the
  // smaller id.
  Builder &Base = B;
  Base.G.setInput(Late, 0, B.end("m"));
  B.op("Neg", "other", {"two"}); // forgets the facts
  CHECK(B.facts().Types.demands().front().Because == Late);
}

TEST_CASE("demands stop at a sum of several", "[types][demands]") {
  Basics B;
  B.op("Mean", "m2", {"t", "axis0"});
  B.op("AddN", "tied", {"m", "m2"});
  B.op("Square", "square", {"tied"});
  CHECK(B.demands() == Strings{"reduce tied sum -1"});
}

TEST_CASE("two users of one gradient share a reduction", "[types][demands]") {
  Basics B;
  B.op("Square", "a", {"p"});
  B.op("Exp", "b", {"p"});
  B.op("Mul", "c", {"p", "two"});
  B.op("Rsqrt", "d", {"c"});
  CHECK(B.demands() == Strings{"reduce p sum 0"});
}

TEST_CASE("writes take true values", "[types][demands]") {
  Basics B;
  B.variable("w", {4});
  B.G.node(B.end("w").Node).Count = Copies::PerReplica;
  B.number("lr", 0.1);
  NodeId Step = B.op("ResourceApplyGradientDescent", "step", {"w", "lr", "m"});
  B.variable("table", {100, 4});
  B.feed("ids", {-1}, DT_INT32);
  B.op("ResourceScatterSub", "scatter", {"table", "ids/split", "s"});
  B.G.node(B.end("table").Node).Count = Copies::PerReplica;
  B.op("SomebodysOp", "odd", {"p"});
  B.variable("v", {4});
  B.G.node(B.end("v").Node).Count = Copies::PerReplica;
  NodeId Bad = B.op("AssignVariableOp", "bad", {"v", "odd"});
  CHECK(B.facts().Types.unprovedWrites() ==
        std::vector<std::pair<NodeId, unsigned>>{{Bad, 1}});
  CHECK(B.demands() == Strings{"reduce m sum -1", "gather scatter:2 axis 0 0",
                               "gather scatter:1 axis 0 0"});
  CHECK(B.G.node(Step).Count == Copies::PerReplica);
}

TEST_CASE("inserted nodes have types by their attributes", "[types]") {
  Basics B;
  auto Reduce = [&](const char *Name, const char *Of, int64_t Power,
                    const char *Combine) {
    NodeId N = B.op("_Reduce", Name, {Of});
    B.G.setStringAttr(N, "combine", Combine);
    B.G.setIntAttr(N, "power", Power);
    B.inserted(N, Inserted::Reduce);
  };
  Reduce("good", "m", -1, "sum");
  Reduce("large", "m", 0, "sum");
  Reduce("wrong", "m", -1, "max");
  Reduce("rows", "s", 0, "sum");
  B.inserted(B.op("_Gather", "gathered", {"s"}), Inserted::Gather);
  NodeId Axis = B.op("_Gather", "sideways", {"s"});
  B.G.setIntAttr(Axis, "axis", 1);
  B.inserted(Axis, Inserted::Gather);
  NodeId Scale = B.op("_Scale", "scaled", {"m"});
  B.G.setIntAttr(Scale, "power", -1);
  B.inserted(Scale, Inserted::Scale);
  NodeId Pick = B.op("_FromReplicas", "pick", {"p"});
  B.G.setStringAttr(Pick, "combine", "pick");
  B.G.node(Pick).Kind = Inserted::Merge;
  CHECK(B.type("good") == "Replicated");
  CHECK(B.type("large") == "Replicated k=1");
  CHECK(B.type("wrong") == "Varying");
  CHECK(B.type("rows") == "Varying");
  CHECK(B.type("gathered") == "Replicated");
  CHECK(B.type("sideways") == "Varying");
  CHECK(B.type("scaled") == "Partial(sum)");
  CHECK(B.type("pick") == "Varying");
}

TEST_CASE("types: equations", "[types]") {
  Basics B;
  auto Einsum = [&](const char *Name, std::vector<std::string> Inputs,
                    const char *Text) {
    B.G.setStringAttr(B.op("Einsum", Name, Inputs), "equation", Text);
  };
  B.floats("table", {4, 3}, 1);
  B.floats("whole", {12, 4}, 1);
  B.floats("eRow", {1, 4}, 1);
  Einsum("kept", {"s", "table"}, "bi,io->ob");
  Einsum("summed", {"s", "t"}, "bi,bj->ij");
  Einsum("partial", {"m", "table"}, "i,io->o");
  Einsum("outer", {"s", "t"}, "bi,ci->bc");
  Einsum("unsplit", {"s", "whole"}, "bi,bj->ij");
  Einsum("dots", {"s", "table"}, "...i,io->...o");
  Einsum("eBoth", {"s", "t"}, "...i,...i->...");
  Einsum("eBeside", {"s", "eRow"}, "...,...->...");
  Einsum("eOne", {"s", "whole"}, "...i,...i->...");
  Einsum("dropped", {"s", "t"}, "...i,...i->i");
  Einsum("twice", {"s"}, "bb->b");
  CHECK(B.type("kept") == "Sharded(1)");
  CHECK(B.shape("kept") == "3,1*b");
  CHECK(B.type("summed") == "Partial(sum)");
  CHECK(B.type("partial") == "Partial(sum) k=1");
  CHECK(B.type("dots") == "Sharded(0)");
  CHECK(B.shape("dots") == "1*b,3");
  CHECK(B.type("eBoth") == "Sharded(0)");
  CHECK(B.type("eBeside") == "Sharded(0)");
  CHECK(B.shape("eBeside") == "1*b,4");
  for (const char *Name : {"outer", "unsplit", "eOne", "dropped", "twice"})
    CHECK(B.type(Name) == "Varying");
  CHECK(B.demands().empty());
}

TEST_CASE("types: sizes that are compared", "[types]") {
  // If the rank of a whole tensor is unknown, one of its axes may have the rows
  // of all replicas.
  Basics B;
  B.feed("sizes/u", {-1, 4});
  ShapeValue Open;
  Open.UnknownRank = true;
  B.G.setAttr(B.G.find("sizes/u"), "shape", encodeShapeAttr(Open));
  B.op("Shape", "sizes/rows", {"s"}, DT_INT32);
  B.op("Shape", "sizes/open", {"sizes/u"}, DT_INT32);
  B.op("Shape", "sizes/table", {"m"}, DT_INT32);
  B.op("BroadcastGradientArgs", "sizes/args", {"sizes/rows", "sizes/open"},
       DT_INT32);
  B.op("BroadcastGradientArgs", "sizes/known", {"sizes/rows", "sizes/table"},
       DT_INT32);
  B.op("BroadcastGradientArgs", "sizes/both", {"sizes/open", "sizes/table"},
       DT_INT32);
  B.G.setIntAttr(B.op("ConcatOffset", "sizes/offset",
                      {"axis1", "sizes/rows", "sizes/open"}, DT_INT32),
                 "N", 2);
  CHECK(B.type("sizes/args") == "Varying");
  CHECK(B.type("sizes/offset") == "Varying");
  CHECK(B.type("sizes/known") != "Varying");
  CHECK(B.type("sizes/both") != "Varying");
}

TEST_CASE("types: along axes, and a matrix at a time", "[types]") {
  Basics B;
  B.feed("z", {-1, 3, 3});
  B.floats("matrix", {3, 3}, 1);
  B.op("Cumsum", "beside", {"s", "axis1"});
  B.op("Cumsum", "along", {"s", "axis0"});
  B.op("Cumsum", "mean", {"m", "axis0"});
  B.op("Cholesky", "each", {"z/split"});
  B.op("Cholesky", "rows", {"s"});
  B.op("MatrixSolve", "solved", {"z/split", "z/split"});
  B.op("MatrixSolve", "one", {"z/split", "matrix"});
  B.op("MatrixDiag", "diag", {"s"});
  CHECK(B.type("beside") == "Sharded(0)");
  CHECK(B.type("along") == "Varying");
  CHECK(B.type("mean") == "Partial(sum) k=1");
  CHECK(B.type("each") == "Sharded(0)");
  CHECK(B.type("rows") == "Varying");
  CHECK(B.type("solved") == "Sharded(0)");
  CHECK(B.type("one") == "Varying");
  CHECK(B.type("diag") == "Sharded(0)");
  CHECK(B.demands().empty());
}

TEST_CASE("types: what rounds, pads or counts is not linear", "[types]") {
  Basics B;
  B.cast("counts", "p", DT_FLOAT, DT_INT32);
  B.integer("three", 3);
  B.op("Div", "third", {"counts", "three"}, DT_INT32);
  B.ints("sides", {1, 1});
  B.op("PadV2", "padded", {"p", "sides", "two"});
  B.sizeOf("rows", "s", 0);
  B.feed("ids", {-1}, DT_INT32);
  B.op("OneHot", "square", {"ids/split", "rows", "two", "two"});
  B.op("Max", "top", {"row", "axis0"});
  B.op("Pack", "begin", {"top", "top"});
  B.op("Slice", "cut", {"s", "begin", "axis1"});
  CHECK(B.type("third") == "Replicated");
  CHECK(B.type("padded") == "Replicated");
  CHECK(B.type("square") == "Varying");
  CHECK(B.type("cut") == "Varying");
}

TEST_CASE("types: a scale that is not counted any more", "[types]") {
  Basics B;
  B.sizeOf("rows", "s", 0);
  B.cast("n", "rows", DT_INT32, DT_FLOAT);
  std::string Last = "n";
  for (int I = 0; I < 9; ++I) {
    std::string Next = "n" + std::to_string(I);
    B.op("Mul", Next, {Last, Last});
    Last = Next;
  }
  CHECK(B.type("n5") == "Replicated k=-64");
  CHECK(B.type("n6") == "Varying");
  CHECK(B.type("n8") == "Varying");
}
