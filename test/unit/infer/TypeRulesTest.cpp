//===- test/unit/infer/TypeRulesTest.cpp - rules alone ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A type rule is a function of a context. It can be called for one node, with
// operands of other types than the inferred ones.
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

#include "lib/infer/graph/Topology.h"
#include "lib/infer/rules/Rules.h"

using namespace graft;

namespace {

struct Rule : Builder {
  Rule() {
    feed("x", {-1, 4});
    ints("axis0", {0});
    op("Sum", "sum", {"x/split", "axis0"});
    floats("r", {4}, 1);
    op("Mul", "mul", {"sum", "r"});
    op("Add", "add", {"sum", "r"});
  }
  /// Returns the result of rule \p Type for \p Node with operand 0 \p First.
  ReplicationType ask(const std::string &Node, ReplicationType First,
                      void (*Type)(TypeContext &)) {
    const ProgramFacts &F = facts();
    auto Order = topologicalOrder(G);
    TypeAnalysis T(G, Order, F.Dims, F.Vars);
    TypeContext C(T, Order);
    C.at(end(Node).Node);
    ReplicationType Result = C.suppose(First, [&](TypeContext &) {
      Type(C);
      return C.result(0);
    });
    Asked = C.Asked;
    return Result;
  }
  std::vector<Demand> Asked;
};

} // namespace

TEST_CASE("type rules: one node is asked by itself", "[types]") {
  Rule R;
  CHECK(R.ask("mul", ReplicationType::partial(1), ruleOf("Mul").Type).str() ==
        "Partial(sum) k=1");
  CHECK(R.ask("mul", ReplicationType::replicated(), ruleOf("Mul").Type).str() ==
        "Replicated");
  CHECK(R.Asked.empty());
  CHECK(R.ask("sum", ReplicationType::sharded(1), ruleOf("Sum").Type).str() ==
        "Sharded(0)");
  CHECK(R.ask("sum", ReplicationType::sharded(0), ruleOf("ArgMax").Type)
            .isVarying());
}

TEST_CASE("type rules: a demand is what the rule asks for", "[types]") {
  Rule R;
  CHECK(R.ask("add", ReplicationType::partial(0), ruleOf("Add").Type).str() ==
        "Replicated");
  REQUIRE(R.Asked.size() == 1);
  CHECK(R.Asked[0].Kind == Demand::Reduce);
  // No linear op comes before the sum, so its output is reduced.
  CHECK(R.Asked[0].Source == R.end("sum"));
}

TEST_CASE("type rules: an op of each trait", "[types]") {
  CHECK(traitsOf("Mul") & trait::LinearInEach);
  CHECK(traitsOf("IdentityN") & trait::LinearInSame);
  CHECK(ruleOf("NoSuchOp").Type == nullptr);
  CHECK(traitsOf("NoSuchOp") & trait::Opaque);
  CHECK_FALSE(traitsOf("MatrixSquareRoot") & trait::Opaque);
  CHECK(traitsOf("RandomShuffle") & trait::Draws);
  CHECK_FALSE(traitsOf("PlaceholderWithDefault") & trait::KeepsZeros);
}
