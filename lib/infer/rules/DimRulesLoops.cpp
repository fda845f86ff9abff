//===- lib/infer/rules/DimRulesLoops.cpp - sizes in loops -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A loop variable has the sizes that it starts with, as long as an iteration
// leaves them as they are. The shape of a tensor array or a stack is that of
// its elements, which have one shape; it is kept at the node that makes it.
// Loop counters have no tracked value: they are another number each time.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/DimRules.h"
#include "lib/ops/Ops.h"

#include "lib/infer/graph/Topology.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

void DimRules::loopMerge() {
  setShape(1, {});
  if (Variant->count({N, AnyAxis}))
    return;
  Dims First;
  for (unsigned I = 0; I < numData() && !First; ++I)
    if (!isBackEdgeOp(G.opName(Inputs[I].Node)))
      First = in(I);
  if (!First)
    return;
  DimList List(First->begin(), First->end());
  for (unsigned D = 0; D < List.size(); ++D)
    if (Variant->count({N, D}))
      List[D] = slot(D);
  setShape(0, List);
  for (unsigned I = 0; I < numData(); ++I) {
    Dims Next = in(I);
    if (!Next || Next->size() != List.size())
      continue;
    // TensorFlow compared the numbers of static shapes.
    for (unsigned D = 0; D < List.size(); ++D)
      if (DimId Mine = List[D], Its = (*in(I))[D];
          !Variant->count({N, D}) && A.Dims.number(Mine) != UnknownSize &&
          A.Dims.number(Mine) == A.Dims.number(Its))
        same(Mine, Its);
  }
}

bool DimRules::findVariant(VariantDims &Found) const {
  size_t Before = Found.size();
  for (NodeId Merge : Order) {
    auto Mine = Loops->isLoopMerge(Merge) ? A.shape({Merge, 0}) : std::nullopt;
    if (!Mine)
      continue;
    for (Endpoint E : G.dataInputs(Merge)) {
      auto Its = A.shape(E);
      if (!Its || Its->size() != Mine->size()) {
        Found.insert({Merge, AnyAxis});
        continue;
      }
      for (unsigned D = 0; D < Mine->size(); ++D)
        if (A.Dims.find((*Mine)[D]) != A.Dims.find((*Its)[D]) &&
            (A.Dims.number((*Mine)[D]) == UnknownSize ||
             A.Dims.number((*Mine)[D]) != A.Dims.number((*Its)[D])))
          Found.insert({Merge, D});
    }
  }
  // Dimensions that vary already do not count again.
  return Found.size() != Before;
}

/// All elements of \p Handle have the shape \p List.
void DimRules::setElement(NodeId Handle, ArrayRef<DimId> List) {
  DimRun &Mine = A.Shapes[A.outputIndex({Handle, 0})];
  if (Mine.Known) {
    sameShapes(*A.list(Mine), List);
    return;
  }
  Mine = store(List);
  for (NodeId User : Loops->usersOf(Handle))
    Due[User] = true;
}

void DimRules::localHandle() {
  enum { Stack, Array, Push, Pop, Grad, Read, Write, Gather, Scatter, Other };
  auto What =
      StringSwitch<decltype(Other)>(G.opName(N))
          .Case(op::StackV2, Stack)
          .Case(op::StackPushV2, Push)
          .Case(op::StackPopV2, Pop)
          .Case(op::TensorArrayV3, Array)
          .Cases(op::TensorArrayGradV3, op::TensorArrayGradWithShape, Grad)
          .Case(op::TensorArrayReadV3, Read)
          .Case(op::TensorArrayWriteV3, Write)
          .Case(op::TensorArrayGatherV3, Gather)
          .Case(op::TensorArrayScatterV3, Scatter)
          .Default(Other);
  NodeId Of = numData() > 0 ? Loops->handleOf(Inputs[0]) : NoNode;
  auto Element = [&]() -> Dims {
    return Of == NoNode ? std::nullopt : A.shape({Of, 0});
  };
  auto Held = [&](NodeId Handle) {
    auto It = HeldValues.find(Handle);
    return It == HeldValues.end() ? DimRun() : It->second;
  };
  auto Hold = [&](NodeId Handle, DimRun Run) {
    DimRun &Mine = HeldValues[Handle];
    if (Mine == Run)
      return;
    Mine = Run;
    for (NodeId User : Loops->usersOf(Handle))
      Due[User] = true;
  };
  switch (What) {
  case Stack:
    return;
  case Array: {
    setShape(1, {});
    if (!G.boolAttr(N, "dynamic_size").value_or(false))
      Hold(N, A.valueRun(Inputs[0]));
    DimList List;
    if (sizesFrom("element_shape", List))
      setElement(N, List);
    return;
  }
  case Grad:
    setShape(1, {});
    if (NodeId Mine = Loops->handleOf({N, 0}); Of != NoNode && Mine != NoNode) {
      Hold(Mine, Held(Of));
      if (Dims E = Element(); E && G.opName(N) != op::TensorArrayGradWithShape)
        setElement(Mine, *E);
    }
    return;
  case Push:
    passShape(0, inRun(1));
    if (Of == NoNode)
      return;
    if (Dims X = in(1))
      setElement(Of, *X);
    // More than one push: not the same integers each time.
    Hold(Of, count_if(Loops->usersOf(Of),
                      [&](NodeId User) {
                        return G.isOp(User, op::StackPushV2);
                      }) == 1
                 ? A.valueRun(Inputs[1])
                 : DimRun());
    if (Dims V = val(1))
      setValue(0, *V);
    return;
  case Pop:
    if (Dims E = Element())
      setShape(0, *E);
    if (Of != NoNode)
      if (Dims V = A.list(Held(Of)))
        setValue(0, *V);
    return;
  case Read:
    if (Dims E = Element())
      setShape(0, *E);
    return;
  case Write:
    setShape(0, {});
    if (Dims X = in(2); X && Of != NoNode)
      setElement(Of, *X);
    return;
  case Gather: {
    Dims E = Element(), Rows = in(1);
    if (!E)
      return;
    DimList List{Rows && Rows->size() == 1 ? (*Rows)[0] : slot(0)};
    List.append(E->begin(), E->end());
    setShape(0, List);
    return;
  }
  case Scatter:
    setShape(0, {});
    if (Dims X = in(2); X && !X->empty() && Of != NoNode) {
      if (Dims Rows = in(1); Rows && Rows->size() == 1)
        same((*Rows)[0], (*X)[0]);
      setElement(Of, in(2)->drop_front());
    }
    return;
  case Other:
    break;
  }
  if (G.isOp(N, op::TensorArraySizeV3)) {
    setShape(0, {});
    if (Of != NoNode)
      if (Dims V = A.list(Held(Of)))
        setValue(0, *V);
  } else if (G.isOp(N, op::TensorArraySplitV3)) {
    setShape(0, {});
    if (Dims X = in(1); X && !X->empty() && Of != NoNode) {
      DimList List{slot(0)};
      List.append(X->begin() + 1, X->end());
      setElement(Of, List);
    }
  } else if (G.isOp(N, op::TensorArrayConcatV3)) {
    setShape(1, slot(1));
    if (Dims E = Element(); E && !E->empty()) {
      DimList List{slot(0)};
      List.append(E->begin() + 1, E->end());
      setShape(0, List);
    }
  }
}

/// The branches of a conditional: a size that is not the same in all is another
/// one. What comes round a loop says nothing here, nor does an Optional that is
/// empty.
void DimRules::merge() {
  SmallVector<Endpoint, 2> Sides;
  for (Endpoint E : Inputs) {
    Endpoint From = E;
    while (G.isOp(From.Node, op::Identity))
      From = G.input(From.Node, 0);
    if (!G.isOp(From.Node, op::OptionalNone))
      Sides.push_back(E);
  }
  setShape(1, {});
  Dims First = Sides.empty() ? std::nullopt : A.shape(Sides[0]);
  if (!First)
    return;
  for (Endpoint E : Sides)
    if (Dims X = A.shape(E); !X || X->size() != First->size())
      return;
  DimList List;
  for (size_t D = 0; D < First->size(); ++D) {
    DimId X = (*First)[D];
    bool Same = all_of(Sides, [&](Endpoint E) {
      DimId Y = (*A.shape(E))[D];
      return A.Dims.find(X) == A.Dims.find(Y) ||
             (A.Dims.number(X) != UnknownSize &&
              A.Dims.number(X) == A.Dims.number(Y) &&
              (A.Options.Unpatched || A.Dims.hasSym(X) == A.Dims.hasSym(Y)));
    });
    for (Endpoint E : Sides)
      if (Same)
        same(X, (*A.shape(E))[D]);
    List.push_back(Same ? X : slot(D));
  }
  setShape(0, List);
  if (Dims X = A.value(Sides[0]); X && all_of(Sides, [&](Endpoint E) {
                                    Dims Y = A.value(E);
                                    return Y && Y->size() == X->size() &&
                                           all_of(zip(*X, *Y), [&](auto Pair) {
                                             auto [U, V] = Pair;
                                             return A.Dims.find(U) ==
                                                    A.Dims.find(V);
                                           });
                                  }))
    setValue(0, *X);
}

} // namespace graft
