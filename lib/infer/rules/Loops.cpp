//===- lib/infer/rules/Loops.cpp - tensor arrays and stacks -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The shape of a tensor array or a stack is that of its elements, which have
// one shape; it is kept at the node that makes it. Loop counters have no
// tracked value: they are another number each time.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// The array or stack of the node, by its first operand.
static NodeId handle(SizeContext &C) {
  return C.numData() > 0 ? C.Loops->handleOf(C.Inputs[0]) : NoNode;
}

/// The sizes of its elements.
static Dims element(SizeContext &C) {
  NodeId Of = handle(C);
  return Of == NoNode ? std::nullopt : C.Known.shape({Of, 0});
}

/// The elements' sizes, after one that is \p First.
static void setRows(SizeContext &C, DimId First, llvm::ArrayRef<DimId> Rest) {
  DimList List{First};
  List.append(Rest.begin(), Rest.end());
  C.setShape(0, List);
}

static void makeArray(SizeContext &C) {
  C.setShape(1, {});
  if (!C.flag("dynamic_size"))
    C.hold(C.N, 0);
  DimList List;
  if (C.sizesFrom("element_shape", List))
    C.setElement(C.N, List);
}

static void gradArray(SizeContext &C) {
  C.setShape(1, {});
  NodeId Of = handle(C), Mine = C.Loops->handleOf({C.N, 0});
  if (Of == NoNode || Mine == NoNode)
    return;
  C.holdLike(Mine, Of);
  if (Dims E = element(C); E && !C.isOp(op::TensorArrayGradWithShape))
    C.setElement(Mine, *E);
}

static void push(SizeContext &C) {
  C.passShape(0, C.inRun(1));
  NodeId Of = handle(C);
  if (Of == NoNode)
    return;
  if (Dims X = C.in(1))
    C.setElement(Of, *X);
  // More than one push: not the same integers each time.
  auto Pushes = count_if(C.Loops->usersOf(Of), [&](NodeId User) {
    return C.G.isOp(User, op::StackPushV2);
  });
  if (Pushes == 1)
    C.hold(Of, 1);
  else
    C.hold(Of, DimRun());
  if (Dims V = C.val(1))
    C.setValue(0, *V);
}

static void setHeld(SizeContext &C) {
  if (NodeId Of = handle(C); Of != NoNode)
    if (Dims V = C.held(Of))
      C.setValue(0, *V);
}

static void pop(SizeContext &C) {
  if (Dims E = element(C))
    C.setShape(0, *E);
  setHeld(C);
}

static void arraySize(SizeContext &C) {
  C.setShape(0, {});
  setHeld(C);
}

static void arrayRead(SizeContext &C) {
  if (Dims E = element(C))
    C.setShape(0, *E);
}

static void arrayWrite(SizeContext &C) {
  C.setShape(0, {});
  NodeId Of = handle(C);
  if (Dims X = C.in(2); X && Of != NoNode)
    C.setElement(Of, *X);
}

static void arrayGather(SizeContext &C) {
  Dims E = element(C), Rows = C.in(1);
  if (E)
    setRows(C, Rows && Rows->size() == 1 ? (*Rows)[0] : C.slot(0), *E);
}

static void arrayScatter(SizeContext &C) {
  C.setShape(0, {});
  NodeId Of = handle(C);
  if (Dims X = C.in(2); X && !X->empty() && Of != NoNode) {
    if (Dims Rows = C.in(1); Rows && Rows->size() == 1)
      C.same((*Rows)[0], (*X)[0]);
    C.setElement(Of, C.in(2)->drop_front());
  }
}

static void arraySplit(SizeContext &C) {
  C.setShape(0, {});
  NodeId Of = handle(C);
  if (Dims X = C.in(1); X && !X->empty() && Of != NoNode) {
    DimList List{C.slot(0)};
    List.append(X->begin() + 1, X->end());
    C.setElement(Of, List);
  }
}

static void arrayConcat(SizeContext &C) {
  C.setShape(1, C.slot(1));
  if (Dims E = element(C); E && !E->empty())
    setRows(C, C.slot(0), E->drop_front());
}

} // namespace sizes

ArrayRef<OpRule> families::loops() {
  static constexpr OpRule Rules[] = {
      // Tensor arrays and stacks.
      {.Op = op::StackV2, .Type = TypeRule::LocalHandle},
      {.Op = op::StackPushV2,
       .Sizes = sizes::push,
       .Type = TypeRule::LocalHandle},
      {.Op = op::StackPopV2,
       .Sizes = sizes::pop,
       .Type = TypeRule::LocalHandle},
      {.Op = op::StackCloseV2, .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayV3,
       .Sizes = sizes::makeArray,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayGradV3,
       .Sizes = sizes::gradArray,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayGradWithShape,
       .Sizes = sizes::gradArray,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayReadV3,
       .Sizes = sizes::arrayRead,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayWriteV3,
       .Sizes = sizes::arrayWrite,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayGatherV3,
       .Sizes = sizes::arrayGather,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayScatterV3,
       .Sizes = sizes::arrayScatter,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayConcatV3,
       .Sizes = sizes::arrayConcat,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArraySplitV3,
       .Sizes = sizes::arraySplit,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArraySizeV3,
       .Sizes = sizes::arraySize,
       .Type = TypeRule::LocalHandle},
      {.Op = op::TensorArrayCloseV3, .Type = TypeRule::LocalHandle},
  };
  return Rules;
}

} // namespace graft
