//===- test/unit/infer/VariablesTest.cpp ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

using namespace graft;

TEST_CASE("handles are followed through what passes them on", "[variables]") {
  Builder B;
  NodeId W = B.variable("w", {4});
  NodeId V = B.variable("v", {4});
  B.op("Identity", "alias", {"w"}, DT_RESOURCE);
  B.placeholder("p", {}, DT_BOOL);
  B.op("Switch", "branch", {"alias", "p"}, DT_RESOURCE);
  B.op("Enter", "enter", {"branch"}, DT_RESOURCE);
  B.op("ReadVariableOp", "read", {"enter"});
  B.op("Identity", "copy", {"read"});
  B.floats("zeros", {4}, 0);
  NodeId Set = B.op("AssignVariableOp", "set", {"alias", "zeros"});
  B.number("lr", 0.1);
  NodeId Step =
      B.op("ResourceApplyGradientDescent", "step", {"v", "lr", "read"});
  const VariableIndex &Vars = B.facts().Vars;
  CHECK(Vars.variables() == llvm::ArrayRef<NodeId>({W, V}));
  for (const char *Name : {"w", "alias", "branch", "enter"})
    CHECK(Vars.variableOf(B.end(Name)) == W);
  CHECK(Vars.variableOf(B.end("read")) == NoNode);
  CHECK(Vars.variableOf(B.end("copy")) == NoNode);
  CHECK(Vars.variableOf(B.end("^w")) == NoNode);
  CHECK(Vars.isUpdate(B.G, Set));
  CHECK(Vars.update(B.G, Set).Kind == UpdateKind::Assign);
  CHECK(Vars.update(B.G, Step).Kind == UpdateKind::Apply);
  CHECK(Vars.update(B.G, Step).Grad == 2);
  CHECK_FALSE(Vars.isUpdate(B.G, B.end("read").Node));
  CHECK(Vars.usesInPlace(B.G, Set, 0));
  CHECK_FALSE(Vars.usesInPlace(B.G, Set, 1));
}

TEST_CASE("references end where they are read", "[variables]") {
  Builder B;
  NodeId W = B.shaped("VariableV2", "w", {4}, DT_FLOAT);
  B.floats("ones", {4}, 1);
  B.op("Assign", "assign", {"w", "ones"});
  B.op("AssignAdd", "again", {"assign", "ones"});
  NodeId Read = B.op("Identity", "read", {"again"});
  NodeId Sum = B.op("Add", "sum", {"w", "read"});
  const VariableIndex &Vars = B.facts().Vars;
  CHECK(Vars.variableOf(B.end("assign")) == W);
  CHECK(Vars.variableOf(B.end("again")) == W);
  CHECK(Vars.variableOf(B.end("read")) == NoNode);
  CHECK_FALSE(Vars.usesInPlace(B.G, Read, 0));
  CHECK_FALSE(Vars.usesInPlace(B.G, Sum, 0));
  CHECK(Vars.usesInPlace(B.G, B.end("again").Node, 0));
}

TEST_CASE("slots of updates come from the op's definition", "[variables]") {
  struct Row {
    const char *Op;
    UpdateKind Kind;
    int Vars, Grad, Indices;
  };
  for (Row R : {Row{"ResourceApplyAdam", UpdateKind::Apply, 3, 9, -1},
                Row{"ApplyAdam", UpdateKind::Apply, 3, 9, -1},
                Row{"ResourceApplyMomentum", UpdateKind::Apply, 2, 3, -1},
                Row{"ResourceApplyAdagradV2", UpdateKind::Apply, 2, 4, -1},
                Row{"ResourceSparseApplyAdagradV2", UpdateKind::Apply, 2, 4, 5},
                Row{"ResourceScatterSub", UpdateKind::Scatter, 1, 2, 1},
                Row{"AssignSubVariableOp", UpdateKind::AssignAdd, 1, 1, -1},
                Row{"Assign", UpdateKind::Assign, 1, 1, -1}}) {
    INFO(R.Op);
    const OpDef *Def = findOp(R.Op);
    REQUIRE(Def);
    UpdateDef U = Def->update();
    CHECK(U.Kind == R.Kind);
    CHECK(int(U.NumVars) == R.Vars);
    CHECK(int(U.Grad) == R.Grad);
    CHECK(int(U.Indices) == R.Indices);
  }
  CHECK(findOp("ReadVariableOp")->update().Kind == UpdateKind::None);
  CHECK(findOp("ReadVariableOp")->readsVariable());
  CHECK_FALSE(findOp("MatMul")->readsVariable());
}
