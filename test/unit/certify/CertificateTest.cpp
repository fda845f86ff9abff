//===- test/unit/certify/CertificateTest.cpp --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A right program, and an edit in each section that makes it wrong.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/Certificate.h"

#include "../infer/Builder.h"

using namespace graft;

namespace {

struct Pair {
  Builder Input, Program{2};

  Pair() {
    Input.G.remove(Input.G.find("graft/mesh"));
    Input.placeholder("x", {-1, 4});
    Program.feed("x", {-1, 4});
    for (Builder *B : {&Input, &Program}) {
      bool Program = B != &Input;
      std::string X = Program ? "x/split" : "x";
      B->ints("axis", {0});
      B->number("lr", 0.1);
      for (std::string Name : {"g", "h"}) {
        NodeId G = B->op("Mean", Name, {X, "axis"});
        NodeId W = B->variable("w_" + Name, {4});
        std::string Grad = Name;
        if (Program) {
          B->G.node(G).Flags |= NF_LocalName;
          B->G.node(W).Count = Copies::PerReplica;
          Grad += "/reduce";
          NodeId R = B->op("_Reduce", Grad, {Name});
          B->G.setStringAttr(R, "combine", "sum");
          B->G.setIntAttr(R, "power", -1);
          B->inserted(R, Inserted::Reduce);
        }
        NodeId S = B->op("ResourceApplyGradientDescent", "step_" + Name,
                         {"w_" + Name, "lr", Grad});
        if (Program)
          B->G.node(S).Flags |= NF_Led;
      }
      B->op("NoOp", "train", {"^step_g", "^step_h"});
    }
    Program.facts(); // marks per-replica nodes
  }

  std::vector<std::string> errors() {
    DiagnosticEngine Diags;
    bool Good = certifyProgram(Input.G, Program.G, Diags);
    CHECK(Good == !Diags.hasErrors());
    std::vector<std::string> Result;
    for (const Diagnostic &D : Diags.all())
      Result.push_back(D.Node + ": " + D.Message);
    return Result;
  }
  NodeId node(const char *Name) {
    NodeId N = Program.G.find(Name);
    REQUIRE(N != NoNode);
    return N;
  }
};

using Strings = std::vector<std::string>;

} // namespace

TEST_CASE("a right program is certified", "[certificate]") {
  Pair P;
  CHECK(P.errors().empty());
}

TEST_CASE("a wrong program is not", "[certificate]") {
  Pair P;
  Graph &G = P.Program.G;
  SECTION("a deleted reduction") {
    G.replaceUses({P.node("g/reduce"), 0}, {P.node("g"), 0});
    G.setInputs(P.node("g/reduce"), {{P.node("g"), 0}});
    G.remove(P.node("g/reduce"));
    CHECK(P.errors() == Strings{"g: output 0 is Partial(sum) k=1 and must be "
                                "reduced for 'step_g'"});
  }
  SECTION("another power") {
    G.setIntAttr(P.node("g/reduce"), "power", -2);
    CHECK(P.errors() == Strings{"g/reduce: output 0 is Replicated k=-1 and "
                                "must be scaled for 'step_g'"});
  }
  SECTION("a reduction twice") {
    NodeId Again = G.addNode("again", "_Reduce", {{P.node("g/reduce"), 0}},
                             P.node("g/reduce"));
    G.setTypeAttr(Again, "T", DT_FLOAT);
    G.setStringAttr(Again, "combine", "sum");
    P.Program.inserted(Again, Inserted::Reduce);
    G.setInput(P.node("step_g"), 2, {Again, 0});
    CHECK(P.errors() == Strings{"again: output 0 is Replicated k=1 and must be "
                                "scaled for 'step_g'"});
  }
  SECTION("swapped gradients") {
    G.setInput(P.node("step_g"), 2, {P.node("h/reduce"), 0});
    G.setInput(P.node("step_h"), 2, {P.node("g/reduce"), 0});
    CHECK(P.errors() ==
          Strings{"step_g: input 2 must be 'g:0', as in the input graph",
                  "step_h: input 2 must be 'h:0', as in the input graph"});
  }
  SECTION("a gradient from nowhere") {
    NodeId Zero = P.Program.floats("zero", {4}, 0);
    G.node(Zero).Kind = Inserted::Gate;
    G.addControlInput(Zero, P.node("g/reduce"));
    G.setInput(P.node("step_g"), 2, {Zero, 0});
    CHECK(P.errors() ==
          Strings{"step_g: input 2 must be 'g:0', as in the input graph",
                  "zero: op Const does not match its inserted kind 'gate'"});
  }
  SECTION("a node of the user is dropped") {
    G.setInputs(P.node("train"), {});
    G.remove(P.node("step_h"));
    CHECK(P.errors() == Strings{"step_h: this node of the input is missing"});
  }
  SECTION("a node that nobody asked for") {
    P.Program.number("new", 1);
    CHECK(P.errors() == Strings{"new: this node does not come from the input"});
  }
  SECTION("order is lost") {
    G.setInputs(P.node("train"), {{P.node("step_g"), ControlPort}});
    CHECK(
        P.errors() ==
        Strings{"train: has different control inputs than in the input graph"});
  }
  SECTION("order is added") {
    G.addControlInput(P.node("step_h"), P.node("step_g"));
    CHECK(
        P.errors() ==
        Strings{"step_h: has different control inputs than in the input graph",
                "step_h: a run of this node runs 'step_g', but not in the "
                "input graph"});
  }
  SECTION("a variable that only one copy of is updated") {
    G.node(P.node("step_g")).Count = Copies::Once;
    CHECK(P.errors().front() == "step_g: updates only one copy of a variable "
                                "that has one per replica");
  }
  SECTION("an update that does not wait for the other copies") {
    G.node(P.node("step_g")).Flags &= uint8_t(~NF_Led);
    CHECK(P.errors() ==
          Strings{"step_g: updates the copies of a variable, but "
                  "copy 0 of the update does not wait for the other copies"});
  }
  SECTION("a local value under a global name") {
    G.node(P.node("g")).Flags &= uint8_t(~NF_LocalName);
    CHECK(P.errors() ==
          Strings{"g: has the name of the input node but the value of one "
                  "replica, not that of the single-device step"});
  }
  SECTION("a user's attribute") {
    G.setBoolAttr(P.node("g"), "keep_dims", true);
    CHECK(P.errors().front() ==
          "g: attribute 'keep_dims' is not in the input graph");
  }
}

TEST_CASE("a dozen errors are enough", "[certificate]") {
  Pair P;
  for (unsigned I = 0; I < 40; ++I)
    P.Program.number("new" + std::to_string(I), 1);
  CHECK(P.errors().size() == 12);
}
