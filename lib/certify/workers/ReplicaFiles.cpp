//===- lib/certify/workers/ReplicaFiles.cpp - a replica in each file ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Compares each file with that of worker 0, node by node, then makes a program
// of the file of worker 0. A node is per-replica if it is a variable, a shard,
// a collective or a copy by its name, or if it depends on such a node. Any
// other node is unreplicated.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/workers/ReplicaFiles.h"

#include "lib/certify/fold/Copies.h"
#include "lib/certify/forms/InsertedForm.h"
#include "lib/graph/CopyWord.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/Walk.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace llvm;

namespace graft {
namespace {

class ReplicaFiles {
public:
  ReplicaFiles(const Graph &In, ArrayRef<const Graph *> Given,
               DiagnosticEngine &Diags)
      : In(In), Given(Given), Diags(Diags) {}
  std::unique_ptr<Graph> run();

private:
  /// The meaning of a node of the file of worker 0 in the program.
  enum class Role : uint8_t {
    Node,      ///< The node itself.
    Operand,   ///< No node: a part of an inserted node.
    Send,      ///< No node: sends a value that the program reads.
    Broadcast, ///< No node: passes on a value.
    Feed,      ///< A feed; each worker has its shard.
    Slice,     ///< A shard of a value that all workers have.
    Scale,     ///< A product with a power of the number of workers.
    Rows,      ///< The rows of a worker, which the program joins.
    Truth,     ///< A logical and, or a logical or, over all workers.
    Chief      ///< The node itself; it runs on worker 0 only.
  };

  bool fails(const Twine &Message) {
    ++Errors;
    Diags.error("", Message.str());
    return false;
  }
  bool error(unsigned File, NodeId N, const Twine &Message) {
    if (++Errors <= 12)
      Diags.error(
          Files[File]->name(N),
          ("in the file of worker " + Twine(File) + ": " + Message).str());
    return false;
  }

  bool order();
  std::string keyOf(unsigned File, NodeId N) const;
  void findRoles();
  bool compare(unsigned File);
  bool compareNodes(unsigned File, NodeId N, NodeId With);
  bool compareBroadcast(unsigned File, NodeId N, NodeId With);
  bool compareIdle(unsigned File, NodeId N, NodeId With);
  bool compareAttrs(unsigned File, NodeId N, NodeId With);
  bool compareClasses(unsigned File, NodeId N, NodeId With);
  bool compareDevice(unsigned File, NodeId N);
  bool sameInput(unsigned File, Endpoint E, Endpoint With) const;

  /// Returns true if \p N merges the values of all replicas in the program.
  bool joins(NodeId N) const {
    return Roles[N] == Role::Rows || Roles[N] == Role::Truth;
  }
  void checkCollectives();
  void findCopies();
  bool makesOwn(NodeId N) const;
  bool checkOwn();
  void make(NodeId N);
  void makeFeed(NodeId N);
  Endpoint source(Endpoint E) const;
  Endpoint pick(Endpoint E);
  void connect(NodeId N);
  void connectTruth(NodeId N);

  const Graph &In;
  ArrayRef<const Graph *> Given;
  DiagnosticEngine &Diags;
  unsigned Errors = 0;
  std::vector<const Graph *> Files;              ///< By worker.
  const Graph *G = nullptr;                      ///< The file of worker 0.
  std::string Word;                              ///< In the names of copies.
  std::vector<std::optional<std::string>> Tasks; ///< By worker.
  std::unique_ptr<VariableIndex> Vars;           ///< The variables of G.
  std::unique_ptr<LoweredFile> Lowered;          ///< G.
  std::vector<Role> Roles;                       ///< By node of G.
  StringMap<NodeId> ByKey;                       ///< Nodes of G, by keyOf().
  StringSet<> LocalNames;     ///< Input names of nodes with names of copies.
  std::vector<bool> IsCopied; ///< By node of G: it is per-replica.
  std::unique_ptr<Graph> P = std::make_unique<Graph>();
  std::vector<NodeId> ProgramOf; ///< By node of G.
  std::vector<NodeId> SplitOf;   ///< By node of G: the split of a feed.
  std::map<std::pair<NodeId, uint32_t>, NodeId> Picks; ///< By endpoint of P.
};

/// Sorts the files by worker and checks that there is one of each.
bool ReplicaFiles::order() {
  Files.resize(Given.size());
  for (const Graph *One : Given) {
    int64_t Workers = replicaWorkersOf(*One), Worker = -1;
    for (NodeId N = 0; N < One->size(); ++N) {
      if (!One->isLive(N) || !isPart(*One, N, part::Replica))
        continue;
      int64_t Its = One->intAttr(N, WorkerAttr).value_or(-1);
      if ((Worker >= 0 && Its != Worker) ||
          One->intAttr(N, WorkersAttr).value_or(0) != Workers) {
        Diags.error(One->name(N),
                    "is marked as part of the file of another worker");
        return false;
      }
      Worker = Its;
    }
    if (Workers != static_cast<int64_t>(Given.size()))
      return fails(formatv("there are {0} files, but one is of a step with "
                           "{1} workers; give one file of each worker, and no "
                           "other file",
                           Given.size(), Workers));
    if (Worker < 0 || Worker >= Workers)
      return fails(
          formatv("one file is of worker {0}, which does not exist", Worker));
    if (Files[static_cast<size_t>(Worker)])
      return fails(formatv("two files are of worker {0}", Worker));
    Files[static_cast<size_t>(Worker)] = One;
  }
  G = Files.front();
  Word = copyWordOf(*G);
  Tasks.resize(Files.size());
  for (unsigned F = 1; F < Files.size(); ++F)
    if (copyWordOf(*Files[F]) != Word)
      return fails(formatv("the files of workers 0 and {0} name the copies "
                           "of nodes by different words",
                           F));
  return true;
}

/// Returns the name of \p N without the number of its worker, so that it is the
/// same in all files.
std::string ReplicaFiles::keyOf(unsigned File, NodeId N) const {
  StringRef Name = Files[File]->name(N);
  CopyName Its = copyNameIn(In, Word, Name);
  if (Its.Replica != static_cast<int>(File))
    return Name.str();
  return ("\n" + Twine(Its.Split) + "\n" + Its.Base).str();
}

void ReplicaFiles::findRoles() {
  Roles.assign(G->size(), Role::Node);
  for (NodeId N = 0; N < G->size(); ++N) {
    if (!G->isLive(N))
      continue;
    bool IsPart = isPart(*G, N, part::Replica);
    StringRef Op = G->opName(N);
    if (Op == op::CollectiveBcastSend) {
      Roles[N] = Role::Send;
    } else if (IsPart && Op == op::Identity && G->hasAttr(N, RowsAxisAttr)) {
      Roles[N] = Role::Rows;
    } else if (IsPart && Op == op::Cast) {
      Roles[N] = Role::Truth;
      NodeId Member = G->input(N, 0).Node;
      Roles[Member] = Role::Operand;
      if (G->node(Member).NumData == 1)
        Roles[G->input(Member, 0).Node] = Role::Operand;
    } else if (IsPart && Op == op::Identity) {
      Roles[N] = Role::Broadcast;
    } else if (IsPart && Op.starts_with(op::Placeholder)) {
      Roles[N] = Role::Feed;
    } else if (IsPart && Op == op::Split && G->node(N).NumData == 2) {
      Roles[N] = Role::Slice;
      Roles[G->input(N, 0).Node] = Role::Operand;
    } else if (IsPart && (Op == op::Mul || Op == op::FloorDiv) &&
               G->node(N).NumData == 2) {
      Roles[N] = Role::Scale;
      Roles[G->input(N, 1).Node] = Role::Operand;
    }
  }
}

/// Returns true if \p E of the file \p File corresponds to \p With of the file
/// of worker 0.
bool ReplicaFiles::sameInput(unsigned File, Endpoint E, Endpoint With) const {
  uint32_t Port = E.Port;
  // Each worker reads its own part of a slice.
  if (!E.isControl() && Roles[With.Node] == Role::Slice) {
    if (With.Port != 0 || Port != File)
      return false;
    Port = 0;
  }
  return Port == With.Port && ByKey.lookup(keyOf(File, E.Node)) == With.Node;
}

bool ReplicaFiles::compareAttrs(unsigned File, NodeId N, NodeId With) {
  const Graph &F = *Files[File];
  bool Draws = IsCopied[With] && isRandomOp(G->opName(With)) &&
               G->hasAttr(With, "seed2") &&
               (G->intAttr(With, "seed").value_or(0) != 0 ||
                G->intAttr(With, "seed2").value_or(0) != 0);
  if (Draws && F.intAttr(N, "seed2").value_or(0) !=
                   G->intAttr(With, "seed2").value_or(0) + File)
    return error(File, N, "does not draw with the random seed of this worker");
  auto IsOpen = [&](StringRef Key) {
    return Key == WorkerAttr || Key == "_class" || (Draws && Key == "seed2");
  };
  for (const AttrEntry &A : F.attrs(N))
    if (!IsOpen(A.Key) && G->attr(With, A.Key) != A.Value)
      return error(File, N,
                   "attribute '" + A.Key + "' is not that of worker 0");
  for (const AttrEntry &A : G->attrs(With))
    if (!IsOpen(A.Key) && !F.hasAttr(N, A.Key))
      return error(File, N, "attribute '" + A.Key + "' is not in this file");
  return true;
}

/// Checks that \p N and \p With are colocated with the same nodes.
bool ReplicaFiles::compareClasses(unsigned File, NodeId N, NodeId With) {
  auto Mine = Files[File]->stringListAttr(N, "_class"),
       Its = G->stringListAttr(With, "_class");
  size_t Count = Mine ? Mine->size() : 0;
  if (Count != (Its ? Its->size() : 0))
    return error(File, N, "is colocated with other nodes than on worker 0");
  for (size_t I = 0; I < Count; ++I) {
    StringRef A = (*Mine)[I], B = (*Its)[I];
    NodeId Here = A.consume_front("loc:@") ? Files[File]->find(A) : NoNode;
    NodeId There = B.consume_front("loc:@") ? G->find(B) : NoNode;
    bool Same = Here == NoNode || There == NoNode
                    ? A == B
                    : keyOf(File, Here) == keyOf(0, There);
    if (!Same)
      return error(File, N,
                   "is colocated with '" + A + "', but on worker 0 with '" + B +
                       "'");
  }
  return true;
}

/// Checks that \p N is on the task of its worker, as are all nodes of the file.
bool ReplicaFiles::compareDevice(unsigned File, NodeId N) {
  auto Its = DeviceName::parse(Files[File]->device(N));
  if (!Its || Its->Job.empty() || !Its->Task)
    return error(File, N, "has a device that does not name a job and a task");
  std::string Task = formatv("/job:{0}/replica:{1}/task:{2}", Its->Job,
                             Its->Replica.value_or(0), *Its->Task);
  if (!Tasks[File])
    Tasks[File] = Task;
  if (*Tasks[File] != Task)
    return error(File, N, "is on the device of another task");
  return true;
}

/// Checks that \p N receives the value that worker 0 sends before \p With.
bool ReplicaFiles::compareBroadcast(unsigned File, NodeId N, NodeId With) {
  const Graph &F = *Files[File];
  ArrayRef<Endpoint> Inputs = G->inputs(With);
  if (!F.isOp(N, op::CollectiveBcastRecv) || Inputs.size() != 2 ||
      G->node(With).NumData != 1 || Roles[Inputs[1].Node] != Role::Send ||
      G->input(Inputs[1].Node, 0) != Inputs[0])
    return error(File, N,
                 "does not receive the value that worker 0 broadcasts");
  NodeId Send = Inputs[1].Node;
  if (!F.inputs(N).empty() || G->inputs(Send).size() != 1)
    return error(File, N, "is a broadcast that waits for another node");
  for (StringRef Key : {"T", "group_size", "group_key", "instance_key", "shape",
                        "communication_hint", "timeout_seconds"})
    if (F.attr(N, Key) != G->attr(Send, Key))
      return error(File, N,
                   "attribute '" + Key +
                       "' is not that of the broadcast on worker 0");
  if (G->intAttr(Send, "group_size") != static_cast<int64_t>(Files.size()))
    return error(0, Send, "does not send to all workers");
  return true;
}

/// Checks that \p N only waits for the inputs of \p With. Worker 0 runs
/// \p With. This worker runs \p N instead, to take part in collectives among
/// the inputs.
bool ReplicaFiles::compareIdle(unsigned File, NodeId N, NodeId With) {
  const Graph &F = *Files[File];
  unsigned Passed = F.node(N).NumData;
  if (Passed > 1 || (Passed == 1 && !G->isOp(With, op::Print)) ||
      (Passed == 1 && !sameInput(File, F.input(N, 0), G->input(With, 0))))
    return error(File, N, "does something else than worker 0");
  std::set<NodeId> Mine, Its;
  for (Endpoint E : F.controlInputs(N))
    Mine.insert(ByKey.lookup(keyOf(File, E.Node)));
  for (Endpoint E : G->inputs(With).drop_front(Passed))
    Its.insert(E.Node);
  if (Mine != Its)
    return error(File, N,
                 "does not wait for the inputs that it has on worker 0");
  Roles[With] = Role::Chief;
  return true;
}

bool ReplicaFiles::compareNodes(unsigned File, NodeId N, NodeId With) {
  const Graph &F = *Files[File];
  if (!compareDevice(File, N) || !compareClasses(File, N, With))
    return false;
  auto Here = DeviceName::parse(F.device(N)),
       There = DeviceName::parse(G->device(With));
  if (!There || Here->Type != There->Type || Here->Index != There->Index)
    return error(File, N, "is on another device than on worker 0");
  if (Roles[With] == Role::Broadcast)
    return compareBroadcast(File, N, With);
  StringRef Op = F.opName(N);
  if (Op != G->opName(With)) {
    bool Idle = (Op == op::NoOp || Op == op::Identity) &&
                Vars->isOnce(*G, With) &&
                (Op == op::Identity ||
                 !G->anyUse(With, [&](Use U) { return G->isData(U); }));
    return Idle ? compareIdle(File, N, With)
                : error(File, N, "is another op than on worker 0");
  }
  ArrayRef<Endpoint> Mine = F.inputs(N), Its = G->inputs(With);
  if (Mine.size() != Its.size() || F.node(N).NumData != G->node(With).NumData)
    return error(File, N, "has other inputs than on worker 0");
  for (size_t I = 0; I < Mine.size(); ++I)
    if (!sameInput(File, Mine[I], Its[I]))
      return error(File, N,
                   formatv("input {0} is '{1}:{2}', which is not that "
                           "of worker 0",
                           I, F.name(Mine[I].Node), Mine[I].Port));
  return compareAttrs(File, N, With);
}

/// Checks that each collective has all workers as members, and unique keys.
void ReplicaFiles::checkCollectives() {
  std::map<std::pair<int64_t, int64_t>, NodeId> Known;
  for (NodeId N = 0; N < G->size(); ++N) {
    if (!G->isLive(N) || !G->opName(N).starts_with("Collective"))
      continue;
    if (G->intAttr(N, "group_size") != static_cast<int64_t>(Files.size()))
      error(0, N,
            "is a collective whose group size is not the number of "
            "workers");
    auto [It, New] =
        Known.try_emplace({G->intAttr(N, "group_key").value_or(0),
                           G->intAttr(N, "instance_key").value_or(0)},
                          N);
    if (!New)
      error(0, N,
            "has the group key and instance key of '" + G->name(It->second) +
                "'");
  }
}

/// Checks that \p File has the nodes of worker 0, except for sends.
bool ReplicaFiles::compare(unsigned File) {
  const Graph &F = *Files[File];
  std::vector<bool> Found(G->size());
  bool Good = true;
  for (NodeId N = 0; N < F.size(); ++N) {
    if (!F.isLive(N))
      continue;
    auto It = ByKey.find(keyOf(File, N));
    if (It == ByKey.end()) {
      Good = error(File, N, "is not in the file of worker 0");
      continue;
    }
    Found[It->second] = true;
    Good &= compareNodes(File, N, It->second);
  }
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && !Found[N] && Roles[N] != Role::Send)
      Good = error(0, N, "is not in the file of worker " + Twine(File));
  return Good;
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

void ReplicaFiles::findCopies() {
  IsCopied.assign(G->size(), false);
  std::vector<NodeId> From;
  for (NodeId N = 0; N < G->size(); ++N) {
    StringRef Op = G->opName(N);
    if (G->isLive(N) &&
        (isVariableOp(Op) || Roles[N] == Role::Feed ||
         Roles[N] == Role::Slice || Op == op::CollectiveReduce ||
         Op == op::CollectiveGather ||
         copyNameIn(In, Word, G->name(N)).Replica == 0))
      From.push_back(N);
  }
  walkFrom(From, IsCopied, [&](NodeId N, std::vector<NodeId> &Next) {
    G->forEachUse(N, [&](Use U) {
      // A control edge does not make a NoOp, or a node with data inputs,
      // per-replica: such a node waits for all copies.
      bool Waits = !G->isData(U) && (G->isOp(U.User, op::NoOp) ||
                                     !G->dataInputs(U.User).empty());
      if (!Waits && !joins(U.User) && Roles[U.User] != Role::Send &&
          Roles[U.User] != Role::Broadcast && !Vars->isOnce(*G, U.User))
        Next.push_back(U.User);
    });
  });
}

/// Returns true if \p N is unreplicated, but its value differs per worker.
bool ReplicaFiles::makesOwn(NodeId N) const {
  StringRef Op = G->opName(N);
  const OpDef *Def = G->opDef(N);
  if (IsCopied[N] || Op.starts_with(op::Placeholder) || Roles[N] == Role::Chief)
    return false;
  if (!Def)
    return true;
  if (isRandomOp(Op))
    return Def->isStateful() && G->intAttr(N, "seed").value_or(0) == 0 &&
           G->intAttr(N, "seed2").value_or(0) == 0;
  if (Op == op::ReadFile || Op == op::MatchingFiles)
    return true;
  return Def->isStateful() && Def->update().Kind == UpdateKind::None &&
         !Def->readsVariable() && !isLocalHandleOp(Op) && Op != op::Print &&
         Op != op::Assert;
}

/// Checks that no per-replica node depends on a value that differs per worker.
bool ReplicaFiles::checkOwn() {
  std::vector<NodeId> From(G->size(), NoNode), Work;
  bool Good = true;
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && makesOwn(N)) {
      From[N] = N;
      Work.push_back(N);
    }
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    G->forEachUse(N, [&](Use U) {
      Role Its = Roles[U.User];
      if (!G->isData(U) || From[U.User] != NoNode || Its == Role::Broadcast ||
          Its == Role::Send || Its == Role::Chief)
        return;
      From[U.User] = From[N];
      if (IsCopied[U.User])
        Good = error(0, U.User,
                     "depends on '" + G->name(From[N]) +
                         "', whose value may differ between workers");
      else
        Work.push_back(U.User);
    });
  }
  return Good;
}

void ReplicaFiles::makeFeed(NodeId N) {
  NodeId Made = ProgramOf[N];
  NodeId Was = In.find(G->name(N));
  auto Count = static_cast<int64_t>(Files.size());
  int64_t Axis = G->intAttr(N, RowsAxisAttr).value_or(-1);
  auto Mine = G->shapeAttr(N, "shape"),
       Whole = Was == NoNode ? std::nullopt : In.shapeAttr(Was, "shape");
  if (!Whole || Axis < 0 || G->node(N).NumData != 0) {
    error(0, N, "is no feed of the input that can be split");
    return;
  }
  // Each worker has the shard of one replica. Its size is known if the input
  // states the batch size.
  ShapeValue Part = *Whole;
  if (!Part.UnknownRank && Axis < static_cast<int64_t>(Part.Dims.size()) &&
      Part.Dims[Axis] > 0) {
    if (Part.Dims[Axis] % Count != 0)
      error(0, N,
            "has a batch size that is not a multiple of the number of "
            "workers");
    Part.Dims[Axis] /= Count;
  }
  if (Part.Dims != Mine->Dims && !Part.UnknownRank)
    error(0, N, "does not have the shape of one worker's shard");
  if (Part.Dims == Mine->Dims || !Part.UnknownRank)
    P->setAttr(Made, "shape", *In.attr(Was, "shape"));
  NodeId Split = SplitOf[N] =
      P->addNode(P->uniqueName((G->name(N) + "/split").str()), ToReplicasOp,
                 Endpoint{Made, 0}, NoNode);
  P->setIntAttr(Split, "axis", Axis);
  P->setTypeAttr(Split, "T", G->outputType(N, 0));
  P->node(Split).Kind = Inserted::Split;
  P->node(Split).Count = Copies::PerReplica;
}

/// Adds the program's node of \p N, without inputs.
void ReplicaFiles::make(NodeId N) {
  Role Its = Roles[N];
  if (Its == Role::Operand || Its == Role::Send || Its == Role::Broadcast)
    return;
  CopyName Copy = copyNameIn(In, Word, G->name(N));
  bool Local = Copy.Replica == 0;
  bool IsInserted = Its == Role::Slice || Its == Role::Scale || joins(N) ||
                    In.find(Copy.Base) == NoNode ||
                    // A merged value has the name of the local one.
                    (!Local && LocalNames.contains(Copy.Base));
  std::string Name = Copy.Base;
  if (Local && (In.find(Name) != NoNode || G->find(Name) != NoNode))
    Name = (copyScope(Word) + "/" + Name).str();
  StringRef Op = Its == Role::Slice   ? StringRef(ToReplicasOp)
                 : Its == Role::Scale ? StringRef(ScaleOp)
                 : joins(N)           ? StringRef(FromReplicasOp)
                                      : G->opName(N);
  NodeId Made = ProgramOf[N] = P->addNode(P->uniqueName(Name), Op, {}, NoNode);
  for (const AttrEntry &A : G->attrs(N))
    P->setAttr(Made, A.Key, A.Value);
  Node &New = P->node(Made);
  New.Count = IsCopied[N] ? Copies::PerReplica : Copies::Once;
  New.Kind = !IsInserted          ? Inserted::No
             : Its == Role::Slice ? Inserted::Split
             : Its == Role::Scale ? Inserted::Scale
             : joins(N)           ? Inserted::Merge
                                  : recognizeInserted(*Lowered, N);
  if (Local || (IsCopied[N] && Op.starts_with("Collective")))
    New.Flags |= NF_LocalName;
  if (isVariableOp(Op) && G->hasAttr(N, AggregationAttr))
    P->setPolicy(Made, Policy::SyncOnRead);
  // All workers run the same names, so a run of the update on one worker runs
  // it on all workers.
  if (IsCopied[N] && Vars->isUpdate(*G, N))
    New.Flags |= NF_Led;
  if (!IsInserted) {
    if (P->name(Made) != Copy.Base)
      P->setStringAttr(Made, OriginAttr, Copy.Base);
    NodeId Was = In.find(Copy.Base);
    StringRef Key =
        G->isOp(N, op::Const) ? StringRef("value") : statedShape(G->opName(N));
    auto Value = Key.empty() || In.opName(Was) != G->opName(N)
                     ? std::nullopt
                     : In.attr(Was, Key);
    if (Value && Value != G->attr(N, Key))
      P->setAttr(Made, OriginalAttr, *Value);
  }
  if (Its == Role::Feed)
    makeFeed(N);
}

/// Returns the endpoint of the program for \p E of the file.
Endpoint ReplicaFiles::source(Endpoint E) const {
  while (Roles[E.Node] == Role::Broadcast)
    E = E.isControl() ? Endpoint{G->input(E.Node, 0).Node, ControlPort}
                      : G->input(E.Node, 0);
  if (SplitOf[E.Node] != NoNode && !E.isControl())
    return {SplitOf[E.Node], 0};
  return {ProgramOf[E.Node], E.Port};
}

/// Returns the value that \p E of the program has on replica 0.
Endpoint ReplicaFiles::pick(Endpoint E) {
  auto [It, New] = Picks.try_emplace({E.Node, E.Port}, NoNode);
  if (New) {
    It->second = insertPick(
        *P, P->uniqueName((P->name(E.Node) + "/pick").str()), E, NoNode);
    P->node(It->second).Flags |= NF_ElidePrimary;
  }
  return {It->second, 0};
}

/// Connects a Truth: `Cast(CollectiveReduce(Cast(x)))`, a minimum or maximum.
void ReplicaFiles::connectTruth(NodeId N) {
  NodeId Made = ProgramOf[N];
  auto Casts = [&](NodeId Of, unsigned From, unsigned To) {
    return G->isOp(Of, op::Cast) && G->typeAttr(Of, "SrcT") == From &&
           G->typeAttr(Of, "DstT") == To && G->inputs(Of).size() == 1;
  };
  NodeId Member = G->input(N, 0).Node;
  StringRef How = G->stringAttr(Member, "merge_op").value_or("");
  NodeId Number =
      G->isOp(Member, op::CollectiveReduce) && G->inputs(Member).size() == 1
          ? G->input(Member, 0).Node
          : NoNode;
  if (Number == NoNode || !Casts(N, DT_INT32, DT_BOOL) ||
      !Casts(Number, DT_BOOL, DT_INT32) || (How != op::Min && How != op::Max) ||
      G->stringAttr(Member, "final_op") != StringRef("Id")) {
    error(0, N, "is neither a logical and nor a logical or over all workers");
    return;
  }
  for (StringRef Key : {"SrcT", "DstT", "Truncate"})
    P->removeAttr(Made, Key);
  P->setTypeAttr(Made, "T", DT_BOOL);
  P->setStringAttr(Made, CombineAttr,
                   How == op::Min ? combine::And : combine::Or);
  P->setInputs(Made, source(G->input(Number, 0)));
}

void ReplicaFiles::connect(NodeId N) {
  NodeId Made = ProgramOf[N];
  Role Its = Roles[N];
  if (Made == NoNode)
    return;
  SmallVector<Endpoint, 8> Inputs;
  if (Its == Role::Truth) {
    connectTruth(N);
    return;
  }
  for (auto [I, E] : enumerate(G->inputs(N))) {
    bool IsOperand =
        (Its == Role::Slice && I == 0) || (Its == Role::Scale && I == 1);
    if (IsOperand)
      continue;
    Endpoint From = source(E);
    if (From.Node == NoNode) {
      error(0, N,
            "reads '" + G->name(E.Node) +
                "', which is a part of a node that graft inserted");
      return;
    }
    bool Reads = !From.isControl() && P->isPerReplica(From.Node) && !joins(N);
    if (Reads && (!IsCopied[N] || Its == Role::Slice))
      From = pick(From);
    Inputs.push_back(From);
  }
  P->setInputs(Made, Inputs);
  auto Number = [&](unsigned I) { return constValue(*G, G->input(N, I).Node); };
  if (Its == Role::Slice) {
    auto Axis = Number(0);
    if (!Axis || Axis->Ints.size() != 1 ||
        G->intAttr(N, "num_split") != static_cast<int64_t>(Files.size()))
      error(0, N, "does not split into a part for each worker");
    else
      P->setIntAttr(Made, "axis", Axis->Ints[0]);
  } else if (Its == Role::Rows) {
    P->setStringAttr(Made, CombineAttr, combine::Concat);
    P->setIntAttr(Made, "axis", *G->intAttr(N, RowsAxisAttr));
  } else if (Its == Role::Scale) {
    if (!takeScale(*G, N, static_cast<unsigned>(Files.size()), *P, Made))
      error(0, N, "does not scale by a power of the number of workers");
  }
}

std::unique_ptr<Graph> ReplicaFiles::run() {
  if (!order())
    return nullptr;
  Vars = std::make_unique<VariableIndex>(*G);
  Lowered = std::make_unique<LoweredFile>(*G, In, Word);
  findRoles();
  findCopies();
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N)) {
      ByKey[keyOf(0, N)] = N;
      if (CopyName Its = copyNameIn(In, Word, G->name(N)); Its.Replica == 0)
        LocalNames.insert(Its.Base);
      compareDevice(0, N);
    }
  checkCollectives();
  for (unsigned F = 1; F < Files.size(); ++F)
    compare(F);
  std::set<std::string> Known;
  for (const auto &Its : Tasks)
    if (Its && !Known.insert(*Its).second)
      fails("two workers are on " + *Its);
  if (Errors != 0 || !checkOwn())
    return nullptr;
  NodeId MeshNode = P->addNode("graft/mesh", MeshOp, {}, NoNode);
  std::vector<StringRef> Devices;
  Devices.reserve(Tasks.size());
  for (const auto &Its : Tasks)
    Devices.push_back(P->save(*Its + "/device:CPU:0"));
  P->setIntAttr(MeshNode, "replicas", static_cast<int64_t>(Files.size()));
  P->setAttr(MeshNode, "devices", encodeStringListAttr(Devices));
  if (Word != UsualCopyWord)
    P->setStringAttr(MeshNode, CopyWordAttr, Word);
  P->node(MeshNode).Kind = Inserted::Mesh;
  ProgramOf.assign(G->size(), NoNode);
  SplitOf.assign(G->size(), NoNode);
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N))
      make(N);
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N))
      connect(N);
  if (Errors != 0)
    return nullptr;
  // A file has each node once, so checkCopies() treats devices and state as
  // those of unreplicated nodes.
  std::vector<CopyGroup> Groups;
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && ProgramOf[N] != NoNode)
      Groups.push_back({{},
                        N,
                        copyNameIn(In, Word, G->name(N)).Base,
                        0,
                        ProgramOf[N],
                        NoNode});
  return checkCopies(*G, In, *P, Groups, Diags) ? std::move(P) : nullptr;
}

} // namespace

int64_t replicaWorkersOf(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isPart(G, N, part::Replica))
      return G.intAttr(N, WorkersAttr).value_or(0);
  return 0;
}

std::unique_ptr<Graph> programOfReplicaFiles(const Graph &In,
                                             ArrayRef<const Graph *> Files,
                                             DiagnosticEngine &Diags) {
  return ReplicaFiles(In, Files, Diags).run();
}

} // namespace graft
