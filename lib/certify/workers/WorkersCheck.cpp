//===- lib/certify/workers/WorkersCheck.cpp - files of all workers --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks the order in time, which the joined graph does not show. Each worker
// runs its file in its own session. The files must ensure the order that one
// session ensures for the graph for all:
//
//   - in the runs of a name, each message is sent by one worker and received
//     by another;
//   - workers do not wait for each other in a cycle;
//   - a node of several files draws, dequeues and writes nothing, since each of
//     the workers runs it;
//   - each write of a variable comes before or after each read by any worker;
//   - a worker reads variables only after the chief has begun the run;
//   - the chief writes only after the messages of the run have arrived, and the
//     messages of a worker in a run have one number: a worker can be restarted;
//   - a worker's nodes are on its devices, or on servers.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/workers/WorkersCheck.h"

#include "lib/certify/workers/Join.h"
#include "lib/certify/workers/WireCheck.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>
#include <set>

using namespace llvm;

namespace graft {
namespace {

class WorkersChecker {
public:
  WorkersChecker(const Graph &In, const StringSet<> &Ends,
                 ArrayRef<WorkerFile> Files, WorkersJoin &Join)
      : In(In), Ends(Ends), Files(Files), Join(Join) {}
  bool run();

private:
  /// A node of a file.
  using Place = std::pair<unsigned, NodeId>;

  bool error(unsigned File, NodeId N, const Twine &Message) {
    return Join.error(File, N, Message);
  }
  std::vector<bool> cone(unsigned File, NodeId N) const;
  bool checkNames();
  bool checkNumbers(StringRef Name, const std::set<std::string> &Messages);
  bool checkLeads();
  bool checkCircles();
  bool checkCommon();
  bool checkBegun();
  bool checkWrites();
  bool checkWrite(unsigned File, NodeId N);
  bool isGated(unsigned File, NodeId Write, Place Read);
  bool waits(unsigned File, NodeId Token, NodeId Read);
  std::set<Place> after(std::vector<Place> Work) const;
  /// Returns true if \p Later waits for \p Earlier.
  bool comesAfter(Place Later, Place Earlier);
  bool checkAllGiven(NodeId Write);
  bool checkDevices();
  bool checkCopies();
  bool checkReady();
  bool checkLocalInit();

  const Graph &In;
  const StringSet<> &Ends;
  ArrayRef<WorkerFile> Files;
  WorkersJoin &Join;
  /// By name: the messages of its run.
  std::map<std::string, std::set<std::string>> MessagesOf;
  /// By name and file: the set of nodes that a run of the name runs.
  std::map<std::string, std::vector<std::vector<bool>>> RunsOf;
  /// By node that sends a message: the nodes that receive it.
  std::map<Place, SmallVector<Place, 1>> TakenBy;
  std::map<Place, std::set<Place>> After; ///< See comesAfter().
  std::set<Place> AfterWrites;            ///< Nodes that wait for any write.
};

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Returns the set of nodes that a run of \p N runs, by node of the file.
std::vector<bool> WorkersChecker::cone(unsigned File, NodeId N) const {
  const Graph &G = Files[File].G;
  std::vector<bool> In(G.size());
  walkInputs(G, {N}, Along::All, In);
  return In;
}

/// Checks that each message is sent and received in runs of the same names.
bool WorkersChecker::checkNames() {
  std::set<std::string> Names;
  for (const WorkerFile &F : Files) {
    const Graph &G = F.G;
    for (NodeId N : F.Names)
      Names.insert(G.name(N).str());
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && F.is(N, Role::Payload) &&
          G.node(N).Flags & NF_MayHaveGraft && G.hasAttr(N, RowsAxisAttr) &&
          !G.opName(N).starts_with(op::Placeholder))
        Names.insert(G.name(N).str());
  }
  bool Good = true;
  for (const std::string &Name : Names) {
    std::map<std::string, unsigned> Sent, Taken;
    std::vector<std::vector<bool>> &Runs = RunsOf[Name];
    NodeId Some = NoNode;
    for (unsigned F = 0; F < Files.size(); ++F) {
      const WorkerFile &File = Files[F];
      NodeId N = File.G.find(Name);
      if (N == NoNode)
        return error(F, File.Number,
                     "'" + Name + "' is missing, so this worker cannot run it");
      Some = F == 0 ? N : Some;
      Runs.push_back(cone(F, N));
      // The node must wait for each message that a run of its name sends or
      // receives.
      bool Ends = false, Talks = false;
      std::vector<NodeId> All = File.waitsOf(N);
      auto Waits = [&](NodeId For) { return is_contained(All, For); };
      for (const auto &M : File.Puts)
        if (Runs.back()[M.Node]) {
          Sent[M.Queue.Name] = F;
          Talks = true;
          if (!Waits(M.Node))
            Good = error(
                F, N, "does not wait until it has sent '" + M.Queue.Name + "'");
        }
      for (const auto &M : File.Gets)
        if (Runs.back()[M.Node]) {
          Taken[M.Queue.Name] = F;
          Talks = true;
          NodeId Back = File.wire(M.Queue.Name + "/back");
          if (!Waits(M.Node) || (F != 0 && (Back == NoNode || !Waits(Back))))
            Good = error(F, N,
                         "does not wait until it has received '" +
                             M.Queue.Name + "'");
        }
      for (Endpoint E : File.G.controlInputs(N)) {
        if (!File.isEnd(E.Node))
          continue;
        std::vector<NodeId> Before = File.waitsOf(E.Node);
        Ends |= all_of(All, [&](NodeId Other) {
          bool IsMessage =
              File.is(Other, Role::Put) || File.is(Other, Role::Get);
          return !IsMessage || is_contained(Before, Other);
        });
      }
      if (Talks && !Ends)
        Good = error(F, N,
                     "does not record the end of the run after its messages");
      if (NodeId Here = File.wire("own_begin");
          F == 0 && Talks && Here != NoNode && !Waits(Here))
        Good = error(F, N, "does not record that the run has begun");
    }
    std::set<std::string> &Messages = MessagesOf[Name];
    for (const auto &[Queue, F] : Sent)
      Messages.insert(Queue);
    for (const auto &[Queue, F] : Taken) {
      if (!Sent.count(Queue))
        Good = error(F, Files[F].G.find(Name),
                     "receives '" + Queue +
                         "', which no worker sends in this run");
      Messages.insert(Queue);
    }
    for (const auto &[Queue, F] : Sent)
      if (!Taken.count(Queue))
        Good = error(F, Files[F].G.find(Name),
                     "sends '" + Queue +
                         "', which no worker receives in this run");
    Good &= checkNumbers(Name, Messages);
  }
  // A node without users may receive messages only if all workers run its name.
  for (unsigned F = 0; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    for (NodeId N = 0; N < File.G.size(); ++N) {
      if (!File.G.isLive(N) || !File.is(N, Role::Payload) ||
          File.G.hasUses(N) || Names.count(File.G.name(N).str()) ||
          !Ends.contains(File.originName(N)))
        continue;
      std::vector<bool> Runs = cone(F, N);
      for (const auto &M : File.Gets)
        if (Runs[M.Node])
          Good = error(F, N,
                       "receives a message, but is not a node that every "
                       "worker runs by its name");
    }
  }
  return Good;
}

/// Checks that all messages that a worker sends to the chief in a run of \p
/// Name have one number: that of their root, or one that the chief compares.
bool WorkersChecker::checkNumbers(StringRef Name,
                                  const std::set<std::string> &Messages) {
  std::map<unsigned, std::vector<Endpoint>> Free; // by worker
  bool Good = true;
  for (const auto &M : Files[0].Gets) {
    if (!Messages.count(M.Queue.Name))
      continue;
    unsigned From = 0;
    Join.sender(M, From);
    if (!M.Root) {
      Free[From].push_back({Files[0].wire(M.Queue.Name + "/exit"), 0});
      continue;
    }
    auto Its = find_if(Files[0].Gets, [&](const auto &Other) {
      return Other.Queue.Name == *M.Root;
    });
    unsigned Other = 0;
    if (Its != Files[0].Gets.end())
      Join.sender(*Its, Other);
    if (Its == Files[0].Gets.end() || Other != From || !Messages.count(*M.Root))
      Good = error(0, M.Node,
                   "takes its number from a message that does not belong to "
                   "its run or its sender");
  }
  // The chief compares the numbers of several messages without a root.
  NodeId Run = Files[0].G.find(Name);
  unsigned Number = ~0U;
  for (Endpoint E : Files[0].G.controlInputs(Run)) {
    StringRef End = Files[0].G.name(E.Node);
    if (End.consume_front(Files[0].Scope + "/end_name_"))
      End.getAsInteger(10, Number);
  }
  for (const auto &[From, Keys] : Free) {
    if (Keys.size() < 2)
      continue;
    NodeId Same = Files[0].wire("same_" + Twine(Number) + "_" + Twine(From));
    std::vector<Endpoint> Are = sameNumbers(Files[0], Number, From);
    if (!is_contained(Files[0].waitsOf(Run), Same) ||
        any_of(Keys, [&](Endpoint E) { return !is_contained(Are, E); }))
      Good = error(0, Run,
                   "receives messages of worker " + Twine(From) +
                       " that may have different numbers");
  }
  return Good;
}

/// Checks that restarts are harmless. A restarted worker sends its messages
/// again. So a message must be sent before its root, or runs must put marks
/// into its queue (Messages.h). The chief must put marks into the queues of its
/// messages, too.
bool WorkersChecker::checkLeads() {
  bool Good = true;
  std::map<unsigned, StringSet<>> Marked; // By file.
  auto IsMarked = [&](unsigned F, StringRef Name) {
    auto [It, New] = Marked.try_emplace(F);
    if (New)
      for (const MessageQueue &Q : markedBy(Files[F]))
        It->second.insert(Q.Name);
    return It->second.contains(Name);
  };
  for (const auto &M : Files[0].Puts)
    if (!IsMarked(0, M.Queue.Name))
      Good =
          error(0, M.Node,
                "sends a message to a worker, but the chief does not tell that "
                "worker about the end of the run");
  for (const auto &M : Files[0].Gets) {
    if (!M.Root)
      continue;
    unsigned From = 0;
    const WorkerFile::Message &Put = Join.sender(M, From);
    NodeId First = Files[From].wire(*M.Root + "/put");
    bool IsLed =
        First != NoNode && is_contained(Files[From].G.controlInputs(First),
                                        Endpoint{Put.Node, ControlPort});
    if (!IsLed && !IsMarked(From, M.Queue.Name))
      Good = error(From, Put.Node,
                   "sends a message after '" + *M.Root +
                       "', but the chief does not learn of a restart of this "
                       "worker in between");
  }
  return Good;
}

/// Checks that the files together have no cycle. A message counts as an edge
/// from the node that sends it to the node that receives it.
bool WorkersChecker::checkCircles() {
  std::vector<NodeId> Base;
  NodeId Size = 0;
  for (const WorkerFile &F : Files) {
    Base.push_back(Size);
    Size += F.G.size();
  }
  std::vector<uint32_t> Waits(Size);
  std::vector<std::vector<NodeId>> Sends(Size);
  for (unsigned F = 0; F < Files.size(); ++F)
    for (const auto &M : Files[F].Gets) {
      unsigned From = 0;
      const WorkerFile::Message &Put = Join.sender(M, From);
      NodeId First = Files[F].wire(M.Queue.Name + "/first");
      if (First == NoNode)
        continue;
      Sends[Base[From] + Put.Node].push_back(Base[F] + First);
      ++Waits[Base[F] + First];
    }
  std::vector<Place> Ready;
  NodeId Left = 0;
  for (unsigned F = 0; F < Files.size(); ++F) {
    const Graph &G = Files[F].G;
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N))
        continue;
      ++Left;
      for (Endpoint E : G.inputs(N))
        Waits[Base[F] + N] += !isBackEdgeOp(G.opName(E.Node));
      if (Waits[Base[F] + N] == 0)
        Ready.push_back({F, N});
    }
  }
  auto Goes = [&](unsigned F, NodeId N) {
    if (--Waits[Base[F] + N] == 0)
      Ready.push_back({F, N});
  };
  while (!Ready.empty()) {
    auto [F, N] = Ready.back();
    Ready.pop_back();
    --Left;
    const Graph &G = Files[F].G;
    if (!isBackEdgeOp(G.opName(N)))
      G.forEachUse(N, [&, F = F](Use U) { Goes(F, U.User); });
    for (NodeId To : Sends[Base[F] + N]) {
      auto Of =
          static_cast<unsigned>(llvm::upper_bound(Base, To) - Base.begin() - 1);
      Goes(Of, To - Base[Of]);
    }
  }
  if (Left == 0)
    return true;
  for (unsigned F = 0; F < Files.size(); ++F)
    for (const auto &M : Files[F].Gets)
      if (Waits[Base[F] + M.Node] != 0)
        return error(F, M.Node, "waits for a message that is sent after it");
  return error(0, Files[0].Number,
               "nodes of the files wait for each other in a cycle");
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Checks that nodes of several files draw, dequeue and write nothing: each of
/// the workers runs them.
bool WorkersChecker::checkCommon() {
  bool Good = true;
  for (unsigned F = 0; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    for (NodeId N = 0; N < File.G.size(); ++N) {
      if (!File.InRun[N] || !File.is(N, Role::Payload) || !Join.isCommon(F, N))
        continue;
      StringRef Op = File.G.opName(N);
      bool Is = isNeed(Op, File.G.opDef(N)) &&
                !Op.starts_with(op::Placeholder) && Op != op::HashTable &&
                Op != op::HashTableV2;
      if (Is || File.Vars.isUpdate(File.G, N))
        Good = error(F, N, "must run once in a step, but each worker runs it");
    }
  }
  return Good;
}

/// Checks that a worker other than the chief reads variables only after the
/// chief has begun the run.
bool WorkersChecker::checkBegun() {
  bool Good = true;
  for (unsigned F = 1; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    if (!File.talks())
      continue;
    auto AllAfter = [&](NodeId First) {
      std::vector<bool> Result(File.G.size());
      walkUsers(File.G, {First}, Along::All, Result);
      return Result;
    };
    // A read of a variable in the worker's own task must follow Number, which
    // also waits until the worker's variables are refreshed.
    std::vector<bool> Begun = AllAfter(File.run()),
                      Right = AllAfter(File.Number);
    auto Own = jobAndTask(File.Own);
    for (NodeId N = 0; N < File.G.size(); ++N) {
      int Input =
          File.InRun[N] && !File.is(N, Role::Wire) ? File.readsVariable(N) : -1;
      if (Input < 0)
        continue;
      NodeId Var =
          File.Vars.variableOf(File.G.input(N, static_cast<unsigned>(Input)));
      auto Task = Var == NoNode ? std::nullopt : jobAndTask(File.G.device(Var));
      if (!(Task && Task != Own ? Begun : Right)[N])
        Good = error(F, N,
                     "may read a variable before the chief has begun the "
                     "run");
    }
  }
  return Good;
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

/// Returns true if \p Token waits for \p Read in the same file. A write waits
/// for \p Token.
bool WorkersChecker::waits(unsigned File, NodeId Token, NodeId Read) {
  const WorkerFile &F = Files[File];
  for (Endpoint E : F.G.controlInputs(Token)) {
    NodeId N = E.Node;
    // Follow a value that left a branch back to the read.
    for (unsigned I = 0; I < 256 && N != Read && !F.G.inputs(N).empty() &&
                         (F.is(N, Role::Branch) || F.is(N, Role::Taken));
         ++I)
      N = F.G.input(N, 0).Node;
    if (N == Read)
      return true;
  }
  return false;
}

/// Returns true if \p Write waits for \p Read of another file by a message.
bool WorkersChecker::isGated(unsigned File, NodeId Write, Place Read) {
  return any_of(Files[File].G.controlInputs(Write), [&](Endpoint E) {
    auto [Of, Token] = Join.waitsFor(File, E.Node);
    return Of == Read.first && Files[Of].is(Token, Role::Reads) &&
           waits(Of, Token, Read.second);
  });
}

/// Returns \p Work and all nodes that wait for a node of it, over all files.
std::set<WorkersChecker::Place>
WorkersChecker::after(std::vector<Place> Work) const {
  std::set<Place> Seen;
  while (!Work.empty()) {
    auto [F, N] = Work.back();
    Work.pop_back();
    if (!Seen.insert({F, N}).second)
      continue;
    Files[F].G.forEachUse(N,
                          [&, F = F](Use U) { Work.push_back({F, U.User}); });
    if (auto It = TakenBy.find({F, N}); It != TakenBy.end())
      append_range(Work, It->second);
  }
  return Seen;
}

bool WorkersChecker::comesAfter(Place Later, Place Earlier) {
  auto It = After.find(Earlier);
  if (It == After.end())
    It = After.emplace(Earlier, after({Earlier})).first;
  return It->second.count(Later) != 0;
}

bool WorkersChecker::checkWrite(unsigned File, NodeId N) {
  const WorkerFile &F = Files[File];
  bool Good = true;
  for (unsigned I = 0; I < F.Vars.update(F.G, N).NumVars; ++I) {
    NodeId Var = F.Vars.variableOf(F.G.input(N, I));
    if (Var == NoNode)
      continue;
    for (unsigned Of = 0; Of < Files.size(); ++Of) {
      const WorkerFile &Other = Files[Of];
      NodeId Its = Other.find(F.originName(Var));
      if (Of == File || Its == NoNode)
        continue;
      Other.Vars.forEachUse(Other.G, Its, [&](Use U) {
        NodeId Read = U.User;
        if (!Other.InRun[Read] || Other.Vars.isUpdate(Other.G, Read) ||
            Other.readsVariable(Read) < 0 || Other.is(Read, Role::Wire))
          return;
        if (isGated(File, N, {Of, Read}) || comesAfter({Of, Read}, {File, N}) ||
            comesAfter({File, N}, {Of, Read}))
          return;
        Good =
            error(File, N,
                  "does not wait until worker " + Twine(Of) +
                      " has read the variable: '" + Other.G.name(Read) + "'");
      });
    }
  }
  return Good;
}

/// Checks that a write of the chief waits for all messages that its run
/// receives. If a worker restarts before they arrive, no variable has changed.
bool WorkersChecker::checkAllGiven(NodeId Write) {
  const WorkerFile &F = Files[0];
  std::vector<std::string> Names;
  for (const auto &[Name, Runs] : RunsOf)
    if (Runs[0][Write])
      Names.push_back(Name);
  DenseSet<NodeId> Waits;
  for (Endpoint E : F.G.controlInputs(Write))
    if (F.is(E.Node, Role::AllGiven))
      for (Endpoint Get : F.G.controlInputs(E.Node))
        Waits.insert(Get.Node);
  for (const auto &M : F.Gets) {
    if (Waits.contains(M.Node) || !all_of(Names, [&](const auto &Name) {
          return MessagesOf[Name].count(M.Queue.Name) != 0;
        }))
      continue;
    // A message that waits for a write cannot arrive before that write.
    if (Names.empty() || AfterWrites.count({0, M.Node}))
      continue;
    return error(0, Write,
                 "writes a variable before message '" + M.Queue.Name +
                     "' arrives");
  }
  return true;
}

bool WorkersChecker::checkWrites() {
  bool Good = true;
  std::vector<Place> Writes;
  for (unsigned F = 0; F < Files.size(); ++F)
    for (NodeId N = 0; N < Files[F].G.size(); ++N)
      if (Files[F].InRun[N] && Files[F].is(N, Role::Payload) &&
          Files[F].Vars.isUpdate(Files[F].G, N))
        Writes.push_back({F, N});
  AfterWrites = after(std::move(Writes));
  for (unsigned F = 0; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    for (NodeId N = 0; N < File.G.size(); ++N) {
      if (!File.InRun[N] || !File.is(N, Role::Payload) ||
          !File.Vars.isUpdate(File.G, N))
        continue;
      Good &= checkWrite(F, N);
      if (F == 0)
        Good &= checkAllGiven(N);
    }
  }
  return Good;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

bool WorkersChecker::checkDevices() {
  bool Good = true;
  std::map<std::string, unsigned> WorkerOf;
  for (unsigned F = 0; F < Files.size(); ++F)
    if (auto Task = jobAndTask(Files[F].Own))
      if (!WorkerOf.try_emplace(*Task, F).second)
        return error(F, Files[F].Number, "two workers have the task " + *Task);
  // The state of runs must remain if a worker other than the chief ends.
  if (auto Task = jobAndTask(Files.front().Home))
    if (auto It = WorkerOf.find(*Task); It != WorkerOf.end() && It->second != 0)
      Good = error(0, Files.front().Number,
                   "the state of runs is on worker " + Twine(It->second) +
                       ", which is not the chief");
  // A node that writes a variable is on the task of the variable.
  for (auto [F, File] : enumerate(Files))
    for (NodeId N = 0; N < File.G.size(); ++N) {
      if (!File.G.isLive(N) || !File.Vars.isUpdate(File.G, N))
        continue;
      NodeId Var = File.Vars.variableOf(File.G.input(N, 0));
      auto Its = Var == NoNode ? std::nullopt : jobAndTask(File.G.device(Var)),
           Here = jobAndTask(File.G.device(N));
      if (Its && Here && *Its != *Here)
        Good = error(F, N,
                     "writes a variable on another task, '" + File.G.name(Var) +
                         "'");
    }
  // The chief writes shared variables on any task, so its file is not checked.
  for (unsigned F = 1; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    for (NodeId N = 0; N < File.G.size(); ++N) {
      if (!File.G.isLive(N) || Join.isCommon(F, N) || File.is(N, Role::Wire) ||
          File.is(N, Role::Own))
        continue;
      auto Task = jobAndTask(File.G.device(N));
      auto It = Task ? WorkerOf.find(*Task) : WorkerOf.end();
      if (It == WorkerOf.end() || It->second == F)
        continue;
      // A node that uses the state of another task, or is part of a message,
      // may be on that task.
      bool IsThere = File.is(N, Role::Put) || File.is(N, Role::Get) ||
                     File.is(N, Role::End) || File.is(N, Role::AllGiven) ||
                     any_of(File.G.dataInputs(N), [&](Endpoint E) {
                       return (File.G.outputType(E) == DT_RESOURCE ||
                               File.G.isRefOutput(E.Node, E.Port)) &&
                              File.G.device(E.Node) == File.G.device(N);
                     });
      if (!IsThere)
        Good = error(F, N, "is on the device of worker " + Twine(It->second));
    }
  }
  return Good;
}

/// Checks that a worker refreshes its variable copies after an interrupted run.
/// The next run refreshes all copies from their primaries before it reads them.
/// At its end, it also refreshes the copies that it wrote.
bool WorkersChecker::checkCopies() {
  bool Good = true;
  for (unsigned F = 1; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    if (!File.talks())
      continue;
    const Graph &G = File.G;
    auto Task = jobAndTask(File.Own);
    std::vector<OwnCopy> Taken = refreshedBy(File, File.wire("refresh/copied"));
    auto Has = [&](ArrayRef<OwnCopy> List, NodeId Var, NodeId Primary) {
      return any_of(List, [&](const OwnCopy &C) {
        return File.Vars.variableOf(C.Copy) == Var &&
               (Primary == NoNode ||
                File.Vars.variableOf(C.Primary) == Primary);
      });
    };
    std::map<NodeId, NodeId> PrimaryOf;
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N) || !File.is(N, Role::Payload) ||
          In.find(File.originName(N)) != NoNode ||
          File.Vars.update(G, N).Kind != UpdateKind::Assign ||
          G.node(N).NumData != 2 || File.InRun[N])
        continue;
      NodeId Var = File.Vars.variableOf(G.input(N, 0));
      if (Var == NoNode || jobAndTask(G.device(Var)) != Task)
        continue;
      Endpoint Value = G.input(N, 1);
      while (G.isOp(Value.Node, op::Identity) &&
             File.Vars.variableOf(G.input(Value.Node, 0)) == NoNode &&
             G.controlInputs(Value.Node).empty())
        Value = G.input(Value.Node, 0);
      if (G.node(Value.Node).NumInputs != 1)
        continue;
      NodeId Primary = File.Vars.variableOf(G.input(Value.Node, 0));
      if (Primary != NoNode && Primary != Var)
        PrimaryOf[Var] = Primary;
    }
    for (auto [Var, Primary] : PrimaryOf)
      if (!Has(Taken, Var, Primary))
        Good = error(F, Var,
                     "is a variable copy that is not refreshed from '" +
                         G.name(Primary) + "' after a restart of this worker");
    for (const OwnCopy &C : Taken)
      if (auto It = PrimaryOf.find(File.Vars.variableOf(C.Copy));
          It == PrimaryOf.end() ||
          It->second != File.Vars.variableOf(C.Primary))
        Good = error(F, C.Copy.Node,
                     "is refreshed from a variable that is not its primary");
    // The copies that a run of each name writes.
    for (const auto &[Name, Runs] : RunsOf) {
      NodeId Run = G.find(Name);
      std::vector<OwnCopy> Afterwards;
      for (Endpoint E : G.controlInputs(Run)) {
        StringRef End = G.name(E.Node);
        if (End.consume_front(File.Scope + "/end_name_"))
          Afterwards =
              refreshedBy(File, File.wire("refresh_name_" + End + "/copied"));
      }
      for (NodeId N = 0; N < G.size(); ++N) {
        if (!Runs[F][N] || !File.is(N, Role::Payload))
          continue;
        for (unsigned I = 0; I < File.Vars.update(G, N).NumVars; ++I) {
          NodeId Var = File.Vars.variableOf(G.input(N, I));
          if (PrimaryOf.count(Var) && !Has(Afterwards, Var, NoNode))
            Good = error(F, N,
                         "writes a variable copy that is not refreshed after "
                         "an interrupted run");
        }
      }
    }
  }
  return Good;
}

/// Checks that Ready nodes only test if variables are initialized, and that no
/// node of the step uses them.
bool WorkersChecker::checkReady() {
  bool Good = true;
  for (unsigned F = 0; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    const Graph &G = File.G;
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N) || !File.is(N, Role::Ready))
        continue;
      bool Asks = is_contained({StringRef(op::Const), StringRef(op::Pack),
                                StringRef(op::LogicalNot), StringRef(op::Where),
                                StringRef(op::GatherNd),
                                StringRef(op::VarIsInitializedOp),
                                StringRef(op::IsVariableInitialized)},
                               G.opName(N));
      if (!Asks ||
          G.anyUse(N, [&](Use U) { return !File.is(U.User, Role::Ready); }))
        Good = error(F, N,
                     "does more than check whether variables are initialized");
      for (Endpoint E : G.inputs(N))
        if (!File.is(E.Node, Role::Ready) && File.Vars.variableOf(E) == NoNode)
          Good = error(F, N, "runs '" + G.name(E.Node) + "'");
    }
  }
  return Good;
}

/// Checks that a worker other than the chief writes no variable of another task
/// when it initializes a session.
bool WorkersChecker::checkLocalInit() {
  bool Good = true;
  for (unsigned F = 0; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    const Graph &G = File.G;
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N) || !File.is(N, Role::LocalInit))
        continue;
      if (!G.isOp(N, op::NoOp) || G.hasUses(N))
        Good = error(F, N, "does more than prepare a session");
      bool Closes = false;
      for (Endpoint E : G.controlInputs(N)) {
        Closes |= File.is(E.Node, Role::Wire) && E.Node == File.wire("close");
        if (!File.is(E.Node, Role::Payload) && !Closes)
          Good = error(F, N, "runs '" + G.name(E.Node) + "'");
      }
      if (F == 0 && File.talks() && !Closes)
        Good = error(F, N, "does not record that earlier runs are over");
      std::vector<bool> Runs = cone(F, N);
      for (NodeId At = 0; F != 0 && At < G.size(); ++At) {
        if (!Runs[At] || !File.Vars.isUpdate(G, At))
          continue;
        NodeId Var = File.Vars.variableOf(G.input(At, 0));
        if (Var == NoNode || jobAndTask(G.device(Var)) != jobAndTask(File.Own))
          Good = error(
              F, At,
              "writes a variable of another task at each start of this worker");
      }
    }
  }
  return Good;
}

bool WorkersChecker::run() {
  for (unsigned To = 0; To < Files.size(); ++To)
    for (const auto &M : Files[To].Gets) {
      unsigned From = 0;
      NodeId Put = Join.sender(M, From).Node;
      TakenBy[{From, Put}].push_back({To, M.Node});
    }
  bool Good = checkCircles();
  for (unsigned F = 0; F < Files.size(); ++F)
    Good &= checkWire(Join, Files, F);
  return Good &&
         checkNames() & checkLeads() & checkCommon() & checkBegun() &
             checkDevices() & checkCopies() & checkLocalInit() & checkReady() &&
         checkWrites();
}

/// Returns the files in the order of their workers; none after an error.
std::vector<WorkerFile> inOrder(ArrayRef<const Graph *> Graphs,
                                DiagnosticEngine &Diags) {
  std::vector<WorkerFile> Files;
  Files.reserve(Graphs.size());
  for (const Graph *G : Graphs)
    Files.emplace_back(*G);
  std::vector<unsigned> Order(Files.size());
  std::iota(Order.begin(), Order.end(), 0);
  llvm::stable_sort(Order, [&](unsigned A, unsigned B) {
    return Files[A].Worker < Files[B].Worker;
  });
  std::vector<WorkerFile> Sorted;
  Sorted.reserve(Files.size());
  for (unsigned I : Order)
    Sorted.push_back(std::move(Files[I]));
  Files.swap(Sorted);
  for (WorkerFile &F : Files)
    if (!F.talks())
      F.Home = Files.front().Own;
  auto Fails = [&](const Twine &Message) {
    Diags.error("", Message.str());
    Files.clear();
  };
  for (auto [I, F] : enumerate(Files)) {
    if (F.talks() != Files.front().talks()) {
      Fails("some files exchange messages and others do not; give the files "
            "of one step");
      break;
    }
    if (F.talks() && F.Workers != Files.size()) {
      Fails(formatv("there are {0} files of a step with {1} workers; give one "
                    "file of each worker",
                    Files.size(), F.Workers));
      break;
    }
    if (F.talks() && (F.Worker != I || F.Scope != Files.front().Scope ||
                      F.Home != Files.front().Home)) {
      Fails(formatv("the file of worker {0} is missing, or another worker has "
                    "two files; give one file of each worker",
                    I));
      break;
    }
  }
  return Files;
}

} // namespace

int64_t workersOf(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isPart(G, N, part::Number))
      return G.intAttr(N, WorkersAttr).value_or(0);
  return 0;
}

std::unique_ptr<Graph> joinWorkers(const Graph &In, const StringSet<> &Ends,
                                   ArrayRef<const Graph *> Graphs,
                                   DiagnosticEngine &Diags) {
  std::vector<WorkerFile> Files = inOrder(Graphs, Diags);
  if (Files.empty())
    return nullptr;
  WorkersJoin Join(In, Files, Diags);
  std::unique_ptr<Graph> Joined = Join.run();
  if (!Joined)
    return nullptr;
  if (Files.front().talks() && !WorkersChecker(In, Ends, Files, Join).run())
    return nullptr;
  return Joined;
}

} // namespace graft
