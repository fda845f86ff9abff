//===- lib/infer/rules/ControlFlow.cpp - branches and loops -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Control flow of version 1, and boxes for tensors that may be empty.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/Topology.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// A loop variable has the sizes that it starts with, as long as an iteration
/// leaves them as they are.
static void loopMerge(SizeContext &C) {
  C.setShape(1, {});
  if (C.isVariant(SizeContext::AnyAxis))
    return;
  Dims First;
  for (unsigned I = 0; I < C.numData() && !First; ++I)
    if (!isBackEdgeOp(C.G.opName(C.Inputs[I].Node)))
      First = C.in(I);
  if (!First)
    return;
  DimList List(First->begin(), First->end());
  for (unsigned D = 0; D < List.size(); ++D)
    if (C.isVariant(D))
      List[D] = C.slot(D);
  C.setShape(0, List);
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims Next = C.in(I);
    if (!Next || Next->size() != List.size())
      continue;
    // TensorFlow compared the numbers of static shapes.
    for (unsigned D = 0; D < List.size(); ++D)
      if (DimId Mine = List[D], Its = (*C.in(I))[D];
          !C.isVariant(D) && C.Table.number(Mine) != UnknownSize &&
          C.Table.number(Mine) == C.Table.number(Its))
        C.same(Mine, Its);
  }
}

/// The branches of a conditional: a size that is not the same in all is another
/// one. What comes round a loop says nothing here, nor does an Optional that is
/// empty.
static void merge(SizeContext &C) {
  if (C.Loops && C.Loops->isLoopMerge(C.N)) {
    loopMerge(C);
    return;
  }
  SmallVector<Endpoint, 2> Sides;
  for (Endpoint E : C.Inputs) {
    Endpoint From = E;
    while (C.G.isOp(From.Node, op::Identity))
      From = C.G.input(From.Node, 0);
    if (!C.G.isOp(From.Node, op::OptionalNone))
      Sides.push_back(E);
  }
  C.setShape(1, {});
  Dims First = Sides.empty() ? std::nullopt : C.Known.shape(Sides[0]);
  if (!First)
    return;
  for (Endpoint E : Sides)
    if (Dims X = C.Known.shape(E); !X || X->size() != First->size())
      return;
  DimList List;
  for (size_t D = 0; D < First->size(); ++D) {
    DimId X = (*First)[D];
    bool Same = all_of(Sides, [&](Endpoint E) {
      DimId Y = (*C.Known.shape(E))[D];
      return C.Table.find(X) == C.Table.find(Y) ||
             (C.Table.number(X) != UnknownSize &&
              C.Table.number(X) == C.Table.number(Y) &&
              (C.options().Unpatched ||
               C.Table.hasSym(X) == C.Table.hasSym(Y)));
    });
    for (Endpoint E : Sides)
      if (Same)
        C.same(X, (*C.Known.shape(E))[D]);
    List.push_back(Same ? X : C.slot(D));
  }
  C.setShape(0, List);
  if (Dims X = C.Known.value(Sides[0]);
      X && all_of(Sides, [&](Endpoint E) {
        Dims Y = C.Known.value(E);
        return Y && Y->size() == X->size() &&
               all_of(zip(*X, *Y), [&](auto Pair) {
                 auto [U, V] = Pair;
                 return C.Table.find(U) == C.Table.find(V);
               });
      }))
    C.setValue(0, *X);
}

static void optional(SizeContext &C) {
  // As with a handle, the shape of the box is that of what is in it.
  if (C.numData() == 1 && C.numOutputs() == 1) {
    C.passShape(0, C.inRun(0));
    if (Dims X = C.val(0))
      C.setValue(0, *X);
  }
}

} // namespace sizes

ArrayRef<OpRule> families::controlFlow() {
  static constexpr OpRule Rules[] = {
      // Version 1 control flow.
      {.Op = op::Switch,
       .Sizes = sizes::same,
       .Values = values::same,
       .Type = TypeRule::Switch},
      {.Op = op::RefSwitch, .Sizes = sizes::same, .Type = TypeRule::Switch},
      {.Op = op::RefMerge, .Sizes = sizes::merge, .Type = TypeRule::Merge},
      {.Op = op::OptionalFromValue,
       .Sizes = sizes::optional,
       .Type = TypeRule::Optional},
      {.Op = op::OptionalGetValue,
       .Sizes = sizes::optional,
       .Type = TypeRule::Optional},
      {.Op = op::OptionalNone, .Type = TypeRule::OptionalNone},
      {.Op = op::Merge,
       .Sizes = sizes::merge,
       .Type = TypeRule::Merge,
       .Is = trait::ComparesSizes},
      {.Op = op::Enter,
       .Sizes = sizes::same,
       .Values = values::same,
       .Type = TypeRule::Pass},
      {.Op = op::RefEnter, .Sizes = sizes::same, .Type = TypeRule::Pass},
      {.Op = op::Exit, .Sizes = sizes::same, .Type = TypeRule::Pass},
      {.Op = op::RefExit, .Sizes = sizes::same, .Type = TypeRule::Pass},
      {.Op = op::NextIteration, .Sizes = sizes::same, .Type = TypeRule::Pass},
      {.Op = op::RefNextIteration,
       .Sizes = sizes::same,
       .Type = TypeRule::Pass},
      {.Op = op::LoopCond, .Sizes = sizes::same, .Type = TypeRule::Pass},
  };
  return Rules;
}

} // namespace graft
