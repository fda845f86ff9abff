//===- lib/infer/rules/ControlFlow.cpp - branches and loops -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Control flow of version 1, and Optionals, which may be empty.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Topology.h"
#include "lib/program/JoinedBatches.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Sets the sizes of a loop variable to its initial sizes. If an iteration
/// changes a size, the size becomes a fresh size variable.
static void loopMerge(SizeContext &C) {
  C.setShape(1, {});
  // The shape of the elements of a list is that of its class.
  if (C.isVariant(SizeContext::AnyAxis) || C.handleMade() != NoNode)
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
    // TensorFlow has compared the static shapes of a loop variable, so unify
    // sizes whose numbers are equal.
    for (unsigned D = 0; D < List.size(); ++D)
      if (DimId Mine = List[D], Its = (*C.in(I))[D];
          !C.isVariant(D) && C.Table.number(Mine) != UnknownSize &&
          C.Table.find(Mine) != C.Table.find(Its) &&
          C.Table.number(Mine) == C.Table.number(Its))
        C.sameByNumber(Mine, Its, {Mine, Its});
  }
}

/// Merges the branches of a conditional: a size that differs between them
/// becomes a fresh size variable. An empty Optional has no sizes, so its branch
/// is skipped. loopMerge() handles loop variables.
static void merge(SizeContext &C) {
  if (C.Loops && C.Loops->isLoopMerge(C.N)) {
    loopMerge(C);
    return;
  }
  SmallVector<Endpoint, 2> Sides;
  for (Endpoint E : C.Inputs) {
    if (!C.G.isOp(through(C.G, E, op::Identity).Node, op::OptionalNone))
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
    // Unify sizes whose numbers are equal. Skip sizes that are already unified:
    // another op states their equality.
    for (Endpoint E : Sides)
      if (DimId Y = (*C.Known.shape(E))[D];
          Same && C.Table.find(X) != C.Table.find(Y))
        C.sameByNumber(X, Y, {X, Y});
    List.push_back(Same ? X : C.slot(D));
  }
  C.setShape(0, List);
  if (Dims X = C.Known.value(Sides[0]);
      X && all_of(Sides, [&](Endpoint E) {
        Dims Y = C.Known.value(E);
        return Y && Y->size() == X->size() && !C.Known.isMatrix(E) &&
               all_of(zip(*X, *Y), [&](auto Pair) {
                 auto [U, V] = Pair;
                 return C.Table.find(U) == C.Table.find(V);
               });
      }))
    C.setValue(0, *X);
}

/// Infers the shape of an Optional, or of its value.
static void optional(SizeContext &C) {
  if (isElementOfOptional(C.G, C.N))
    return source(C);
  // The node belongs to a joined batch. An element that the iterator lacks has
  // no rows, so the shape stays unknown.
  if (C.G.hasAttr(C.N, JoinedAttr))
    return;
  // The tracked shape of an Optional, as that of a handle, is the shape of its
  // value.
  if (C.numData() == 1 && C.numOutputs() == 1) {
    C.passShape(0, C.inRun(0));
    if (Dims X = C.val(0))
      C.setValue(0, *X);
  }
}

} // namespace sizes

namespace types {

/// Returns ForGradient if at least one branch is a tensor that a batch norm
/// keeps for its gradient, and all other branches are such tensors or absent
/// contributions. Control flow changes no tensor, so the result keeps the mark.
static LocalIndices markOfKept(const TypeContext &C,
                               ArrayRef<Endpoint> Branches) {
  bool Any = false;
  for (Endpoint E : Branches) {
    ReplicationType X = C.Types.type(E);
    bool IsKept = X.Indices == LocalIndices::ForGradient;
    if (!IsKept && !X.isNothing())
      return LocalIndices::None;
    Any |= IsKept;
  }
  return Any ? LocalIndices::ForGradient : LocalIndices::None;
}

static void switches(TypeContext &C) {
  ReplicationType X = C.numeric(0);
  ReplicationType Pred = C.plain(1);
  if (Pred.isReplicated())
    C.setAll(X, markOfKept(C, C.input(0)));
  else
    C.setAll(Pred.isVarying()
                 ? C.varyingLike(Pred)
                 : C.varying("may take a different branch on each replica"));
}

/// Infers the type of a Merge. The types of the branches must be equal, because
/// the branch that runs is not known. Zeros have every type of their size.
static void merges(TypeContext &C) {
  SmallVector<ReplicationType, 2> Types;
  ReplicationType Result;
  bool IsBox = C.G.outputType(C.N, 0) == DT_VARIANT;
  bool AllZero = true, Same = true, AnySharded = false, AllSharded = true;
  for (unsigned I = 0; I < C.numData(); ++I) {
    // A size stays symbolic.
    ReplicationType X = C.operand(I).Symbolic ? C.operand(I) : C.numeric(I);
    Types.push_back(X);
    if (X.isVarying()) {
      Result = C.varyingLike(X);
      break;
    }
    if (X.Zero)
      continue;
    Same &= AllZero || X.sameAs(Result);
    if (AllZero)
      Result = X;
    AllZero = false;
    AnySharded |= X.isSharded();
    AllSharded &= X.isSharded() && X.Axis == Result.Axis;
  }
  if (AllZero && !Result.isVarying() && !Types.empty()) {
    auto *It =
        find_if(Types, [](const ReplicationType &X) { return !X.isNothing(); });
    Result = It == Types.end() ? Types.front() : *It;
  } else if (!Same && !Result.isVarying()) {
    Result = AllSharded ? ReplicationType::sharded(Result.Axis)
                        : ReplicationType::replicated();
    if (IsBox || (AnySharded && !AllSharded))
      Result = C.varying("merges branches with different replication types");
    for (unsigned I = 0; I < Types.size() && !Result.isVarying(); ++I)
      if (!Types[I].Zero)
        if (ReplicationType X = C.plain(I); X.isVarying())
          Result = C.varyingLike(X);
  }
  for (unsigned I = 0; I < Types.size() && !Result.isVarying(); ++I)
    if (Types[I].Zero && !Types[I].hasSizeOf(Result))
      Result =
          C.varying("merges a branch of zeros with a branch of another size");
  C.set(0, Result, markOfKept(C, C.G.dataInputs(C.N)));
  // The index of the branch taken.
  ReplicationType Which = ReplicationType::replicated();
  for (Endpoint E : C.G.dataInputs(C.N))
    if (C.Types.type(E).isVarying() && C.mayNotRun(E.Node))
      Which = C.varyingLike(C.Types.type(E));
  for (unsigned Port = 1; Port < C.numResults(); ++Port)
    C.set(Port, Which);
}

/// Types an Optional or its value. The value is an element of an iterator, or a
/// tensor that a branch passes to the gradient of its conditional.
static void optional(TypeContext &C) {
  if (isElementOfOptional(C.G, C.N))
    return source(C);
  if (C.numData() == 1 && C.numResults() == 1)
    C.set(0, C.operand(0), markOfKept(C, C.input(0)));
  else
    none(C);
}

static void optionalNone(TypeContext &C) {
  C.setAll(ReplicationType::nothing());
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Switch = {.Sizes = sizes::same,
                           .Type = types::switches,
                           .Is = KeepsZeros | TakesUnequalRows | LinearInFirst |
                                 KeepsRows};
constexpr OpRule Merge = {.Sizes = sizes::merge,
                          .Type = types::merges,
                          .Is = KeepsZeros | TakesUnequalRows};
constexpr OpRule Optional = {
    .Sizes = sizes::optional, .Type = types::optional, .Is = KeepsZeros};

} // namespace

ArrayRef<OpRule> families::controlFlow() {
  static const OpRule Rules[] = {
      entry(op::Switch, Switch, {.Values = values::same}),
      entry(op::RefSwitch, Switch),
      entry(op::RefMerge, Merge),
      entry(op::OptionalFromValue, Optional),
      entry(op::OptionalGetValue, Optional),
      {.Op = op::OptionalNone,
       .Type = types::optionalNone,
       .Is = KeepsZeros | NotOfTrue},
      entry(op::Merge, Merge, {.Is = ComparesSizes}),
      entry(op::Enter, Pass, {.Values = values::same}),
      entry(op::RefEnter, Pass),
      entry(op::Exit, Pass),
      entry(op::RefExit, Pass),
      entry(op::NextIteration, Pass),
      entry(op::RefNextIteration, Pass),
      entry(op::LoopCond, Pass),
  };
  return Rules;
}

} // namespace graft
