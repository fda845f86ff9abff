//===- lib/infer/types/LoopTypes.cpp - types in loops -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The type of a loop variable is a fixpoint: the Merge joins the type of the
// initial value with the type after an iteration, until nothing changes. The
// element type of a tensor array or stack is the join of the types of all
// writes. A node has no type until the loop variables and arrays that it
// depends on have types. From then on types only rise, so the inference reaches
// a fixpoint.
//
//     Zero  <  Replicated(k)  <  Partial(sum, k+1)  <  Varying
//     Zero  <  Sharded(axis, k), Partial(op, k)     <  Varying
//
// Sharded rows that are all equal (AnyOrder) are below rows of any order with
// the same axis and k.
//
// If each replica runs a copy of a loop, the loop contains no collective,
// because the members of the collective would be in different frames. A demand
// in a loop is met at the tensor that enters the loop, or refused.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeInference.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Returns true if all operands that the rule of the node at hand needs have a
/// type.
bool TypeInference::isReady() const {
  auto IsDefined = [&](Endpoint E) { return Defined[E.Node]; };
  if (Loops->isLoopMerge(N))
    return any_of(G.dataInputs(N), IsDefined);
  const OpRule &Op = Rules[node().Op].Rule;
  return all_of(G.dataInputs(N), IsDefined) &&
         (!Op.IsReady || Op.IsReady(*this));
}

/// At a fixpoint: gives the type of zeros to the elements of arrays to which no
/// node writes.
bool TypeInference::fillUnwritten() {
  bool Any = false;
  for (NodeId Handle : Loops->handles())
    if (Elements.try_emplace(Handle, ReplicationType::nothing()).second)
      for (NodeId User : Loops->usersOf(Handle))
        Due[User] = Any = true;
  return Any;
}

void TypeInference::restartLoops() {
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

/// Returns the least upper bound of \p X and \p Y in the order above.
ReplicationType TypeContext::joined(ReplicationType X,
                                    ReplicationType Y) const {
  if (X.isVarying() || Y.isVarying())
    return varyingLike(X.isVarying() ? X : Y);
  if ((X.Zero && !X.hasSizeOf(Y)) || (Y.Zero && !Y.hasSizeOf(X)))
    return ReplicationType::varying(NoNode);
  if (X.Zero && Y.Zero)
    return X.isReplicated() && !Y.isNothing() ? Y : X;
  if (X.Zero)
    return Y;
  if (Y.Zero || X.sameAs(Y))
    return X;
  // Equal rows are in every order, so also in the order of the other value.
  if (X.isSharded() && Y.isSharded()) {
    ReplicationType &Equal = X.Order == ReplicationType::AnyOrder ? X : Y;
    if (Equal.Order == ReplicationType::AnyOrder) {
      Equal.Order = X.Order == ReplicationType::AnyOrder ? Y.Order : X.Order;
      if (X.sameAs(Y))
        return X;
    }
  }
  // A Replicated value is also a Partial sum of N equal terms, with k + 1.
  auto IsSumOf = [](const ReplicationType &Sum, const ReplicationType &Term) {
    return Sum.isPartial() && Sum.Op == Combine::Sum && Term.isReplicated() &&
           !Term.Symbolic && Sum.K == Term.K + 1;
  };
  if (IsSumOf(X, Y) || IsSumOf(Y, X))
    return X.isPartial() ? X : Y;
  return ReplicationType::varying(NoNode);
}

/// Infers the type of a Merge that begins an iteration.
void TypeInference::mergeLoop() {
  for (unsigned Port = 1; Port < numResults(); ++Port)
    set(Port, ReplicationType::replicated());
  std::optional<ReplicationType> Result;
  if (Defined[N])
    Result = result(0);
  for (unsigned I = 0; I < numData(); ++I) {
    Endpoint E = input(I);
    if (!Defined[E.Node])
      continue;
    // A counter that starts from a size is typed as a number, not as a size.
    ReplicationType X = number(I);
    if (!Result) {
      Result = X;
      continue;
    }
    if (Result->isVarying())
      break;
    ReplicationType Next = joined(*Result, X);
    if (Next.isVarying() && Next.Cause == NoNode)
      Next = varying("starts the loop as " + Result->str() +
                     " and ends an iteration as " + X.str());
    Result = Next;
  }
  set(0, *Result);
}

NodeId TypeContext::handle() const {
  return Loops && numData() > 0 ? Loops->handleOf(input(0)) : NoNode;
}

NodeId TypeContext::handleMade() const {
  return Loops ? Loops->handleOf(out()) : NoNode;
}

NodeId TypeContext::maker() const {
  NodeId Handle = handle();
  while (Handle != NoNode && !G.isOp(Handle, op::TensorArrayV3))
    Handle = G.node(Handle).NumData > 0 ? Loops->handleOf(G.input(Handle, 0))
                                        : NoNode;
  return Handle;
}

std::optional<ReplicationType> TypeContext::element(NodeId Handle) const {
  // The handle may come from an unknown op, or from several arrays.
  auto It = Handle >= G.size() ? Elements.end() : Elements.find(Handle);
  return It == Elements.end() ? std::nullopt : std::optional(It->second);
}

void TypeContext::hold(NodeId Handle, ReplicationType Element) {
  if (Handle >= G.size())
    return;
  Element.Assumes |= Assumes;
  auto [It, New] = Elements.try_emplace(Handle, Element);
  if (!New) {
    ReplicationType Next = joined(It->second, Element);
    if (Next.isVarying() && Next.Cause == NoNode)
      Next = varying("holds elements that are " + It->second.str() +
                     " and elements that are " + Element.str());
    Next.Assumes |= It->second.Assumes | Element.Assumes;
    if (Next == It->second)
      return;
    It->second = Next;
  }
  for (NodeId User : Loops->usersOf(Handle))
    Due[User] = true;
}

} // namespace graft
