//===- lib/certify/workers/Join.cpp - the graph of all workers ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/workers/Join.h"

#include "lib/certify/forms/LoweredFile.h"
#include "lib/graph/AttrRun.h"
#include "lib/graph/CopyWord.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>
#include <set>

using namespace llvm;

namespace graft {

bool WorkersJoin::error(unsigned File, NodeId N, const Twine &Message) {
  if (++Errors <= 12)
    Diags.error(
        Files[File].G.name(N),
        ("in the file of worker " + Twine(File) + ": " + Message).str());
  return false;
}

/// Returns true if \p Key is an attribute that nodes have in the graph of a
/// worker, but not in the graph for all workers.
static bool isOfWorker(StringRef Key) {
  return Key == PartAttr || Key == RowsAxisAttr || Key == IndexAttr ||
         Key == WorkerAttr || Key == WorkersAttr || Key == InputAttr;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Checks that each queue has one file that sends and one that receives. One of
/// the two must be the file of the chief, and both must describe the queue
/// alike.
bool WorkersJoin::matchMessages() {
  llvm::StringMap<MessageEnd> GetOf;
  for (unsigned F = 0; F < Files.size(); ++F) {
    for (auto [I, M] : enumerate(Files[F].Puts))
      if (!PutOf.try_emplace(M.Queue.Name, MessageEnd{F, unsigned(I)}).second)
        return error(F, M.Node, "sends a message that another node sends, too");
    for (auto [I, M] : enumerate(Files[F].Gets))
      if (!GetOf.try_emplace(M.Queue.Name, MessageEnd{F, unsigned(I)}).second)
        return error(F, M.Node,
                     "receives a message that another node receives, too");
  }
  for (unsigned F = 0; F < Files.size(); ++F) {
    for (const auto &M : Files[F].Puts)
      if (!GetOf.contains(M.Queue.Name))
        return error(F, M.Node, "sends a message that no worker receives");
    for (const auto &M : Files[F].Gets) {
      auto It = PutOf.find(M.Queue.Name);
      if (It == PutOf.end())
        return error(F, M.Node, "receives a message that no worker sends");
      const WorkerFile &From = Files[It->second.File];
      const WorkerFile::Message &Put = From.Puts[It->second.Index];
      if ((It->second.File == 0) == (F == 0))
        return error(
            F, M.Node,
            "receives a message that does not go between the chief and "
            "another worker");
      if (Put.Queue.Device != M.Queue.Device ||
          Put.Queue.Types != M.Queue.Types)
        return error(F, M.Node,
                     "receives from another queue than worker " +
                         Twine(It->second.File) + " sends to");
      unsigned Data = From.G.node(Put.Node).NumData;
      if (Data != M.Queue.Types.size() + 2)
        return error(
            It->second.File, Put.Node,
            "does not send as many values as its queue has components");
      for (unsigned I = 2; I < Data; ++I) {
        unsigned Type = From.G.outputType(From.G.input(Put.Node, I));
        if (Type != DT_INVALID &&
            Type != static_cast<unsigned char>(M.Queue.Types[I - 2]))
          return error(It->second.File, Put.Node,
                       "sends a value of another type than the queue has");
      }
    }
  }
  return true;
}

std::pair<unsigned, NodeId> WorkersJoin::waitsFor(unsigned File,
                                                  NodeId N) const {
  for (unsigned Steps = 0; Steps < 8 && Files[File].is(N, Role::End); ++Steps) {
    const WorkerFile &F = Files[File];
    if (F.G.node(N).NumInputs != 1)
      break;
    NodeId Get = F.G.input(N, 0).Node;
    auto It = find_if(F.Gets, [&](const auto &M) { return M.Node == Get; });
    auto Index = static_cast<uint64_t>(F.G.intAttr(N, IndexAttr).value_or(-1));
    if (It == F.Gets.end())
      break;
    unsigned From = 0;
    NodeId Put = sender(*It, From).Node;
    std::vector<NodeId> Waits = Files[From].waitsOfPut(Put);
    if (Index >= Waits.size())
      break;
    File = From;
    N = Waits[Index];
  }
  return {File, N};
}

//===----------------------------------------------------------------------===//
// Feeds
//===----------------------------------------------------------------------===//

/// Returns true if \p N splits the rows of a feed among the replicas of a
/// worker.
bool WorkersJoin::isLocalSplit(unsigned File, NodeId N) const {
  const Graph &G = Files[File].G;
  return G.isOp(N, op::Split) && G.node(N).Flags & NF_MayHaveGraft &&
         G.hasAttr(N, StampAttr) && G.node(N).NumData == 2 &&
         isFeed(File, G.input(N, 1).Node);
}

/// Returns true if \p N is fetched and has the rows of one worker.
bool WorkersJoin::isRows(unsigned File, NodeId N) const {
  const Graph &G = Files[File].G;
  return G.node(N).Flags & NF_MayHaveGraft && G.hasAttr(N, RowsAxisAttr) &&
         !G.opName(N).starts_with(op::Placeholder);
}

bool WorkersJoin::findFeeds() {
  for (const WorkerFile &F : Files) {
    const Graph &G = F.G;
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && G.node(N).Flags & NF_MayHaveGraft &&
          G.hasAttr(N, RowsAxisAttr) &&
          G.opName(N).starts_with(op::Placeholder))
        Feeds[G.name(N)].Axis = G.intAttr(N, RowsAxisAttr).value_or(-1);
  }
  for (auto &Entry : Feeds) {
    Feed &Its = Entry.second;
    Its.Local.resize(Files.size(), NoNode);
    Its.First.push_back(0);
    for (unsigned F = 0; F < Files.size(); ++F) {
      const Graph &G = Files[F].G;
      NodeId N = Files[F].find(Entry.getKey());
      if (N == NoNode || G.intAttr(N, RowsAxisAttr) != Its.Axis) {
        Diags.error(Entry.getKey(),
                    formatv("worker {0} is not fed a shard along the same "
                            "axis as other workers",
                            F));
        return false;
      }
      unsigned Parts = 1;
      G.forEachUse(N, [&](Use U) {
        if (G.isData(U) && isLocalSplit(F, U.User))
          Its.Local[F] = U.User;
      });
      if (NodeId Split = Its.Local[F]; Split != NoNode) {
        auto Axis = constScalar(G, G.input(Split, 0).Node);
        if (!Axis || *Axis != static_cast<double>(Its.Axis))
          return error(F, Split,
                       "splits its feed along another axis than the one that "
                       "splits the feed among workers");
        Parts =
            static_cast<unsigned>(G.intAttr(Split, "num_split").value_or(0));
      }
      Its.First.push_back(Its.First.back() + Parts);
    }
    if (Replicas != 0 && Replicas != Its.First.back()) {
      Diags.error(Entry.getKey(), "is split for another number of replicas "
                                  "than another feed");
      return false;
    }
    Replicas = Its.First.back();
    for (unsigned F = 0; F < Files.size(); ++F)
      if (!checkFeedShape(F, Files[F].find(Entry.getKey()), Its))
        return false;
  }
  return true;
}

/// Checks that the feed of a worker has its share of the rows, if the input
/// states the batch size.
bool WorkersJoin::checkFeedShape(unsigned File, NodeId N, const Feed &F) {
  const Graph &G = Files[File].G;
  NodeId I = In.find(G.name(N));
  auto Was = I == NoNode ? std::nullopt : In.shapeAttr(I, "shape");
  auto Is = G.shapeAttr(N, "shape");
  if (Was && !Was->UnknownRank && F.Axis >= 0 &&
      F.Axis < static_cast<int64_t>(Was->Dims.size()) &&
      Was->Dims[F.Axis] > 0) {
    int64_t &Rows = Was->Dims[F.Axis];
    if (Rows % Replicas != 0)
      return error(File, N,
                   "has a batch size that is not a multiple of the number of "
                   "replicas");
    Rows = Rows / Replicas * (F.First[File + 1] - F.First[File]);
  }
  bool Same =
      Was.has_value() == Is.has_value() &&
      (!Was || (Was->UnknownRank == Is->UnknownRank && Was->Dims == Is->Dims));
  // The program may state the rank of a shape whose rank is unknown in the
  // input, but no sizes.
  bool IsRank = Was && Was->UnknownRank && Is && !Is->UnknownRank &&
                all_of(Is->Dims, [](int64_t Size) { return Size < 0; });
  // The input and the file may both lack the attribute.
  return Same || IsRank || (!Is && !Was) ||
         error(File, N, "does not have the shape of the worker's shard");
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

NodeId WorkersJoin::addConst(const Twine &Name, int64_t Value,
                             StringRef Device) {
  AttrRun Attrs;
  Attrs.type("dtype", DT_INT32)
      .raw("value", encodeIntTensor(DT_INT32, {}, Value));
  NodeId N = L->insertNode(Name.str(), op::Const, {}, NoNode, Attrs);
  L->setDevice(N, Device);
  return N;
}

/// Sets on \p N the marker attributes of a node that merges or splits values.
void WorkersJoin::stamp(NodeId N, NodeId Like, unsigned File) {
  const Graph &G = Files[File].G;
  L->setIntAttr(N, StampAttr, Replicas);
  std::string Word = Like != NoNode ? copyWordOn(G, Like) : copyWordOf(G);
  if (Word != UsualCopyWord)
    L->setStringAttr(N, CopyWordAttr, Word);
}

/// Adds a Split to each feed, from which each replica reads its part.
bool WorkersJoin::makeSplits() {
  for (auto &Entry : Feeds) {
    StringRef Name = Entry.getKey();
    Feed &Its = Entry.second;
    NodeId Feed = NodeOf.lookup(Name);
    const std::string &Host = Files.front().Own;
    NodeId Axis = addConst(Name + "/split/split_dim", Its.Axis, Host);
    AttrRun Attrs;
    Attrs.integer("num_split", Replicas).type("T", L->outputType(Feed, 0));
    Its.Split = L->insertNode((Name + "/split").str(), op::Split,
                              {{Axis, 0}, {Feed, 0}}, NoNode, Attrs);
    L->setDevice(Its.Split, Host);
    stamp(Its.Split, NoNode, 0);
  }
  return true;
}

/// Adds the nodes of all files to the graph for all workers, one node for each
/// name. Leaves out a worker's own split of a feed.
bool WorkersJoin::makeNodes() {
  for (unsigned F = 0; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    for (NodeId N = 0; N < File.G.size(); ++N) {
      if (!File.G.isLive(N) ||
          !(File.is(N, Role::Payload) || File.is(N, Role::Branch)) ||
          isLocalSplit(F, N))
        continue;
      StringRef Name = File.originName(N);
      ++Counts[Name];
      if (NodeOf.contains(Name))
        continue;
      NodeId To = L->addNode(Name, File.G.opName(N), {}, NoNode);
      NodeOf[Name] = To;
      L->setDevice(To, File.G.device(N).str());
      for (const AttrEntry &A : File.G.attrs(N))
        if (!isOfWorker(A.Key))
          L->setAttr(To, A.Key, A.Value);
      if (File.is(N, Role::Branch))
        Branches.push_back(To);
      if (isPart(File.G, N, part::Outside)) {
        L->setOp(To, op::ReadVariableOp);
        L->removeAttr(To, "T");
        L->setTypeAttr(To, "dtype", File.G.typeAttr(N, "T").value_or(0));
      }
      if (isFeed(F, N)) {
        NodeId I = In.find(Name);
        auto Shape = I == NoNode ? std::nullopt : In.attr(I, "shape");
        if (Shape && !In.shapeAttr(I, "shape")->UnknownRank)
          L->setAttr(To, "shape", *Shape);
      }
      if (isRows(F, N)) {
        L->setOp(To, op::ConcatV2);
        L->setIntAttr(To, "N", Replicas);
        L->setTypeAttr(To, "Tidx", DT_INT32);
      }
    }
  }
  return true;
}

/// Returns true if \p N of a file is on the device of \p With, a node of the
/// graph for all. If \p N is stateless, it may be on the task of its worker,
/// and \p With on the same device of the chief's task.
bool WorkersJoin::sameDevice(unsigned File, NodeId N, NodeId With) const {
  const Graph &G = Files[File].G;
  if (G.device(N) == L->device(With))
    return true;
  const OpDef *Def = G.opDef(N);
  auto Is = DeviceName::parse(G.device(N)),
       Was = DeviceName::parse(L->device(With)),
       Own = DeviceName::parse(Files[File].Own),
       Chief = DeviceName::parse(Files.front().Own);
  auto IsState = [&](Endpoint E) {
    return G.isRefOutput(E.Node, E.Port) || G.outputType(E) == DT_RESOURCE;
  };
  if (!Is || !Was || !Own || !Chief || any_of(G.dataInputs(N), IsState) ||
      !Def || (Def->isStateful() && !G.opName(N).starts_with(op::Placeholder)))
    return false;
  return Is->Job == Own->Job && Is->Task == Own->Task &&
         Was->Job == Chief->Job && Was->Task == Chief->Task &&
         Is->Type == Was->Type && Is->Index == Was->Index;
}

/// Checks that \p N of a file is the node \p With of the graph for all, except
/// for its inputs.
bool WorkersJoin::compare(unsigned File, NodeId N, NodeId With) {
  const Graph &G = Files[File].G;
  bool Rows = isRows(File, N), Outside = isPart(G, N, part::Outside);
  if (!Rows && !Outside && G.opName(N) != L->opName(With))
    return error(File, N, "is another op than in another file");
  if (!Rows && !sameDevice(File, N, With))
    return error(File, N,
                 "is on another device than in another file: " +
                     L->device(With));
  bool Again = Files[File].is(N, Role::Own);
  auto IsOpen = [&](StringRef Key) {
    return isOfWorker(Key) || Key == "_class" || Key == "_output_shapes" ||
           (Again && Key == "frame_name") ||
           (isFeed(File, N) && Key == "shape");
  };
  if (Rows || Outside)
    return true;
  for (const AttrEntry &A : G.attrs(N))
    if (!IsOpen(A.Key) && L->attr(With, A.Key) != A.Value)
      return error(File, N,
                   "attribute '" + A.Key + "' is not that of another file");
  for (const AttrEntry &A : L->attrs(With))
    if (!IsOpen(A.Key) && !G.hasAttr(N, A.Key))
      return error(File, N, "attribute '" + A.Key + "' is not in this file");
  if (Again && G.hasAttr(N, "frame_name") &&
      G.stringAttr(N, "frame_name") ==
          StringRef(L->stringAttr(With, "frame_name").value_or("")))
    return error(File, N, "enters the same frame as the node that it repeats");
  return true;
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

/// Finds the endpoint in the graph for all that corresponds to \p E, an input
/// of \p User in a file.
bool WorkersJoin::source(unsigned File, NodeId User, Endpoint E,
                         Endpoint &Result, unsigned Depth) {
  const WorkerFile &F = Files[File];
  if (Depth > 64)
    return error(File, User, "reads a value that nodes pass on in a cycle");
  auto Next = [&](unsigned Of, NodeId N, unsigned I) {
    if (I >= Files[Of].G.node(N).NumData)
      return error(Of, N, "lacks an input");
    return source(Of, N, Files[Of].G.input(N, I), Result, Depth + 1);
  };
  switch (F.Roles[E.Node]) {
  case Role::Payload:
    if (isLocalSplit(File, E.Node) || isFeed(File, E.Node)) {
      NodeId Rows = isFeed(File, E.Node) ? E.Node : F.G.input(E.Node, 1).Node;
      const Feed &Its = Feeds.find(F.G.name(Rows))->second;
      // If the worker splits its rows, nodes read the outputs of this split.
      if (Rows == E.Node && Its.Local[File] != NoNode)
        return error(File, User,
                     "reads the feed of a worker before the split among its "
                     "replicas");
      Result = {Its.Split, Its.First[File] + E.Port};
      return true;
    }
    Result = {NodeOf.lookup(F.originName(E.Node)), E.Port};
    return true;
  case Role::Own: {
    auto It = NodeOf.find(F.originName(E.Node));
    if (It == NodeOf.end())
      return error(File, E.Node, "repeats a node that is in no file");
    Result = {It->second, E.Port};
    return true;
  }
  case Role::Branch:
    Result = {NodeOf.lookup(F.originName(E.Node)), E.Port};
    return true;
  case Role::Taken:
  case Role::Given:
    if (!F.G.isOp(E.Node, op::Identity))
      return error(File, E.Node,
                   "is marked as a copy of a read or of rows but is not an "
                   "Identity");
    return Next(File, E.Node, 0);
  case Role::Whole: {
    if (!whole(File, E.Node))
      return false;
    Endpoint Part;
    if (!source(File, E.Node, F.G.input(E.Node, 0), Part, Depth + 1))
      return false;
    Result = L->input(Part.Node, 1);
    return true;
  }
  case Role::Get: {
    auto It = find_if(F.Gets, [&](const auto &M) { return M.Node == E.Node; });
    unsigned From = 0;
    NodeId Put = sender(*It, From).Node;
    return Next(From, Put, E.Port + 2);
  }
  default:
    return error(File, User,
                 "reads '" + F.G.name(E.Node) +
                     "', which has no value of the step");
  }
}

/// Checks that \p N concatenates the shards of a feed of all replicas, in
/// order.
bool WorkersJoin::whole(unsigned File, NodeId N) {
  const Graph &G = Files[File].G;
  auto Fails = [&] {
    return error(File, N, "does not concatenate the shards of a feed in order");
  };
  if (!G.isOp(N, op::ConcatV2) || G.node(N).NumData != Replicas + 1)
    return Fails();
  NodeId Split = NoNode;
  for (unsigned R = 0; R < Replicas; ++R) {
    Endpoint Part;
    if (!source(File, N, G.input(N, R), Part))
      return false;
    if (R == 0)
      Split = Part.Node;
    if (Part.Node != Split || Part.Port != R || !L->isOp(Split, op::Split))
      return Fails();
  }
  auto Its =
      find_if(Feeds, [&](const auto &F) { return F.second.Split == Split; });
  auto Axis = constScalar(G, G.input(N, Replicas).Node);
  return (Its != Feeds.end() && Axis &&
          *Axis == static_cast<double>(Its->second.Axis)) ||
         Fails();
}

/// Adds the control input that corresponds to \p N, a control input of \p User
/// in a file. Leaves out control inputs that only order messages and writes.
bool WorkersJoin::control(unsigned File, NodeId User, NodeId N,
                          std::vector<Endpoint> &Result) {
  auto [Of, To] = waitsFor(File, N);
  const WorkerFile &F = Files[Of];
  switch (F.Roles[To]) {
  case Role::Payload:
    if (isLocalSplit(Of, To)) {
      Result.push_back(
          {Feeds.find(F.G.name(F.G.input(To, 1).Node))->second.Split,
           ControlPort});
      return true;
    }
    [[fallthrough]];
  case Role::Own:
  case Role::Branch: {
    auto It = NodeOf.find(F.originName(To));
    if (It == NodeOf.end())
      return error(Of, To, "repeats a node that is in no file");
    Result.push_back({It->second, ControlPort});
    return true;
  }
  case Role::AllGiven:
  case Role::Reads:
    return true;
  default:
    // Ignore the number of the run, and messages that fetched rows wait for.
    if (F.isNumber(To) || isRows(File, User))
      return true;
    return error(File, User,
                 "waits for '" + F.G.name(To) +
                     "', which is no node of the step");
  }
}

/// Finds the handle that a read in a loop had before the read was moved out of
/// the loop.
bool WorkersJoin::outside(unsigned File, NodeId N,
                          std::vector<Endpoint> &Result) {
  const WorkerFile &F = Files[File];
  const Graph &G = F.G;
  auto Fails = [&] {
    return error(File, N,
                 "does not have the value of a variable that is read before "
                 "the loop");
  };
  auto Was = G.findEndpoint(G.stringAttr(N, InputAttr).value_or(""));
  if (!G.isOp(N, op::Identity) || !Was || Was->isControl() ||
      G.node(N).NumData != 1)
    return Fails();
  // Value and handle enter the loop by the same frames.
  Endpoint Value = G.input(N, 0), Handle = *Was;
  while (F.is(Value.Node, Role::Outside) && G.isOp(Value.Node, op::Enter)) {
    Handle = through(G, Handle, op::Identity);
    if (!G.isOp(Handle.Node, op::Enter) ||
        G.stringAttr(Handle.Node, "frame_name") !=
            G.stringAttr(Value.Node, "frame_name") ||
        G.boolAttr(Handle.Node, "is_constant") != true ||
        G.boolAttr(Value.Node, "is_constant") != true)
      return Fails();
    Handle = G.input(Handle.Node, 0);
    Value = G.input(Value.Node, 0);
  }
  if (!F.is(Value.Node, Role::Outside) ||
      !G.isOp(Value.Node, op::ReadVariableOp) ||
      G.input(Value.Node, 0) != Handle)
    return Fails();
  // The read outside would miss writes by the loop itself.
  NodeId Var = F.Vars.variableOf(Handle);
  if (Var == NoNode)
    return Fails();
  bool Written = false;
  F.Vars.forEachUse(G, Var, [&](Use U) {
    Written |= F.Vars.isUpdate(G, U.User) && G.input(U).Node != Handle.Node &&
               !isVariableOp(G.opName(G.input(U).Node));
  });
  if (Written)
    return error(File, N, "reads a variable before a loop that writes it");
  Endpoint To;
  if (!source(File, N, *Was, To))
    return false;
  Result.push_back(To);
  return true;
}

/// Finds the inputs of \p N of a file, as endpoints of the graph for all.
bool WorkersJoin::inputs(unsigned File, NodeId N,
                         std::vector<Endpoint> &Result) {
  const Graph &G = Files[File].G;
  if (isPart(G, N, part::Outside)) {
    if (!outside(File, N, Result))
      return false;
  } else {
    for (Endpoint E : G.dataInputs(N)) {
      Endpoint To;
      if (!source(File, N, E, To))
        return false;
      Result.push_back(To);
    }
  }
  return all_of(G.controlInputs(N),
                [&](Endpoint E) { return control(File, N, E.Node, Result); });
}

/// Makes \p Name, which is fetched, concatenate the rows of all workers.
bool WorkersJoin::rows(StringRef Name) {
  NodeId To = NodeOf.lookup(Name);
  std::vector<Endpoint> Inputs, Controls;
  std::optional<int64_t> Axis;
  unsigned Model = 0;
  for (unsigned F = 0; F < Files.size(); ++F) {
    const Graph &G = Files[F].G;
    NodeId N = Files[F].find(Name);
    bool Joins = G.isOp(N, op::ConcatV2);
    if (!isRows(F, N) || !(Joins || G.isOp(N, op::Identity)) ||
        (Axis && G.intAttr(N, RowsAxisAttr) != Axis))
      return error(F, N,
                   "does not return rows along the same axis as in other "
                   "files");
    Axis = G.intAttr(N, RowsAxisAttr).value_or(-1);
    if (Joins) {
      auto Its = constScalar(G, G.dataInputs(N).back().Node);
      if (!Its || *Its != static_cast<double>(*Axis))
        return error(
            F, N, "concatenates rows along another axis than the batch axis");
    }
    for (Endpoint E : Joins ? G.dataInputs(N).drop_back() : G.dataInputs(N)) {
      Endpoint Part;
      if (!source(F, N, E, Part))
        return false;
      Inputs.push_back(Part);
    }
    for (Endpoint E : G.controlInputs(N))
      if (!control(F, N, E.Node, Controls))
        return false;
    Model = F;
  }
  if (!Controls.empty())
    return error(0, Files.front().find(Name),
                 "has a control dependency on a node of the step");
  Inputs.push_back({addConst(Name + "/axis", *Axis, L->device(To)), 0});
  L->setInputs(To, Inputs);
  stamp(To, Files[Model].find(Name), Model);
  return true;
}

/// Finds the copies of each node in the graph for all.
void WorkersJoin::findGroups() {
  for (NodeId N = 0; N < L->size(); ++N)
    if (CopyName Name = copyNameIn(In, Word, L->name(N)); Name.Replica >= 0)
      Groups[Name.Base].push_back({Name.Replica, N});
  for (auto &Entry : Groups) {
    if (NodeId N = L->find(Entry.getKey());
        N != NoNode &&
        none_of(Entry.second, [](const auto &C) { return C.first == 0; }))
      Entry.second.push_back({0, N});
    llvm::sort(Entry.second);
    for (auto [Replica, N] : Entry.second)
      GroupOf[N] = &Entry.second;
  }
}

/// Adds \p Its, the control inputs of \p To in another file, to \p Inputs,
/// which begin with \p Data data inputs. Keeps copies in the order of replicas.
void WorkersJoin::addWaits(NodeId To, unsigned Data,
                           std::vector<Endpoint> &Inputs,
                           ArrayRef<Endpoint> Its) {
  std::vector<Endpoint> Was(Inputs.begin() + Data, Inputs.end());
  if (ArrayRef(Was) == Its)
    return;
  for (Endpoint E : Was)
    if (!is_contained(Its, E))
      OpenWaits.push_back({To, E.Node});
  for (Endpoint E : Its) {
    if (is_contained(Was, E))
      continue;
    OpenWaits.push_back({To, E.Node});
    const Group *Of = GroupOf.lookup(E.Node);
    auto At = Inputs.end();
    for (auto I = Inputs.begin() + Data; Of && I != Inputs.end(); ++I)
      if (GroupOf.lookup(I->Node) == Of &&
          find_if(*Of, [&](auto &C) { return C.second == I->Node; }) <
              find_if(*Of, [&](auto &C) { return C.second == E.Node; }))
        At = std::next(I);
    Inputs.insert(At, E);
  }
}

/// Checks control dependencies that some files lack. Each must be on a node
/// that always runs and has no effect, so the dependency changes no result.
/// Makes unreplicated nodes wait for all copies.
bool WorkersJoin::completeWaits() {
  VariableIndex Vars(*L);
  std::vector<NodeId> Order = topologicalOrder(*L);
  Conditions When(*L, Order);
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(*L, Order);
  std::vector<bool> HasEffect(L->size());
  for (NodeId N : Order)
    HasEffect[N] =
        Vars.isUpdate(*L, N) ||
        (isNeed(L->opName(N), L->opDef(N)) &&
         !L->opName(N).starts_with(op::Placeholder)) ||
        any_of(L->inputs(N), [&](Endpoint E) { return HasEffect[E.Node]; });
  auto IsOpen = [&](NodeId N) {
    return !HasEffect[N] && !When.isMany(N) &&
           When.choices({N, ControlPort}).empty() &&
           !(Loops && Loops->isInLoop(N));
  };
  bool Good = true;
  for (auto [N, For] : OpenWaits)
    if (!IsOpen(For)) {
      Diags.error(L->name(N), ("waits for '" + L->name(For) +
                               "' in the files of some workers only")
                                  .str());
      Good = false;
    }
  for (NodeId N : Order) {
    if (GroupOf.count(N) || none_of(L->controlInputs(N), [&](Endpoint E) {
          return GroupOf.count(E.Node);
        }))
      continue;
    SmallVector<Endpoint, 8> Inputs(L->dataInputs(N));
    for (Endpoint E : L->controlInputs(N)) {
      const Group *Of = GroupOf.lookup(E.Node);
      if (Of && all_of(*Of, [&](auto &C) { return IsOpen(C.second); })) {
        for (auto [Replica, Copy] : *Of)
          if (!is_contained(Inputs, Endpoint{Copy, ControlPort}))
            Inputs.push_back({Copy, ControlPort});
      } else if (!is_contained(Inputs, E)) {
        Inputs.push_back(E);
      }
    }
    if (ArrayRef(Inputs) != L->inputs(N))
      L->setInputs(N, Inputs);
  }
  return Good;
}

bool WorkersJoin::connect() {
  findGroups();
  std::vector<std::optional<std::vector<Endpoint>>> Inputs(L->size());
  bool Good = true;
  for (unsigned F = 0; F < Files.size(); ++F) {
    const WorkerFile &File = Files[F];
    for (NodeId N = 0; N < File.G.size(); ++N) {
      bool IsNode = File.is(N, Role::Payload) || File.is(N, Role::Branch) ||
                    File.is(N, Role::Own);
      if (!File.G.isLive(N) || !IsNode || isLocalSplit(F, N) || isRows(F, N))
        continue;
      auto It = NodeOf.find(File.originName(N));
      if (It == NodeOf.end())
        return error(F, N, "repeats a node that is in no file");
      NodeId To = It->second;
      std::vector<Endpoint> Its;
      if (!compare(F, N, To) || !inputs(F, N, Its)) {
        Good = false;
        continue;
      }
      unsigned Data =
          isPart(File.G, N, part::Outside) ? 1 : File.G.node(N).NumData;
      if (!Inputs[To]) {
        Inputs[To] = std::move(Its);
        continue;
      }
      ArrayRef<Endpoint> Was(*Inputs[To]), Is(Its);
      if (Was.size() < Data || Was.take_front(Data) != Is.take_front(Data))
        Good = error(F, N, "has other inputs than in another file");
      else
        addWaits(To, Data, *Inputs[To], Is.drop_front(Data));
    }
  }
  if (!Good)
    return false;
  for (NodeId N = 0; N < Inputs.size(); ++N)
    if (Inputs[N])
      L->setInputs(N, *Inputs[N]);
  for (const auto &Entry : Counts) {
    NodeId N = Files.front().find(Entry.getKey());
    if (N != NoNode && isRows(0, N) && !rows(Entry.getKey()))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Returns true if the message of \p Get in the file is sent after \p N of the
/// graph for all has run.
bool WorkersJoin::tellsEnd(unsigned File, NodeId Get, NodeId N) {
  auto It =
      find_if(Files[File].Gets, [&](const auto &M) { return M.Node == Get; });
  unsigned From = 0;
  NodeId Put = sender(*It, From).Node;
  return any_of(Files[From].waitsOfPut(Put), [&](NodeId Its) {
    std::vector<Endpoint> To;
    return control(From, Put, Its, To) && !To.empty() &&
           behindBranch(To.front()).Node == N;
  });
}

/// Checks that a run of \p N runs the input node whose name \p N has. If that
/// node is on another worker, \p N returns its value, or zeros if the branch of
/// that node is not taken.
bool WorkersJoin::checkName(unsigned File, NodeId N) {
  const WorkerFile &F = Files[File];
  const Graph &G = F.G;
  auto It = NodeOf.find(G.name(N));
  if (It == NodeOf.end())
    return error(File, N, "has the name of a node that is in no file");
  if (G.hasUses(N))
    return error(File, N, "is read by another node");
  unsigned Outputs = L->numOutputs(It->second).value_or(0);
  StringRef Op = Outputs == 0   ? op::NoOp
                 : Outputs == 1 ? op::Identity
                                : op::IdentityN;
  if (G.opName(N) != Op || G.node(N).NumData != Outputs)
    return error(File, N,
                 "does not return the outputs of the node of its name");
  for (unsigned Port = 0; Port < Outputs; ++Port) {
    Endpoint E;
    if (!source(File, N, G.input(N, Port), E))
      return false;
    if (behindBranch(E) != Endpoint{It->second, Port})
      return error(File, N,
                   "does not return the outputs of the node of its name");
  }
  bool Runs = File != 0 || Outputs != 0;
  for (Endpoint E : G.controlInputs(N)) {
    if (F.is(E.Node, Role::Put) || F.is(E.Node, Role::Get) ||
        F.is(E.Node, Role::Wire))
      continue;
    if (!F.is(E.Node, Role::Payload) || F.originName(E.Node) != G.name(N))
      return error(File, N, "also runs '" + G.name(E.Node) + "'");
    Runs = true;
  }
  // The node has no outputs: a message tells other workers that it has run.
  if (Outputs == 0 && File != 0)
    Runs = any_of(F.waitsOf(N), [&](NodeId Its) {
      return F.is(Its, Role::Get) && tellsEnd(File, Its, It->second);
    });
  return Runs || error(File, N, "does not run the node of its name");
}

bool WorkersJoin::checkNames() {
  bool Good = true;
  for (unsigned F = 0; F < Files.size(); ++F)
    for (NodeId N : Files[F].Names) {
      Good &= checkName(F, N);
      for (unsigned Other = 0; Other < Files.size(); ++Other)
        if (NodeId Its = Files[Other].G.find(Files[F].G.name(N));
            Its == NoNode || !Files[Other].is(Its, Role::Name))
          Good = error(F, N, "cannot be run by worker " + Twine(Other));
    }
  return Good;
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

/// Returns the value that enters a conditional through \p E, an inserted node.
Endpoint WorkersJoin::behindBranch(Endpoint E) const {
  auto IsBranch = [&](NodeId N) { return binary_search(Branches, N); };
  bool IsControl = E.isControl();
  for (unsigned Steps = 0; Steps < 256 && IsBranch(E.Node); ++Steps) {
    StringRef Op = L->opName(E.Node);
    if (L->node(E.Node).NumData != 0 &&
        (Op == op::Switch || Op == op::Merge || Op == op::Identity)) {
      E = L->input(E.Node, 0);
    } else if (Op == op::Const && L->controlInputs(E.Node).size() == 1) {
      E = L->controlInputs(E.Node)[0];
    } else {
      break;
    }
  }
  if (IsControl)
    E.Port = ControlPort;
  return E;
}

/// Returns true if \p E passes on \p To: a Merge takes the value out of each
/// conditional around \p To, from the inside out, and a Switch takes it back
/// in:
///
///     a = Merge(to, Zero ^(not p))           a is live on both sides
///     e = Switch(a, p):1                     e is live only if p holds
bool WorkersJoin::passesBranch(Conditions &When, Endpoint E, Endpoint To) {
  auto IsBranch = [&](NodeId N) { return binary_search(Branches, N); };
  // A choice: the node and port of a predicate, and the output of a Switch on
  // it. Output 1 is live if the predicate is true, output 0 if it is false.
  using ChoiceOf = std::tuple<NodeId, uint32_t, unsigned>;
  auto Choice = [&](Endpoint Tensor, unsigned Side) -> ChoiceOf {
    Endpoint Source = When.source(behindBranch(Tensor));
    return {Source.Node, Source.Port, Side};
  };
  auto Opposite = [](ChoiceOf C) {
    std::get<2>(C) ^= 1;
    return C;
  };
  // Returns true if N runs when the choices Is and all of Outer are made.
  std::function<bool(NodeId, ChoiceOf, ArrayRef<ChoiceOf>)> Runs =
      [&](NodeId N, ChoiceOf Is, ArrayRef<ChoiceOf> Outer) {
        if (!IsBranch(N) || !L->isOp(N, op::Identity) ||
            L->node(N).NumData != 1)
          return false;
        Endpoint From = L->input(N, 0);
        if (!IsBranch(From.Node) || !L->isOp(From.Node, op::Switch) ||
            Choice(L->input(From.Node, 1), From.Port) != Is ||
            L->input(From.Node, 0) != L->input(From.Node, 1))
          return false;
        ArrayRef<Endpoint> Waits = L->controlInputs(N);
        return Outer.empty()
                   ? Waits.empty()
                   : Waits.size() == 1 &&
                         Runs(Waits[0].Node, Outer[0], Outer.drop_front());
      };
  SmallVector<ChoiceOf, 4> Enters; // From the inside out.
  if (IsBranch(E.Node) && L->isOp(E.Node, op::Identity))
    E = L->input(E.Node, 0); // The Identity of a control edge.
  for (; IsBranch(E.Node) && L->isOp(E.Node, op::Switch);
       E = L->input(E.Node, 0))
    Enters.push_back(Choice(L->input(E.Node, 1), E.Port));
  SmallVector<NodeId, 4> Leaves; // From the outside in.
  for (; IsBranch(E.Node) && L->isOp(E.Node, op::Merge);
       E = L->input(E.Node, 0))
    Leaves.push_back(E.Node);
  if (IsBranch(E.Node) && !L->isOp(E.Node, op::Const))
    return false;
  std::set<ChoiceOf> Under, Entered(Enters.begin(), Enters.end());
  for (uint32_t C : When.choices(To))
    if (!When.tensors(C / 2).empty())
      Under.insert(Choice(When.tensors(C / 2).front(), C % 2));
  if (When.isMany(To.Node) || Leaves.size() != Enters.size() ||
      Under != Entered)
    return false;
  // A zero must run when its conditional takes the other side and the outer
  // conditionals take the side of the value.
  for (auto [I, Merge] : enumerate(reverse(Leaves))) {
    NodeId Zero = L->input(Merge, 1).Node;
    ArrayRef<ChoiceOf> Outer = ArrayRef(Enters).drop_front(I + 1);
    if (L->node(Merge).NumData != 2 || !IsBranch(Zero) ||
        !L->isOp(Zero, op::Const) || L->controlInputs(Zero).size() != 1 ||
        !Runs(L->controlInputs(Zero)[0].Node, Opposite(Enters[I]), Outer))
      return false;
  }
  return true;
}

/// Replaces values that left a branch and entered it again by the originals.
bool WorkersJoin::eraseBranches() {
  if (Branches.empty())
    return true;
  auto IsBranch = [&](NodeId N) { return binary_search(Branches, N); };
  std::vector<std::pair<Endpoint, Endpoint>> Erased;
  for (NodeId N = 0; N < L->size(); ++N) {
    for (unsigned I = 0; !IsBranch(N) && I < L->node(N).NumInputs; ++I) {
      Endpoint E = L->input(N, I);
      if (!IsBranch(E.Node))
        continue;
      Erased.push_back({E, behindBranch(E)});
      L->setInput(N, I, Erased.back().second);
    }
  }
  // Assume that the copies of a predicate are equal. If they are not, the types
  // prove no node that depends on them.
  DenseMap<NodeId, NodeId> FirstCopy;
  for (auto [N, Of] : GroupOf)
    FirstCopy[N] = Of->front().second;
  Conditions When(*L, topologicalOrder(*L), std::move(FirstCopy));
  bool Good = true;
  for (auto [E, To] : Erased)
    if (IsBranch(To.Node) || !passesBranch(When, E, To)) {
      Diags.error(L->name(E.Node),
                  ("does not have the value of '" + L->name(To.Node) +
                   "' in the branch of that node")
                      .str());
      Good = false;
    }
  for (NodeId N : Branches)
    L->setInputs(N, {});
  for (NodeId N : Branches)
    L->remove(N);
  return Good;
}

std::unique_ptr<Graph> WorkersJoin::run() {
  if (!matchMessages() || !findFeeds() || !makeNodes() || !makeSplits() ||
      !connect())
    return nullptr;
  llvm::sort(Branches);
  if (!checkNames() || !completeWaits() || !eraseBranches())
    return nullptr;
  return Branches.empty() ? std::move(L) : compact(*L);
}

} // namespace graft
