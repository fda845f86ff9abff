//===- lib/lower/workers/OwnReads.cpp - reads after the begin of a run ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A worker reads variables after the chief has begun the run: before that the
// chief may restore or assign them. A fetch of a variable must wait for no
// other worker, so the step has copies of the nodes that depend on variables:
//
//     w/Read = ReadVariableOp(w)             w/Read: the same
//     y = MatMul(x, w/Read)          →       own/w/Read = ReadVariableOp(w,
//                                                ^number)
//                                            y = MatMul(x, own/w/Read)
//
// A copy of a variable in the process of a worker is lost if that process ends.
// The worker then restores the copy from the variable of the chief
// (Messages.h).
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/Walk.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/lower/workers/Cutter.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

using namespace llvm;

namespace graft {

/// Returns the handle or reference of the variable that \p E reads without
/// waiting for another node; else no node.
static Endpoint variableRead(const Graph &G, const VariableIndex &Vars,
                             Endpoint E) {
  while (G.controlInputs(E.Node).empty() && G.node(E.Node).NumData == 1) {
    Endpoint From = G.input(E.Node, 0);
    if (Vars.variableOf(From) != NoNode)
      return From;
    if (!G.isOp(E.Node, op::Identity))
      break;
    E = From;
  }
  return {};
}

/// Finds the variables of this worker that `graft/refresh_copies` writes.
void Cutter::findOwnCopies() {
  if (Mine == 0)
    return;
  markRefreshes(Inserted::Refresh);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || G.node(N).Kind != Inserted::Refresh ||
        Vars.update(G, N).Kind != UpdateKind::Assign)
      continue;
    NodeId Var = Vars.variableOf(G.input(N, 0));
    Endpoint Primary = variableRead(G, Vars, G.input(N, 1));
    if (Var == NoNode || Primary.Node == NoNode ||
        taskOf(G.device(Var)) != Mine)
      continue;
    std::string Shared, Container;
    if (auto D = DeviceName::parse(G.device(Primary.Node));
        D && !D->Job.empty() && !D->Type.empty() &&
        G.isOp(Primary.Node, op::VarHandleOp)) {
      Shared = G.stringAttr(Primary.Node, "shared_name").value_or("");
      Container = G.stringAttr(Primary.Node, "container").value_or("");
    }
    Copies.push_back({.Copy = G.input(N, 0),
                      .Primary = Primary,
                      .Device = G.device(N).str(),
                      .PrimaryDevice = G.device(Primary.Node).str(),
                      .Type = G.outputType(G.input(N, 1)),
                      .IsHandle = G.isOp(N, op::AssignVariableOp),
                      .PrimaryIsHandle = G.outputType(Primary) == DT_RESOURCE,
                      .Container = std::move(Container),
                      .SharedName = std::move(Shared)});
  }
  markRefreshes(Inserted::No);
}

/// Returns the variables of Copies that a run of \p N writes. Ignores the
/// refresh that the exchange of messages adds at the start of a run. Otherwise
/// a name without writes would, at its end, undo a write by another name in the
/// same run.
std::vector<OwnCopy> Cutter::writtenBy(NodeId N) const {
  DenseSet<NodeId> Written;
  if (!Copies.empty())
    forEachBehind(N, [&](NodeId At) {
      for (unsigned I = 0; At < FirstOfWire && I < Vars.update(G, At).NumVars;
           ++I)
        Written.insert(Vars.variableOf(G.input(At, I)));
    });
  std::vector<OwnCopy> Result;
  copy_if(Copies, std::back_inserter(Result), [&](const OwnCopy &C) {
    return Written.contains(Vars.variableOf(C.Copy));
  });
  return Result;
}

void Cutter::readAfterBegin() {
  if (Mine == 0 || !Wire)
    return;
  std::vector<bool> InRun(G.size()), Again(G.size());
  std::vector<NodeId> Work;
  Work.reserve(Names.size());
  for (const RunName &R : Names)
    Work.push_back(R.Run);
  walkInputs(G, std::move(Work), Along::All, InRun);
  // A loop with a node of this worker belongs to the worker as a whole.
  std::vector<NodeId> Order = topologicalOrder(G);
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  std::vector<bool> OwnLoop(G.size());
  for (NodeId N : Loops ? Loops->nests() : std::vector<NodeId>())
    if (any_of(Loops->nest(N), [&](NodeId M) { return Owner[M] == Mine; }))
      for (NodeId M : Loops->nest(N))
        OwnLoop[M] = true;
  auto IsOwn = [&](NodeId N) { return Owner[N] == Mine || OwnLoop[N]; };
  auto ReadOf = [&](NodeId N) {
    for (unsigned I = 0; I < G.node(N).NumData; ++I)
      if (Vars.usesInPlace(G, N, I) ||
          (Vars.variableOf(G.input(N, I)) != NoNode && !G.isRefInput(N, I) &&
           G.isRefOutput(G.input(N, I).Node, G.input(N, I).Port)))
        return static_cast<int>(I);
    return -1;
  };
  for (bool Changed = true; std::exchange(Changed, false);)
    for (NodeId N : Order) {
      if (!InRun[N] || Again[N] || IsOwn(N) ||
          Vars.variableOf({N, 0}) != NoNode ||
          (ReadOf(N) < 0 &&
           none_of(G.inputs(N), [&](Endpoint E) { return Again[E.Node]; })))
        continue;
      Again[N] = Changed = true;
      if (Loops)
        for (NodeId M : Loops->nest(N))
          Again[M] = true;
    }
  DenseMap<NodeId, NodeId> CopyOf;
  for (NodeId N : Order) {
    if (!Again[N])
      continue;
    AttrRun Attrs;
    for (const AttrEntry &A : G.attrs(N))
      if (A.Key == "frame_name")
        Attrs.string(A.Key,
                     (*G.stringAttr(N, A.Key) + "/of_" + Twine(Mine)).str());
      else if (A.Key != PartAttr)
        Attrs.raw(A.Key, A.Value);
    CopyOf[N] = add("own/" + G.name(N), part::Own, G.opName(N), {}, N, Attrs,
                    G.device(N), Mine);
  }
  auto Now = [&](NodeId N) {
    auto It = CopyOf.find(N);
    return It == CopyOf.end() ? N : It->second;
  };
  // In a loop only an Enter can wait for a node outside.
  auto Gate = [&](NodeId N, int Input) {
    while (Loops && Loops->isInLoop(N)) {
      NodeId From = G.input(N, static_cast<unsigned>(Input)).Node;
      if (G.isOp(N, op::Enter) && !Loops->isInLoop(From))
        break;
      N = From;
      Input = 0;
    }
    G.addControlInput(Now(N), Wire->numberNear(G.device(Now(N))));
  };
  for (NodeId N : Order) {
    if (!InRun[N] || !(Again[N] || IsOwn(N)))
      continue;
    SmallVector<Endpoint, 8> Inputs(G.inputs(N));
    for (Endpoint &E : Inputs)
      E.Node = Now(E.Node);
    int Input = ReadOf(N);
    if (ArrayRef(Inputs) != G.inputs(N) || Again[N])
      G.setInputs(Now(N), Inputs);
    if (Input >= 0 && Vars.variableOf({N, 0}) == NoNode &&
        (Again[N] || N < FirstOfWire))
      Gate(N, Input);
  }
}

} // namespace graft
