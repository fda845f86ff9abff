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

/// Infers the shape of a variable: the declared sizes, except where assigned
/// values have different sizes.
static void variable(SizeContext &C) {
  DimList List;
  if (C.isVariant(SizeContext::AnyAxis) || !C.sizesFrom("shape", List))
    return;
  for (unsigned I = 0; I < List.size(); ++I)
    if (C.isVariant(I))
      List[I] = C.slot(SizeContext::ElementSlot + I);
  C.setShape(0, List);
}

static void variableShape(SizeContext &C) {
  if (Dims X = C.in(0)) {
    C.setShape(0, C.number(0, int64_t(X->size())));
    C.setValue(0, *C.in(0));
  }
}

} // namespace sizes

namespace types {
/// Types a read of a variable or of its shape, which are equal on all replicas.
/// A lookup by row has the rule of Gather.
static void readVariable(TypeContext &C) {
  C.setAll(ReplicationType::replicated());
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule ReadVariable = {.Type = types::readVariable,
                                 .Elements = ElementsOf::Nothing};

} // namespace

ArrayRef<OpRule> families::variables() {
  static const OpRule Rules[] = {
      {.Op = op::VariableV2, .Sizes = sizes::variable},
      {.Op = op::Variable, .Sizes = sizes::variable},
      {.Op = op::VarHandleOp, .Sizes = sizes::fromAttr},
      entry(op::ReadVariableOp, ReadVariable,
            {.Sizes = sizes::same, .Is = ReadsVariable}),
      entry(op::VarIsInitializedOp, ReadVariable,
            {.Sizes = sizes::scalar, .Is = AsksVariable}),
      entry(op::IsVariableInitialized, ReadVariable,
            {.Sizes = sizes::scalar, .Is = AsksVariable}),
      entry(op::VariableShape, ReadVariable,
            {.Sizes = sizes::variableShape, .Is = AsksVariable}),
      {.Op = op::Assign, .Sizes = sizes::same},
      {.Op = op::AssignAdd, .Sizes = sizes::same},
      {.Op = op::AssignSub, .Sizes = sizes::same},
  };
  return Rules;
}

} // namespace graft
