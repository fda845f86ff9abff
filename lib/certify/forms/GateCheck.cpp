//===- lib/certify/forms/GateCheck.cpp - nodes without a value ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks nodes that represent no tensor of the input: gates, refreshes of
// copies, checks of values and the mesh. Also checks the control inputs of
// inserted nodes.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

bool assigns(const Graph &G, NodeId N) {
  const OpDef *Def = G.opDef(N);
  return Def && Def->update().Kind == UpdateKind::Assign;
}

/// Returns true if all direct and indirect users of \p N are gates.
static bool onlyGatesWait(const Graph &G, NodeId N) {
  return !G.anyUse(N, [&](Use U) {
    return G.node(U.User).Kind != Inserted::Gate || !onlyGatesWait(G, U.User);
  });
}

static bool isRefresh(const Graph &G, NodeId N) {
  return G.node(N).Kind == Inserted::Refresh;
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

static void errorWaits(Comparison &C, NodeId N, NodeId For) {
  C.error(N, "is inserted and waits for '" + C.G.name(For) +
                 "', on which its value does not depend");
}

void checkWaits(Comparison &C, NodeId N) {
  for (Endpoint E : C.G.controlInputs(N))
    if (C.InputOf[E.Node] != NoNode || C.G.node(E.Node).Kind != Inserted::Gate)
      errorWaits(C, N, E.Node);
}

bool runsChecks(const Graph &G, NodeId N) {
  return G.node(N).Kind == Inserted::Gate && G.node(N).NumData == 0 &&
         !G.controlInputs(N).empty() &&
         all_of(G.controlInputs(N), [&](Endpoint E) {
           return G.node(E.Node).Kind == Inserted::Check;
         });
}

/// Returns true if \p N waits for refreshes of copies, directly or through
/// gates.
static bool runsRefreshes(const Graph &G, NodeId N) {
  return any_of(G.controlInputs(N), [&](Endpoint E) {
    return isRefresh(G, E.Node) ||
           (G.node(E.Node).Kind == Inserted::Gate && runsRefreshes(G, E.Node));
  });
}

/// Returns true if \p N, of the input, writes a variable with refreshed copies.
static bool overwrites(const Comparison &C, const ProgramFacts &Facts,
                       NodeId N) {
  if (C.InputOf[N] == NoNode || !Facts.Vars.isUpdate(C.G, N))
    return false;
  NodeId Var = Facts.Vars.variableOf(C.G.input(N, 0));
  return Var != NoNode &&
         C.G.anyUse(Var, [&](Use U) { return isRefresh(C.G, U.User); });
}

/// Returns true if \p N, of the input, can be run for its effect or for the
/// effect of a node that it waits for.
static bool initializes(const Comparison &C, const ProgramFacts &Facts,
                        NodeId N) {
  if (C.InputOf[N] == NoNode)
    return false;
  const OpDef *Op = C.G.opDef(N);
  return C.opKind(N) == OpKind::NoOp || Facts.Vars.isUpdate(C.G, N) || !Op ||
         C.G.node(N).NumInputs != C.G.node(N).NumData ||
         (Op->isStateful() && !isVariableOp(Op->Name) && !Op->readsVariable());
}

/// Checks that a gate waits for collectives only, or for refreshes only. A gate
/// that waits for gates of refreshes may also wait for initializers of the
/// input.
static void checkGate(Comparison &C, const ProgramFacts &Facts, NodeId N) {
  const Graph &G = C.G;
  ArrayRef<Endpoint> Controls = G.controlInputs(N);
  if (C.opKind(N) != OpKind::NoOp || G.node(N).NumData != 0 ||
      all_of(Controls, [&](Endpoint E) { return C.InputOf[E.Node] != NoNode; }))
    return C.mismatch(N);
  if (runsChecks(G, N))
    return;
  if (!onlyGatesWait(G, N) || !runsRefreshes(G, N)) {
    for (Endpoint E : Controls)
      if (C.InputOf[E.Node] != NoNode || !C.isCollective(E.Node))
        errorWaits(C, N, E.Node);
    return;
  }
  bool Refreshes =
      any_of(Controls, [&](Endpoint E) { return isRefresh(G, E.Node); });
  for (Endpoint E : Controls) {
    if (overwrites(C, Facts, E.Node))
      C.error(N, "refreshes copies and waits for '" + G.name(E.Node) +
                     "', which writes them");
    else if (Refreshes ? !isRefresh(G, E.Node)
                       : G.node(E.Node).Kind != Inserted::Gate &&
                             !initializes(C, Facts, E.Node))
      C.error(N, "refreshes copies and waits for '" + G.name(E.Node) +
                     "', which is not part of the refresh");
  }
}

static bool recognizeGate(const LoweredFile &File, NodeId N) {
  return File.G.isOp(N, op::NoOp);
}

const InsertedForm GateForm = {
    .Check = checkGate, .Recognize = recognizeGate, .IsTyped = true};

//===----------------------------------------------------------------------===//
// Refreshes, checks, the mesh
//===----------------------------------------------------------------------===//

/// Returns true if \p N assigns the variable's own value to its copies, and no
/// node of the input triggers this assignment.
static bool refreshes(const Comparison &C, const ProgramFacts &Facts,
                      NodeId N) {
  const Graph &G = C.G;
  if (Facts.Vars.update(G, N).Kind != UpdateKind::Assign ||
      G.node(N).Count != Copies::PerReplica || G.node(N).NumInputs != 2)
    return false;
  // All copies must be assigned one tensor. The node that computes it must be
  // unreplicated and be in the output.
  NodeId From = G.input(N, 1).Node, Var = Facts.Vars.variableOf(G.input(N, 0));
  Endpoint Value = C.erase(G.input(N, 1));
  if (Var == NoNode || Value.Node == NoNode ||
      G.node(From).Count != Copies::Once ||
      G.node(From).Flags & NF_ElidePrimary)
    return false;
  StringRef Op = G.opName(Value.Node);
  // A per-replica value would assign each copy its old value.
  return (Op == op::ReadVariableOp || Op == op::Identity) &&
         C.erase(G.input(Value.Node, 0)) == C.erase({Var, 0}) && G.hasUses(N) &&
         onlyGatesWait(G, N);
}

static void checkRefresh(Comparison &C, const ProgramFacts &Facts, NodeId N) {
  if (!refreshes(C, Facts, N))
    return C.mismatch(N);
  checkWaits(C, N);
}

static bool recognizeRefresh(const LoweredFile &File, NodeId N) {
  return assigns(File.G, N);
}

const InsertedForm RefreshForm = {
    .Check = checkRefresh, .Recognize = recognizeRefresh, .WritesCopies = true};

/// Returns true if \p N has no effect other than to fail.
static bool observes(const Graph &G, NodeId N) {
  const OpDef *Def = G.opDef(N);
  return Def &&
         (!Def->isStateful() || Def->readsVariable() || G.isOp(N, op::Assert));
}

static void checkCheck(Comparison &C, const ProgramFacts & /*Facts*/,
                       NodeId N) {
  if (!observes(C.G, N))
    return C.mismatch(N);
  checkWaits(C, N);
}

static bool recognizeCheck(const LoweredFile &File, NodeId N) {
  return observes(File.G, N);
}

const InsertedForm CheckForm = {
    .Check = checkCheck, .Recognize = recognizeCheck, .IsUnseen = true};

static void checkMesh(Comparison &C, const ProgramFacts & /*Facts*/, NodeId N) {
  if (C.opKind(N) != OpKind::Mesh)
    return C.mismatch(N);
  checkWaits(C, N);
  if (C.G.intAttr(N, "replicas") != C.Replicas)
    C.error(N, "does not have as many replicas as devices");
}

const InsertedForm MeshForm = {.Check = checkMesh, .IsTyped = true};

} // namespace graft
