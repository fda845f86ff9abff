//===- lib/lower/workers/Async.cpp - workers that do not wait ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Async.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/GradientWrites.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/StepCount.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class Assigner {
public:
  Assigner(Graph &G, const AsyncPlan &Plan, unsigned Worker,
           DiagnosticEngine &Diags)
      : G(G), Plan(Plan), Mine(Worker), Diags(Diags), Vars(G) {}
  bool run();

private:
  /// The place of a node.
  enum class Place : uint8_t {
    Worker, ///< The worker whose graph it is.
    Shared, ///< The device of a variable that all share.
    Local,  ///< The device of a variable that each worker has.
  };

  void findPlaces();
  std::string deviceOf(const DeviceName &From, Place Where) const;
  NodeId colocatedWithShared(NodeId N) const;
  void placeNodes();
  void placeGroups();
  void dropClasses();
  void lockUpdates();
  void scatterLocked(NodeId N, StringRef Op);
  void shiftSeeds();
  void stampVariables();

  bool bound();

  Graph &G;
  const AsyncPlan &Plan;
  unsigned Mine;
  DiagnosticEngine &Diags;
  VariableIndex Vars;
  std::vector<Place> Places;
};

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

void Assigner::findPlaces() {
  DenseSet<NodeId> Local(Plan.Local.begin(), Plan.Local.end());
  Places.assign(G.size(), Place::Worker);
  for (NodeId Var : Vars.variables())
    Places[Var] = Local.contains(Var) ? Place::Local : Place::Shared;
  for (NodeId N = 0; N < G.size(); ++N)
    for (unsigned I = 0; G.isLive(N) && I < G.node(N).NumData; ++I)
      if (Vars.usesInPlace(G, N, I))
        Places[N] = Places[Vars.variableOf(G.input(N, I))];
}

/// Returns the device, in this worker's graph, of a node on \p From.
std::string Assigner::deviceOf(const DeviceName &From, Place Where) const {
  DeviceName Home = *DeviceName::parse(Plan.Tasks.front());
  DeviceName Own = *DeviceName::parse(Plan.Tasks[Mine]);
  if (Where == Place::Local)
    return Plan.Tasks[Mine] + "/device:CPU:0";
  DeviceName To = From;
  bool AtHome = From.Job.empty() ||
                (From.Job == Home.Job && From.Task.value_or(0) == Home.Task);
  if (!AtHome)
    return "";
  const DeviceName &Task = Where == Place::Shared ? Home : Own;
  To.Job = Task.Job;
  To.Task = Task.Task;
  std::string Text = formatv("/job:{0}/task:{1}", To.Job, *To.Task);
  if (To.Type.empty() && Where == Place::Worker)
    To.Type = Plan.DeviceType;
  if (!To.Type.empty())
    Text += "/device:" + To.Type + ":" + std::to_string(To.Index.value_or(0));
  return Text;
}

/// Returns a shared variable, or a node that uses one in place, with which the
/// input graph colocates \p N. The colocation may lead through nodes without a
/// device. Returns NoNode if there is none.
NodeId Assigner::colocatedWithShared(NodeId N) const {
  NodeId Found = NoNode;
  DenseSet<NodeId> Seen;
  walkFrom({N}, Seen, [&](NodeId At, std::vector<NodeId> &Next) {
    if (Found != NoNode)
      return;
    if (Places[At] == Place::Shared)
      Found = At;
    else if (auto List = G.stringListAttr(At, "_class");
             List && G.device(At).empty())
      for (StringRef Name : *List)
        if (Name.consume_front("loc:@"))
          if (NodeId With = G.find(Name); With != NoNode)
            Next.push_back(With);
  });
  return Found;
}

void Assigner::placeNodes() {
  // A node without a device gets that of its colocated shared variable.
  std::vector<std::pair<NodeId, NodeId>> With;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && Places[N] == Place::Worker && G.device(N).empty() &&
        G.node(N).Flags & NF_MayHaveClass)
      if (NodeId Shared = colocatedWithShared(N); Shared != NoNode)
        With.push_back({N, Shared});
  DenseMap<std::pair<uint32_t, unsigned>, std::string> Known;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    auto [It, New] =
        Known.try_emplace({G.node(N).Device, static_cast<unsigned>(Places[N])});
    if (New)
      if (auto From = DeviceName::parse(G.device(N)))
        It->second = deviceOf(*From, Places[N]);
    if (!It->second.empty() && It->second != G.device(N))
      G.setDevice(N, It->second);
  }
  for (auto [N, Shared] : With)
    G.setDevice(N, G.device(Shared).str());
}

/// Moves a NoOp to the device of the nodes that it waits for, if all are on one
/// device that has shared variables. Each edge between tasks is a message, and
/// a run of the NoOp waits for that task anyway.
void Assigner::placeGroups() {
  std::vector<bool> There(G.size());
  for (NodeId N : topologicalOrder(G)) {
    There[N] = Places[N] == Place::Shared;
    if (!G.isOp(N, op::NoOp) || G.inputs(N).empty() ||
        G.node(N).Flags & NF_MayHaveClass)
      continue;
    StringRef Device = G.device(G.inputs(N).front().Node);
    There[N] = all_of(G.inputs(N), [&](Endpoint E) {
      return There[E.Node] && G.device(E.Node) == Device;
    });
    if (There[N] && !Device.empty())
      G.setDevice(N, Device.str());
  }
}

/// Drops colocation with nodes on other devices, which would move the node.
void Assigner::dropClasses() {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Flags & NF_MayHaveClass)
      G.keepClasses(N, [&](StringRef Class) {
        if (!Class.consume_front("loc:@"))
          return true;
        NodeId With = G.find(Class);
        return With != NoNode && canBeOneDevice(G.device(N), G.device(With));
      });
}

//===----------------------------------------------------------------------===//
// Updates of several workers
//===----------------------------------------------------------------------===//

/// Replaces a ResourceScatter op by its ResourceScatterNd form, which locks the
/// variable. Without the lock, one of two concurrent additions to a row may be
/// lost.
void Assigner::scatterLocked(NodeId N, StringRef Op) {
  Endpoint Indices = G.input(N, 1);
  // ResourceScatterNd ops do not broadcast one value to all rows.
  if (auto Value = constValue(G, G.input(N, 2).Node))
    if (Value->Shape.Dims.empty())
      return;
  unsigned Type = G.typeAttr(N, "dtype").value_or(DT_INVALID);
  unsigned Of = G.typeAttr(N, "Tindices").value_or(DT_INVALID);
  std::string Name = G.name(N).str(), Device = G.device(N).str();
  AttrRun Const;
  Const.type("dtype", DT_INT32).raw("value", encodeIntTensor(DT_INT32, {}, -1));
  NodeId Axis =
      G.insertNode(Name + "/indices/axis", op::Const, {}, Indices.Node, Const);
  AttrRun Expand;
  Expand.type("T", Of).type("Tdim", DT_INT32);
  NodeId Column = G.insertNode(Name + "/indices", op::ExpandDims,
                               {Indices, Endpoint{Axis, 0}}, Axis, Expand);
  G.setDevice(Axis, Device);
  G.setDevice(Column, Device);
  G.setOp(N, Op);
  G.removeAttr(N, "dtype");
  G.setTypeAttr(N, "T", Type);
  G.setBoolAttr(N, "use_locking", true);
  G.setInput(N, 1, {Column, 0});
}

void Assigner::lockUpdates() {
  for (NodeId N = 0, End = G.size(); N < End; ++N) {
    if (!G.isLive(N) || !Vars.isUpdate(G, N) || Places[N] != Place::Shared)
      continue;
    const OpDef *Def = G.opDef(N);
    if (Def && Def->attr("use_locking"))
      G.setBoolAttr(N, "use_locking", true);
    else if (G.isOp(N, op::ResourceScatterAdd))
      scatterLocked(N, op::ResourceScatterNdAdd);
    else if (G.isOp(N, op::ResourceScatterSub))
      scatterLocked(N, op::ResourceScatterNdSub);
    else if (G.isOp(N, op::ResourceScatterUpdate))
      scatterLocked(N, op::ResourceScatterNdUpdate);
  }
}

/// Shifts seeds, so that workers draw different numbers for their rows.
void Assigner::shiftSeeds() {
  for (NodeId N = 0; N < G.size() && Mine != 0; ++N) {
    if (!G.isLive(N) || !isRandomOp(G.opName(N)) || !G.hasAttr(N, "seed2"))
      continue;
    int64_t Seed2 = G.intAttr(N, "seed2").value_or(0);
    if (Seed2 != 0 || G.intAttr(N, "seed").value_or(0) != 0)
      G.setIntAttr(N, "seed2", Seed2 + Mine);
  }
}

/// Records in the file which variables are shared, the number of workers, and
/// the worker of this file. If there are no variables, one node gets these
/// attributes.
void Assigner::stampVariables() {
  auto Stamp = [&](NodeId N, StringRef Whose) {
    G.setStringAttr(N, PartAttr, Whose);
    G.setIntAttr(N, WorkerAttr, Mine);
    G.setIntAttr(N, WorkersAttr, static_cast<int64_t>(Plan.Tasks.size()));
    if (Plan.Staleness != 0)
      G.setIntAttr(N, StalenessAttr, Plan.Staleness);
  };
  for (NodeId Var : Vars.variables())
    Stamp(Var, Places[Var] == Place::Local ? part::Local : part::Shared);
  if (Vars.variables().empty())
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N))
        return Stamp(N, part::Local);
}

//===----------------------------------------------------------------------===//
// Staleness bound
//===----------------------------------------------------------------------===//

bool Assigner::bound() {
  auto IsShared = [&](NodeId Var) { return Places[Var] == Place::Shared; };
  GradientWrites Steps = GradientWrites::find(G, Vars, Plan.Trained, IsShared);
  for (NodeId N : Steps.Writes)
    if (Steps.InLoop[N]) {
      Diags.error(G.name(N), "writes a gradient inside a loop, where it cannot "
                             "wait for other workers; give --async without "
                             "--staleness");
      return false;
    }
  std::vector<NodeId> Runs;
  for (const std::string &Name : Plan.Names)
    if (NodeId N = G.find(Name);
        N != NoNode && Steps.Runs[N] && !Steps.InLoop[N])
      Runs.push_back(N);
  if (Runs.empty()) {
    Diags.error("", "no node that is run writes a gradient, so there are no "
                    "steps for --staleness to count; name the train op with "
                    "--fetch=NAME");
    return false;
  }
  StepCount Count(G,
                  {.Workers = static_cast<unsigned>(Plan.Tasks.size()),
                   .Mine = Mine,
                   .Ahead = Plan.Staleness,
                   .Name = StepCount::freeName(G),
                   .Frame = StepCount::freeFrame(G),
                   .Server = Plan.Server},
                  Steps.Writes.front());
  for (NodeId N : Steps.Starts)
    G.addControlInput(N, Count.zeros());
  for (NodeId N : Steps.Writes)
    G.addControlInput(N, Count.gate());
  for (NodeId N : Runs)
    Count.end(N);
  return true;
}

bool Assigner::run() {
  findPlaces();
  placeNodes();
  // If there is a staleness bound, a step ends on the device that counts steps.
  if (Plan.Staleness == 0)
    placeGroups();
  dropClasses();
  lockUpdates();
  shiftSeeds();
  stampVariables();
  if (Plan.Staleness != 0 && Plan.Tasks.size() > 1 && !bound())
    return false;
  G.markModified();
  return true;
}

} // namespace

bool assignWorker(Graph &G, const AsyncPlan &Plan, unsigned Worker,
                  DiagnosticEngine &Diags) {
  return Assigner(G, Plan, Worker, Diags).run();
}

} // namespace graft
