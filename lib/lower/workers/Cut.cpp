//===- lib/lower/workers/Cut.cpp - one graph, cut between tasks -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Cut.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/lower/workers/Branches.h"
#include "lib/lower/workers/Messages.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <numeric>
#include <tuple>

using namespace llvm;

namespace graft {
namespace {

/// Of nodes that every worker has.
constexpr int Common = -1;

/// A tensor, or the end of a node, that one worker gives another.
struct Channel {
  Endpoint From;
  int Source = 0, Target = 0;
  std::string Device; ///< Of the queue.
  std::vector<Use> Uses;
};

/// What one worker gives another at once, through one queue: all that the same
/// names need and that takes as many messages to be known.
struct Message {
  int Source = 0, Target = 0;
  unsigned Level = 0;
  BitVector Of; ///< The names that need it.
  std::vector<unsigned> Channels;
  MessageQueue Queue;
  /// A message of the same worker to the chief that any run has that has this
  /// one, and whose number this one must have. One of the same level is sent
  /// afterwards.
  std::optional<unsigned> Root;
};

/// A name that every worker has although worker 0 makes its value.
struct RunName {
  NodeId Node;
  /// Rows of the replicas, of which each worker has its own.
  bool IsRows = false;
  /// What the others are given: its outputs, or its end; outside of
  /// conditionals, where there is always something.
  SmallVector<Endpoint, 2> Given;
  /// Its value, or its end, for each of the others: messages.
  std::vector<unsigned> Values;
  std::vector<unsigned> Messages; ///< All that a run of it sends and takes.
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
  /// Whether \p N gives each replica its rows.
  bool isSplit(NodeId N) const {
    return G.isOp(N, op::Split) && G.hasAttr(N, StampAttr);
  }
  bool isFeedSplit(NodeId N) const;
  bool isRowsOfAll(NodeId N) const;
  std::optional<unsigned> workerOf(NodeId N) const;
  void markRefreshes(Inserted Kind);
  bool isFirstValue(NodeId N) const;
  bool isOnce(NodeId N) const;
  int ownerOfMade(NodeId N) const;
  int ownerOfRows(unsigned Replica) const {
    return static_cast<int>(Plan.WorkerOf[Replica]);
  }
  void findOwners();
  void spread(std::vector<NodeId> Work, std::vector<bool> &Made) const;
  template <typename Fn> void forEachBehind(NodeId N, Fn F) const;
  void gateWrites();
  void gate(ArrayRef<NodeId> Group, int Worker, const std::vector<bool> &Leads);
  SmallVector<NodeId, 4> readsOf(NodeId Var) const;
  NodeId taken(NodeId Read, int Worker);
  NodeId readOutside(NodeId Read, int Worker);
  bool findChannels();
  void findNames();
  bool findGiven(NodeId N, SmallVectorImpl<Endpoint> &Given);
  bool canSend(Endpoint E) const;
  std::vector<unsigned> levels() const;
  void groupMessages(ArrayRef<BitVector> NamesOf);
  void findRoots();
  std::string queueName(const Twine &Of, int Source, int Target);
  unsigned channel(Endpoint From, int Target, const std::string &Device);
  std::string queueDevice(NodeId Reader) const;
  void shareFeeds();
  void shareFeed(NodeId Split);
  bool splitFeeds();
  bool splitFeed(NodeId Split);
  std::string hostOf(int Worker) const;
  NodeId add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
             NodeId After, const AttrRun &Attrs, StringRef Device, int Worker);
  void exchange();
  void send(unsigned M, ArrayRef<NodeId> After);
  void receive(unsigned M);
  void gateOnAll();
  void writeName(unsigned Name);
  void writeRows(NodeId N, ArrayRef<NodeId> Waits);
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
  DenseMap<NodeId, int> Given; ///< Owners of what shareFeeds() adds.
  std::vector<Channel> Channels;
  DenseMap<std::pair<uint64_t, int>, unsigned> Numbers;
  StringSet<> Taken;
  std::optional<Branches> Conditionals;
  std::vector<RunName> Names;
  DenseSet<NodeId> Rows; ///< See RunName::IsRows.
  /// Writes of a worker that the same names run, by their numbers in the plan.
  std::map<std::pair<std::vector<size_t>, int>, std::vector<NodeId>>
      WriteGroups;
  std::vector<bool> AfterWrites; ///< What depends on one.
  std::vector<Message> All;      ///< Messages.
  std::optional<Messages> Wire;
  std::vector<NodeId> Sent; ///< By message: what sends it.
  std::vector<Messages::Received> Received;
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

/// The worker of the replica that \p N is a copy for, by its name; copies of
/// replica 0 may have none.
std::optional<unsigned> Cutter::workerOf(NodeId N) const {
  auto Replica = numberOfCopy(G.name(N), Plan.Word);
  return Replica && *Replica < Plan.WorkerOf.size()
             ? std::optional(Plan.WorkerOf[*Replica])
             : std::nullopt;
}

/// Whether \p N gives each replica its rows of a feed.
bool Cutter::isFeedSplit(NodeId N) const {
  return isSplit(N) && G.node(N).NumData == 2 &&
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

/// Says on what has copies take the value of their variable that it does.
void Cutter::markRefreshes(Inserted Kind) {
  StringSet<> Names;
  for (const std::string &Name : Plan.Refreshes)
    Names.insert(Name);
  for (NodeId N = 0; N < G.size() && !Names.empty(); ++N) {
    StringRef Name = G.name(N);
    if (Name.consume_front(Plan.Word))
      Name = Name.drop_while(isDigit).drop_front();
    if (Names.contains(Name))
      G.node(N).Kind = Kind;
  }
}

/// Whether a step draws, reads or writes by \p N, so that once is not twice. A
/// table that is given its entries once is the same for all.
bool Cutter::isOnce(NodeId N) const {
  return isNeed(G.opName(N), G.opDef(N)) && !G.isOp(N, op::HashTable) &&
         !G.isOp(N, op::HashTableV2);
}

void Cutter::findOwners() {
  std::vector<bool> OfRows(G.size()), First(G.size());
  std::vector<NodeId> Work, Order = topologicalOrder(G);
  for (NodeId N : Order)
    if (isSplit(N))
      Work.push_back(N);
  spread(std::exchange(Work, {}), OfRows);
  auto IsAssign = [&](NodeId N) {
    return Vars.update(G, N).Kind == UpdateKind::Assign;
  };
  markRefreshes(Inserted::Refresh);
  // Variables and what is assigned to them, rows left out, may be on any
  // worker, and belong to all.
  for (NodeId N : reverse(Order)) {
    if (isVariableOp(G.opName(N)))
      First[N] = true;
    else if (Vars.isUpdate(G, N))
      First[N] = IsAssign(N) && !OfRows[N];
    else
      First[N] =
          G.hasUses(N) && !G.anyUse(N, [&](Use U) { return !First[U.User]; });
    // A worker draws for itself, though not of its rows.
    if (!OfRows[N] && workerOf(N).value_or(0) > 0 && !First[N] && isOnce(N))
      Work.push_back(N);
  }
  std::vector<bool> Made = OfRows;
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
    UpdateDef Update = Vars.update(G, N);
    bool Writes = Update.Kind != UpdateKind::None && !Made[N];
    if (!Writes && any_of(G.dataInputs(N), [&](Endpoint E) {
          return G.isRefOutput(E.Node, E.Port) &&
                 !(Def && Def->Flags & OpDef::AllowsUninitialized);
        }))
      OfState[N] = true;
    bool Once = Writes && !isFirstValue(N) &&
                G.node(N).Kind != Inserted::Refresh &&
                (Update.Kind != UpdateKind::Assign || OfState[N] || Leads[N]);
    if (Once || (!Made[N] && Leads[N] &&
                 !G.opName(N).starts_with(op::Placeholder) && isOnce(N)))
      Work.push_back(N);
  }
  spread(std::move(Work), Made);
  markRefreshes(Inserted::No);
  // A copy is its worker's; all else that is made of rows is worker 0's.
  Owner.assign(G.size(), Common);
  for (NodeId N : Order)
    if (Made[N])
      Owner[N] = ownerOfMade(N);
}

/// Whose \p N is, which is made of rows.
int Cutter::ownerOfMade(NodeId N) const {
  auto It = Given.find(N);
  return It == Given.end() ? static_cast<int>(workerOf(N).value_or(0))
                           : It->second;
}

/// Whether \p N gives a variable its first value.
bool Cutter::isFirstValue(NodeId N) const {
  NodeId Var = Vars.isUpdate(G, N) ? Vars.variableOf(G.input(N, 0)) : NoNode;
  return Var != NoNode && Vars.initialAssign(G, Var) == N;
}

/// What reads rows of other workers, or all of them, is given them by those
/// whose they are: it reads copies that these have.
void Cutter::shareFeed(NodeId Split) {
  NodeId Feed = G.input(Split, 1).Node;
  auto Replicas =
      static_cast<unsigned>(G.intAttr(Split, "num_split").value_or(0));
  SmallVector<Use, 8> Whole, Others;
  for (Use U : G.uses(Feed))
    if (G.isData(U) && !isFeedSplit(U.User))
      Whole.push_back(U);
  for (Use U : G.uses(Split))
    if (G.isData(U) && ownerOfMade(U.User) != ownerOfRows(G.input(U).Port))
      Others.push_back(U);
  AttrRun Type;
  Type.type("T", G.outputType(Feed, 0));
  std::map<unsigned, Endpoint> Copies;
  auto Copy = [&](unsigned Port) {
    auto [It, New] = Copies.try_emplace(Port);
    if (New) {
      int Its = ownerOfRows(Port);
      NodeId N = add(
          G.uniqueName(G.name(Feed).str() + "/given_by_" + std::to_string(Its)),
          op::Identity, Endpoint{Split, Port}, Split, Type, hostOf(Its), Its);
      Given[N] = Its;
      It->second = {N, 0};
    }
    return It->second;
  };
  for (Use U : Others)
    G.setInput(U.User, U.Index, Copy(G.input(U).Port));
  if (Whole.empty())
    return;
  SmallVector<Endpoint, 8> Parts;
  for (unsigned Port = 0; Port < Replicas; ++Port)
    Parts.push_back(Copy(Port));
  Parts.push_back(G.input(Split, 0));
  AttrRun Attrs;
  Attrs.integer("N", Replicas)
      .type("T", G.outputType(Feed, 0))
      .type("Tidx", G.outputType(Parts.back()));
  NodeId All = add(G.uniqueName(G.name(Feed).str() + "/of_all"), op::ConcatV2,
                   Parts, Split, Attrs, hostOf(0), 0);
  for (Use U : Whole)
    G.setInput(U.User, U.Index, {All, 0});
}

void Cutter::shareFeeds() {
  // Feeds of which nothing reads rows are everybody's.
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isFeedSplit(N) && !G.hasUses(N))
      G.remove(N);
  for (NodeId N = 0, E = G.size(); N < E; ++N)
    if (G.isLive(N) && isFeedSplit(N) &&
        !G.isOp(G.input(N, 1).Node, op::PlaceholderWithDefault))
      shareFeed(N);
}

//===----------------------------------------------------------------------===//
// What goes from one to another
//===----------------------------------------------------------------------===//

/// The host of the server that \p Reader is on, or the chief's.
std::string Cutter::queueDevice(NodeId Reader) const {
  auto D = DeviceName::parse(G.device(Reader));
  if (!D || D->Job.empty() || taskOf(G.device(Reader)) != Common)
    return hostOf(0);
  D->Type = "CPU";
  D->Index = 0;
  return D->str();
}

/// A name for a queue, the same in all graphs.
std::string Cutter::queueName(const Twine &Of, int Source, int Target) {
  std::string Name =
      (Of + "/from_" + Twine(Source) + "_to_" + Twine(Target)).str();
  std::string Free = G.uniqueName(Name);
  for (unsigned I = 1; !Taken.insert(Free).second; ++I)
    Free = G.uniqueName(Name + "_" + std::to_string(I));
  return Free;
}

unsigned Cutter::channel(Endpoint From, int Target, const std::string &Device) {
  auto [It, New] = Numbers.try_emplace(
      {uint64_t(From.Node) << 32 | From.Port, Target}, Channels.size());
  if (New)
    Channels.push_back({From, Owner[From.Node], Target, Device, {}});
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
/// waits until all others have read it. Writes of one worker that every name
/// runs together wait for the same.
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
  for (NodeId N : Writes)
    WriteGroups[{Runs[N], Owner[N]}].push_back(N);
  // What comes after a write reads what it wrote.
  std::vector<bool> &After = AfterWrites;
  After.resize(G.size());
  spread(Writes, After);
  std::vector<NodeId> Order = topologicalOrder(G);
  for (unsigned I = 0; I < Workers; ++I) {
    int Worker = static_cast<int>(I);
    std::vector<bool> Leads(G.size());
    for (NodeId N : reverse(Order))
      Leads[N] = !After[N] && (Owner[N] == Worker ||
                               (Owner[N] == Common && G.anyUse(N, [&](Use U) {
                                 return Leads[U.User];
                               })));
    for (const auto &[Key, Group] : WriteGroups)
      if (Key.second != Worker)
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
          Endpoint Ends{Owner[Read] == Worker ? Read : taken(Read, Worker),
                        ControlPort};
          if (!Conditionals->canLeave(Ends))
            if (NodeId Outside = readOutside(Read, Worker); Outside != NoNode)
              Ends.Node = Outside;
          if (Conditionals->contain(Ends) && Conditionals->canLeave(Ends))
            Ends = {Conditionals->leave(Ends, Worker).Node, ControlPort};
          Reads.push_back(Ends);
        }
  if (Reads.empty())
    return;
  std::string Name =
      G.name(Group.front()).str() + "/read_by_" + std::to_string(Worker);
  NodeId Token = add(Name, op::NoOp, Reads, Group.front(), AttrRun(),
                     hostOf(Worker), Worker);
  Conditionals->add(Token);
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
  Conditionals->add(Copy);
  for (Use U : Uses)
    G.setInput(U.User, U.Index, {Copy, 0});
  return Copy;
}

/// Has the loop that \p Read is in enter with the value that the variable has
/// before it: no other is written while the loop runs. What reads it then, or
/// NoNode if this is no read by a handle that the loop enters with.
NodeId Cutter::readOutside(NodeId Read, int Worker) {
  if (!G.isOp(Read, op::ReadVariableOp) || Owner[Read] != Worker)
    return NoNode;
  SmallVector<NodeId, 2> Enters;
  Endpoint Handle = G.input(Read, 0), Outside;
  while (G.isOp(Handle.Node, op::Enter) || G.isOp(Handle.Node, op::Identity)) {
    if (G.isOp(Handle.Node, op::Enter)) {
      Enters.push_back(Handle.Node);
      Outside = G.input(Handle.Node, 0);
    }
    Handle = G.input(Handle.Node, 0);
  }
  if (Enters.empty() || !Conditionals->canLeave(Outside))
    return NoNode;
  unsigned Type = G.outputType(Read, 0);
  auto Name = [&](const char *What) {
    return G.uniqueName(G.name(Read).str() + What);
  };
  NodeId Before = add(Name("/outside"), op::ReadVariableOp, Outside, Read,
                      AttrRun().type("dtype", Type), G.device(Read), Worker);
  Conditionals->add(Before);
  Endpoint Value{Before, 0};
  for (NodeId Enter : reverse(Enters)) {
    AttrRun Attrs;
    for (const AttrEntry &A : G.attrs(Enter))
      if (A.Key == "frame_name" || A.Key == "parallel_iterations")
        Attrs.raw(A.Key, A.Value);
    Attrs.type("T", Type).boolean("is_constant", true);
    Value = {add(Name("/enter"), op::Enter, Value, Read, Attrs, G.device(Read),
                 Worker),
             0};
  }
  G.removeAttr(Read, "dtype");
  G.setOp(Read, op::Identity);
  G.setTypeAttr(Read, "T", Type);
  G.setInput(Read, 0, Value);
  return Before;
}

bool Cutter::findChannels() {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || Owner[N] == Common || Rows.count(N))
      continue;
    for (unsigned I = 0; I < G.node(N).NumInputs; ++I) {
      Endpoint E = G.input(N, I);
      int From = Owner[E.Node];
      if (From == Common || From == Owner[N] || isFeedSplit(E.Node))
        continue;
      bool Known = Conditionals->canLeave(E);
      if (!Known || !canSend(E)) {
        Diags.error(
            G.name(N),
            formatv("takes '{0}' from another worker, and that is {1}; "
                    "write one graph for all with --mode=in-graph",
                    G.name(E.Node),
                    Known ? "no tensor that can be sent" : "inside a loop")
                .str());
        return false;
      }
      if (Conditionals->contain(E)) {
        Endpoint Always = Conditionals->leave(E, From);
        G.setInput(N, I, Conditionals->enter(E, Always, Owner[N]));
        continue;
      }
      unsigned C = channel(E, Owner[N], queueDevice(N));
      Channels[C].Uses.push_back({N, I});
    }
  }
  return true;
}

/// How many messages have to come before a node can run.
std::vector<unsigned> Cutter::levels() const {
  std::vector<unsigned> Level(G.size());
  std::vector<NodeId> Order = topologicalOrder(G);
  auto Pass = [&] {
    bool Changed = false;
    for (NodeId N : Order) {
      if (Owner[N] == Common)
        continue;
      unsigned L = Level[N];
      for (Endpoint E : G.inputs(N))
        if (Owner[E.Node] != Common)
          L = std::max(L, Level[E.Node] + unsigned(Owner[E.Node] != Owner[N] &&
                                                   !isFeedSplit(E.Node)));
      Changed |= L != Level[N];
      Level[N] = L;
    }
    return Changed;
  };
  // Again for each loop that a loop is in.
  for (unsigned I = 0; I < 16 && Pass(); ++I)
    ;
  return Level;
}

/// What other workers are given of the name of \p N; nothing of what only the
/// process has that made it, or of what runs several times.
bool Cutter::findGiven(NodeId N, SmallVectorImpl<Endpoint> &Given) {
  unsigned Outputs = G.numOutputs(N).value_or(0);
  for (unsigned Port = 0; Port < std::max(Outputs, 1U); ++Port) {
    Endpoint E{N, Outputs == 0 ? ControlPort : Port};
    if (!E.isControl() && !canSend(E))
      return false;
    if (Conditionals->contain(E)) {
      if (!Conditionals->canLeave(E))
        return false;
      bool IsEnd = E.isControl();
      E = Conditionals->leave(E, 0);
      if (IsEnd)
        E.Port = ControlPort;
    }
    Given.push_back(E);
  }
  return true;
}

/// Whether the value of \p E means the same in another process.
bool Cutter::canSend(Endpoint E) const {
  unsigned Type = E.isControl() ? unsigned(DT_BOOL) : G.outputType(E);
  return Type != DT_INVALID && Type != DT_RESOURCE && Type != DT_VARIANT;
}

void Cutter::findNames() {
  // By what reads it.
  DenseMap<std::pair<NodeId, unsigned>, unsigned> ChannelOf;
  for (auto [I, C] : enumerate(Channels))
    for (Use U : C.Uses)
      ChannelOf[{U.User, U.Index}] = static_cast<unsigned>(I);
  // Of channels.
  std::vector<BitVector> NamesOf(
      Channels.size(), BitVector(static_cast<unsigned>(Plan.Names.size())));
  for (auto [Number, Name] : enumerate(Plan.Names)) {
    NodeId N = G.find(Name);
    if (N == NoNode || Owner[N] == Common)
      continue;
    bool IsRows = Rows.contains(N);
    if (!IsRows && Owner[N] != 0)
      continue;
    SmallVector<Endpoint, 2> Given;
    if (!IsRows && !findGiven(N, Given))
      continue;
    forEachBehind(N, [&](NodeId At) {
      for (unsigned I = 0; I < G.node(At).NumInputs; ++I)
        if (auto C = ChannelOf.find({At, I}); C != ChannelOf.end())
          NamesOf[C->second].set(static_cast<unsigned>(Names.size()));
    });
    Names.push_back({.Node = N,
                     .IsRows = IsRows,
                     .Given = std::move(Given),
                     .Values = {},
                     .Messages = {}});
  }
  groupMessages(NamesOf);
  for (auto [Number, R] : enumerate(Names)) {
    for (int To = 1; To < static_cast<int>(Workers) && !R.IsRows; ++To) {
      Message M{
          .Source = 0,
          .Target = To,
          .Level = 0,
          .Of = BitVector(static_cast<unsigned>(Plan.Names.size())),
          .Channels = {},
          .Queue = {queueName(G.name(R.Node) + "/end", 0, To), hostOf(0), {}},
          .Root = {}};
      M.Of.set(static_cast<unsigned>(Number));
      for (Endpoint E : R.Given)
        if (!E.isControl())
          M.Queue.Types += static_cast<char>(G.outputType(E));
      R.Values.push_back(static_cast<unsigned>(All.size()));
      All.push_back(std::move(M));
    }
  }
  for (auto [I, M] : enumerate(All))
    for (unsigned Name : M.Of.set_bits())
      Names[Name].Messages.push_back(static_cast<unsigned>(I));
}

/// What goes together has to be there in every run that has one of it, and must
/// not wait for what is made of another part of it.
void Cutter::groupMessages(ArrayRef<BitVector> NamesOf) {
  std::vector<unsigned> Level = levels();
  using Key =
      std::tuple<unsigned, int, int, std::string, std::vector<unsigned>>;
  std::map<Key, unsigned> Numbered;
  for (auto [I, C] : enumerate(Channels)) {
    const BitVector &Of = NamesOf[I];
    auto Number = static_cast<unsigned>(All.size());
    if (Of.any()) {
      std::vector<unsigned> Names(Of.set_bits_begin(), Of.set_bits_end());
      Number = Numbered
                   .try_emplace({Level[C.From.Node], C.Source, C.Target,
                                 C.Device, std::move(Names)},
                                Number)
                   .first->second;
    }
    if (Number == All.size()) {
      StringRef Name =
          G.name(Of.any() ? Names[static_cast<unsigned>(Of.find_first())].Node
                          : C.From.Node);
      All.push_back(
          {.Source = C.Source,
           .Target = C.Target,
           .Level = Level[C.From.Node],
           .Of = Of,
           .Channels = {},
           .Queue = {queueName(Name, C.Source, C.Target), C.Device, {}},
           .Root = {}});
    }
    Message &M = All[Number];
    M.Channels.push_back(static_cast<unsigned>(I));
    if (!C.From.isControl())
      M.Queue.Types += static_cast<char>(G.outputType(C.From));
  }
  findRoots();
}

/// What a worker gives the chief in one run has one number: a worker that was
/// started again in the middle may have given it a part before.
void Cutter::findRoots() {
  for (auto [I, M] : enumerate(All)) {
    if (M.Target != 0 || M.Of.none())
      continue;
    for (auto [J, Other] : enumerate(All)) {
      // That Other is in every run that M is in.
      if (I == J || Other.Source != M.Source || Other.Target != 0 ||
          M.Of.test(Other.Of))
        continue;
      bool IsBefore = Other.Level < M.Level;
      if (!IsBefore && (Other.Level != M.Level || Other.Of != M.Of || J > I))
        continue;
      // The first of the first; of two at once, the first leads.
      if (M.Root && std::pair(All[*M.Root].Level, *M.Root) <=
                        std::pair(Other.Level, static_cast<unsigned>(J)))
        continue;
      M.Root = static_cast<unsigned>(J);
    }
  }
}

//===----------------------------------------------------------------------===//
// The graph of one worker
//===----------------------------------------------------------------------===//

/// Sends message \p M when \p After have been sent.
void Cutter::send(unsigned M, ArrayRef<NodeId> After) {
  SmallVector<Endpoint, 8> Values;
  SmallVector<NodeId, 8> Waits(After);
  for (unsigned C : All[M].Channels)
    if (Channels[C].From.isControl())
      Waits.push_back(Channels[C].From.Node);
    else
      Values.push_back(Channels[C].From);
  Sent[M] = Wire->put(All[M].Queue, Values, Waits);
}

void Cutter::receive(unsigned M) {
  std::optional<Endpoint> Number;
  if (All[M].Root)
    Number = Received[*All[M].Root].Key;
  Received[M] = Wire->get(All[M].Queue, Number);
  uint32_t Port = 0;
  for (unsigned C : All[M].Channels) {
    bool IsEnd = Channels[C].From.isControl();
    for (Use U : Channels[C].Uses)
      G.setInput(U.User, U.Index,
                 {Received[M].Get, IsEnd ? ControlPort : Port});
    if (!IsEnd)
      ++Port;
  }
}

/// Nothing is written before all have given all: a worker that was killed
/// before can be started again.
void Cutter::gateOnAll() {
  DenseMap<size_t, unsigned> NumberOf; // of names, by those of the plan
  DenseMap<NodeId, size_t> PlanOf;
  for (auto [I, Name] : enumerate(Plan.Names))
    if (NodeId N = G.find(Name); N != NoNode)
      PlanOf.try_emplace(N, I);
  for (auto [I, R] : enumerate(Names))
    NumberOf[PlanOf.lookup(R.Node)] = static_cast<unsigned>(I);
  for (const auto &[Key, Group] : WriteGroups) {
    if (Key.second != Mine)
      continue;
    BitVector Of(static_cast<unsigned>(Plan.Names.size()));
    for (size_t Name : Key.first)
      if (auto It = NumberOf.find(Name); It != NumberOf.end())
        Of.set(It->second);
    SmallVector<Endpoint, 8> Gets;
    for (auto [I, M] : enumerate(All))
      if (M.Target == 0 && !Of.test(M.Of) &&
          none_of(M.Channels, [&](unsigned C) {
            NodeId From = Channels[C].From.Node;
            return From < AfterWrites.size() && AfterWrites[From];
          }))
        Gets.push_back({Received[I].Get, ControlPort});
    if (Gets.empty())
      continue;
    std::map<std::string, NodeId> Gates;
    for (NodeId Write : Group) {
      auto [It, New] = Gates.try_emplace(G.device(Write).str(), NoNode);
      if (New)
        It->second = add(G.name(Group.front()) + "/all_given", op::NoOp, Gets,
                         Write, AttrRun(), It->first, Mine);
      G.addControlInput(Write, It->second);
    }
  }
}

void Cutter::exchange() {
  Sent.assign(All.size(), NoNode);
  Received.assign(All.size(), {});
  // By level, those that lead others first.
  std::vector<unsigned> Order(All.size());
  std::iota(Order.begin(), Order.end(), 0);
  llvm::stable_sort(Order, [&](unsigned A, unsigned B) {
    return std::pair(All[A].Level, All[A].Root.has_value()) <
           std::pair(All[B].Level, All[B].Root.has_value());
  });
  bool Talks = false;
  std::vector<const MessageQueue *> Marked;
  std::vector<SmallVector<unsigned, 2>> Led(All.size());
  for (auto [I, M] : enumerate(All)) {
    Talks |= M.Source == Mine || M.Target == Mine;
    bool IsLed = M.Root && All[*M.Root].Level == M.Level;
    if (IsLed)
      Led[*M.Root].push_back(static_cast<unsigned>(I));
    if (M.Source == Mine && (Mine == 0 || (M.Target == 0 && M.Root && !IsLed)))
      Marked.push_back(&M.Queue);
  }
  if (!Talks)
    return;
  Wire.emplace(
      G,
      [this](const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
             const AttrRun &Attrs, StringRef Device) {
        return add(Name, Op, Inputs, Names.empty() ? 0 : Names.front().Node,
                   Attrs, Device, Mine);
      },
      Workers, static_cast<unsigned>(Mine), hostOf(0), hostOf(Mine));
  Wire->begin(static_cast<unsigned>(Names.size()), Marked);
  for (unsigned M : Order)
    if (All[M].Target == Mine)
      receive(M);
  // What leads is sent last.
  for (unsigned M : reverse(Order)) {
    if (All[M].Source != Mine)
      continue;
    SmallVector<NodeId, 4> Before;
    for (unsigned Other : Led[M])
      Before.push_back(Sent[Other]);
    if (!All[M].Channels.empty())
      send(M, Before);
  }
  if (Mine == 0)
    gateOnAll();
}

/// The worker is fed its rows.
bool Cutter::splitFeed(NodeId Split) {
  NodeId Feed = G.input(Split, 1).Node;
  if (G.isOp(Feed, op::PlaceholderWithDefault)) {
    Diags.error(G.name(Feed), "is split although it has a default value, which "
                              "is of all workers; give --feed=NAME=copy");
    return false;
  }
  // Which of its parts this worker reads.
  auto Mines = [&](unsigned Worker) { return Worker == unsigned(Mine); };
  auto First = static_cast<unsigned>(find_if(Plan.WorkerOf, Mines) -
                                     Plan.WorkerOf.begin());
  auto Parts = static_cast<unsigned>(count_if(Plan.WorkerOf, Mines));
  shrinkFeed(
      G, Feed,
      static_cast<int64_t>(constScalar(G, G.input(Split, 0).Node).value_or(-1)),
      Parts, static_cast<unsigned>(Plan.WorkerOf.size()));
  for (Use U : G.uses(Split)) {
    if (!G.isData(U)) {
      G.setInput(U.User, U.Index, {Feed, ControlPort});
      continue;
    }
    unsigned Port = G.input(U).Port;
    // What is another's goes.
    if (Port < First || Port >= First + Parts) {
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
void Cutter::writeRows(NodeId N, ArrayRef<NodeId> Waits) {
  SmallVector<Endpoint, 4> Parts;
  ArrayRef<Endpoint> All = G.dataInputs(N).drop_back();
  for (auto [I, E] : enumerate(All)) {
    // What is made of no rows, such as a draw, all workers have.
    auto Place = static_cast<int>(I * Workers / All.size());
    if ((Owner[E.Node] == Common ? Place : Owner[E.Node]) == Mine)
      Parts.push_back(E);
  }
  Owner[N] = Mine;
  std::string Device =
      Parts.empty() ? hostOf(Mine) : G.device(Parts.front().Node).str();
  if (Parts.size() == 1) {
    G.removeAttr(N, "N");
    G.removeAttr(N, "Tidx");
    G.setOp(N, op::Identity);
  } else {
    G.setIntAttr(N, "N", static_cast<int64_t>(Parts.size()));
    Parts.push_back(G.dataInputs(N).back());
  }
  for (NodeId W : Waits)
    Parts.push_back({W, ControlPort});
  G.setInputs(N, Parts);
  G.setDevice(N, Device);
}

/// The name of worker 0's node: what it gives the others, it has given. The
/// others have given what it takes, and have its value.
void Cutter::writeName(unsigned Number) {
  const RunName &R = Names[Number];
  NodeId N = R.Node;
  std::string Name = G.name(N).str(), Device = G.device(N).str();
  SmallVector<Endpoint, 8> Values;
  std::string Types;
  unsigned Outputs = R.IsRows ? 0 : G.numOutputs(N).value_or(0);
  for (unsigned Port = 0; Port < Outputs; ++Port) {
    Types += static_cast<char>(G.outputType(N, Port));
    Values.push_back({N, Port});
  }
  SmallVector<NodeId, 8> Waits;
  if (Mine == 0 && !R.IsRows) {
    SmallVector<NodeId, 1> End;
    SmallVector<Endpoint, 8> Sends;
    for (Endpoint E : R.Given)
      if (E.isControl())
        End.push_back(E.Node);
      else
        Sends.push_back(E);
    for (unsigned M : R.Values)
      Sent[M] = Wire->put(All[M].Queue, Sends, End);
  }
  for (unsigned M : R.Messages) {
    if (All[M].Target == Mine) {
      Waits.push_back(Received[M].Get);
      Waits.push_back(Received[M].Back);
    }
    if (All[M].Source == Mine)
      Waits.push_back(Sent[M]);
  }
  erase(Waits, NoNode);
  if (!Waits.empty())
    Waits.push_back(Wire->end(Number, Waits));
  if (R.IsRows)
    return writeRows(N, Waits);
  if (Mine != 0) {
    Values.clear();
    Device = hostOf(Mine);
    for (unsigned M : R.Values)
      if (All[M].Target == Mine)
        for (unsigned Port = 0; Port < Outputs; ++Port)
          Values.push_back({Received[M].Get, Port});
  } else if (Outputs == 0) {
    Waits.push_back(N);
  }
  StringRef Op = Outputs == 0   ? op::NoOp
                 : Outputs == 1 ? op::Identity
                                : op::IdentityN;
  AttrRun Attrs;
  if (Outputs == 1)
    Attrs.type("T", static_cast<unsigned char>(Types[0]));
  else if (Outputs > 1)
    Attrs.raw("T", encodeTypeListAttr(Types));
  for (NodeId W : Waits)
    if (!is_contained(Values, Endpoint{W, ControlPort}))
      Values.push_back({W, ControlPort});
  G.rename(N, G.uniqueName(Name + "/step"));
  add(Name, Op, Values, N, Attrs, Device, Mine);
}

/// What has no state is where it is read, and a variable that nobody placed is
/// the chief's for all.
void Cutter::moveConstants() {
  for (NodeId Var : Vars.variables())
    if (auto D = DeviceName::parse(G.device(Var)); D && D->Job.empty()) {
      auto Chief = DeviceName::parse(Plan.Tasks.front());
      D->Job = Chief->Job;
      D->Task = Chief->Task;
      G.setDevice(Var, D->Type.empty() ? hostOf(0) : D->str());
    }
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || Owner[N] != Common || taskOf(G.device(N)) == Common ||
        taskOf(G.device(N)) == Mine || !G.dataInputs(N).empty() ||
        (isNeed(G.opName(N), G.opDef(N)) &&
         !G.opName(N).starts_with(op::Placeholder)) ||
        isVariableOp(G.opName(N)))
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
  shareFeeds();
  findOwners();
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isRowsOfAll(N) && Owner[N] != Common)
      Rows.insert(N);
  Conditionals.emplace(G, [&](StringRef Name, StringRef Op,
                              ArrayRef<Endpoint> Inputs, NodeId After,
                              const AttrRun &Attrs, int Worker) {
    return add(G.uniqueName(Name), Op, Inputs, After, Attrs, hostOf(Worker),
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
  moveConstants();
  removeOthers();
  dropClasses();
  G.markModified();
  return true;
}

} // namespace

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
