//===- test/unit/PipelineTest.cpp - pipelines and their text ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/BuildPipeline.h"
#include "lib/io/Module.h"
#include "lib/io/write/Changes.h"
#include "lib/pass/PassManager.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

enum class Finish : uint8_t { Matt, Gloss };
constexpr llvm::StringLiteral wordsOf(Finish) { return "matt|gloss"; }

struct PaintOptions : PassOptions {
  Option<std::string> Color{*this, "color", "The color", "red"};
  Option<bool> Twice{*this, "twice", "Two coats"};
  Option<unsigned> Count{*this, "count", "How many", 3, /*Least=*/1};
  Option<Finish> How{*this, "finish", "How"};
  Option<std::vector<std::string>> Rooms{*this, "rooms", "Which"};
};

class Paint final : public PassBase<Paint, PaintOptions> {
public:
  static constexpr PassInfo Info = {"paint-all", "Paint", "Paints."};
  PassResult run(Module &, DiagnosticEngine &) override {
    return PassResult::Unchanged;
  }
};

class Dry final : public PassBase<Dry> {
public:
  static constexpr PassInfo Info = {"dry", "Dry", "Dries."};
  PassResult run(Module &, DiagnosticEngine &) override {
    return PassResult::Unchanged;
  }
};

PassRegistry registry() {
  PassRegistry R;
  R.add(Paint::create());
  R.add(Dry::create());
  return R;
}

/// Returns the canonical text of a pipeline, or the error.
std::string canonical(llvm::StringRef Text) {
  PassRegistry R = registry();
  auto P = Pipeline::parse(Text, R);
  return P ? P->clone().str() : "error: " + llvm::toString(P.takeError());
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
  PaintOptions O;
  CHECK(*O.Color == "red");
  CHECK(O.Count == 3);
  CHECK(O.find("color")->parse("blue") == "");
  CHECK(*O.Color == "blue");
  CHECK(O.find("shape") == nullptr);
  CHECK(O.Count.parse("2K") == "");
  CHECK(O.Count == 2048);
  CHECK(O.Count.parse("many") == "'many' is not a number from 1 to 4294967295");
  CHECK(O.Count.parse("0") == "'0' is not a number from 1 to 4294967295");
  CHECK(O.How.parse("gloss") == "");
  CHECK(O.How == Finish::Gloss);
  CHECK(O.How.parse("glos") == "unknown value 'glos'; did you mean 'gloss'?");
  CHECK(O.Twice.parse("no") == "unknown value 'no'; give one of false, true");
  CHECK(O.Rooms.parse("hall;;attic") == "");
  CHECK(O.Rooms.add("bath") == "");
  CHECK(O.Rooms.print() == "hall;attic;bath");
  CHECK(O.Rooms.parse("hall") == "");
  CHECK(O.Rooms->size() == 1);
  // A copy has its own options.
  PaintOptions Copy = O;
  Copy.Color = "green";
  CHECK(Copy.find("color")->print() == "green");
  CHECK(O.find("color")->print() == "blue");
}

TEST_CASE("a strategy is a pipeline", "[pipeline]") {
  auto Has = [](const std::string &Pipeline, llvm::StringRef Part) {
    return llvm::StringRef("," + Pipeline + ",")
        .contains(("," + Part + ",").str());
  };
  StrategyOptions O;
  O.Replicas = 4;
  // Options with their default are left out.
  std::string P = buildPipeline(O).str();
  CHECK(Has(P, "replicate{replicas=4}"));
  CHECK(Has(P, "insert-collectives"));
  CHECK(Has(P, "check-replication,expand-replicas"));
  CHECK(Has(P, "merge-fetches{forward=true}"));
  CHECK(llvm::StringRef(P).count('{') == 2);

  O = StrategyOptions("ps");
  O.Replicate.Devices = {"/device:CPU:0", "/device:CPU:1"};
  O.Replicate.Feed = {"x=split(1)", "y"};
  O.Fetches = {"loss:0", "acc"};
  O.Reduce.Grad = {"w=g,mean", "v=h,sum"};
  O.Collectives.How = ReductionKind::Collective;
  O.Reduce.NoGradientSlots = true;
  P = buildPipeline(O).str();
  CHECK(Has(P, "assign-strategy{strategy=ps}"));
  CHECK(Has(P, "replicate{devices=/device:CPU:0;/device:CPU:1,"
               "feed=x=split(1);y}"));
  CHECK(Has(P, "insert-reductions{fetch=loss:0;acc,"
               "grad='w=g,mean;v=h,sum',no-gradient-slots=true}"));
  CHECK(Has(P, "merge-fetches{fetch=loss:0;acc,forward=true}"));
  CHECK(Has(P, "insert-collectives{reduction=collective}"));
}

TEST_CASE("a strategy that decides by devices is given them", "[pipeline]") {
  auto Begins = [](llvm::StringRef Strategy, llvm::StringRef Text) {
    StrategyOptions O(Strategy);
    O.Replicas = 2;
    O.DeviceType = "CPU";
    return llvm::StringRef(buildPipeline(O).str()).starts_with(Text);
  };
  CHECK(Begins("tpu", "inline-functions,assign-strategy,replicate{"));
  CHECK(Begins("partitioned-ps",
               "inline-functions,order-reads,"
               "assign-strategy{strategy=partitioned-ps,"
               "devices=/device:CPU:0;/device:CPU:1},partition-variables,"));
  // Whole variables need no partition-variables; a file may need it.
  CHECK(Begins("parallax", "inline-functions,order-reads,"
                           "assign-strategy{strategy=parallax,"
                           "devices=/device:CPU:0;/device:CPU:1},replicate"));
  CHECK(Begins("a file",
               "inline-functions,order-reads,"
               "assign-strategy{strategy='a file',"
               "devices=/device:CPU:0;/device:CPU:1},partition-variables,"));
}

TEST_CASE("changes of nodes", "[pipeline]") {
  using Nodes = std::vector<NodeText>;
  NodeText A{"a",   "Add",           {"x", "y:1"},
             {"c"}, "/device:CPU:0", {{"T", "float"}}};
  NodeText B{"b", "NoOp"};
  auto Changes = [](const Nodes &Before, const Nodes &After,
                    bool Colors = false) {
    std::string Out;
    llvm::raw_string_ostream OS(Out);
    OS.enable_colors(Colors);
    printChanges(OS, Before, After, Colors);
    return Out;
  };
  CHECK(A.str() == "a = Add(x, y:1, ^c) @/device:CPU:0 T=float");
  CHECK(Changes({A, B}, {A, B}).empty());
  CHECK(Changes({A, B}, {B, A}).empty());
  CHECK(Changes({}, {B}) == "+b = NoOp()\n");
  CHECK(Changes({A, B}, {A}) == "-b = NoOp()\n");
  NodeText C = A;
  C.Inputs = {"x", "z", "w"};
  C.Controls = {"d"};
  C.Device = "";
  C.Attrs = {{"S", "1"}, {"T", "half"}};
  CHECK(Changes({B, A}, {B, C}) == " a = Add\n"
                                   "-  input 1: y:1\n"
                                   "+  input 1: z\n"
                                   "+  input 2: w\n"
                                   "-  ^c\n"
                                   "+  ^d\n"
                                   "-  @/device:CPU:0\n"
                                   "+  S=1\n"
                                   "-  T=float\n"
                                   "+  T=half\n");
  NodeText D = A;
  D.Op = "Add*2";
  CHECK(Changes({A}, {D}) == "-a = Add\n+a = Add*2\n");
  // An added node stands at its new place, a removed one at its old place.
  CHECK(Changes({B, A}, {A, {"n", "NoOp"}}) == "-b = NoOp()\n+n = NoOp()\n");
  CHECK(Changes({}, {B}, /*Colors=*/true) == "\x1b[0;32m+b = NoOp()\x1b[0m\n");
}
