//===- lib/infer/rules/Lists.cpp - lists and maps of tensors ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Lists and maps of tensors are values: an op that writes an element returns a
// new list. The type of a list is the type of its elements, so each edge of a
// loop passes it on like a tensor. The elements of all lists of a class
// (LoopInfo) have one shape: the tracked shape of the first list of the class.
//
// A list that no op writes to holds zeros, or nothing. An op without a rule of
// its own needs a list of global values.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

using Sharing = SizeContext::Sharing;

/// Records that output 0, a new list or one with another element, has elements
/// of shape \p List.
static void setElement(SizeContext &C, ArrayRef<DimId> List, Sharing By) {
  if (NodeId Of = C.handleMade(); Of != NoNode)
    C.setElement(Of, List, By);
}

/// Records that lists of the class of output 0 have different numbers of
/// elements. Their length becomes a fresh size variable, which equals no other.
static void changeLength(SizeContext &C) {
  C.setLength(C.handleMade(), C.slot(0));
}

void zerosLike(SizeContext &C) {
  NodeId Of = C.handle();
  if (Of == NoNode)
    return same(C);
  if (auto E = C.element(Of))
    setElement(C, *E, Sharing::None);
  if (auto Length = C.length(Of))
    C.setLength(C.handleMade(), *Length);
  else
    changeLength(C);
}

/// Unifies the sizes of the elements of \p Of with the sizes that operand \p I
/// lists. The operand has -1 for an unknown size.
static void matchElement(SizeContext &C, unsigned I, NodeId Of) {
  Dims Told = C.val(I);
  auto Its = Of == NoNode || !Told ? std::nullopt : C.element(Of);
  if (!Its || Its->size() != Told->size())
    return;
  for (size_t D = 0; D < Its->size(); ++D)
    if (DimId Size = (*C.val(I))[D]; C.plainNumber(Size) != -1)
      C.same((*Its)[D], Size);
}

/// Records the shape of elements that operand \p I declares for a new list. If
/// the operand has -1 for a size, the written elements show that size.
static void declare(SizeContext &C, unsigned I) {
  Dims Told = C.val(I), Shape = C.in(I);
  if (!Told || !Shape || Shape->size() != 1)
    return;
  DimList List;
  for (unsigned D = 0; D < Told->size(); ++D) {
    DimId Size = (*C.val(I))[D];
    List.push_back(C.plainNumber(Size) == -1
                       ? C.slot(SizeContext::ElementSlot + D)
                       : Size);
  }
  setElement(C, List, Sharing::None);
}

static void emptyList(SizeContext &C) {
  declare(C, 0);
  changeLength(C);
}

static void reserveList(SizeContext &C) {
  declare(C, 0);
  if (Dims Number = C.val(1); Number && Number->size() == 1)
    C.setLength(C.handleMade(), Number->front());
  else
    changeLength(C);
}

static void listFromTensor(SizeContext &C) {
  declare(C, 1);
  if (Dims X = C.in(0); X && !X->empty()) {
    DimList Sizes(X->begin(), X->end());
    C.setLength(C.handleMade(), Sizes.front());
    setElement(C, ArrayRef(Sizes).drop_front(), Sharing::None);
  } else {
    changeLength(C);
  }
}

static void setItem(SizeContext &C) {
  if (C.flag("resize_if_index_out_of_bounds"))
    changeLength(C);
  if (Dims X = C.in(2))
    setElement(C, *X, Sharing::None);
}

static void pushBack(SizeContext &C) {
  NodeId Of = C.handle();
  if (Of == NoNode)
    return;
  changeLength(C);
  if (Dims X = C.in(1))
    setElement(C, *X, Sharing::Turns);
  C.push(Of);
}

/// Sets the shape of the element that the node reads as output \p Port. Operand
/// \p Told lists its sizes.
static void setItemShape(SizeContext &C, unsigned Port, unsigned Told) {
  NodeId Of = C.handle();
  matchElement(C, Told, Of);
  if (auto E = C.element(Of))
    C.setShape(Port, *E);
}

static void getItem(SizeContext &C) { setItemShape(C, 0, 2); }

static void popBack(SizeContext &C) {
  changeLength(C);
  setItemShape(C, 1, 1);
  setHeld(C, 1);
}

static void stackList(SizeContext &C) {
  NodeId Of = C.handle();
  matchElement(C, 1, Of);
  auto E = C.element(Of);
  if (!E)
    return;
  int64_t Number = C.intAttr("num_elements").value_or(-1);
  auto Length = C.length(Of);
  // A list that grows in a loop has equally many elements on all replicas.
  setRows(C,
          Number >= 0 ? C.number(0, Number)
          : Length    ? *Length
                      : C.slotFrom(1, {}),
          *E);
}

static void gatherList(SizeContext &C) {
  NodeId Of = C.handle();
  matchElement(C, 2, Of);
  gatherElements(C);
}

static void listLength(SizeContext &C) {
  C.setShape(0, {});
  if (auto Length = C.length(C.handle()))
    C.setValue(0, *Length);
}

} // namespace sizes

namespace types {

/// Returns the type of the elements of operand 0: the least type that all
/// elements of the class have. In a loop, the list itself may not yet have the
/// type of an element that the loop writes. Operand \p Told lists the sizes of
/// an element, with -1 for an unknown size. If \p I is not 0, operand \p I
/// holds the index of one element or of several.
static ReplicationType elementsAt(TypeContext &C, unsigned Told,
                                  unsigned I = 0) {
  ReplicationType List = C.operand(0);
  if (List.isVarying())
    return C.varyingLike(List);
  if (I != 0)
    if (ReplicationType Index = indexOfElement(C, I); Index.isVarying())
      return Index;
  ReplicationType X = C.element(C.handle()).value_or(List);
  auto Sizes = C.D.value(C.input(Told));
  if (X.isSharded() && Sizes && static_cast<size_t>(X.Axis) < Sizes->size()) {
    // Elements may have the rows of different feeds. The size is then unrelated
    // to the rows of a replica.
    DimId Rows = (*Sizes)[X.Axis];
    if (C.D.table().isSame(Rows) && C.D.table().number(Rows) != -1)
      return C.varying("declares a size of the whole batch for elements that "
                       "hold the rows of a replica");
  }
  return X;
}

/// Returns the type of output \p Port, which has elements of type \p X.
/// Elements that no op wrote are zeros of the shape that the output has.
static ReplicationType zerosIn(TypeContext &C, unsigned Port,
                               ReplicationType X) {
  if (!X.isNothing())
    return X;
  int Axis = C.localAxis(C.out(Port));
  if (Axis == -2)
    return C.varying("makes zeros of a per-replica size");
  X = Axis < 0 ? ReplicationType::replicated() : ReplicationType::sharded(Axis);
  X.Order = Axis < 0 ? ReplicationType::InOrder : ReplicationType::AnyOrder;
  X.Zero = true;
  return X;
}

/// Returns the type of a list with the elements of \p List and one of type \p
/// X.
static ReplicationType withElement(TypeContext &C, ReplicationType List,
                                   ReplicationType X) {
  if (List.isVarying() || X.isVarying())
    return C.varyingLike(List.isVarying() ? List : X);
  ReplicationType All = C.joined(List, X);
  return All.isVarying() && All.Cause == NoNode
             ? C.varying("holds elements that are " + List.str() +
                         " and elements that are " + X.str())
             : All;
}

static void emptyList(TypeContext &C) { C.set(0, ReplicationType::nothing()); }

/// Returns the type of the length in operand 1; Varying if replicas may make
/// lists of different lengths.
static ReplicationType lengthOf(TypeContext &C) {
  return equalOnReplicas(C, 1,
                         "makes a list of a length that differs per replica");
}

static void reserveList(TypeContext &C) {
  ReplicationType Length = lengthOf(C);
  C.set(0, Length.isVarying() ? Length : ReplicationType::nothing());
}

static void listFromTensor(TypeContext &C) {
  ReplicationType X = C.number(0);
  if (X.isSharded() && X.Axis == 0)
    X = C.varying("splits the batch axis into the elements of a list");
  else if (X.isSharded())
    X.setAxis(X.Axis - 1);
  C.hold(C.handleMade(), X);
  C.set(0, X);
}

static void setItem(TypeContext &C) {
  ReplicationType Index = indexOfElement(C, 1);
  ReplicationType X = Index.isVarying() ? Index : C.number(2);
  C.hold(C.handle(), X);
  C.set(0, withElement(C, C.operand(0), X));
}

static void pushBack(TypeContext &C) {
  C.hold(C.handle(), C.operand(1));
  C.set(0, withElement(C, C.operand(0), C.operand(1)));
}

static void popBack(TypeContext &C) {
  C.set(0, C.operand(0));
  C.set(1, zerosIn(C, 1, elementsAt(C, 1)));
}

/// Types a list of another length. New elements are zeros.
static void resizeList(TypeContext &C) {
  ReplicationType Length = lengthOf(C);
  C.set(0, Length.isVarying() ? Length : C.operand(0));
}

static void getItem(TypeContext &C) {
  C.set(0, zerosIn(C, 0, elementsAt(C, 2, 1)));
}

static void stackList(TypeContext &C) {
  C.set(0, zerosIn(C, 0, behindNewAxis(elementsAt(C, 1))));
}

static void gatherList(TypeContext &C) {
  C.set(0, zerosIn(C, 0, behindNewAxis(elementsAt(C, 2, 1))));
}

/// Types the number of elements of a list, which is equal on all replicas: an
/// element is written in an iteration that all of them run.
static void listLength(TypeContext &C) {
  ReplicationType X = C.operand(0);
  C.set(0, X.isVarying() ? C.varyingLike(X) : ReplicationType::replicated());
}

/// Types the declared shape of elements, which may hold the rows of a replica
/// or -1 in their place.
static void elementShape(TypeContext &C) {
  ReplicationType X = C.operand(0);
  ReplicationType Sizes = ReplicationType::replicated();
  Sizes.Symbolic = true;
  C.set(0, X.isVarying()           ? C.varyingLike(X)
           : X.isTrue() && !X.Zero ? ReplicationType::replicated()
                                   : Sizes);
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule List = {.Is = KeepsZeros | TakesAnything};

} // namespace

ArrayRef<OpRule> families::lists() {
  static const OpRule Rules[] = {
      // Lists.
      entry(op::EmptyTensorList, List,
            {.Sizes = sizes::emptyList, .Type = types::emptyList}),
      entry(op::TensorListConcat, Whole),
      entry(op::TensorListConcatLists, Whole),
      entry(op::TensorListConcatV2, Whole),
      entry(op::TensorListElementShape, List, {.Type = types::elementShape}),
      entry(op::TensorListFromTensor, List,
            {.Sizes = sizes::listFromTensor, .Type = types::listFromTensor}),
      entry(op::TensorListGather, List,
            {.Sizes = sizes::gatherList,
             .Type = types::gatherList,
             .IsReady = types::isElementReady}),
      entry(op::TensorListGetItem, List,
            {.Sizes = sizes::getItem,
             .Type = types::getItem,
             .IsReady = types::isElementReady}),
      entry(op::TensorListLength, List,
            {.Sizes = sizes::listLength, .Type = types::listLength}),
      entry(op::TensorListPopBack, List,
            {.Sizes = sizes::popBack,
             .Type = types::popBack,
             .IsReady = types::isElementReady}),
      entry(op::TensorListPushBack, List,
            {.Sizes = sizes::pushBack, .Type = types::pushBack}),
      entry(op::TensorListPushBackBatch, Whole),
      entry(op::TensorListReserve, List,
            {.Sizes = sizes::reserveList, .Type = types::reserveList}),
      entry(op::TensorListResize, List,
            {.Sizes = sizes::changeLength, .Type = types::resizeList}),
      entry(op::TensorListScatter, Whole),
      entry(op::TensorListScatterIntoExistingList, Whole),
      entry(op::TensorListScatterV2, Whole),
      entry(op::TensorListSetItem, List,
            {.Sizes = sizes::setItem, .Type = types::setItem}),
      entry(op::TensorListSplit, Whole),
      entry(op::TensorListStack, List,
            {.Sizes = sizes::stackList,
             .Type = types::stackList,
             .IsReady = types::isElementReady}),

      // Maps.
      entry(op::TensorMapErase, Whole),
      entry(op::TensorMapHasKey, Whole),
      entry(op::TensorMapInsert, Whole),
      entry(op::TensorMapLookup, Whole),
      entry(op::TensorMapSize, Whole),
      entry(op::TensorMapStackKeys, Whole),

      // Other variants.
      entry(op::OptionalHasValue, Whole),
      entry(op::CompositeTensorVariantFromComponents, Whole),
      entry(op::CompositeTensorVariantToComponents, Whole),
      entry(op::CompressElement, Whole),
      entry(op::UncompressElement, Whole),
  };
  return Rules;
}

} // namespace graft
