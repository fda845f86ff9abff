//===- lib/infer/rules/TypeRulesLoops.cpp - types in loops ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What goes round a loop gets its type by iteration: a Merge has the type that
// the loop begins with, joined with what an iteration makes of it, until
// nothing changes. So does what tensor arrays and stacks hold: all that is
// written is joined, and every reader has it. Until something is known of a
// loop variable or of an array, what depends on it has no type; types only go
// up from there, so this ends.
//
//     Zero  <  Replicated(k)  <  Partial(sum, k+1)  <  Varying
//     Zero  <  Sharded(axis, k), Partial(op, k)     <  Varying
//
// and equal rows are below rows of the same axis and k in any order.
//
// Nothing is exchanged inside a loop that every replica runs by itself: the
// members of a collective would meet in different frames. A demand in a loop is
// met outside, where the tensor comes in, or it is refused.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

#include "lib/infer/graph/Topology.h"
#include "lib/program/forms/Accumulator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

/// Ops that give an element of what they read from.
static bool readsElement(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases(op::StackPopV2, op::TensorArrayReadV3, op::TensorArrayGatherV3,
             true)
      .Case(op::TensorArrayConcatV3, true)
      .Default(false);
}

/// Whether all that the rule of the node needs has a type.
bool TypeRules::isReady() const {
  auto IsDefined = [&](Endpoint E) { return Defined[E.Node]; };
  if (Loops->isLoopMerge(N))
    return any_of(G.dataInputs(N), IsDefined);
  if (!all_of(G.dataInputs(N), IsDefined))
    return false;
  if (Ops[G.node(N).Op].Rule == TypeRule::AccumulatorTake)
    if (NodeId Put = putOf(G, N); Put != NoNode)
      return IsDefined(G.input(Put, 2));
  if (Ops[G.node(N).Op].Rule != TypeRule::LocalHandle ||
      !readsElement(G.opName(N)))
    return true;
  NodeId Handle = Loops->handleOf(G.input(N, 0));
  return Handle == NoNode || Elements.count(Handle);
}

/// When nothing else moves: arrays that nobody writes hold zeros.
bool TypeRules::fillUnwritten() {
  bool Any = false;
  for (NodeId Handle : Loops->handles())
    if (Elements.try_emplace(Handle, RType::nothing()).second)
      for (NodeId User : Loops->usersOf(Handle))
        Due[User] = Any = true;
  return Any;
}

void TypeRules::restartLoops() {
  if (!Loops)
    return;
  Elements.clear();
  for (NodeId Handle : Loops->handles())
    for (NodeId User : Loops->usersOf(Handle)) {
      Due[User] = true;
      Defined[User] = false;
    }
  for (NodeId First : Loops->nests())
    for (NodeId Node : Loops->nest(First)) {
      Due[Node] = true;
      Defined[Node] = false;
    }
}

/// The node at hand would have to read operand \p I after an exchange in a
/// loop: its results are Varying.
void TypeRules::refuseInside(unsigned I, const Twine &Why) {
  varying(Why);
  Refused = I;
}

/// The least type that both have.
RType TypeRules::joined(RType X, RType Y) {
  if (X.isVarying() || Y.isVarying())
    return varyingLike(X.isVarying() ? X : Y);
  if ((X.Zero && !X.hasSizeOf(Y)) || (Y.Zero && !Y.hasSizeOf(X)))
    return RType::varying(NoNode);
  if (X.Zero && Y.Zero)
    return X.isReplicated() && !Y.isNothing() ? Y : X;
  if (X.Zero)
    return Y;
  if (Y.Zero || X.sameAs(Y))
    return X;
  // Rows that are all equal are in the order of any others.
  if (X.isSharded() && Y.isSharded()) {
    RType &Equal = X.Order == RType::AnyOrder ? X : Y;
    if (Equal.Order == RType::AnyOrder) {
      Equal.Order = X.Order == RType::AnyOrder ? Y.Order : X.Order;
      if (X.sameAs(Y))
        return X;
    }
  }
  // N equal terms are a sum, too.
  auto IsSumOf = [](const RType &Sum, const RType &Term) {
    return Sum.isPartial() && Sum.Op == Combine::Sum && Term.isReplicated() &&
           !Term.Symbolic && Sum.K == Term.K + 1;
  };
  if (IsSumOf(X, Y) || IsSumOf(Y, X))
    return X.isPartial() ? X : Y;
  return RType::varying(NoNode);
}

void TypeRules::loopMerge() {
  for (unsigned Port = 1; Port < D.numOutputs(N); ++Port)
    set(Port, RType::replicated());
  std::optional<RType> Result;
  if (Defined[N])
    Result = T.Types[D.outputIndex(out())];
  for (unsigned I = 0; I < numData(); ++I) {
    Endpoint E = G.input(N, I);
    if (!Defined[E.Node])
      continue;
    // A counter that starts from a size is a number.
    RType X = number(I);
    if (!Result) {
      Result = X;
      continue;
    }
    if (Result->isVarying())
      break;
    RType Next = joined(*Result, X);
    if (Next.isVarying() && Next.Cause == NoNode)
      Next = varying("is " + Result->str() + " and, after an iteration, " +
                     X.str());
    Result = Next;
  }
  set(0, *Result);
}

/// Something of type \p Element is written to \p Handle.
void TypeRules::hold(NodeId Handle, RType Element) {
  if (Handle == NoNode)
    return;
  Element.Assumes |= Assumes;
  auto [It, New] = Elements.try_emplace(Handle, Element);
  if (!New) {
    RType Next = joined(It->second, Element);
    if (Next.isVarying() && Next.Cause == NoNode)
      Next = varying("holds values that are " + It->second.str() + " and " +
                     Element.str());
    Next.Assumes |= It->second.Assumes | Element.Assumes;
    if (Next == It->second)
      return;
    It->second = Next;
  }
  for (NodeId User : Loops->usersOf(Handle))
    Due[User] = true;
}

/// Tensor arrays and stacks. What is in them is the type of their elements;
/// the flow of an array says whether all replicas came the same way.
void TypeRules::localHandle() {
  enum { Make, Push, Pop, Read, Write, Gather, Scatter, Split, Concat, Size };
  auto What = StringSwitch<decltype(Size)>(G.opName(N))
                  .Case(op::StackPushV2, Push)
                  .Case(op::StackPopV2, Pop)
                  .Case(op::TensorArrayReadV3, Read)
                  .Case(op::TensorArrayWriteV3, Write)
                  .Case(op::TensorArrayGatherV3, Gather)
                  .Case(op::TensorArrayScatterV3, Scatter)
                  .Case(op::TensorArraySplitV3, Split)
                  .Case(op::TensorArrayConcatV3, Concat)
                  .Case(op::TensorArraySizeV3, Size)
                  .Default(Make);
  NodeId Handle = numData() > 0 ? Loops->handleOf(G.input(N, 0)) : NoNode;
  // The last operand is the flow where there is one.
  bool HasFlow = What != Push && What != Pop && What != Make;
  RType Flow = HasFlow || G.opName(N).starts_with(op::TensorArrayGrad)
                   ? operand(What == Make ? 1 : numData() - 1)
                   : RType::replicated();
  auto Element = [&] {
    return Handle == NoNode ? varying("uses an unknown TensorArray or stack")
                            : Elements.find(Handle)->second;
  };
  // Where in the array: the same place on all replicas.
  auto Place = [&](unsigned I) {
    RType Index = plain(I);
    if (Flow.isVarying() || Index.isVarying())
      return varyingLike(Flow.isVarying() ? Flow : Index);
    return Index.isReplicated()
               ? Index
               : varying("accesses different elements on each replica");
  };
  switch (What) {
  case Make:
    setAll(Flow.isVarying() ? varyingLike(Flow) : RType::replicated());
    return;
  case Push:
    hold(Handle, operand(1));
    set(0, operand(1));
    return;
  case Pop:
    set(0, Element());
    return;
  case Read: {
    RType Index = Place(1);
    set(0, Index.isVarying() ? Index : Element());
    return;
  }
  case Write: {
    RType Index = Place(1);
    hold(Handle, Index.isVarying() ? Index : number(2));
    set(0, Index.isVarying() ? Index : RType::replicated());
    return;
  }
  case Gather: {
    RType Index = Place(1), X = Element();
    if (X.isSharded())
      ++X.Axis;
    set(0, Index.isVarying() ? Index : X);
    return;
  }
  case Scatter:
  case Split: {
    RType Index = Place(What == Scatter ? 1 : 2);
    RType X = number(What == Scatter ? 2 : 1);
    if (Index.isVarying())
      X = Index;
    else if (X.isSharded() && X.Axis == 0)
      X = varying("makes an array element of each row of the batch");
    else if (X.isSharded() && What == Scatter)
      --X.Axis;
    hold(Handle, X);
    set(0, X.isVarying() ? X : RType::replicated());
    return;
  }
  case Concat: {
    RType X = Element();
    if (X.isSharded() && X.Axis == 0)
      X = varying("concatenates along the batch axis");
    if (Flow.isVarying())
      X = varyingLike(Flow);
    set(0, X);
    set(1, X.isVarying() ? X : RType::replicated());
    return;
  }
  case Size: {
    RType X = RType::replicated();
    if (Flow.isVarying())
      X = varyingLike(Flow);
    else if (auto Value = D.value(out()))
      X.Symbolic = hasLocalSize(*Value);
    else
      X = varying("counts elements");
    set(0, X);
    return;
  }
  }
}

} // namespace graft
