//===- lib/lower/workers/Cut.cpp - one graph, cut between tasks -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Cut.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/lower/workers/Cutter.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

Cutter::Cutter(Graph &G, const CutPlan &Plan, unsigned Worker,
               DiagnosticEngine &Diags)
    : G(G), Plan(Plan), Mine(static_cast<int>(Worker)), Diags(Diags), Vars(G),
      Workers(static_cast<unsigned>(Plan.Tasks.size())), Scope(freeScope(G)) {}

/// Adds a node of \p Worker for \p Part.
NodeId Cutter::add(const Twine &Name, StringRef Part, StringRef Op,
                   ArrayRef<Endpoint> Inputs, NodeId After, AttrRun Attrs,
                   StringRef Device, int Worker) {
  Attrs.string(PartAttr, Part);
  NodeId N = G.insertNode((Scope + "/" + Name).str(), Op, Inputs, After, Attrs);
  G.setDevice(N, Device);
  Owner.resize(G.size(), Common);
  Owner[N] = Worker;
  return N;
}

/// Returns the worker that has \p Device, or Common.
int Cutter::taskOf(StringRef Device) const {
  auto D = DeviceName::parse(Device);
  if (!D || D->Job.empty())
    return Common;
  std::string Task =
      formatv("/job:{0}/task:{1}", D->Job, D->Task.value_or(0)).str();
  auto At = find(Plan.Tasks, Task);
  return At == Plan.Tasks.end() ? Common
                                : static_cast<int>(At - Plan.Tasks.begin());
}

/// Moves stateless nodes that depend only on stateless nodes to the task of
/// this worker. Copies stay in place. Moves variables without a task to the
/// chief, where all workers use them.
void Cutter::moveConstants() {
  for (NodeId Var : Vars.variables())
    if (auto D = DeviceName::parse(G.device(Var)); D && D->Job.empty()) {
      auto Chief = DeviceName::parse(Plan.Tasks.front());
      D->Job = Chief->Job;
      D->Task = Chief->Task;
      G.setDevice(Var, D->Type.empty() ? hostOf(0) : D->str());
    }
  std::vector<bool> Moved(G.size());
  std::vector<NodeId> Order = topologicalOrder(G);
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  for (NodeId N : Order) {
    if (Owner[N] != Common || workerOf(N) || (Loops && Loops->isInLoop(N)) ||
        !all_of(G.dataInputs(N),
                [&](Endpoint E) {
                  return Moved[E.Node] && !G.isRefOutput(E.Node, E.Port) &&
                         G.outputType(E) != DT_RESOURCE;
                }) ||
        (isNeed(G.opName(N), G.opDef(N)) &&
         !G.opName(N).starts_with(op::Placeholder)) ||
        isVariableOp(G.opName(N)) || isLocalHandleOp(G.opName(N)))
      continue;
    Moved[N] = true;
    if (taskOf(G.device(N)) == Common || taskOf(G.device(N)) == Mine)
      continue;
    auto D = DeviceName::parse(G.device(N));
    auto To = DeviceName::parse(Plan.Tasks[static_cast<size_t>(Mine)]);
    D->Job = To->Job;
    D->Task = To->Task;
    G.setDevice(N, D->str());
  }
}

/// Drops control edges from other workers' copies that have no effect and
/// always run. This worker would compute such a copy only to wait for it.
void Cutter::dropWaits(ArrayRef<NodeId> Order) {
  // Copy 0 may have the name of the node itself.
  StringSet<> HasCopies;
  for (NodeId N : Order)
    if (numberOfCopy(G.name(N), Plan.Word).value_or(0) != 0)
      HasCopies.insert(originOfCopy(G.name(N), Plan.Word));
  std::vector<bool> IsOther(G.size()), HasEffect(G.size());
  for (NodeId N : Order) {
    HasEffect[N] =
        Owner[N] != Common || Vars.isUpdate(G, N) ||
        (isNeed(G.opName(N), G.opDef(N)) &&
         !G.opName(N).starts_with(op::Placeholder)) ||
        any_of(G.inputs(N), [&](Endpoint E) { return HasEffect[E.Node]; });
    bool IsCopy = workerOf(N) || HasCopies.contains(G.name(N));
    IsOther[N] = IsCopy && !HasEffect[N] &&
                 !Conditionals->contain({N, ControlPort}) &&
                 static_cast<int>(workerOf(N).value_or(0)) != Mine;
  }
  for (NodeId N : Order) {
    if (none_of(G.controlInputs(N),
                [&](Endpoint E) { return IsOther[E.Node]; }))
      continue;
    SmallVector<Endpoint, 8> Inputs(G.dataInputs(N));
    for (Endpoint E : G.controlInputs(N))
      if (!IsOther[E.Node])
        Inputs.push_back(E);
    G.setInputs(N, Inputs);
  }
}

void Cutter::removeOthers() {
  auto IsOther = [&](Endpoint E) {
    return Owner[E.Node] != Common && Owner[E.Node] != Mine;
  };
  std::vector<NodeId> Gone;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && IsOther({N, 0}))
      Gone.push_back(N);
  // Nodes that wait for copies wait only for copies of this worker.
  for (NodeId N = 0; N < Waiting.size(); ++N)
    if (Waiting[N] && any_of(G.controlInputs(N), IsOther)) {
      SmallVector<Endpoint, 8> Inputs(G.dataInputs(N));
      copy_if(G.controlInputs(N), std::back_inserter(Inputs),
              [&](Endpoint E) { return !IsOther(E); });
      G.setInputs(N, Inputs);
    }
  for (NodeId N : Gone)
    G.setInputs(N, {});
  for (NodeId N : Gone)
    G.remove(N);
  std::vector<NodeId> Order = topologicalOrder(G);
  dropWaits(Order);
  // Remove copies for other workers' replicas that have no users here.
  for (NodeId N : reverse(Order))
    if (Owner[N] == Common && !G.hasUses(N) &&
        workerOf(N).value_or(Mine) != static_cast<unsigned>(Mine) &&
        !isNeed(G.opName(N), G.opDef(N)) && !isVariableOp(G.opName(N)) &&
        !Vars.isUpdate(G, N) && !is_contained(Plan.Names, G.name(N)))
      G.remove(N);
}

void Cutter::dropClasses() {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Flags & NF_MayHaveClass)
      G.keepClasses(N, [&](StringRef Class) {
        return !Class.consume_front("loc:@") || G.find(Class) != NoNode;
      });
}

bool Cutter::run() {
  Home = findHome();
  shareFeeds();
  findOwners();
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isRowsOfAll(N) && Owner[N] != Common)
      Rows.insert(N);
  Conditionals.emplace(G, [&](StringRef Name, StringRef Op,
                              ArrayRef<Endpoint> Inputs, NodeId After,
                              const AttrRun &Attrs, int Worker) {
    return add(Name, part::Branch, Op, Inputs, After, Attrs, hostOf(Worker),
               Worker);
  });
  gateWrites();
  if (!findChannels())
    return false;
  findNames();
  if (!splitFeeds())
    return false;
  exchange();
  for (unsigned I = 0; I < Names.size(); ++I)
    writeName(I);
  addFunctions();
  prepareSessions();
  moveConstants();
  removeOthers();
  readAfterBegin();
  dropClasses();
  G.markModified();
  return true;
}

void shrinkFeed(Graph &G, NodeId Feed, int64_t Axis, unsigned Mine,
                unsigned All) {
  G.removeAttr(Feed, "_output_shapes");
  auto Shape = G.shapeAttr(Feed, "shape");
  if (!Shape || Shape->UnknownRank || Axis < 0 ||
      Axis >= static_cast<int64_t>(Shape->Dims.size()) ||
      Shape->Dims[Axis] <= 0)
    return;
  Shape->Dims[Axis] = Shape->Dims[Axis] / All * Mine;
  G.setAttr(Feed, "shape", encodeShapeAttr(*Shape));
}

bool cutWorker(Graph &G, const CutPlan &Plan, unsigned Worker,
               DiagnosticEngine &Diags) {
  return Cutter(G, Plan, Worker, Diags).run();
}

} // namespace graft
