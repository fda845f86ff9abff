//===- test/unit/PipelineTest.cpp - pipelines and their text ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/BuildPipeline.h"
#include "lib/io/Module.h"
#include "lib/pass/PassManager.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

constexpr PassOption PaintOptions[] = {{"color", "The color", "red"},
                                       {"twice", "Two coats", "false"},
                                       {"count", "How many", "3"}};

class Paint final : public PassBase<Paint> {
public:
  static constexpr PassInfo Info = {"paint-all", "Paint", "Paints.",
                                    PaintOptions};
  PassResult run(Module &, DiagnosticEngine &) override {
    return PassResult::Unchanged;
  }
};

class Dry final : public PassBase<Dry> {
public:
  static constexpr PassInfo Info = {"dry", "Dry", "Dries.", {}};
  PassResult run(Module &, DiagnosticEngine &) override {
    return PassResult::Unchanged;
  }
};

PassRegistry registry() {
  PassRegistry R;
  R.add(Paint::Info,
        []() -> std::unique_ptr<Pass> { return std::make_unique<Paint>(); });
  R.add(Dry::Info,
        []() -> std::unique_ptr<Pass> { return std::make_unique<Dry>(); });
  return R;
}

/// The canonical text of a pipeline, or the error.
std::string canonical(llvm::StringRef Text) {
  PassRegistry R = registry();
  PassManager M(R);
  if (llvm::Error E = M.parse(Text))
    return "error: " + llvm::toString(std::move(E));
  return M.str();
}

} // namespace

TEST_CASE("the registry is sorted", "[pipeline]") {
  PassRegistry R = registry();
  CHECK(R.names() == std::vector<std::string>{"dry", "paint-all"});
  CHECK(R.find("dry") != nullptr);
  CHECK(R.find("wet") == nullptr);
}

TEST_CASE("pipelines are printed in their canonical form", "[pipeline]") {
  CHECK(canonical("") == "");
  CHECK(canonical(" dry , dry ") == "dry,dry");
  CHECK(canonical("dry{}") == "dry");
  CHECK(canonical("paint-all{color=red count=3}") == "paint-all");
  CHECK(canonical("paint-all{ count=4,color=blue }") ==
        "paint-all{color=blue,count=4}");
  CHECK(canonical("paint-all{twice}") == "paint-all{twice=true}");
  CHECK(canonical("paint-all{color=a=b:0/x*;c(1)},dry") ==
        "paint-all{color=a=b:0/x*;c(1)},dry");
  CHECK(canonical("paint-all{color='a, {b}' twice}") ==
        "paint-all{color='a, {b}',twice=true}");
  CHECK(canonical("paint-all{color='it''s'}") == "paint-all{color='it''s'}");
  CHECK(canonical("paint-all{color=''}") == "paint-all{color=''}");
  CHECK(canonical("paint-all{color=}") == "paint-all{color=''}");
}

TEST_CASE("pipeline errors point at their place", "[pipeline]") {
  CHECK(canonical("dry,paint-al") ==
        "error: unknown pass 'paint-al'; did you mean 'paint-all'?\n"
        "  dry,paint-al\n"
        "      ^~~~~~~~");
  CHECK(canonical("paint-all{colour=x}") ==
        "error: pass 'paint-all' has no option 'colour'; did you mean "
        "'color'?\n"
        "  paint-all{colour=x}\n"
        "            ^~~~~~");
  CHECK(canonical("dry{x}") == "error: pass 'dry' has no option 'x'; it has "
                               "none\n"
                               "  dry{x}\n"
                               "      ^");
  for (llvm::StringRef Bad :
       {",", "dry,", "dry dry", "dry}", "dry{", "{}", "paint-all{color='x}",
        "paint-all{color=x{}", "paint-all{,}", "paint-all{=x}"})
    CHECK(llvm::StringRef(canonical(Bad)).starts_with("error: "));
}

TEST_CASE("options have values and defaults", "[pipeline]") {
  Paint P;
  CHECK(P.option("color") == "red");
  CHECK(*P.unsignedOption("count") == 3);
  CHECK(P.setOption("color", "blue"));
  CHECK(P.option("color") == "blue");
  CHECK(!P.setOption("shape", "round"));
  CHECK(P.setOption("count", "many"));
  CHECK(llvm::toString(P.unsignedOption("count").takeError()) ==
        "option 'count' of pass 'paint-all' must be a number, not 'many'");
}

TEST_CASE("a strategy is a pipeline", "[pipeline]") {
  auto Has = [](const std::string &Pipeline, llvm::StringRef Part) {
    return llvm::StringRef("," + Pipeline + ",")
        .contains(("," + Part + ",").str());
  };
  StrategyOptions O;
  O.Replicas = 4;
  // Options that say nothing are left out.
  std::string P = buildPipeline(O);
  CHECK(Has(P, "replicate{replicas=4}"));
  CHECK(Has(P, "insert-collectives"));
  CHECK(Has(P, "check-replication,expand-replicas"));
  CHECK(Has(P, "merge-fetches{heads=true}"));
  CHECK(llvm::StringRef(P).count('{') == 2);

  O.Replicas = 0;
  O.Strategy = "ps";
  O.Devices = {"/device:CPU:0", "/device:CPU:1"};
  O.Feeds = {"x=split(1)", "y"};
  O.Fetches = {"loss:0", "acc"};
  O.Grads = {"w=g,mean", "v=h,sum"};
  O.Reduction = "collective";
  O.NoGradientSlots = true;
  P = buildPipeline(O);
  CHECK(Has(P, "assign-strategy{strategy=ps}"));
  CHECK(Has(P, "replicate{devices=/device:CPU:0;/device:CPU:1,"
               "feed=x=split(1);y}"));
  CHECK(Has(P, "insert-reductions{grad='w=g,mean;v=h,sum',"
               "no-gradient-slots=true}"));
  CHECK(Has(P, "merge-fetches{fetch=loss:0;acc,heads=true}"));
  CHECK(Has(P, "insert-collectives{reduction=collective}"));
}

TEST_CASE("a strategy that decides by devices is given them", "[pipeline]") {
  StrategyOptions O;
  O.Replicas = 2;
  CHECK_FALSE(O.hasRecord());
  O.DeviceType = "CPU";
  O.Strategy = "partitioned-ps";
  CHECK(O.hasRecord());
  auto Begins = [&](llvm::StringRef Text) {
    return llvm::StringRef(buildPipeline(O)).starts_with(Text);
  };
  CHECK(Begins("inline-functions,assign-strategy{strategy=partitioned-ps,"
               "devices=/device:CPU:0;/device:CPU:1},partition-variables,"));
  // Whole variables need no such pass; of a file nobody knows.
  O.Strategy = "parallax";
  CHECK(Begins("inline-functions,assign-strategy{strategy=parallax,"
               "devices=/device:CPU:0;/device:CPU:1},replicate"));
  O.Strategy = "a file";
  CHECK(Begins("inline-functions,assign-strategy{strategy='a file',"
               "devices=/device:CPU:0;/device:CPU:1},partition-variables,"));
}

TEST_CASE("line differences", "[pipeline]") {
  CHECK(lineDiff("a\nb\nc\n", "a\nb\nc\n") == "");
  CHECK(lineDiff("a\nb\nc\n", "a\nx\nc\ny\n") == "-b\n+x\n+y\n");
  CHECK(lineDiff("", "a\n") == "+a\n");
  CHECK(lineDiff("a\nb\n", "") == "-a\n-b\n");
  CHECK(lineDiff("a\nb\n", "b\na\n") == "");
}
