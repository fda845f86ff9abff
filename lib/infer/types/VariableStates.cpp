//===- lib/infer/types/VariableStates.cpp - variables -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// State has a type: what its copies are together. What is written must have
// that type, and what is read has it.
//
//   mirrored, replicated               Replicated
//   sync-on-read sum                   Partial(sum)
//   sync-on-read mean                  Partial(sum) k=1
//   sync-on-read only-first-replica    Replicated
//   sync-on-read none                  Varying: they are nothing together
//
// So a sum over the rows of a replica is added to a sync-on-read sum as it is,
// and nothing is exchanged before somebody asks for the whole. A value that all
// replicas have, as a restored one, is divided among the copies of a sum, and
// a value of another scale is multiplied by a power of their number. The
// initial value is not: every copy gets it, which is right for zeros only.
//
// A value of its own that a replica writes to a mirrored variable, as a rule
// asked for, makes the copies differ: the state is Varying from then on.
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
    // One copy is the variable.
    if (States.empty() && readMesh(G).replicas() < 2)
      return;
    VariableState S;
    S.OnRead = OnRead;
    S.How = How.value_or(Aggregation::None);
    if (OnRead && S.How == Aggregation::None) {
      S.Type = ReplicationType::varying(Var);
      Reasons.try_emplace(Var, "has copies that no aggregation combines");
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

/// Whether the node at hand takes the value of a variable that has a state, or
/// writes a sync-on-read one; it has its types then.
bool TypeInference::usesState() {
  if (UpdateDef U = T.Vars.update(G, N); U.Kind != UpdateKind::None) {
    const TypeAnalysis::VariableState *S = stateOf(input(0));
    if (S && S->OnRead) {
      writeState(*S, U);
      return true;
    }
    // Each copy of a slot is what the whole should be.
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
    // All copies have one value, or nobody asks for it.
    if (S->Type.isPlain() || is(trait::AsksVariable))
      continue;
    setAll(varying("uses in place a variable whose copies are partial or "
                   "differ per replica"));
    // Copy 0 of a reference is not the value that a saver may write.
    if (S->OnRead && node().Count == Copies::Once)
      T.Unproved.push_back({N, I});
    return true;
  }
  return false;
}

/// A write to a sync-on-read variable. Nothing is exchanged for it.
void TypeInference::writeState(const TypeAnalysis::VariableState &S,
                               const UpdateDef &U) {
  // As what is Replicated with scale To, every replica has what is due to it.
  int To = S.How == Aggregation::Sum ? -1 : 0;
  bool Adds = U.Kind == UpdateKind::Assign || U.Kind == UpdateKind::AssignAdd;
  for (unsigned I = U.NumVars; I < numData(); ++I) {
    ReplicationType X = number(I);
    if (S.How == Aggregation::None)
      continue;
    bool Fits = (X.Zero && !X.isSharded()) || (X.isReplicated() && X.K == To) ||
                (S.Type.isPartial() && X.isPartial() && X.Op == Combine::Sum &&
                 X.K == S.Type.K);
    // A factor is no exchange. But the initial value is taken as it is.
    int Power = (X.isPartial() ? S.Type.K : To) - X.K;
    // A share of an integer is none: the rest would be lost in each step.
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

/// The copies of the mirrored variable that \p S is of differ after the node at
/// hand wrote them.
void TypeInference::diverge(NodeId Var, TypeAnalysis::VariableState &S) {
  if (S.Type.isVarying())
    return;
  S.Type = varying("gives each copy of '" + G.name(Var) +
                   "' the value of its own replica");
  T.Vars.forEachUse(G, Var, [&](Use U) { mark(U.User); });
}

/// Every value that an update reads must be the true one. The op's gradient
/// slot plays no part: an optimizer made of plain assignments is as good.
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
