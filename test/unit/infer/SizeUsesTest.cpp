//===- test/unit/infer/SizeUsesTest.cpp - facts of sizes --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Places where a fact about sizes may be used, and claims of such facts that
// the certificate refuses.
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

#include "lib/certify/compare/SizeFactCheck.h"

using namespace graft;

namespace {

/// Rows of y, picked by the row numbers of x: right only if x and y have
/// equally many rows.
struct Picks : Builder {
  Picks() {
    feed("x", {-1, 4});
    feed("y", {-1, 4});
    integer("zero", 0);
    integer("one", 1);
    ints("axis", {0});
    sizeOf("rows", "x/split", 0);
    NodeId Range = op("Range", "range", {"zero", "rows", "one"});
    G.setTypeAttr(Range, "Tidx", DT_INT32);
    placeholder("p", {}, DT_BOOL);
  }
  void pick(llvm::StringRef Name, const std::string &From) {
    NodeId Pick = op("GatherV2", Name, {From, "range", "zero"});
    G.setTypeAttr(Pick, "Tparams", DT_FLOAT);
    G.setTypeAttr(Pick, "Tindices", DT_INT32);
    G.setTypeAttr(Pick, "Taxis", DT_INT32);
  }
  NodeId find(llvm::StringRef Name) { return G.findEndpoint(Name)->Node; }
  /// Returns the number of errors for a claim that \p User relies on \p Says.
  unsigned refused(llvm::StringRef User, llvm::ArrayRef<NodeId> Says) {
    unsigned Count = 0;
    SizeUse Use{find(User), Says};
    checkSizeFacts(G, facts().Order, Use,
                   [&](NodeId, const llvm::Twine &) { ++Count; });
    return Count;
  }
};

} // namespace

TEST_CASE("size facts: an op that the same fetch runs", "[sizes]") {
  Picks B;
  B.pick("pick", "y/split");
  B.op("Add", "sum", {"x/split", "y/split"});
  B.op("Add", "both", {"sum", "pick"});
  CHECK(B.type("pick") == "Sharded(0)");
  REQUIRE_FALSE(B.facts().sizeUses().empty());
  for (const SizeUse &Use : B.facts().sizeUses())
    CHECK(B.refused(B.G.name(Use.User), Use.Says) == 0);
}

TEST_CASE("size facts: an op that no fetch of the user runs", "[sizes]") {
  Picks B;
  B.pick("pick", "y/split");
  B.op("Add", "sum", {"x/split", "y/split"});
  B.op("Neg", "end", {"pick"});
  CHECK(B.type("pick") == "Varying");
  CHECK(B.facts().sizeUses().empty());
  CHECK(B.refused("pick", B.find("sum")) == 1);
  CHECK(B.refused("pick", NoNode) == 1);
  CHECK(B.refused("pick", {}) == 1);
  CHECK(B.refused("pick", B.find("x/split")) == 1);
}

TEST_CASE("size facts: an op in a branch", "[sizes]") {
  Picks B;
  B.op("Switch", "x/if", {"x/split", "p"});
  B.op("Switch", "y/if", {"y/split", "p"});
  B.op("Add", "sum", {"x/if:1", "y/if:1"});
  B.op("Neg", "other", {"x/if"});
  B.op("Merge", "merge", {"other", "sum"});
  SECTION("is no fact outside of it") {
    B.pick("pick", "y/split");
    B.op("Add", "both", {"merge", "pick"});
    CHECK(B.type("pick") == "Varying");
    CHECK(B.refused("pick", B.find("sum")) == 1);
  }
  SECTION("is one inside") {
    B.pick("inside", "y/if:1");
    B.op("Add", "sums", {"sum", "inside"});
    CHECK(B.type("inside") == "Sharded(0)");
    CHECK(B.refused("inside", B.find("sum")) == 0);
  }
}

TEST_CASE("size facts: an op in the body of a loop", "[sizes]") {
  Picks B;
  for (const char *Fed : {"x", "y"}) {
    NodeId Enter =
        B.op("Enter", std::string(Fed) + "/in", {std::string(Fed) + "/split"});
    B.G.setStringAttr(Enter, "frame_name", "loop");
    B.G.setBoolAttr(Enter, "is_constant", Fed[0] == 'y');
  }
  NodeId Merge = B.op("Merge", "state", {"x/in", "x/in"});
  NodeId Goes = B.op("Enter", "goes/in", {"p"});
  B.G.setStringAttr(Goes, "frame_name", "loop");
  B.op("LoopCond", "goes", {"goes/in"});
  B.op("Switch", "turn", {"state", "goes"});
  B.op("Exit", "last", {"turn"});
  B.op("Neg", "new", {"y/in"});
  NodeId Next = B.op("NextIteration", "next", {"new"});
  B.G.addControlInput(Next, B.op("Add", "sum", {"turn:1", "new"}));
  B.G.setInput(Merge, 1, {Next, 0});
  CHECK(B.type("last") == "Sharded(0)");
  // Without an iteration no new state has to be as large as the first.
  auto Uses = B.facts().sizeUses();
  CHECK(llvm::any_of(Uses, [&](const SizeUse &Use) {
    return Use.User == Merge && Use.Says.front() == B.find("sum");
  }));
}
