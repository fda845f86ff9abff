//===- lib/lower/workers/Cut.cpp - one graph, cut between tasks -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Cut.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/CopyWord.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

/// Of nodes that every worker has.
constexpr int Common = -1;

/// A tensor, or the end of a node, that one worker gives another.
struct Channel {
  Endpoint From;
  int Source = 0, Target = 0;
  std::string Name; ///< Of the queue, in both graphs.
  std::string Device;
  std::vector<Use> Uses;
};

/// A name that every worker has although worker 0 makes its value.
struct RunName {
  NodeId Node;
  /// What a run of it sends: channels, by number.
  std::vector<unsigned> Sends;
  /// Rows of the replicas, of which each worker has its own.
  bool IsRows = false;
  std::vector<unsigned> Values; ///< The channels of its value.
};

class Cutter {
public:
  Cutter(Graph &G, const CutPlan &Plan, unsigned Worker,
         DiagnosticEngine &Diags)
      : G(G), Plan(Plan), Mine(static_cast<int>(Worker)), Diags(Diags), Vars(G),
        Workers(static_cast<unsigned>(Plan.Tasks.size())) {}
  bool run();

private:
  int taskOf(StringRef Device) const;
  bool isFeedSplit(NodeId N) const;
  bool isRowsOfAll(NodeId N) const;
  void findOwners();
  void spread(std::vector<NodeId> Work, std::vector<bool> &Made) const;
  int ownerOf(Endpoint E) const;
  template <typename Fn> void forEachBehind(NodeId N, Fn F) const;
  void gateWrites();
  void gate(ArrayRef<NodeId> Group, int Worker, const std::vector<bool> &Leads);
  SmallVector<NodeId, 4> readsOf(NodeId Var) const;
  NodeId taken(NodeId Read, int Worker);
  NodeId ownCopy(NodeId N, int Worker, std::vector<unsigned> &Depth);
  bool findChannels();
  void findNames();
  unsigned channel(Endpoint From, int Target, const std::string &Device);
  std::string queueDevice(NodeId Reader) const;
  bool splitFeeds();
  bool splitFeed(NodeId Split);
  std::string hostOf(int Worker) const;
  NodeId add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
             NodeId After, const AttrRun &Attrs, StringRef Device, int Worker);
  NodeId queue(const Channel &C, NodeId After);
  NodeId send(const Channel &C);
  NodeId receive(const Channel &C);
  void exchange();
  void writeName(const RunName &R);
  void writeRows(NodeId N);
  void moveConstants();
  void removeOthers();
  void dropClasses();

  Graph &G;
  const CutPlan &Plan;
  int Mine;
  DiagnosticEngine &Diags;
  VariableIndex Vars;
  unsigned Workers;
  std::vector<int> Owner;
  std::vector<Channel> Channels;
  DenseMap<std::pair<uint64_t, int>, unsigned> Numbers;
  StringSet<> Taken;
  DenseMap<std::pair<NodeId, int>, NodeId> Copies; ///< By ownCopy().
  std::vector<RunName> Names;
  DenseSet<NodeId> Rows;    ///< See RunName::IsRows.
  std::vector<NodeId> Sent; ///< By channel: what sends it.
  std::vector<NodeId> Received;
};

//===----------------------------------------------------------------------===//
// Who has what
//===----------------------------------------------------------------------===//

std::string Cutter::hostOf(int Worker) const {
  return Plan.Tasks[static_cast<size_t>(Worker)] + "/device:CPU:0";
}

/// Adds a node of \p Worker.
NodeId Cutter::add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                   NodeId After, const AttrRun &Attrs, StringRef Device,
                   int Worker) {
  NodeId N = G.insertNode(Name.str(), Op, Inputs, After, Attrs);
  G.setDevice(N, Device);
  Owner.resize(G.size(), Common);
  Owner[N] = Worker;
  return N;
}

/// The worker whose device \p Device is, or Common.
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

/// Whether \p N gives each replica its rows of a feed.
bool Cutter::isFeedSplit(NodeId N) const {
  return G.isOp(N, op::Split) && G.hasAttr(N, StampAttr) &&
         G.node(N).NumData == 2 &&
         G.opName(G.input(N, 1).Node).starts_with(op::Placeholder);
}

/// Whether \p N joins the rows of all replicas for who fetches them.
bool Cutter::isRowsOfAll(NodeId N) const {
  return G.isOp(N, op::ConcatV2) && G.hasAttr(N, StampAttr) && !G.hasUses(N);
}

/// Adds what is made of the nodes in \p Work to what is not common.
void Cutter::spread(std::vector<NodeId> Work, std::vector<bool> &Made) const {
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    if (Made[N])
      continue;
    Made[N] = true;
    G.forEachUse(N, [&](Use U) { Work.push_back(U.User); });
  }
}

/// Who gives \p E, rows of a feed included.
int Cutter::ownerOf(Endpoint E) const {
  if (!isFeedSplit(E.Node) || E.isControl())
    return Owner[E.Node];
  auto Replicas = G.intAttr(E.Node, "num_split").value_or(0);
  return static_cast<int>(E.Port * Workers / static_cast<unsigned>(Replicas));
}

void Cutter::findOwners() {
  std::vector<bool> Made(G.size()), First(G.size());
  std::vector<NodeId> Work, Order = topologicalOrder(G);
  // Variables and their first values may be on any worker, and belong to all.
  for (NodeId N : reverse(Order)) {
    NodeId Var = Vars.isUpdate(G, N) ? Vars.variableOf(G.input(N, 0)) : NoNode;
    if (isVariableOp(G.opName(N)))
      First[N] = true;
    else if (Var != NoNode)
      First[N] = Vars.initialAssign(G, Var) == N;
    else
      First[N] =
          G.hasUses(N) && !G.anyUse(N, [&](Use U) { return !First[U.User]; });
    if (isFeedSplit(N) || (taskOf(G.device(N)) > 0 && !First[N]))
      Work.push_back(N);
  }
  spread(std::exchange(Work, {}), Made);
  // What a step draws, reads or writes for all is done once, by worker 0: what
  // of this leads to something that is made of rows.
  std::vector<bool> Leads(G.size());
  for (NodeId N : reverse(Order))
    Leads[N] = Made[N] || G.anyUse(N, [&](Use U) { return Leads[U.User]; });
  // So is a write that depends on what a variable has: to make it again would
  // be another step. First values and checkpoints may be written by anyone.
  std::vector<bool> OfState(G.size());
  for (NodeId N : Order) {
    const OpDef *Def = G.opDef(N);
    OfState[N] = any_of(G.dataInputs(N), [&](Endpoint E) {
      return OfState[E.Node] ||
             (G.isOp(E.Node, op::VarHandleOp) && Def && Def->readsVariable() &&
              !(Def->Flags & OpDef::AllowsUninitialized));
    });
    const UpdateDef &Update = Vars.update(G, N);
    bool Writes = Update.Kind != UpdateKind::None && !Made[N];
    if (!Writes && any_of(G.dataInputs(N), [&](Endpoint E) {
          return G.isRefOutput(E.Node, E.Port) &&
                 !(Def && Def->Flags & OpDef::AllowsUninitialized);
        }))
      OfState[N] = true;
    bool Once = Writes && !First[N] &&
                (Update.Kind != UpdateKind::Assign || OfState[N]);
    if (Once ||
        (!Made[N] && Leads[N] && !G.opName(N).starts_with(op::Placeholder) &&
         isNeed(G.opName(N), Def)))
      Work.push_back(N);
  }
  spread(std::move(Work), Made);
  // What is on a server is of the worker whose rows it takes, if it is one.
  Owner.assign(G.size(), Common);
  for (NodeId N : Order) {
    if (!Made[N])
      continue;
    int Task = taskOf(G.device(N));
    if (Task == Common) {
      SmallVector<int, 4> Givers;
      for (Endpoint E : G.inputs(N))
        if (int Its = ownerOf(E); Its != Common)
          Givers.push_back(Its);
      Task = !Givers.empty() && all_equal(Givers) ? Givers.front() : 0;
    }
    Owner[N] = Task;
  }
}

//===----------------------------------------------------------------------===//
// What goes from one to another
//===----------------------------------------------------------------------===//

/// The host of the server that \p Reader is on, or the one for all others.
std::string Cutter::queueDevice(NodeId Reader) const {
  auto D = DeviceName::parse(G.device(Reader));
  if (!D || D->Job.empty() || taskOf(G.device(Reader)) != Common)
    return Plan.Server;
  D->Type = "CPU";
  D->Index = 0;
  return D->str();
}

unsigned Cutter::channel(Endpoint From, int Target, const std::string &Device) {
  auto [It, New] = Numbers.try_emplace(
      {uint64_t(From.Node) << 32 | From.Port, Target}, Channels.size());
  if (New) {
    std::string Name = G.name(From.Node).str();
    if (From.isControl())
      Name += "/end";
    else if (From.Port != 0)
      Name += "_" + std::to_string(From.Port);
    Name += "/to_" + std::to_string(Target);
    std::string Free = G.uniqueName(Name);
    for (unsigned I = 1; !Taken.insert(Free).second; ++I)
      Free = G.uniqueName(Name + "_" + std::to_string(I));
    Channels.push_back(
        {From, Owner[From.Node], Target, std::move(Free), Device, {}});
  }
  return It->second;
}

/// Calls \p F with \p N and all that is made of rows and leads to it.
template <typename Fn> void Cutter::forEachBehind(NodeId N, Fn F) const {
  DenseSet<NodeId> Seen;
  std::vector<NodeId> Work{N};
  while (!Work.empty()) {
    NodeId At = Work.back();
    Work.pop_back();
    if (Owner[At] == Common || !Seen.insert(At).second)
      continue;
    F(At);
    for (Endpoint E : G.inputs(At))
      Work.push_back(E.Node);
  }
}

/// A worker takes the value that a variable has before the step: what writes it
/// waits until all have read it. Writes that every name runs together wait for
/// the same.
void Cutter::gateWrites() {
  DenseMap<NodeId, std::vector<size_t>> Runs;
  std::vector<NodeId> Writes;
  for (auto [I, Name] : enumerate(Plan.Names)) {
    NodeId N = G.find(Name);
    if (N == NoNode || Owner[N] != 0 || Rows.contains(N))
      continue;
    forEachBehind(N, [&, I = I](NodeId At) {
      if (!Vars.isUpdate(G, At))
        return;
      std::vector<size_t> &Of = Runs[At];
      if (Of.empty())
        Writes.push_back(At);
      Of.push_back(I);
    });
  }
  llvm::sort(Writes);
  std::map<std::vector<size_t>, std::vector<NodeId>> Groups;
  for (NodeId N : Writes)
    Groups[Runs[N]].push_back(N);
  // What comes after a write reads what it wrote.
  std::vector<bool> After(G.size());
  spread(Writes, After);
  std::vector<NodeId> Order = topologicalOrder(G);
  for (unsigned I = 1; I < Workers; ++I) {
    int Worker = static_cast<int>(I);
    std::vector<bool> Leads(G.size());
    for (NodeId N : reverse(Order))
      Leads[N] = !After[N] && (Owner[N] == Worker ||
                               (Owner[N] == Common && G.anyUse(N, [&](Use U) {
                                 return Leads[U.User];
                               })));
    for (const auto &[Key, Group] : Groups)
      gate(Group, Worker, Leads);
  }
}

/// Has the writes \p Group wait for the reads of \p Worker of what they write.
void Cutter::gate(ArrayRef<NodeId> Group, int Worker,
                  const std::vector<bool> &Leads) {
  SmallVector<Endpoint, 8> Reads;
  DenseSet<NodeId> Written;
  for (NodeId Write : Group)
    for (unsigned I = 0; I < Vars.update(G, Write).NumVars; ++I)
      if (NodeId Var = Vars.variableOf(G.input(Write, I));
          Var != NoNode && Written.insert(Var).second)
        for (NodeId Read : readsOf(Var)) {
          if (!Leads[Read])
            continue;
          if (Owner[Read] == Worker)
            Reads.push_back({Read, ControlPort});
          else
            Reads.push_back({taken(Read, Worker), ControlPort});
        }
  if (Reads.empty())
    return;
  std::string Name =
      G.name(Group.front()).str() + "/read_by_" + std::to_string(Worker);
  NodeId Token = add(Name, op::NoOp, Reads, Group.front(), AttrRun(),
                     hostOf(Worker), Worker);
  for (NodeId Write : Group)
    G.addControlInput(Write, Token);
}

/// What gives the value of \p Var.
SmallVector<NodeId, 4> Cutter::readsOf(NodeId Var) const {
  SmallVector<NodeId, 4> Reads;
  Vars.forEachUse(G, Var, [&](Use U) {
    if (!Vars.isUpdate(G, U.User) && Vars.variableOf({U.User, 0}) == NoNode &&
        G.numOutputs(U.User).value_or(0) != 0)
      Reads.push_back(U.User);
  });
  llvm::sort(Reads);
  Reads.erase(std::unique(Reads.begin(), Reads.end()), Reads.end());
  return Reads;
}

/// A reference may still be read when what it refers to is written: the worker
/// has a copy of the value when this node has run.
NodeId Cutter::taken(NodeId Read, int Worker) {
  SmallVector<Use, 8> Uses;
  for (Use U : G.uses(Read))
    if (G.isData(U) && G.input(U).Port == 0 && Owner[U.User] == Worker)
      Uses.push_back(U);
  if (Uses.empty())
    return Read;
  NodeId Copy = add(
      G.name(Read) + "/of_" + Twine(Worker), op::Identity, Endpoint{Read, 0},
      Read, AttrRun().type("T", G.outputType(Read, 0)), hostOf(Worker), Worker);
  for (Use U : Uses)
    G.setInput(U.User, U.Index, {Copy, 0});
  return Copy;
}

/// A copy of \p N, which is in a conditional, for \p Worker, so that only what
/// comes from outside of the conditional is sent. NoNode if \p N has a state.
NodeId Cutter::ownCopy(NodeId N, int Worker, std::vector<unsigned> &Depth) {
  auto Key = std::pair(N, Worker);
  if (auto It = Copies.find(Key); It != Copies.end())
    return It->second;
  const OpDef *Def = G.opDef(N);
  StringRef Op = G.opName(N);
  if (!Def || Def->isStateful() || isNeed(Op, Def) || Op == op::Enter ||
      Op == op::Exit || Op == op::NextIteration || Op == op::LoopCond)
    return NoNode;
  SmallVector<Endpoint, 4> Inputs(G.inputs(N));
  for (Endpoint &E : Inputs) {
    if (Owner[E.Node] == Common || Owner[E.Node] == Worker ||
        Depth[E.Node] == 0)
      continue;
    NodeId Own = ownCopy(E.Node, Worker, Depth);
    if (Own == NoNode)
      return NoNode;
    E.Node = Own;
  }
  AttrRun Attrs;
  for (const AttrEntry &A : G.attrs(N))
    if (A.Key != "_class")
      Attrs.raw(A.Key, A.Value);
  NodeId Copy = add(G.name(N) + "/of_" + Twine(Worker), Op, Inputs, N, Attrs,
                    hostOf(Worker), Worker);
  Depth.resize(G.size());
  Depth[Copy] = Depth[N];
  return Copies[Key] = Copy;
}

bool Cutter::findChannels() {
  // How deep in conditionals and loops: nothing is sent from there, since what
  // is not taken sends nothing, and a loop more than once.
  std::vector<unsigned> Depth(G.size());
  std::vector<NodeId> Order = topologicalOrder(G);
  auto IsOfLoop = [&](NodeId Merge) {
    return any_of(G.dataInputs(Merge),
                  [&](Endpoint E) { return isBackEdgeOp(G.opName(E.Node)); });
  };
  for (NodeId N : Order) {
    unsigned &D = Depth[N];
    for (Endpoint E : G.inputs(N))
      if (!isBackEdgeOp(G.opName(E.Node)))
        D = std::max(D, Depth[E.Node]);
    StringRef Op = G.opName(N);
    if (Op == op::Enter || Op == op::RefEnter ||
        ((Op == op::Switch || Op == op::RefSwitch) &&
         !(G.isOp(G.input(N, 0).Node, op::Merge) &&
           IsOfLoop(G.input(N, 0).Node))))
      ++D;
    else if (D != 0 &&
             (Op == op::Exit || Op == op::RefExit ||
              ((Op == op::Merge || Op == op::RefMerge) && !IsOfLoop(N))))
      --D;
  }
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || Owner[N] == Common || Rows.count(N))
      continue;
    for (unsigned I = 0; I < G.node(N).NumInputs; ++I) {
      Endpoint E = G.input(N, I);
      int From = Owner[E.Node];
      if (From == Common || From == Owner[N] || isFeedSplit(E.Node))
        continue;
      unsigned Type = E.isControl() ? unsigned(DT_BOOL) : G.outputType(E);
      if (Depth[E.Node] != 0)
        if (NodeId Own = ownCopy(E.Node, Owner[N], Depth); Own != NoNode) {
          G.setInput(N, I, {Own, E.Port});
          continue;
        }
      if (Depth[E.Node] != 0 || Type == DT_INVALID || Type == DT_RESOURCE ||
          Type == DT_VARIANT) {
        Diags.error(G.name(N),
                    formatv("takes '{0}' from another worker, and that is {1}; "
                            "write one graph for all with --mode=in-graph",
                            G.name(E.Node),
                            Depth[E.Node] != 0
                                ? "inside a conditional or a loop"
                                : "no tensor that can be sent")
                        .str());
        return false;
      }
      unsigned C = channel(E, Owner[N], queueDevice(N));
      Channels[C].Uses.push_back({N, I});
    }
  }
  return true;
}

void Cutter::findNames() {
  // By what reads it.
  DenseMap<std::pair<NodeId, unsigned>, unsigned> ChannelOf;
  for (auto [I, C] : enumerate(Channels))
    for (Use U : C.Uses)
      ChannelOf[{U.User, U.Index}] = static_cast<unsigned>(I);
  size_t Steps = Channels.size();
  for (const std::string &Name : Plan.Names) {
    NodeId N = G.find(Name);
    if (N == NoNode || Owner[N] == Common)
      continue;
    RunName R{
        .Node = N, .Sends = {}, .IsRows = Rows.count(N) != 0, .Values = {}};
    if (!R.IsRows && Owner[N] != 0)
      continue;
    BitVector Any(static_cast<unsigned>(Steps));
    if (!R.IsRows)
      forEachBehind(N, [&](NodeId At) {
        for (unsigned I = 0; I < G.node(At).NumInputs; ++I)
          if (auto C = ChannelOf.find({At, I}); C != ChannelOf.end())
            Any.set(C->second);
      });
    for (unsigned C : Any.set_bits())
      R.Sends.push_back(C);
    // Its value, or its end, for each of the others.
    unsigned Outputs = G.numOutputs(N).value_or(0);
    for (unsigned To = 1; To < Workers && !R.IsRows; ++To)
      for (unsigned Port = 0; Port < std::max(Outputs, 1U); ++Port)
        R.Values.push_back(channel({N, Outputs == 0 ? ControlPort : Port},
                                   static_cast<int>(To), Plan.Server));
    Names.push_back(std::move(R));
  }
}

//===----------------------------------------------------------------------===//
// The graph of one worker
//===----------------------------------------------------------------------===//

static unsigned typeOf(const Graph &G, const Channel &C) {
  return C.From.isControl() ? unsigned(DT_BOOL) : G.outputType(C.From);
}

NodeId Cutter::queue(const Channel &C, NodeId After) {
  char Type = static_cast<char>(typeOf(G, C));
  AttrRun Attrs;
  Attrs.integer("capacity", -1)
      .raw("component_types", encodeTypeListAttr(StringRef(&Type, 1)))
      .string("container", "")
      .string("shared_name", C.Name);
  return add(C.Name, op::FIFOQueueV2, {}, After, Attrs, C.Device, Mine);
}

NodeId Cutter::send(const Channel &C) {
  NodeId From = C.From.Node;
  NodeId Queue = queue(C, From);
  Endpoint Value = C.From;
  if (C.From.isControl()) {
    AttrRun Const;
    Const.type("dtype", DT_BOOL).raw("value", encodeIntTensor(DT_BOOL, {}, 1));
    Value = {add(C.Name + "/token", op::Const, {C.From}, Queue, Const,
                 G.device(From), Mine),
             0};
  }
  char Type = static_cast<char>(typeOf(G, C));
  AttrRun Attrs;
  Attrs.raw("Tcomponents", encodeTypeListAttr(StringRef(&Type, 1)))
      .integer("timeout_ms", -1);
  return add(C.Name + "/put", op::QueueEnqueueV2, {{Queue, 0}, Value}, Queue,
             Attrs, C.Device, Mine);
}

NodeId Cutter::receive(const Channel &C) {
  NodeId After = C.Uses.empty() ? C.From.Node : C.Uses.front().User;
  NodeId Queue = queue(C, After);
  char Type = static_cast<char>(typeOf(G, C));
  AttrRun Attrs;
  Attrs.raw("component_types", encodeTypeListAttr(StringRef(&Type, 1)))
      .integer("timeout_ms", -1);
  return add(C.Name + "/get", op::QueueDequeueV2, Endpoint{Queue, 0}, Queue,
             Attrs, C.Device, Mine);
}

void Cutter::exchange() {
  Sent.assign(Channels.size(), NoNode);
  Received.assign(Channels.size(), NoNode);
  for (auto [I, C] : enumerate(Channels)) {
    if (C.Source == Mine)
      Sent[I] = send(C);
    if (C.Target != Mine)
      continue;
    NodeId Get = Received[I] = receive(C);
    for (Use U : C.Uses)
      G.setInput(U.User, U.Index, {Get, C.From.isControl() ? ControlPort : 0});
  }
}

/// The worker is fed its rows.
bool Cutter::splitFeed(NodeId Split) {
  NodeId Feed = G.input(Split, 1).Node;
  if (G.anyUse(Feed,
               [&](Use U) { return G.isData(U) && !isFeedSplit(U.User); })) {
    Diags.error(G.name(Feed),
                "is read both as the rows of a worker and whole, so it is not "
                "clear what to feed a worker; give --feed=NAME=copy");
    return false;
  }
  if (G.isOp(Feed, op::PlaceholderWithDefault)) {
    Diags.error(G.name(Feed), "is split although it has a default value, which "
                              "is of all workers; give --feed=NAME=copy");
    return false;
  }
  // Which of its parts this worker reads.
  auto Replicas =
      static_cast<unsigned>(G.intAttr(Split, "num_split").value_or(0));
  unsigned Parts = Replicas / Workers,
           First = static_cast<unsigned>(Mine) * Parts;
  shrinkFeed(
      G, Feed,
      static_cast<int64_t>(constScalar(G, G.input(Split, 0).Node).value_or(-1)),
      Workers);
  for (Use U : G.uses(Split)) {
    if (!G.isData(U)) {
      G.setInput(U.User, U.Index, {Feed, ControlPort});
      continue;
    }
    unsigned Port = G.input(U).Port;
    if (Port < First || Port >= First + Parts) {
      if (Owner[U.User] == Mine) {
        Diags.error(G.name(U.User), "reads rows of another worker");
        return false;
      }
      G.setInput(U.User, U.Index, {Feed, 0});
      continue;
    }
    G.setInput(U.User, U.Index,
               Parts == 1 ? Endpoint{Feed, 0} : Endpoint{Split, Port - First});
  }
  if (Parts == 1) {
    G.remove(Split);
    return true;
  }
  G.setIntAttr(Split, "num_split", Parts);
  Owner[Split] = Mine;
  G.setDevice(Split, hostOf(Mine));
  return true;
}

bool Cutter::splitFeeds() {
  std::vector<NodeId> Splits;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isFeedSplit(N))
      Splits.push_back(N);
  return all_of(Splits, [&](NodeId N) { return splitFeed(N); });
}

/// A fetch of rows gives those of this worker.
void Cutter::writeRows(NodeId N) {
  SmallVector<Endpoint, 4> Parts;
  for (Endpoint E : G.dataInputs(N).drop_back())
    if (Owner[E.Node] == Mine)
      Parts.push_back(E);
  Owner[N] = Mine;
  if (Parts.size() == 1) {
    G.removeAttr(N, "N");
    G.removeAttr(N, "Tidx");
    G.setOp(N, op::Identity);
  } else {
    G.setIntAttr(N, "N", static_cast<int64_t>(Parts.size()));
    Parts.push_back(G.dataInputs(N).back());
  }
  G.setInputs(N, Parts);
  if (!Parts.empty())
    G.setDevice(N, G.device(Parts.front().Node).str());
}

/// The name of worker 0's node: what it gives the others, it has given. The
/// others have given what it takes, and have its value.
void Cutter::writeName(const RunName &R) {
  NodeId N = R.Node;
  if (R.IsRows)
    return writeRows(N);
  std::string Name = G.name(N).str(), Device = G.device(N).str();
  SmallVector<Endpoint, 8> Inputs;
  AttrRun Attrs;
  unsigned Outputs = G.numOutputs(N).value_or(0);
  std::string Types;
  for (unsigned Port = 0; Port < Outputs; ++Port)
    Types += static_cast<char>(G.outputType(N, Port));
  StringRef Op = Outputs == 0   ? op::NoOp
                 : Outputs == 1 ? op::Identity
                                : op::IdentityN;
  if (Outputs == 1)
    Attrs.type("T", static_cast<unsigned char>(Types[0]));
  else if (Outputs > 1)
    Attrs.raw("T", encodeTypeListAttr(Types));
  SmallVector<NodeId, 8> Waits;
  if (Mine == 0) {
    for (unsigned Port = 0; Port < Outputs; ++Port)
      Inputs.push_back({N, Port});
    if (Outputs == 0)
      Waits.push_back(N);
    for (unsigned C : R.Values)
      Waits.push_back(Sent[C]);
  } else {
    for (unsigned C : R.Values) {
      if (Channels[C].Target != Mine)
        continue;
      if (Outputs == 0)
        Waits.push_back(Received[C]);
      else
        Inputs.push_back({Received[C], 0});
    }
    Device = hostOf(Mine);
  }
  for (unsigned C : R.Sends)
    if (Sent[C] != NoNode)
      Waits.push_back(Sent[C]);
  for (NodeId W : Waits)
    if (!is_contained(Inputs, Endpoint{W, ControlPort}))
      Inputs.push_back({W, ControlPort});
  G.rename(N, G.uniqueName(Name + "/step"));
  add(Name, Op, Inputs, N, Attrs, Device, Mine);
}

/// What has no state is where it is read.
void Cutter::moveConstants() {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || Owner[N] != Common || taskOf(G.device(N)) == Common ||
        taskOf(G.device(N)) == Mine || !G.dataInputs(N).empty() ||
        isNeed(G.opName(N), G.opDef(N)) || isVariableOp(G.opName(N)))
      continue;
    auto D = DeviceName::parse(G.device(N));
    auto To = DeviceName::parse(Plan.Tasks[static_cast<size_t>(Mine)]);
    D->Job = To->Job;
    D->Task = To->Task;
    G.setDevice(N, D->str());
  }
}

void Cutter::removeOthers() {
  std::vector<NodeId> Gone;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && Owner[N] != Common && Owner[N] != Mine)
      Gone.push_back(N);
  for (NodeId N : Gone)
    G.setInputs(N, {});
  for (NodeId N : Gone)
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
  findOwners();
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isRowsOfAll(N) && Owner[N] != Common)
      Rows.insert(N);
  gateWrites();
  if (!findChannels())
    return false;
  findNames();
  if (!splitFeeds())
    return false;
  exchange();
  for (const RunName &R : Names)
    writeName(R);
  moveConstants();
  removeOthers();
  dropClasses();
  G.markModified();
  return true;
}

} // namespace

void shrinkFeed(Graph &G, NodeId Feed, int64_t Axis, unsigned Workers) {
  G.removeAttr(Feed, "_output_shapes");
  auto Shape = G.shapeAttr(Feed, "shape");
  if (!Shape || Shape->UnknownRank || Axis < 0 ||
      Axis >= static_cast<int64_t>(Shape->Dims.size()) ||
      Shape->Dims[Axis] <= 0)
    return;
  Shape->Dims[Axis] /= Workers;
  G.setAttr(Feed, "shape", encodeShapeAttr(*Shape));
}

bool cutWorker(Graph &G, const CutPlan &Plan, unsigned Worker,
               DiagnosticEngine &Diags) {
  return Cutter(G, Plan, Worker, Diags).run();
}

} // namespace graft
