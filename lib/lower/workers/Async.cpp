//===- lib/lower/workers/Async.cpp - workers that do not wait ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Async.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

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
  /// Who has a node.
  enum class Place : uint8_t {
    Worker, ///< The worker whose graph it is.
    Shared, ///< The device of a variable of all.
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

  std::vector<bool> behind(std::vector<NodeId> From) const;
  bool isStep(NodeId N, const std::vector<bool> &OfRows,
              const std::vector<bool> &OfState) const;
  bool bound();
  NodeId add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
             const AttrRun &Attrs);
  NodeId constant(const Twine &Name, unsigned Type, ArrayRef<int64_t> Shape,
                  ArrayRef<int64_t> Values, NodeId Control = NoNode);
  NodeId wakeUp(unsigned Worker, StringRef Name, NodeId Control);
  void countFromZero();
  NodeId waitForOthers();
  void countStep(NodeId N);

  Graph &G;
  const AsyncPlan &Plan;
  unsigned Mine;
  DiagnosticEngine &Diags;
  VariableIndex Vars;
  std::vector<Place> Places;
  // Of a bound:
  NodeId Steps = NoNode; ///< The variable that counts.
  NodeId After = NoNode; ///< Where new nodes go.
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

/// Where what is on \p From is in the graph of this worker.
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

/// The variable, or what uses one in place, that the input has \p N, which it
/// puts on no device, colocated with.
NodeId Assigner::colocatedWithShared(NodeId N) const {
  SmallVector<NodeId, 4> Work{N};
  DenseSet<NodeId> Seen;
  while (!Work.empty()) {
    NodeId At = Work.pop_back_val();
    if (!Seen.insert(At).second)
      continue;
    if (Places[At] == Place::Shared)
      return At;
    if (!G.device(At).empty())
      continue;
    if (auto List = G.stringListAttr(At, "_class"))
      for (StringRef Name : *List)
        if (Name.consume_front("loc:@"))
          if (NodeId With = G.find(Name); With != NoNode)
            Work.push_back(With);
  }
  return NoNode;
}

void Assigner::placeNodes() {
  // What is on no device and colocated with a variable goes with it.
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

/// A NoOp is where all that it waits for is, if that is where variables of all
/// are: each edge between tasks is a message, and who runs it waits for that
/// task anyway.
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

/// Colocation with what is on another device would move the node.
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

/// TensorFlow scatters into a resource variable without a lock of its own, and
/// two that add to one row may lose an addition. The form for indices of more
/// than one axis takes the lock.
void Assigner::scatterLocked(NodeId N, StringRef Op) {
  Endpoint Indices = G.input(N, 1);
  // One value for all rows, which the other form does not take.
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

/// Workers draw different numbers for their rows.
void Assigner::shiftSeeds() {
  for (NodeId N = 0; N < G.size() && Mine != 0; ++N) {
    if (!G.isLive(N) || !isRandomOp(G.opName(N)) || !G.hasAttr(N, "seed2"))
      continue;
    int64_t Seed2 = G.intAttr(N, "seed2").value_or(0);
    if (Seed2 != 0 || G.intAttr(N, "seed").value_or(0) != 0)
      G.setIntAttr(N, "seed2", Seed2 + Mine);
  }
}

/// Says in the file whose the variables are, and which of how many workers it
/// is for; on any node if there are no variables.
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
// A bound
//===----------------------------------------------------------------------===//

/// What is made of \p From.
std::vector<bool> Assigner::behind(std::vector<NodeId> From) const {
  std::vector<bool> Made(G.size());
  while (!From.empty()) {
    NodeId N = From.back();
    From.pop_back();
    if (Made[N])
      continue;
    Made[N] = true;
    G.forEachUse(N, [&](Use U) {
      if (G.isData(U))
        From.push_back(U.User);
    });
  }
  return Made;
}

/// Whether \p N writes a gradient: an optimizer's op, or what a variable that
/// is trained gets that is made of rows and of what variables have.
bool Assigner::isStep(NodeId N, const std::vector<bool> &OfRows,
                      const std::vector<bool> &OfState) const {
  UpdateDef Update = Vars.update(G, N);
  if (Update.Kind == UpdateKind::None || Places[N] != Place::Shared)
    return false;
  if (Update.Kind == UpdateKind::Apply)
    return true;
  return is_contained(Plan.Trained, Vars.variableOf(G.input(N, 0))) &&
         Update.Grad >= 0 &&
         OfRows[G.input(N, static_cast<unsigned>(Update.Grad)).Node] &&
         OfState[G.input(N, static_cast<unsigned>(Update.Grad)).Node];
}

NodeId Assigner::add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                     const AttrRun &Attrs) {
  After = G.insertNode(Name.str(), Op, Inputs, After, Attrs);
  G.setDevice(After, Plan.Server);
  return After;
}

NodeId Assigner::constant(const Twine &Name, unsigned Type,
                          ArrayRef<int64_t> Shape, ArrayRef<int64_t> Values,
                          NodeId Control) {
  SmallVector<Endpoint, 1> Inputs;
  if (Control != NoNode)
    Inputs.push_back({Control, ControlPort});
  AttrRun Attrs;
  Attrs.type("dtype", Type).raw("value", encodeIntTensor(Type, Shape, Values));
  return add(Name, op::Const, Inputs, Attrs);
}

/// What worker \p Worker sleeps on: an accumulator, since many calls to wake up
/// are no more than one.
NodeId Assigner::wakeUp(unsigned Worker, StringRef Name, NodeId Control) {
  AttrRun Attrs;
  Attrs.type("dtype", DT_FLOAT)
      .raw("shape", encodeShapeAttr(ShapeValue()))
      .string("container", "")
      .string("shared_name", formatv("{0}/wake_{1}",
                                     G.stringAttr(Steps, "shared_name"), Worker)
                                 .str())
      .string("reduction_type", "SUM");
  SmallVector<Endpoint, 1> Inputs;
  if (Control != NoNode)
    Inputs.push_back({Control, ControlPort});
  return add(Name, op::ConditionalAccumulator, Inputs, Attrs);
}

/// The variable that counts, which gets its first value with those that are
/// trained, or with what a checkpoint has of them.
void Assigner::countFromZero() {
  auto Count = static_cast<int64_t>(Plan.Tasks.size());
  ShapeValue Shape;
  Shape.Dims.push_back(Count);
  std::string Name = G.uniqueName("graft/steps");
  AttrRun Handle;
  Handle.string("container", "")
      .type("dtype", DT_INT64)
      .raw("shape", encodeShapeAttr(Shape))
      .string("shared_name", Name);
  Steps = add(Name, op::VarHandleOp, {}, Handle);
  std::vector<int64_t> Zeros(Plan.Tasks.size());
  NodeId Zero = constant(Name + "/zeros", DT_INT64, Count, Zeros);
  AttrRun Assign;
  Assign.type("dtype", DT_INT64);
  NodeId Start = add(Name + "/Assign", op::AssignVariableOp,
                     {{Steps, 0}, {Zero, 0}}, Assign);
  std::vector<bool> OfState = behind(Plan.Trained);
  for (NodeId Var : Plan.Trained)
    Vars.forEachUse(G, Var, [&](Use U) {
      UpdateDef Update = Vars.update(G, U.User);
      if (Update.Kind == UpdateKind::Assign && U.Index == 0 &&
          Update.Grad >= 0 &&
          !OfState[G.input(U.User, static_cast<unsigned>(Update.Grad)).Node])
        G.addControlInput(U.User, Start);
    });
}

/// Ends when the slowest worker has finished all but `Staleness` of the steps
/// that this one has.
NodeId Assigner::waitForOthers() {
  std::string Name = G.uniqueName("graft/ahead");
  auto Of = [](unsigned Type) { return AttrRun().type("T", Type); };
  auto Enter = [&](Endpoint E, unsigned Type, bool Constant) {
    AttrRun Attrs;
    Attrs.type("T", Type)
        .string("frame_name", Name)
        .boolean("is_constant", Constant)
        .integer("parallel_iterations", 1);
    return add(Name + (Constant ? "/steps" : "/enter"), op::Enter, E, Attrs);
  };
  NodeId Token = constant(Name + "/token", DT_BOOL, {}, 0);
  NodeId First = Enter({Token, 0}, DT_BOOL, false);
  NodeId Handle = Enter({Steps, 0}, DT_RESOURCE, true);
  AttrRun Merge;
  Merge.type("T", DT_BOOL).integer("N", 2);
  NodeId Turn = add(Name, op::Merge, {{First, 0}, {First, 0}}, Merge);
  AttrRun Read;
  Read.type("dtype", DT_INT64);
  NodeId All = add(Name + "/read", op::ReadVariableOp,
                   {{Handle, 0}, {Turn, ControlPort}}, Read);
  NodeId Axis = constant(Name + "/axis", DT_INT32, {}, 0, Turn);
  NodeId Number = constant(Name + "/worker", DT_INT32, {}, Mine, Turn);
  AttrRun Gather;
  Gather.type("Tparams", DT_INT64)
      .type("Tindices", DT_INT32)
      .type("Taxis", DT_INT32);
  NodeId Own = add(Name + "/own", op::GatherV2,
                   {{All, 0}, {Number, 0}, {Axis, 0}}, Gather);
  AttrRun Min;
  Min.type("T", DT_INT64).type("Tidx", DT_INT32);
  NodeId Least = add(Name + "/least", op::Min, {{All, 0}, {Axis, 0}}, Min);
  NodeId Lead =
      add(Name + "/lead", op::Sub, {{Own, 0}, {Least, 0}}, Of(DT_INT64));
  NodeId Most = constant(Name + "/most", DT_INT64, {}, Plan.Staleness, Turn);
  NodeId Waits = add(Name + "/waits", op::GreaterEqual, {{Lead, 0}, {Most, 0}},
                     Of(DT_INT64));
  NodeId Cond = add(Name + "/cond", op::LoopCond, Endpoint{Waits, 0}, {});
  NodeId Switch =
      add(Name + "/switch", op::Switch, {{Turn, 0}, {Cond, 0}}, Of(DT_BOOL));
  NodeId Body =
      add(Name + "/body", op::Identity, Endpoint{Switch, 1}, Of(DT_BOOL));
  NodeId Wake = wakeUp(Mine, Name + "/wake", Body);
  NodeId One = constant(Name + "/one", DT_INT32, {}, 1, Body);
  AttrRun Take;
  Take.type("dtype", DT_FLOAT);
  NodeId Sleep = add(Name + "/sleep", op::AccumulatorTakeGradient,
                     {{Wake, 0}, {One, 0}}, Take);
  NodeId Awake = add(Name + "/awake", op::Identity,
                     {{Body, 0}, {Sleep, ControlPort}}, Of(DT_BOOL));
  NodeId Next =
      add(Name + "/next", op::NextIteration, Endpoint{Awake, 0}, Of(DT_BOOL));
  G.setInput(Turn, 1, {Next, 0});
  return add(Name + "/exit", op::Exit, Endpoint{Switch, 0}, Of(DT_BOOL));
}

/// \p N, a name that can be run, ends when its step is counted and the others
/// have been told.
void Assigner::countStep(NodeId N) {
  std::string Name = G.name(N).str(), Device = G.device(N).str();
  After = N;
  std::vector<int64_t> Own(Plan.Tasks.size());
  Own[Mine] = 1;
  AttrRun Type;
  Type.type("dtype", DT_INT64);
  NodeId One =
      constant(Name + "/one", DT_INT64, static_cast<int64_t>(Own.size()), Own);
  NodeId Count = add(Name + "/count", op::AssignAddVariableOp,
                     {{Steps, 0}, {One, 0}, {N, ControlPort}}, Type);
  SmallVector<Endpoint, 8> Inputs;
  SmallVector<NodeId, 8> Ends{Count};
  AttrRun Float;
  Float.type("dtype", DT_FLOAT)
      .raw("value", encodeFloatTensor(DT_FLOAT, {}, 1.0));
  NodeId Call = add(Name + "/call", op::Const, {}, Float);
  NodeId Always = constant(Name + "/always", DT_INT64, {},
                           std::numeric_limits<int64_t>::max());
  AttrRun Put;
  Put.type("dtype", DT_FLOAT);
  for (unsigned Other = 0; Other < Plan.Tasks.size(); ++Other) {
    if (Other == Mine)
      continue;
    std::string To = formatv("{0}/wake_{1}", Name, Other);
    NodeId Wake = wakeUp(Other, To, NoNode);
    Ends.push_back(
        add(To + "/put", op::AccumulatorApplyGradient,
            {{Wake, 0}, {Always, 0}, {Call, 0}, {Count, ControlPort}}, Put));
  }
  AttrRun Attrs;
  unsigned Outputs = G.numOutputs(N).value_or(0);
  std::string Types;
  for (unsigned Port = 0; Port < Outputs; ++Port) {
    Types += static_cast<char>(G.outputType(N, Port));
    Inputs.push_back({N, Port});
  }
  if (Outputs == 1)
    Attrs.type("T", static_cast<unsigned char>(Types[0]));
  else if (Outputs > 1)
    Attrs.raw("T", encodeTypeListAttr(Types));
  for (NodeId End : Ends)
    Inputs.push_back({End, ControlPort});
  G.rename(N, G.uniqueName(Name + "/step"));
  NodeId End = add(Name,
                   Outputs == 0   ? op::NoOp
                   : Outputs == 1 ? op::Identity
                                  : op::IdentityN,
                   Inputs, Attrs);
  G.setDevice(End, Device);
}

bool Assigner::bound() {
  std::vector<NodeId> Rows;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isNeed(G.opName(N), G.opDef(N)) &&
        !Vars.isUpdate(G, N) && !G.isOp(N, op::RestoreV2))
      Rows.push_back(N);
  std::vector<bool> OfRows = behind(std::move(Rows)),
                    OfState = behind(
                        {Vars.variables().begin(), Vars.variables().end()});
  std::vector<NodeId> Order = topologicalOrder(G);
  std::vector<bool> Stepped(G.size());
  std::vector<unsigned> Depth(G.size());
  std::vector<NodeId> Writes;
  for (NodeId N : Order) {
    for (Endpoint E : G.inputs(N)) {
      if (isBackEdgeOp(G.opName(E.Node)))
        continue;
      Stepped[N] = Stepped[N] || Stepped[E.Node];
      Depth[N] = std::max(Depth[N], Depth[E.Node]);
    }
    if (G.isOp(N, op::Enter) || G.isOp(N, op::RefEnter))
      ++Depth[N];
    else if (Depth[N] != 0 && (G.isOp(N, op::Exit) || G.isOp(N, op::RefExit)))
      --Depth[N];
    if (!isStep(N, OfRows, OfState))
      continue;
    if (Depth[N] != 0) {
      Diags.error(G.name(N), "writes a gradient inside a loop, where it cannot "
                             "wait for other workers; give --async without "
                             "--staleness");
      return false;
    }
    Stepped[N] = true;
    Writes.push_back(N);
  }
  std::vector<NodeId> Runs;
  for (const std::string &Name : Plan.Names)
    if (NodeId N = G.find(Name); N != NoNode && Stepped[N] && Depth[N] == 0)
      Runs.push_back(N);
  if (Runs.empty()) {
    Diags.error("", "nothing that can be run writes a gradient, so there are "
                    "no steps that workers could be ahead; give "
                    "--fetch=NAME of the train op");
    return false;
  }
  After = Writes.front();
  countFromZero();
  NodeId Gate = waitForOthers();
  for (NodeId N : Writes)
    G.addControlInput(N, Gate);
  for (NodeId N : Runs)
    countStep(N);
  return true;
}

bool Assigner::run() {
  findPlaces();
  placeNodes();
  // Steps that are counted end where they are counted.
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
