//===- test/unit/infer/DimsTest.cpp - symbolic sizes ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

using namespace graft;

TEST_CASE("sizes are classes", "[dims]") {
  DimTable T;
  DimId A = T.make(), B = T.make(), C = T.make(int64_t(64)),
        D = T.make(int64_t(32));
  CHECK_FALSE(T.isKnown(A));
  CHECK_FALSE(T.sym(A));
  REQUIRE(T.unify(A, B));
  CHECK(T.find(B) == A); // the older one, whatever the order
  CHECK(T.find(A) == A);
  REQUIRE(T.unify(C, B));
  CHECK(T.number(A) == 64);
  CHECK(T.sym(B) == Sym{64, 0, 0});
  CHECK_FALSE(T.unify(A, D)); // 64 is not 32
  CHECK(T.number(D) == 32);
  CHECK(T.find(D) == D);
}

TEST_CASE("a class holds one symbol", "[dims]") {
  DimTable T;
  Sym Batch{1, 1, 0}, Global{1, 1, 1}, Twice{2, 1, 0};
  DimId A = T.make(int64_t(64)), B = T.make(Batch), C = T.make(Global);
  CHECK(T.number(B) == UnknownSize);
  REQUIRE(T.unify(A, B));
  CHECK(T.hasSym(A)); // the number stays, the symbol counts
  CHECK(T.number(B) == 64);
  CHECK(T.sym(A) == Batch);
  CHECK_FALSE(T.unify(A, C));
  CHECK_FALSE(T.assign(A, Twice));
  CHECK(T.assign(A, Batch));
  CHECK(Batch.isLocal());
  CHECK_FALSE(Global.isLocal());
  CHECK(Batch.globalPower() == 1);
  CHECK(Global.globalPower() == 0);
}

TEST_CASE("rows are those of one tensor until sizes must be equal", "[dims]") {
  DimTable T;
  auto Rows = [&](NodeId Of) {
    Sym S{1, 1, 0};
    S.Rows = *T.makeRows({Of, 0});
    return S;
  };
  Sym X = Rows(1), Y = Rows(2), Z = Rows(3);
  DimId A = T.make(X), B = T.make(Y), C = T.make(Z), Twice = T.make(Y);
  Sym Product = X;
  CHECK_FALSE(Product.multiply(Y)); // no size has two kinds of rows
  CHECK(T.sym(A) != T.sym(B));
  CHECK(T.takeMoved().empty());
  REQUIRE(T.unify(A, B));
  CHECK(T.sym(B) == X);
  CHECK(T.sym(Twice) == X); // all sizes counted in rows of y
  std::vector<bool> Moved = T.takeMoved();
  CHECK(T.counts(Twice, Moved));
  CHECK_FALSE(T.counts(C, Moved));
  // Three z for two x: both become multiples of a third symbol.
  Sym TwoZ = Z, ThreeX = X;
  TwoZ.C = 2;
  ThreeX.C = 3;
  REQUIRE(T.relate(TwoZ, ThreeX));
  CHECK(T.sym(C)->C == 3);
  CHECK(T.sym(A)->C == 2);
  CHECK(T.sym(A)->Rows == T.sym(C)->Rows);
  CHECK_FALSE(T.relate(X, Z)); // two are not three of the same
  CHECK(T.isOfSplit(*T.sym(A)));
  T.flatten();
  CHECK(T.sym(Twice) == T.sym(A));
}

TEST_CASE("rows that are found to be those of others move in one go",
          "[dims]") {
  DimTable T;
  std::vector<Sym> Rows;
  std::vector<DimId> Sizes;
  for (NodeId Of = 0; Of < 40; ++Of) {
    Rows.push_back({1, 1, 0});
    Rows.back().Rows = *T.makeRows({Of, 0});
    Sizes.push_back(T.make(Rows.back()));
  }
  // Puts each root under the next one, the last one first.
  for (size_t I = 20; I-- > 1;) {
    Sym Twice = Rows[I - 1];
    Twice.C = I % 8 == 0 ? 2 : 1;
    REQUIRE(T.relate(Rows[I], Twice));
  }
  std::vector<bool> Moved = T.takeMoved();
  for (size_t I = 1; I < 20; ++I)
    CHECK(T.counts(Sizes[I], Moved));
  CHECK_FALSE(T.counts(Sizes[0], Moved));
  CHECK_FALSE(T.counts(Sizes[20], Moved));
  CHECK(T.sym(Sizes[19])->C == 4);
  CHECK(T.takeMoved().empty());
  // If a symbol moves, all symbols below it move, too.
  REQUIRE(T.relate(Rows[0], Rows[30]));
  REQUIRE(T.relate(Rows[19], Rows[19]));
  Moved = T.takeMoved();
  bool Below = T.counts(Sizes[7], Moved), Other = T.counts(Sizes[30], Moved);
  CHECK(Below != Other);
  CHECK(T.sym(Sizes[7])->Rows == T.sym(Sizes[30])->Rows);
  CHECK_FALSE(T.counts(Sizes[31], Moved));
}

TEST_CASE("a claim counts with rows that are split", "[dims]") {
  DimTable T;
  Sym Claim{1, 1, 0}, Rows{1, 1, 0};
  Claim.Rows = *T.makeRows({1, 0}, /*Claimed=*/true);
  Rows.Rows = *T.makeRows({2, 0});
  CHECK_FALSE(T.isOfSplit(Claim));
  REQUIRE(T.relate(Claim, Rows));
  CHECK(T.isOfSplit(*T.sym(T.make(Rows))));
  CHECK(T.isOfSplit(*T.sym(T.make(Claim))));
}

TEST_CASE("a size of one may be the batch", "[dims]") {
  DimTable T;
  DimId A = T.make(int64_t(1));
  CHECK(T.isOne(A));
  T.assign(A, Sym{1, 1, 0});
  CHECK_FALSE(T.isOne(A));
  DimId B = T.make();
  T.assign(B, Sym{7, 0, 0}); // a number is no symbol
  CHECK(T.number(B) == 7);
  CHECK_FALSE(T.hasSym(B));
  T.assignNumber(B, 8);
  CHECK(T.number(B) == 7);
}

TEST_CASE("a size may be any number", "[dims]") {
  DimTable T;
  std::vector<int64_t> Numbers = {0,          -1,
                                  INT64_MAX,  INT64_MIN + 1,
                                  1 << 30,    (1 << 30) - 1,
                                  -(1 << 30), -(1 << 30) - 1};
  for (int64_t Number : Numbers) {
    DimId D = T.make(Number), Same = T.make(Number), Unknown = T.make(),
          Batch = T.make(Sym{1, 1, 0});
    CHECK(T.number(D) == Number);
    CHECK(T.isKnown(D));
    CHECK_FALSE(T.hasSym(D));
    CHECK(T.unify(D, Same));
    CHECK(T.unify(Unknown, D));
    CHECK(T.number(Unknown) == Number);
    CHECK(T.unify(Batch, Unknown));
    CHECK(T.number(Batch) == Number);
    CHECK(T.hasSym(Same));
    CHECK_FALSE(T.unify(D, T.make(Number == 5 ? 6 : 5)));
    T.flatten();
    CHECK(T.find(Batch) == D);
    CHECK(T.number(Same) == Number);
  }
}

TEST_CASE("a change of a size is told once", "[dims]") {
  DimTable T;
  DimId A = T.make(), B = T.make(), C = T.make(), D = T.make(7);
  T.beginNode();
  CHECK(T.unify(A, B)); // nothing is known of either
  CHECK(T.takeChanged().empty());
  CHECK(T.unify(D, B));
  CHECK(T.takeChanged() == std::vector<DimId>{A});
  T.assign(C, Sym{1, 1, 0});
  CHECK(T.takeChanged() == std::vector<DimId>{C});
  T.assign(T.make(), Sym{1, 1, 0}); // no other node has it yet
  CHECK(T.takeChanged().empty());
}

TEST_CASE("slices are the rows of one replica", "[dims]") {
  Builder B;
  B.feed("x", {-1, 4});
  B.feed("s", {64, 4});
  B.feed("t", {3, 8}, DT_FLOAT, 1);
  CHECK(B.shape("x") == "1*b*N,4");
  CHECK(B.shape("x/split") == "1*b,4");
  CHECK(B.shape("t/split") == "3,1*b of 't'"); // as many as the feed t has
  const DimAnalysis &D = B.facts().Dims;
  // The single-device step has this number.
  CHECK(D.table().number((*D.shape(B.end("s/split")))[0]) == 64);
  CHECK(D.batchAxis(B.end("t/split")) == 1);
  CHECK(D.batchAxis(B.end("x")) == -1);
}

TEST_CASE("two feeds have equally many rows where an op wants it", "[dims]") {
  for (bool Meet : {false, true}) {
    INFO(Meet);
    Builder B;
    B.feed("x", {-1, 4});
    B.feed("y", {-1});
    B.feed("z", {-1, 4});
    B.integer("axis", 1);
    B.integer("zero", 0);
    B.op("Max", "top", {"x/split", "axis"});
    B.op("ConcatV2", "xz", {"x/split", "z/split", "zero"});
    B.sizeOf("n", "y/split", 0);
    B.integer("four", 4);
    B.integer("rest", -1);
    B.op("Pack", "shape", {"rest", "n", "four"}, DT_INT32);
    // The reshape does not state that x and y have equally many rows.
    if (Meet)
      B.op("Sub", "error", {"top", "y/split"});
    B.op("Reshape", "by y", {"x/split", "shape", Meet ? "^error" : "^top"});
    CHECK(B.shape("x/split") == "1*b,4");
    CHECK(B.shape("y/split") == (Meet ? "1*b" : "1*b of 'y'"));
    CHECK(B.shape("xz") == "1*b of 'xz',4"); // rows as well
    CHECK(B.shape("by y") == (Meet ? "1,1*b,4" : "?,1*b of 'y',4"));
    CHECK(B.facts().Dims.conflicts().empty());
  }
}

TEST_CASE("a slice up to the end has the rows that are left", "[dims]") {
  for (int Taken : {8, 4}) {
    INFO(Taken);
    Builder B;
    B.feed("x", {8, 4});
    B.feed("y", {8, 4});
    B.integer("zero", 0);
    B.op("Sub", "error", {"x/split", "y/split"});
    B.op("ConcatV2", "xy", {"x/split", "y/split", "zero"});
    B.sizeOf("n", "x/split", 0);
    B.op("Pack", "begin", {"n", "zero"}, DT_INT32);
    B.ints("size", {Taken, 4});
    B.op("Slice", "rest", {"xy", "begin", "size"});
    CHECK(B.shape("rest") == (Taken == 8 ? "1*b,4" : "4,4"));
  }
}

TEST_CASE("sizes of images", "[dims]") {
  Builder B;
  B.feed("x", {-1, 8, 6, 12});
  B.ints("size", {16, 5});
  B.op("ResizeNearestNeighbor", "resized", {"x/split", "size"});
  B.G.setIntAttr(B.op("DepthToSpace", "space", {"x/split"}), "block_size", 2);
  B.G.setIntAttr(B.op("SpaceToDepth", "depth", {"x/split"}), "block_size", 2);
  CHECK(B.shape("resized") == "1*b,16,5,12");
  CHECK(B.shape("space") == "1*b,16,12,3");
  CHECK(B.shape("depth") == "1*b,4,3,48");
}

TEST_CASE("feeds with as many static rows", "[dims]") {
  Builder B;
  B.feed("x", {64, 4});
  B.feed("y", {64});
  B.feed("z", {96});
  B.feed("bank", {-1, 4});
  B.ints("pairs", {64, 2, 4});
  CHECK(B.shape("x/split") == "2*b of 'x',4"); // as z has three times b
  CHECK(B.shape("y/split") == "2*b of 'x'");
  CHECK(B.shape("z/split") == "3*b of 'x'");
  CHECK(B.shape("bank/split") == "1*b of 'bank',4");
  B.op("Reshape", "paired", {"bank/split", "pairs"});
  B.integer("axis", 1);
  B.op("Max", "best", {"paired", "axis"});
  B.op("Sub", "error", {"best", "x/split"});
  B.facts(/*Unpatched=*/true);
  CHECK(B.shape("bank/split") == "4*b of 'x',4");
  CHECK(B.value("pairs") == "2*b of 'x',2,4");
}

TEST_CASE("a constant that holds local numbers", "[dims]") {
  // 24 rows on 4 replicas, and 6 features: equal numbers by chance.
  Builder B;
  B.feed("x", {24, 6});
  NodeId To = B.ints("to", {6, 6});
  B.G.setAttr(To, OriginalAttr, encodeIntTensor(DT_INT32, 2, {24, 6}));
  B.op("Reshape", "y", {"x/split", "to"});
  B.variable("w", {6, 6});
  B.op("ReadVariableOp", "w/read", {"w"});
  B.op("MatMul", "z", {"y", "w/read"});
  CHECK(B.value("to") == "1*b,6");
  CHECK(B.shape("z") == "1*b,6");
  CHECK(B.shape("w") == "6,6");
  CHECK(B.facts().Dims.conflicts().empty());
  // 24 rows on 24 replicas: a size of one, which is no one.
  Builder C(24);
  C.feed("x", {24, 2, 3});
  To = C.ints("to", {1, 6});
  C.G.setAttr(To, OriginalAttr, encodeIntTensor(DT_INT32, 2, {24, 6}));
  C.op("Reshape", "y", {"x/split", "to"});
  CHECK(C.shape("y") == "1*b,6");
}

TEST_CASE("arithmetic on sizes", "[dims]") {
  Builder B;
  B.feed("x", {-1, 4});
  B.sizeOf("n", "x/split", 0);
  B.integer("zero", 0);
  B.integer("one", 1);
  B.integer("three", 3);
  B.integer("four", 4);
  B.op("Maximum", "max1", {"n", "one"}, DT_INT32);
  B.op("Maximum", "max0", {"zero", "n"}, DT_INT32);
  B.op("Maximum", "max3", {"n", "three"}, DT_INT32);
  B.op("Maximum", "divisor", {"n", "one"}, DT_INT32);
  B.op("Mul", "four_n", {"four", "n"}, DT_INT32);
  B.op("Mul", "squared", {"n", "four_n"}, DT_INT32);
  B.op("FloorDiv", "exact", {"four_n", "four"}, DT_INT32);
  B.op("FloorDiv", "by_n", {"four_n", "n"}, DT_INT32);
  B.op("FloorDiv", "by_divisor", {"four_n", "divisor"}, DT_INT32);
  B.op("Mul", "twice_max1", {"max1", "four"}, DT_INT32);
  B.op("FloorDiv", "inexact", {"four_n", "three"}, DT_INT32);
  B.op("FloorDiv", "itself", {"n", "n"}, DT_INT32);
  B.op("AddV2", "plus0", {"n", "zero"}, DT_INT32);
  B.op("AddV2", "plus1", {"n", "one"}, DT_INT32);
  B.op("Sub", "minus1", {"n", "one"}, DT_INT32);
  B.op("AddV2", "seven", {"three", "four"}, DT_INT32);
  B.op("FloorMod", "rest", {"four", "three"}, DT_INT32);
  B.op("FloorMod", "rest_n", {"n", "three"}, DT_INT32);
  CHECK(B.value("n") == "1*b");
  CHECK(B.value("max1") == "unknown"); // 1 of no rows: a number
  CHECK(B.value("max0") == "1*b");
  CHECK(B.value("divisor") == "?");
  CHECK(B.value("by_divisor") == "4");
  CHECK(B.value("max3") == "?");
  CHECK(B.value("four_n") == "4*b");
  CHECK(B.value("squared") == "4*b^2");
  CHECK(B.value("exact") == "1*b");
  CHECK(B.value("by_n") == "4");
  CHECK(B.value("inexact") == "?");
  CHECK(B.value("itself") == "1");
  CHECK(B.value("plus0") == "1*b");
  CHECK(B.value("plus1") == "?"); // an unknown size, not b
  CHECK(B.value("minus1") == "?");
  CHECK(B.value("seven") == "7");
  CHECK(B.value("rest") == "1");
  CHECK(B.value("rest_n") == "?");
  CHECK(B.facts().Dims.isSymbolic(B.end("four_n")));
  CHECK_FALSE(B.facts().Dims.isSymbolic(B.end("seven")));
}

TEST_CASE("vectors of sizes", "[dims]") {
  Builder B;
  B.feed("x", {-1, 4, 5});
  B.op("Shape", "shape", {"x/split"});
  B.op("Size", "size", {"x/split"});
  B.op("Rank", "rank", {"x/split"});
  B.ints("axis", {0});
  B.op("Prod", "prod", {"shape", "axis"}, DT_INT32);
  B.sizeOf("n", "x/split", 0);
  B.integer("twenty", 20);
  B.op("Pack", "pack", {"n", "twenty"}, DT_INT32);
  B.op("Reshape", "flat", {"x/split", "pack"});
  B.integer("zero", 0);
  B.op("ConcatV2", "joined", {"shape", "pack", "zero"}, DT_INT32);
  B.integer("one", 1);
  B.op("Range", "range", {"zero", "n", "one"}, DT_INT32);
  B.op("Range", "axes", {"zero", "rank", "one"}, DT_INT32);
  CHECK(B.value("shape") == "1*b,4,5");
  CHECK(B.value("size") == "20*b");
  CHECK(B.value("rank") == "3");
  CHECK(B.value("prod") == "20*b");
  CHECK(B.value("pack") == "1*b,20");
  CHECK(B.shape("flat") == "1*b,20");
  CHECK(B.value("joined") == "1*b,4,5,1*b,20");
  CHECK(B.shape("range") == "1*b");
  CHECK(B.value("axes") == "0,1,2");
}

TEST_CASE("reshape finds the batch among equal numbers", "[dims]") {
  Builder B;
  B.feed("x", {64, 8, 8});
  B.ints("to", {64, 64});
  B.op("Reshape", "flat", {"x/split", "to"});
  B.ints("swapped", {64, 8, 8});
  B.op("Reshape", "back", {"flat", "swapped"});
  B.variable("w", {64, 64});
  B.op("ReadVariableOp", "w/read", {"w"});
  B.op("MatMul", "y", {"flat", "w/read"});
  B.ints("other", {64, 64});
  B.number("one", 1);
  B.op("Fill", "fill", {"other", "one"});
  B.op("MatMul", "z", {"fill", "w/read"});
  B.facts(/*Unpatched=*/true);
  CHECK(B.value("to") == "1*b,64");
  CHECK(B.value("swapped") == "1*b,8,8");
  CHECK(B.shape("y") == "1*b,64");
  CHECK(B.value("other") == "64,64");
  CHECK(B.facts().Dims.conflicts().empty());
}

TEST_CASE("the first size of a reshape is what the others leave", "[dims]") {
  Builder B;
  B.feed("x", {-1, 15});
  B.ints("flat", {-1, 3});
  B.op("Reshape", "rows", {"x/split", "flat"});
  for (int64_t Size : {2, 3, 5})
    B.integer(std::to_string(Size), Size);
  // Numbers that are fed, and read as they are or as shares.
  for (std::string Name : {"n", "m", "s"}) {
    B.placeholder(Name, {}, DT_INT32);
    B.op("Pack", Name + "/by 5", {Name, "5", "3"}, DT_INT32);
  }
  B.G.setIntAttr(B.op("_Scale", "s/share", {"s"}, DT_INT32), "power", -1);
  B.inserted(B.end("s/share").Node, Inserted::Scale);
  B.op("Pack", "m/by 2", {"m", "2", "3"}, DT_INT32);
  B.op("Pack", "s/own", {"s/share", "5", "3"}, DT_INT32);
  B.op("Reshape", "global", {"rows", "n/by 5"});
  B.op("Reshape", "odd", {"rows", "m/by 2"});
  B.op("Reshape", "own", {"rows", "s/own"});
  CHECK(B.shape("own") == "1*b,5,3");
  CHECK(B.value("s/share") == "1*b");
  CHECK(B.value("s") == "1*b*N");
  CHECK(B.shape("odd") == "?,2,3"); // 15 rows are no multiple of 6
  CHECK(B.facts().Dims.fedRows() == llvm::ArrayRef{B.end("n").Node});
}

TEST_CASE("reshape with a wild card", "[dims]") {
  Builder B;
  B.feed("x", {-1, 4, 3});
  B.ints("flat", {-1});
  B.ints("rows", {-1, 12});
  B.ints("fours", {-1, 4});
  B.ints("unknown", {-1, 5});
  B.op("Reshape", "a", {"x/split", "flat"});
  B.op("Reshape", "b", {"a", "rows"});
  B.op("Reshape", "c", {"x/split", "fours"});
  B.op("Reshape", "d", {"x/split", "unknown"});
  CHECK(B.shape("a") == "12*b");
  CHECK(B.shape("b") == "1*b,12");
  CHECK(B.shape("c") == "3*b,4");
  CHECK(B.shape("d") == "?,5");
}

TEST_CASE("ops unify sizes", "[dims]") {
  Builder B;
  B.feed("x", {-1, 4});
  B.placeholder("y", {-1, -1});
  B.placeholder("bias", {-1});
  B.op("BiasAdd", "biased", {"x/split", "bias"});
  B.op("MatMul", "product", {"x/split", "y"});
  B.ints("perm", {1, 0});
  B.op("Transpose", "turned", {"x/split", "perm"});
  B.integer("axis", -1);
  B.op("ExpandDims", "wide", {"x/split", "axis"});
  B.op("Squeeze", "narrow", {"wide"});
  B.ints("twice", {1, 2});
  B.op("Tile", "tiled", {"x/split", "twice"});
  CHECK(B.shape("bias") == "4");
  CHECK(B.shape("y") == "4,?");
  CHECK(B.shape("turned") == "4,1*b");
  CHECK(B.shape("wide") == "1*b,4,1");
  CHECK(B.shape("tiled") == "1*b,8");
}

TEST_CASE("all axes of one element, and what may be one", "[dims]") {
  Builder B;
  B.feed("x", {-1, 1, 4});
  B.op("Squeeze", "any", {"x/split"});
  NodeId One = B.op("Squeeze", "one", {"x/split"});
  B.G.setAttr(One, "squeeze_dims", encodeIntListAttr({1}));
  B.feed("few", {4, 1});
  B.op("Squeeze", "row", {"few/split"});
  CHECK(B.shape("any") == "unknown");
  CHECK(B.shape("one") == "1*b,4");
  CHECK(B.shape("row") == "unknown");
  Builder Many;
  Many.feed("x", {8, 1});
  Many.op("Squeeze", "rows", {"x/split"});
  CHECK(Many.shape("rows") == "1*b");
}

TEST_CASE("two different symbols are a conflict", "[dims]") {
  Builder B;
  B.feed("x", {-1, 4});
  B.ints("flat", {-1});
  B.ints("zero", {0});
  B.op("Reshape", "a", {"x/split", "flat"});
  B.integer("axis", 1);
  B.op("Max", "z", {"x/split", "axis"});
  NodeId Bad = B.op("Add", "bad", {"a", "z"});
  auto Conflicts = B.facts().Dims.conflicts();
  REQUIRE(Conflicts.size() == 1);
  CHECK(Conflicts[0].Node == Bad);
  CHECK(B.facts().Dims.describe(Conflicts[0].A) == "4*b");
  CHECK(B.facts().Dims.describe(Conflicts[0].B) == "1*b");
}

TEST_CASE("the axes along which gradients of broadcasts are summed", "[dims]") {
  Builder B;
  B.feed("x", {-1, 4});
  B.op("Shape", "sx", {"x/split"});
  B.ints("s4", {4});
  B.ints("s0", {});
  B.ints("s14", {1, 4});
  B.placeholder("u", {-1});
  B.op("Shape", "su", {"u"});
  auto Args = [&](const char *Name, const char *X, const char *Y) {
    B.op("BroadcastGradientArgs", Name, {X, Y}, DT_INT32);
  };
  Args("vector", "sx", "s4");
  Args("scalar", "s0", "sx");
  Args("ones", "s14", "sx");
  Args("same", "sx", "sx");
  Args("open", "sx", "su");
  CHECK(B.value("vector") == "");
  CHECK(B.value("vector:1") == "0");
  CHECK(B.value("scalar") == "0,1");
  CHECK(B.value("scalar:1") == "");
  CHECK(B.value("ones") == "0");
  CHECK(B.value("same") == "");
  CHECK(B.value("open") == "unknown"); // u may have one row or four
}

TEST_CASE("convolutions and pools", "[dims]") {
  Builder B;
  B.feed("x", {-1, 28, 28, 1});
  B.variable("f", {5, 5, 1, 8});
  B.op("ReadVariableOp", "filter", {"f"});
  for (const char *Padding : {"SAME", "VALID"}) {
    NodeId N = B.op("Conv2D", Padding, {"x/split", "filter"});
    B.G.setAttr(N, "strides", encodeIntListAttr({1, 2, 2, 1}));
    B.G.setStringAttr(N, "padding", Padding);
  }
  NodeId Pool = B.op("MaxPool", "pool", {"SAME"});
  B.G.setAttr(Pool, "ksize", encodeIntListAttr({1, 2, 2, 1}));
  B.G.setAttr(Pool, "strides", encodeIntListAttr({1, 2, 2, 1}));
  B.G.setStringAttr(Pool, "padding", "VALID");
  CHECK(B.shape("SAME") == "1*b,14,14,8");
  CHECK(B.shape("VALID") == "1*b,12,12,8");
  CHECK(B.shape("pool") == "1*b,7,7,8");
}

TEST_CASE("slices of sizes", "[dims]") {
  Builder B;
  B.feed("x", {-1, 6});
  B.ints("b0", {0, 0});
  B.ints("all", {-1, -1});
  B.ints("b2", {0, 2});
  B.ints("some", {-1, 3});
  B.op("Slice", "whole", {"x/split", "b0", "all"});
  B.op("Slice", "columns", {"x/split", "b2", "some"});
  B.ints("r1", {1, 0});
  B.op("Slice", "rows", {"x/split", "r1", "all"});
  CHECK(B.shape("whole") == "1*b,6");
  CHECK(B.shape("columns") == "1*b,3");
  CHECK(B.shape("rows") == "?,6");
}

TEST_CASE("each row looks up in a table of its own", "[dims]") {
  Builder B;
  B.feed("x", {-1, 6, 4});
  B.feed("ids", {-1, 3, 2}, DT_INT32);
  B.integer("one", 1);
  NodeId Looked = B.op("GatherV2", "looked", {"x/split", "ids/split", "one"});
  B.G.setIntAttr(Looked, "batch_dims", 1);
  NodeId Past = B.op("GatherV2", "past", {"x/split", "ids/split", "one"});
  B.G.setIntAttr(Past, "batch_dims", 2);
  CHECK(B.shape("looked") == "1*b,3,2,4");
  CHECK(B.shape("past") == "unknown");
}

TEST_CASE("strided slices up to a number of rows", "[dims]") {
  Builder B;
  B.feed("x", {-1, 6});
  B.integer("end", -1);
  B.integer("six", 6);
  B.ints("by", {1, 1});
  B.ints("from", {0, 0});
  B.ints("later", {1, 0});
  // A per-replica number that equals the number of rows.
  B.op("Size", "size", {"x/split"});
  B.op("FloorDiv", "rows", {"size", "six"}, DT_INT32);
  B.op("Pack", "to", {"rows", "end"}, DT_INT32);
  B.op("Pack", "to more", {"size", "end"}, DT_INT32);
  auto Slice = [&](const char *Name, const char *From, const char *To) {
    NodeId N = B.op("StridedSlice", Name, {"x/split", From, To, "by"});
    B.G.setTypeAttr(N, "Index", DT_INT32);
    return B.shape(Name);
  };
  CHECK(Slice("all", "from", "to") == "1*b,5");
  CHECK(Slice("rest", "later", "to") == "?,5");
  CHECK(Slice("more", "from", "to more") == "?,5");
}

TEST_CASE("the size of a part that is left", "[dims]") {
  Builder B;
  B.feed("x", {-1, 6});
  B.ints("sizes", {2, -1});
  B.integer("columns", 1);
  B.integer("rows", 0);
  for (std::string Axis : {"columns", "rows"})
    B.G.setIntAttr(B.op("SplitV", "by " + Axis, {"x/split", "sizes", Axis}),
                   "num_split", 2);
  CHECK(B.shape("by columns") == "1*b,2");
  CHECK(B.shape("by columns:1") == "1*b,4");
  CHECK(B.shape("by rows:1") == "?,6");
}

TEST_CASE("sizes of merged and gathered tensors", "[dims]") {
  Builder B;
  B.feed("x", {32, 4});
  NodeId All = B.op("_FromReplicas", "all", {"x/split"});
  B.G.setStringAttr(All, "combine", "concat");
  NodeId Sum = B.op("_FromReplicas", "sum", {"x/split"});
  B.G.setStringAttr(Sum, "combine", "sum");
  B.inserted(B.op("_Gather", "gathered", {"x/split"}), Inserted::Gather);
  CHECK(B.shape("all") == "1*b*N,4");
  CHECK(B.shape("gathered") == "1*b*N,4");
  CHECK(B.shape("sum") == "1*b,4");
  const DimAnalysis &D = B.facts().Dims;
  CHECK(D.table().number((*D.shape(B.end("all")))[0]) == 32);
}
