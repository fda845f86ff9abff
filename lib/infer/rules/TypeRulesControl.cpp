//===- lib/infer/rules/TypeRulesControl.cpp - conditionals ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Execution has a type too. What runs under a predicate that is equal on all
// replicas runs on all of them or on none, and so do the reductions in a
// branch. What runs under any other predicate has no relation to the
// single-device value, not even a constant: the single device may not have run
// it.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeRules.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// The predicate that \p Node runs under and replicas may disagree on, if there
/// is one. (One that is partial is reduced for the Switch.)
std::optional<Endpoint> TypeRules::localPredicate(NodeId Node) const {
  for (uint32_t P : When->of(Node))
    for (Endpoint E : When->tensors(P)) {
      // A predicate in a loop may not have a type yet.
      if (Loops && !Defined[E.Node])
        continue;
      if (RType Type = T.type(E); Type.isVarying() || Type.isSharded())
        return E;
    }
  return std::nullopt;
}

void TypeRules::infersLocally(Endpoint Predicate) {
  T.LocalPredicates.insert_or_assign(N, Predicate);
  if (G.node(N).Count == Copies::Once && G.opDef(N) &&
      G.opDef(N)->isStateful() && T.Vars.isOnce(G, N) &&
      none_of(G.dataInputs(N), [&](Endpoint E) {
        return G.node(E.Node).Count == Copies::PerReplica;
      }))
    T.LocalEffects.push_back({N, Predicate});
  if (T.Vars.isUpdate(G, N))
    for (unsigned I = T.Vars.update(G, N).NumVars; I < numData(); ++I)
      T.Unproved.push_back({N, I});
  for (unsigned I = 0; I < numData(); ++I)
    if (RType X = operand(I); X.isVarying()) {
      setAll(varyingLike(X));
      return;
    }
  setAll(varying("runs under a predicate that replicas may disagree on"));
}

void TypeRules::switches() {
  // A box is none to reduce.
  RType X = G.outputType(N, 0) == DT_VARIANT ? operand(0) : numeric(0);
  RType Pred = plain(1);
  setAll(Pred.isReplicated() ? X
         : Pred.isVarying()
             ? varyingLike(Pred)
             : varying("may take a different branch on each replica"));
}

/// Branches must agree, because nobody knows which one it will be. A zero
/// agrees with everything of its size.
void TypeRules::merges() {
  SmallVector<RType, 2> Types;
  RType Result;
  bool IsBox = G.outputType(N, 0) == DT_VARIANT;
  bool AllZero = true, Same = true, AnySharded = false, AllSharded = true;
  for (unsigned I = 0; I < numData(); ++I) {
    // A size stays one.
    RType X = operand(I).Symbolic || IsBox ? operand(I) : numeric(I);
    Types.push_back(X);
    if (X.isVarying()) {
      Result = varyingLike(X);
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
    auto *It = find_if(Types, [](const RType &X) { return !X.isNothing(); });
    Result = It == Types.end() ? Types.front() : *It;
  } else if (!Same && !Result.isVarying()) {
    Result = AllSharded ? RType::sharded(Result.Axis) : RType::replicated();
    if (IsBox || (AnySharded && !AllSharded))
      Result = varying("merges branches with different replication types");
    for (unsigned I = 0; I < Types.size() && !Result.isVarying(); ++I)
      if (!Types[I].Zero)
        if (RType X = plain(I); X.isVarying())
          Result = varyingLike(X);
  }
  for (unsigned I = 0; I < Types.size() && !Result.isVarying(); ++I)
    if (Types[I].Zero && !Types[I].hasSizeOf(Result))
      Result = varying("merges zeros with values of a different size");
  set(0, Result);
  // Which of them it was.
  RType Which = RType::replicated();
  for (Endpoint E : G.dataInputs(N))
    if (When && T.type(E).isVarying() &&
        (localPredicate(E.Node) || When->predicateOf(E.Node) != ~0u))
      Which = varyingLike(T.type(E));
  for (unsigned Port = 1; Port < D.numOutputs(N); ++Port)
    set(Port, Which);
}

/// An Optional, in which the gradient of a conditional gets what its branches
/// computed.
void TypeRules::boxes() {
  if (numData() == 1 && D.numOutputs(N) == 1)
    set(0, operand(0));
  else
    apply(TypeRule::None);
}

} // namespace graft
