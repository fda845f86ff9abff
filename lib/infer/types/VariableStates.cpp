//===- lib/infer/types/VariableStates.cpp - variables -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The copies of a variable together have a type, the state of the variable. A
// written value must have that type. A read value has that type.
//
//   mirrored, replicated               Replicated
//   sync-on-read sum                   Partial(sum)
//   sync-on-read mean                  Partial(sum) k=1
//   sync-on-read only-first-replica    Replicated
//   sync-on-read none                  Varying: copies are not combined
//
// Example: each replica adds the sum over its rows to its copy of a
// sync-on-read sum. Replicas exchange nothing until the variable is read
// outside of the step. A Replicated value, such as a restored one, is divided
// among the copies of a sum. A value of another scale is multiplied by a power
// of N. The initial value is not scaled: every copy gets it, which is right
// only for zeros.
//
// If each replica writes its own value to a mirrored variable, because a policy
// asked for it, the copies differ: the state is Varying from then on.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeInference.h"
#include "lib/program/Program.h"

using namespace llvm;

namespace graft {

void TypeAnalysis::findStates() {
  for (NodeId Var : Vars.variables()) {
    const Node &This = G.node(Var);
    bool OnRead = This.Plan == Policy::SyncOnRead;
    if (This.Count != Copies::PerReplica ||
        (!OnRead && !(This.Flags & NF_MayHaveGraft)))
      continue;
    auto How = aggregationOf(G, Var);
    if (!How && !OnRead)
      continue;
    // A single copy is the variable itself.
    if (States.empty() && readMesh(G).replicas() < 2)
      return;
    VariableState S;
    S.OnRead = OnRead;
    S.How = How.value_or(Aggregation::None);
    if (OnRead && S.How == Aggregation::None) {
      S.Type = ReplicationType::varying(Var);
      Reasons.try_emplace(Var,
                          "is a sync-on-read variable without an aggregation, "
                          "so its copies have no common value");
    } else if (OnRead && S.How != Aggregation::OnlyFirst) {
      S.Type = ReplicationType::partial(S.How == Aggregation::Mean ? 1 : 0);
    }
    S.Initial = OnRead ? Vars.initialAssign(G, Var) : NoNode;
    States.try_emplace(Var, S);
  }
}

TypeAnalysis::VariableState *TypeInference::stateOf(Endpoint E) {
  NodeId Var = T.Vars.variableOf(E);
  auto It = Var == NoNode ? T.States.end() : T.States.find(Var);
  return It == T.States.end() ? nullptr : &It->second;
}

/// Infers the types of the node at hand if it reads a variable that has a
/// state, or writes a sync-on-read variable. Returns false if it does neither.
bool TypeInference::usesState() {
  if (UpdateDef U = T.Vars.update(G, N); U.Kind != UpdateKind::None) {
    const TypeAnalysis::VariableState *S = stateOf(input(0));
    if (S && S->OnRead) {
      writeState(*S, U);
      return true;
    }
    // The update needs slots that have the global value in each copy.
    bool Any = false;
    for (unsigned I = 1; I < U.NumVars && I < numData(); ++I)
      if (const TypeAnalysis::VariableState *Slot = stateOf(input(I));
          Slot && Slot->OnRead && !Slot->Type.isReplicated()) {
        T.Unproved.push_back({N, I});
        Any = true;
      }
    if (Any)
      update(U);
    return Any;
  }
  if (T.Vars.variableOf(out()) != NoNode)
    return false;
  for (unsigned I = 0; I < numData(); ++I) {
    const TypeAnalysis::VariableState *S = stateOf(input(I));
    if (!S)
      continue;
    if (is(trait::ReadsVariable)) {
      setAll(S->Type);
      return true;
    }
    // All copies are equal, or the node does not read the value.
    if (S->Type.isPlain() || is(trait::AsksVariable))
      continue;
    setAll(
        varying("uses the reference of a variable whose copies are partial or "
                "differ per replica"));
    // A saver must not save copy 0 of a reference as the value.
    if (S->OnRead && node().Count == Copies::Once)
      T.Unproved.push_back({N, I});
    return true;
  }
  return false;
}

/// Infers a write to a sync-on-read variable. It needs no collective.
void TypeInference::writeState(const TypeAnalysis::VariableState &S,
                               const UpdateDef &U) {
  // A Replicated value with scale exponent To is the share of each copy.
  int To = S.How == Aggregation::Sum ? -1 : 0;
  bool Adds = U.Kind == UpdateKind::Assign || U.Kind == UpdateKind::AssignAdd;
  for (unsigned I = U.NumVars; I < numData(); ++I) {
    ReplicationType X = number(I);
    if (S.How == Aggregation::None)
      continue;
    bool Fits = (X.Zero && !X.isSharded()) || (X.isReplicated() && X.K == To) ||
                (S.Type.isPartial() && X.isPartial() && X.Op == Combine::Sum &&
                 X.K == S.Type.K);
    // Scaling needs no collective. The initial value is not scaled.
    int Power = (X.isPartial() ? S.Type.K : To) - X.K;
    // An integer cannot be divided by N: each step would lose the remainder.
    bool IsLost = U.Kind == UpdateKind::AssignAdd && Power < 0 &&
                  !isFloating(G.outputType(input(I)));
    if (Adds && !Fits && !IsLost && N != S.Initial &&
        (X.isReplicated() ||
         (S.Type.isPartial() && X.isPartial() && X.Op == Combine::Sum))) {
      scaled(I, X, X.isPartial() ? S.Type.K : To);
      Fits = true;
    }
    if (!Adds || !Fits)
      T.Unproved.push_back({N, I});
  }
  setAll(ReplicationType::replicated());
}

/// Makes the state \p S of the mirrored variable \p Var Varying: its copies
/// differ after the write of the node at hand.
void TypeInference::diverge(NodeId Var, TypeAnalysis::VariableState &S) {
  if (S.Type.isVarying())
    return;
  S.Type = varying("writes each replica's own value to its copy of '" +
                   G.name(Var) + "', so the copies differ");
  T.Vars.forEachUse(G, Var, [&](Use U) { mark(U.User); });
}

/// Demands the global value of all operands of an update. The rule does not
/// depend on the gradient slot of an op, so an optimizer can also consist of
/// plain assignments.
void TypeInference::update(const UpdateDef &U) {
  TypeAnalysis::VariableState *S = HasStates ? stateOf(input(0)) : nullptr;
  for (unsigned I = U.NumVars; I < numData(); ++I) {
    ReplicationType Type = whole(I);
    if (!Type.isVarying() && Refused != I)
      continue;
    T.Unproved.push_back({N, I});
    if (S && G.node(input(I).Node).Count == Copies::PerReplica)
      diverge(T.Vars.variableOf(input(0)), *S);
  }
  setAll(ReplicationType::replicated());
}

} // namespace graft
