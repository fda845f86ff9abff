//===- lib/infer/rules/Variables.cpp - variables ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads and updates of variables.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void variableShape(SizeContext &C) {
  if (Dims X = C.in(0)) {
    C.setShape(0, C.number(0, int64_t(X->size())));
    C.setValue(0, *C.in(0));
  }
}

} // namespace sizes

ArrayRef<OpRule> families::variables() {
  static constexpr OpRule Rules[] = {
      // Variables.
      {.Op = op::VariableV2, .Sizes = sizes::fromAttr},
      {.Op = op::Variable, .Sizes = sizes::fromAttr},
      {.Op = op::VarHandleOp, .Sizes = sizes::fromAttr},
      {.Op = op::ReadVariableOp,
       .Sizes = sizes::same,
       .Type = TypeRule::ReadVariable},
      {.Op = op::VarIsInitializedOp,
       .Sizes = sizes::scalar,
       .Type = TypeRule::ReadVariable},
      {.Op = op::IsVariableInitialized,
       .Sizes = sizes::scalar,
       .Type = TypeRule::ReadVariable},
      {.Op = op::VariableShape,
       .Sizes = sizes::variableShape,
       .Type = TypeRule::ReadVariable},
      {.Op = op::Assign, .Sizes = sizes::same},
      {.Op = op::AssignAdd, .Sizes = sizes::same},
      {.Op = op::AssignSub, .Sizes = sizes::same},
  };
  return Rules;
}

} // namespace graft
