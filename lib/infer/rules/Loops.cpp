//===- lib/infer/rules/Loops.cpp - tensor arrays and stacks -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The tracked shape of the handle of a TensorArray or a stack is the shape of
// an element. If the elements may differ in size, each node that reads an
// element gets fresh size variables. Loop counters have no tracked value,
// because each iteration changes them.
//
// All elements of an array or a stack have the same type
// (lib/infer/types/LoopTypes.cpp). The flow of an array is Varying if replicas
// may have accessed it differently.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void setElement(SizeContext &C, NodeId Of, ArrayRef<DimId> List) {
  // The TensorArrayV3 of an array also declares the gradient array.
  NodeId Made = Of, Next = Of;
  for (; Next != NoNode && !C.G.isOp(Made, op::TensorArrayV3);
       Next = C.G.node(Made).NumData > 0 ? C.Loops->handleOf(C.G.input(Made, 0))
                                         : NoNode)
    Made = Next;
  using Sharing = SizeContext::Sharing;
  bool IsDeclared =
      C.G.boolAttr(Made, "identical_element_shapes").value_or(false);
  C.setElement(Of, List,
               IsDeclared                  ? Sharing::Declared
               : C.G.isOp(Of, op::StackV2) ? Sharing::Turns
                                           : Sharing::None);
}

/// Returns the sizes of the element that the node reads.
static std::optional<DimList> element(SizeContext &C) {
  return C.element(C.handle());
}

void setRows(SizeContext &C, DimId First, llvm::ArrayRef<DimId> Rest) {
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
    setElement(C, C.N, List);
}

static void gradArray(SizeContext &C) {
  C.setShape(1, {});
  NodeId Of = C.handle(), Mine = C.handleMade();
  if (Of == NoNode || Mine == NoNode)
    return;
  C.holdLike(Mine, Of);
  if (auto E = element(C); E && !C.isOp(op::TensorArrayGradWithShape))
    setElement(C, Mine, *E);
}

static void push(SizeContext &C) {
  C.passShape(0, C.inRun(1));
  NodeId Of = C.handle();
  if (Of == NoNode)
    return;
  if (Dims X = C.in(1))
    setElement(C, Of, *X);
  C.push(Of);
  if (Dims V = C.val(1))
    C.setValue(0, *V);
}

void setHeld(SizeContext &C, unsigned Port) {
  if (NodeId Of = C.handle(); Of != NoNode)
    if (Dims V = C.held(Of))
      C.setValue(Port, *V);
}

static void pop(SizeContext &C) {
  if (auto E = element(C))
    C.setShape(0, *E);
  setHeld(C, 0);
}

static void arraySize(SizeContext &C) {
  C.setShape(0, {});
  setHeld(C, 0);
  // A loop writes one element per iteration. The types show later if replicas
  // may run different numbers of iterations.
  if (!C.Known.value({C.N, 0}) && !C.Loops->givesInside(C.N))
    C.setShared();
}

static void arrayRead(SizeContext &C) {
  if (auto E = element(C))
    C.setShape(0, *E);
}

static void arrayWrite(SizeContext &C) {
  C.setShape(0, {});
  NodeId Of = C.handle();
  if (Dims X = C.in(2); X && Of != NoNode)
    setElement(C, Of, *X);
}

void gatherElements(SizeContext &C) {
  auto E = element(C);
  Dims Rows = C.in(1);
  if (E)
    setRows(C, Rows && Rows->size() == 1 ? (*Rows)[0] : C.slot(0), *E);
}

static void arrayScatter(SizeContext &C) {
  C.setShape(0, {});
  NodeId Of = C.handle();
  if (Dims X = C.in(2); X && !X->empty() && Of != NoNode) {
    if (Dims Rows = C.in(1); Rows && Rows->size() == 1)
      C.same((*Rows)[0], (*X)[0]);
    setElement(C, Of, C.in(2)->drop_front());
  }
}

static void arraySplit(SizeContext &C) {
  C.setShape(0, {});
  NodeId Of = C.handle();
  if (Dims X = C.in(1); X && !X->empty() && Of != NoNode) {
    DimList List{C.slot(0)};
    List.append(X->begin() + 1, X->end());
    setElement(C, Of, List);
  }
}

static void arrayConcat(SizeContext &C) {
  C.setShape(1, C.slot(1));
  if (auto E = element(C); E && !E->empty())
    setRows(C, C.slot(0), ArrayRef(*E).drop_front());
}

} // namespace sizes

namespace {

/// Returns the type of the flow of an array, the last operand.
ReplicationType flowOf(const TypeContext &C) {
  return C.operand(C.numData() - 1);
}

/// Returns the type of the element index in operand \p I; Varying if replicas
/// may access different elements.
ReplicationType placeOf(TypeContext &C, unsigned I) {
  ReplicationType Flow = flowOf(C);
  return Flow.isVarying() ? C.varyingLike(Flow) : types::indexOfElement(C, I);
}

ReplicationType elementOf(TypeContext &C) {
  auto Element = C.element(C.handle());
  return Element ? *Element : C.varying("uses an unknown TensorArray or stack");
}

/// Types a write that stores the slices of \p X along axis 0 as elements of the
/// array. \p Index is the type of the element indices. If \p DropsAxis is set,
/// an element has one axis less than X.
void spread(TypeContext &C, ReplicationType X, ReplicationType Index,
            bool DropsAxis) {
  if (Index.isVarying())
    X = Index;
  else if (X.isSharded() && X.Axis == 0)
    X = C.varying("splits the batch axis into the elements of an array");
  else if (X.isSharded() && DropsAxis)
    X.setAxis(X.Axis - 1);
  C.hold(C.handle(), X);
  C.set(0, X.isVarying() ? X : ReplicationType::replicated());
}

} // namespace

namespace types {

ReplicationType equalOnReplicas(TypeContext &C, unsigned I, const Twine &Why) {
  ReplicationType X = C.plain(I);
  if (X.isReplicated())
    return X;
  return X.isVarying() ? C.varyingLike(X) : C.varying(Why);
}

ReplicationType indexOfElement(TypeContext &C, unsigned I) {
  return equalOnReplicas(C, I, "accesses different elements on each replica");
}

ReplicationType behindNewAxis(ReplicationType X) {
  if (X.isSharded())
    X.setAxis(X.Axis + 1);
  return X;
}

bool isElementReady(const TypeContext &C) {
  return C.handle() == NoNode || C.element(C.handle());
}

/// Types an op that makes or closes an array or a stack.
static void localHandle(TypeContext &C) {
  // No edge leads to the nodes that read the number of elements, so wake them.
  C.wakeUsers(C.N);
  bool HasFlow = C.opName().starts_with(op::TensorArrayGrad);
  ReplicationType Flow = HasFlow ? C.operand(1) : ReplicationType::replicated();
  C.setAll(Flow.isVarying() ? C.varyingLike(Flow)
                            : ReplicationType::replicated());
}

static void stackPush(TypeContext &C) {
  C.hold(C.handle(), C.operand(1));
  C.set(0, C.operand(1));
}

static void element(TypeContext &C) { C.set(0, elementOf(C)); }

static void arrayRead(TypeContext &C) {
  ReplicationType Index = placeOf(C, 1);
  C.set(0, Index.isVarying() ? Index : elementOf(C));
}

static void arrayWrite(TypeContext &C) {
  ReplicationType Index = placeOf(C, 1);
  C.hold(C.handle(), Index.isVarying() ? Index : C.number(2));
  C.set(0, Index.isVarying() ? Index : ReplicationType::replicated());
}

static void arrayGather(TypeContext &C) {
  ReplicationType Index = placeOf(C, 1);
  C.set(0, Index.isVarying() ? Index : behindNewAxis(elementOf(C)));
}

static void arrayScatter(TypeContext &C) {
  ReplicationType Index = placeOf(C, 1);
  spread(C, C.number(2), Index, /*DropsAxis=*/true);
}

static void arraySplit(TypeContext &C) {
  ReplicationType Index = placeOf(C, 2);
  spread(C, C.number(1), Index, /*DropsAxis=*/false);
}

static void arrayConcat(TypeContext &C) {
  ReplicationType X = elementOf(C), Flow = flowOf(C);
  if (X.isSharded() && X.Axis == 0)
    X = C.varying("concatenates along the batch axis");
  if (Flow.isVarying())
    X = C.varyingLike(Flow);
  C.set(0, X);
  C.set(1, X.isVarying() ? X : ReplicationType::replicated());
}

/// Infers the type of the size of an array. An array that grew has the size of
/// the single-device step under two conditions: all replicas write the same
/// elements in the same iterations, and its initial size is the global one.
static void arraySize(TypeContext &C) {
  ReplicationType X = flowOf(C);
  NodeId Made = C.maker();
  Endpoint Size = Made == NoNode ? Endpoint() : C.G.input(Made, 0);
  auto Value = C.D.value(C.out());
  if (X.isVarying())
    X = C.varyingLike(X);
  else if (Made != NoNode && C.Types.type(Size).isTrue())
    X = ReplicationType::replicated();
  else if (Made != NoNode && Value && C.D.value(Size) &&
           !C.G.boolAttr(Made, "dynamic_size").value_or(false))
    X = C.sizes(*Value);
  else if (C.isPerReplica())
    X = C.varying("counts array elements whose number may differ per replica");
  C.set(0, X);
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule LocalHandle = {.Is = KeepsZeros | TakesAnything | Handle};

} // namespace

ArrayRef<OpRule> families::loops() {
  static const OpRule Rules[] = {
      entry(op::StackV2, LocalHandle, {.Type = types::localHandle}),
      entry(op::StackPushV2, LocalHandle,
            {.Sizes = sizes::push, .Type = types::stackPush}),
      entry(op::StackPopV2, LocalHandle,
            {.Sizes = sizes::pop,
             .Type = types::element,
             .IsReady = types::isElementReady}),
      entry(op::StackCloseV2, LocalHandle, {.Type = types::localHandle}),
      entry(op::TensorArrayV3, LocalHandle,
            {.Sizes = sizes::makeArray, .Type = types::localHandle}),
      entry(op::TensorArrayGradV3, LocalHandle,
            {.Sizes = sizes::gradArray, .Type = types::localHandle}),
      entry(op::TensorArrayGradWithShape, LocalHandle,
            {.Sizes = sizes::gradArray, .Type = types::localHandle}),
      entry(op::TensorArrayReadV3, LocalHandle,
            {.Sizes = sizes::arrayRead,
             .Type = types::arrayRead,
             .IsReady = types::isElementReady}),
      entry(op::TensorArrayWriteV3, LocalHandle,
            {.Sizes = sizes::arrayWrite, .Type = types::arrayWrite}),
      entry(op::TensorArrayGatherV3, LocalHandle,
            {.Sizes = sizes::gatherElements,
             .Type = types::arrayGather,
             .IsReady = types::isElementReady}),
      entry(op::TensorArrayScatterV3, LocalHandle,
            {.Sizes = sizes::arrayScatter, .Type = types::arrayScatter}),
      entry(op::TensorArrayConcatV3, LocalHandle,
            {.Sizes = sizes::arrayConcat,
             .Type = types::arrayConcat,
             .IsReady = types::isElementReady}),
      entry(op::TensorArraySplitV3, LocalHandle,
            {.Sizes = sizes::arraySplit, .Type = types::arraySplit}),
      entry(op::TensorArraySizeV3, LocalHandle,
            {.Sizes = sizes::arraySize, .Type = types::arraySize}),
      entry(op::TensorArrayCloseV3, LocalHandle, {.Type = types::localHandle}),
  };
  return Rules;
}

} // namespace graft
