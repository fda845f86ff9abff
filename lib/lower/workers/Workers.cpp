//===- lib/lower/workers/Workers.cpp - between-graph replication *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Nodes of the program, and their form in the graph of worker I:
//
//     x/split = _ToReplicas(x)           the worker is fed its rows as x
//     s = _ToReplicas(c), of others      Split(c), output I
//     m = _FromReplicas(r) pick          m = Identity(r), or r itself
//     m = _FromReplicas(r) concat        m = Identity(r): its own rows
//     k = _Scale(m) power=-1             k = Mul(m, 1/N)
//     y = MatMul*(x, w)                  y = MatMul(x, w)
//
// A node with a local value is `replica_I/<name>`, as it would be in one graph
// for all replicas; variables and all nodes with a global value have the names
// of the input.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Workers.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Variables.h"
#include "lib/lower/expand/Contexts.h"
#include "lib/lower/expand/Expand.h"
#include "lib/lower/expand/Render.h"
#include "lib/lower/expand/ScaleFactor.h"
#include "lib/lower/workers/Cut.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

/// The collective group of broadcasts. Its members are on the hosts.
constexpr int64_t BroadcastGroup = 2;
/// The collective group of merges, which insert-collectives does not write.
constexpr int64_t MergeGroup = 3;

class WorkerSplitter {
public:
  WorkerSplitter(Module &M, unsigned Worker, DiagnosticEngine &Diags)
      : M(M), G(M.graph()), Diags(Diags), Devices(readMesh(G)), Worker(Worker),
        Count(Devices.replicas()) {}
  bool run();

private:
  bool checkProgram();
  void rememberClasses();
  void placeNodes();
  void broadcast(const WorkerBroadcast &B, int64_t Key);
  void leaveToChief(NodeId N);
  NodeId add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
             NodeId Like, const AttrRun &Attrs);
  Endpoint constant(NodeId N, StringRef Suffix, StringRef Value, unsigned Type);
  void elide(NodeId N);
  void remarkOpen(NodeId Feed, int64_t Axis);
  bool split(NodeId N);
  void merge(NodeId N);
  void mergeTruths();
  void mergeTruth(NodeId N);
  void scale(NodeId N);
  void placeWithVariables();
  void rename();
  void writeClasses();
  void clear();
  void mark(NodeId N) { Marked.push_back(N); }
  void writeMarks();
  std::string deviceOf(StringRef Device, bool IsOwn) const;

  Module &M;
  Graph &G;
  DiagnosticEngine &Diags;
  Mesh Devices;
  unsigned Worker, Count;
  std::string Host;
  int64_t MergeKey = 1;
  /// Nodes with a `_class`, and the nodes that it names.
  std::vector<std::pair<NodeId, SmallVector<NodeId, 2>>> Classes;
  std::vector<NodeId> Marked; ///< Nodes whose values differ by worker.
  /// The axis of the rows of feeds, and of fetches.
  std::vector<std::pair<NodeId, int64_t>> Rows;
};

bool WorkerSplitter::checkProgram() {
  if (Worker >= Count) {
    Diags.error(
        "",
        formatv("there is no worker {0}: the {1} workers are counted from 0",
                Worker, Count));
    return false;
  }
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    if (G.isOp(N, ReduceOp) || G.isOp(N, GatherOp)) {
      Diags.error(G.name(N),
                  "is a reduction that is not lowered; run "
                  "insert-collectives{reduction=workers} before split-workers");
      return false;
    }
    StringRef Combine =
        G.isOp(N, FromReplicasOp) && Count > 1
            ? G.stringAttr(N, CombineAttr).value_or(combine::Pick)
            : StringRef(combine::Pick);
    bool Read = Combine != combine::Pick && G.anyUse(N, [&](Use U) {
      return G.isData(U) && !G.isOp(U.User, ToReplicasOp);
    });
    if (Read || Combine == combine::Sum || Combine == combine::Min ||
        Combine == combine::Max) {
      Diags.error(G.name(N),
                  "combines values of other workers; run "
                  "insert-collectives{reduction=workers} before split-workers");
      return false;
    }
  }
  return true;
}

/// Records the nodes that `_class` names, before nodes are renamed.
void WorkerSplitter::rememberClasses() {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !(G.node(N).Flags & NF_MayHaveClass))
      continue;
    auto List = G.stringListAttr(N, "_class");
    if (!List)
      continue;
    Classes.emplace_back().first = N;
    for (StringRef Name : *List)
      Classes.back().second.push_back(Name.consume_front("loc:@") ? G.find(Name)
                                                                  : NoNode);
  }
}

/// Returns the device on this worker for a node on \p Device: the device of the
/// replica if \p IsOwn. Otherwise the device keeps its type, and is the CPU if
/// \p Device states no type.
std::string WorkerSplitter::deviceOf(StringRef Device, bool IsOwn) const {
  StringRef Mine = Devices.Devices[Worker];
  if (IsOwn)
    return mergeDevices(Device, Mine);
  auto D = DeviceName::parse(Device), Task = DeviceName::parse(Mine);
  if (!D || !Task)
    return Host;
  D->Job = Task->Job;
  D->Replica = Task->Replica;
  D->Task = Task->Task;
  if (D->Type.empty())
    D->Type = "CPU";
  if (!D->Index)
    D->Index = 0;
  return D->str();
}

void WorkerSplitter::placeNodes() {
  uint32_t Known = G.numDevices();
  std::vector<std::string> Own(Known), Once(Known);
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.isDead())
      continue;
    bool IsOwn =
        This.Count == Copies::PerReplica && !(This.Flags & NF_FixedDevice);
    std::string &Name = (IsOwn ? Own : Once)[This.Device];
    if (Name.empty())
      Name = deviceOf(G.device(N), IsOwn);
    G.setDevice(N, Name);
  }
}

//===----------------------------------------------------------------------===//
// Work of worker 0 for all
//===----------------------------------------------------------------------===//

NodeId WorkerSplitter::add(const Twine &Name, StringRef Op,
                           ArrayRef<Endpoint> Inputs, NodeId Like,
                           const AttrRun &Attrs) {
  NodeId N = G.insertNode(Name.str(), Op, Inputs, Like, Attrs);
  G.setDevice(N, G.device(Like).str());
  return N;
}

/// Makes worker 0 compute and send a value, and the other workers receive it.
/// Only the readers make a run wait for the broadcast, so all workers must run
/// the readers.
void WorkerSplitter::broadcast(const WorkerBroadcast &B, int64_t Key) {
  NodeId Source = B.Value.Node;
  unsigned Type = G.outputType(Source, B.Value.Port);
  AttrRun Attrs;
  Attrs.type("T", Type)
      .integer("group_size", Count)
      .integer("group_key", BroadcastGroup)
      .integer("instance_key", Key)
      .raw("shape", encodeShapeAttr(B.Shape));
  std::string Name = G.name(Source).str() + "/broadcast";
  if (B.Value.Port != 0)
    Name += "_" + std::to_string(B.Value.Port);
  NodeId Result;
  if (Worker == 0) {
    NodeId Send = G.insertNode(Name + "/send", op::CollectiveBcastSend, B.Value,
                               Source, Attrs);
    G.setDevice(Send, Host);
    Result =
        G.insertNode(Name, op::Identity, {B.Value, Endpoint{Send, ControlPort}},
                     Send, AttrRun().type("T", Type));
  } else {
    Result = G.insertNode(Name, op::CollectiveBcastRecv, {}, Source, Attrs);
  }
  G.setDevice(Result, Host);
  mark(Result);
  for (Use U : B.Uses)
    G.setInput(U.User, U.Index, {Result, 0});
}

/// Returns true if \p Op has an effect outside of the graph that must happen
/// once: it prints, writes a file or an event, or runs Python.
static bool isEffect(StringRef Op, const OpDef *Def) {
  if (Op == op::Print || Op == op::PrintV2 || Op == op::PyFunc ||
      Op == op::EagerPyFunc || Op == op::WriteFile || Op == op::SaveV2 ||
      Op == op::Save || Op == op::SaveSlices || Op == op::MergeV2Checkpoints)
    return true;
  // Summary writers.
  return Def && any_of(Def->inputs(), [](const ArgDef &A) {
           return A.Type == DT_RESOURCE && StringRef(A.Name) == "writer";
         });
}

/// Leaves an effect to worker 0. On other workers the node becomes a NoOp that
/// waits for the inputs, so that a run of it takes part in the same
/// collectives.
void WorkerSplitter::leaveToChief(NodeId N) {
  bool Passes = G.isOp(N, op::Print);
  bool Read = G.anyUse(N, [&](Use U) { return G.isData(U); });
  if (Read && !Passes) {
    Diags.unproved("worker", originName(G, N),
                   ("op " + G.opName(N) +
                    " runs once in the input graph but here on each worker, "
                    "since a node uses its result")
                       .str());
    return;
  }
  if (Worker == 0)
    return;
  unsigned Type = Passes ? G.outputType(N, 0) : unsigned(DT_INVALID);
  SmallVector<Endpoint, 8> Inputs;
  for (Endpoint E : G.inputs(N)) {
    if (Passes && Inputs.empty()) {
      Inputs.push_back(E);
      continue;
    }
    Endpoint Control{E.Node, ControlPort};
    if (!is_contained(Inputs, Control))
      Inputs.push_back(Control);
  }
  for (const AttrEntry &A : G.attrs(N))
    if (!A.Key.starts_with("_") || A.Key == "_output_shapes")
      G.removeAttr(N, A.Key);
  G.setOp(N, Passes ? op::Identity : op::NoOp);
  G.setInputs(N, Inputs);
  if (Passes)
    G.setTypeAttr(N, "T", Type);
}

//===----------------------------------------------------------------------===//
// The program's own ops
//===----------------------------------------------------------------------===//

Endpoint WorkerSplitter::constant(NodeId N, StringRef Suffix, StringRef Value,
                                  unsigned Type) {
  return {add(G.name(N) + Suffix, op::Const, {}, N,
              AttrRun().type("dtype", Type).raw("value", Value)),
          0};
}

/// Makes users of \p N read its input.
void WorkerSplitter::elide(NodeId N) {
  Endpoint Source = G.input(N, 0);
  for (const Use &U : G.uses(N)) {
    bool Control = !G.isData(U);
    G.setInput(U.User, U.Index,
               Control ? Endpoint{Source.Node, ControlPort} : Source);
  }
  G.remove(N);
}

/// Remarks that \p Feed may hold any number of rows along \p Axis.
void WorkerSplitter::remarkOpen(NodeId Feed, int64_t Axis) {
  if (Count == 1 || !Diags.wantsRemarks())
    return;
  auto Shape = G.shapeAttr(Feed, "shape");
  if (!Shape || Shape->UnknownRank || Axis >= int64_t(Shape->Dims.size()) ||
      Shape->Dims[static_cast<size_t>(Axis)] < 0)
    Diags.remark("worker", G.name(Feed),
                 formatv("holds the rows of worker {0}; feed each worker "
                         "equally many rows, since no node checks this",
                         Worker));
}

bool WorkerSplitter::split(NodeId N) {
  Endpoint Source = G.input(N, 0);
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  bool IsFeed = G.opName(Source.Node).starts_with(op::Placeholder);
  // Only splits read the merge: the worker already has its shard.
  bool IsOwn =
      G.isOp(Source.Node, FromReplicasOp) &&
      G.stringAttr(Source.Node, CombineAttr) == StringRef(combine::Concat);
  if (IsFeed && G.anyUse(Source.Node,
                         [&](Use U) { return U.User != N && G.isData(U); })) {
    Diags.error(G.name(Source.Node),
                "is read both as the shard of a worker and as the global "
                "batch, so it is not clear what to feed a worker; give "
                "--feed=NAME=copy");
    return false;
  }
  if (IsFeed) {
    shrinkFeed(G, Source.Node, Axis, 1, Count);
    remarkOpen(Source.Node, Axis);
    mark(Source.Node);
    Rows.emplace_back(Source.Node, Axis);
  }
  if (IsFeed && Count > 1 && G.node(Source.Node).NumData == 1) {
    // The default value has the rows of all workers.
    Endpoint Default = G.input(Source.Node, 0);
    NodeId Rows =
        add(G.name(Source.Node) + "/split", ToReplicasOp, Default, Source.Node,
            AttrRun().type("T", G.outputType(Source.Node, 0)));
    G.setIntAttr(Rows, "axis", Axis);
    G.setInput(Source.Node, 0, {Rows, 0});
    elide(N);
    return split(Rows);
  }
  if (IsFeed || IsOwn || Count == 1) {
    elide(N);
    return true;
  }
  Endpoint Dim =
      constant(N, "/split_dim", encodeIntTensor(DT_INT32, {}, Axis), DT_INT32);
  G.removeAttr(N, "axis");
  G.setOp(N, op::Split);
  G.setIntAttr(N, "num_split", Count);
  for (const Use &U : G.uses(N))
    if (G.isData(U))
      G.setInput(U.User, U.Index, {N, Worker});
  G.setInputs(N, {Dim, Source});
  mark(N);
  return true;
}

/// Lowers the merge \p N by `and` or `or`, which no node reads. It reduces
/// integers, since no collective takes booleans.
void WorkerSplitter::mergeTruth(NodeId N) {
  bool All = G.stringAttr(N, CombineAttr) == combine::And;
  AttrRun Attrs;
  Attrs.type("SrcT", DT_BOOL).type("DstT", DT_INT32);
  NodeId Number = add(G.name(N) + "/number", op::Cast, G.input(N, 0), N, Attrs);
  // A member is on the worker's device.
  G.setDevice(Number, Devices.Devices[Worker]);
  AttrRun Reduce;
  Reduce.type("T", DT_INT32)
      .integer("group_size", Count)
      .integer("group_key", MergeGroup)
      .integer("instance_key", MergeKey++)
      .string("merge_op", All ? op::Min : op::Max)
      .string("final_op", "Id")
      .raw("subdiv_offsets", encodeIntListAttr(int64_t(0)));
  NodeId Member = add(G.name(N) + "/member", op::CollectiveReduce,
                      Endpoint{Number, 0}, Number, Reduce);
  for (StringRef Key : {CombineAttr, StringRef("axis"), StringRef("T")})
    G.removeAttr(N, Key);
  G.setOp(N, op::Cast);
  G.setTypeAttr(N, "SrcT", DT_INT32);
  G.setTypeAttr(N, "DstT", DT_BOOL);
  G.setInput(N, 0, {Member, 0});
  mark(N);
}

void WorkerSplitter::mergeTruths() {
  std::vector<NodeId> Found;
  for (NodeId N = 0; Count > 1 && N < G.size(); ++N)
    if (G.isLive(N) && G.isOp(N, FromReplicasOp) &&
        is_contained({combine::And, combine::Or},
                     G.stringAttr(N, CombineAttr).value_or("")))
      Found.push_back(N);
  llvm::sort(Found, [&](NodeId A, NodeId B) { return G.name(A) < G.name(B); });
  for (NodeId N : Found)
    mergeTruth(N);
}

void WorkerSplitter::merge(NodeId N) {
  StringRef Combine = Count > 1
                          ? G.stringAttr(N, CombineAttr).value_or(combine::Pick)
                          : StringRef(combine::Pick);
  if (Combine == combine::Concat && Diags.wantsRemarks())
    Diags.remark("worker", G.name(N),
                 formatv("returns only the rows of worker {0}", Worker));
  if (Combine == combine::Concat) {
    mark(N);
    Rows.emplace_back(N, G.intAttr(N, "axis").value_or(0));
  }
  for (StringRef Key : {CombineAttr, StringRef("axis")})
    G.removeAttr(N, Key);
  G.setOp(N, op::Identity);
}

void WorkerSplitter::scale(NodeId N) {
  ScaleFactor By = scaleFactor(G, N, Count);
  Endpoint Operand = constant(N, "/factor", By.Tensor, By.Type);
  for (StringRef Key : {PowerAttr, PowersAttr})
    G.removeAttr(N, Key);
  G.setOp(N, By.Op);
  mark(N);
  SmallVector<Endpoint, 4> Inputs = {G.input(N, 0), Operand};
  append_range(Inputs, G.controlInputs(N));
  G.setInputs(N, Inputs);
}

//===----------------------------------------------------------------------===//
// Names, places and state
//===----------------------------------------------------------------------===//

/// Puts each node that uses a variable in place on the device of the variable.
/// If the node were on another device, TensorFlow would move it without a
/// message.
void WorkerSplitter::placeWithVariables() {
  VariableIndex Vars(G);
  for (NodeId N = 0; N < G.size(); ++N)
    for (unsigned I = 0; G.isLive(N) && I < G.node(N).NumData; ++I)
      if (Vars.usesInPlace(G, N, I)) {
        NodeId Var = Vars.variableOf(G.input(N, I));
        if (G.node(N).Device != G.node(Var).Device)
          G.setDevice(N, G.device(Var).str());
        break;
      }
}

void WorkerSplitter::rename() {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.isPerReplica(N) && G.node(N).Flags & NF_LocalName)
      G.rename(N, G.uniqueName(primaryName(G, N, Worker, Devices.Word)));
}

/// Drops colocation with nodes on another device, which would move the node.
void WorkerSplitter::writeClasses() {
  for (const auto &[N, Names] : Classes) {
    if (!G.isLive(N))
      continue;
    auto List = G.stringListAttr(N, "_class");
    SmallVector<std::string, 2> Kept;
    for (size_t I = 0; List && I < List->size(); ++I) {
      NodeId With = Names[I];
      if (With == NoNode)
        Kept.push_back((*List)[I].str());
      else if (G.isLive(With) && G.node(With).Device == G.node(N).Device)
        Kept.push_back(("loc:@" + G.name(With)).str());
    }
    if (List && equal(*List, Kept))
      continue;
    SmallVector<StringRef, 2> Texts(Kept.begin(), Kept.end());
    if (Kept.empty())
      G.removeAttr(N, "_class");
    else
      G.setAttr(N, "_class", encodeStringListAttr(Texts));
  }
}

/// Removes the attributes of a program: the rest is a plain graph.
void WorkerSplitter::clear() {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    // Workers draw different numbers for their rows.
    if (G.isPerReplica(N) && isRandomOp(G.opName(N)) && G.hasAttr(N, "seed2") &&
        Worker != 0) {
      int64_t Seed2 = G.intAttr(N, "seed2").value_or(0);
      if (Seed2 != 0 || G.intAttr(N, "seed").value_or(0) != 0)
        G.setIntAttr(N, "seed2", Seed2 + Worker);
    }
    if (G.node(N).Flags & NF_MayHaveGraft)
      for (const AttrEntry &A : G.attrs(N))
        if (A.Key.starts_with("_graft_") && !staysInOutput(G.node(N), A.Key))
          G.removeAttr(N, A.Key);
    Node &This = G.node(N);
    This.Count = Copies::Once;
    This.Kind = Inserted::No;
    This.Plan = Policy::None;
    This.NameSplit = 0;
    This.Flags &= ~(NF_LocalName | NF_Led | NF_ElidePrimary | NF_FixedDevice);
  }
  G.remove(Devices.Node);
  G.markModified();
}

/// Adds the marks that a check of the files needs
/// (lib/program/forms/WorkerParts.h).
void WorkerSplitter::writeMarks() {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) &&
        (G.isOp(N, op::CollectiveReduce) || G.isOp(N, op::CollectiveGather)))
      mark(N);
  for (NodeId N : Marked) {
    G.setStringAttr(N, PartAttr, part::Replica);
    G.setIntAttr(N, WorkerAttr, Worker);
    G.setIntAttr(N, WorkersAttr, Count);
    if (Devices.Word != UsualCopyWord)
      G.setStringAttr(N, CopyWordAttr, Devices.Word);
  }
  for (auto [N, Axis] : Rows)
    G.setIntAttr(N, RowsAxisAttr, Axis);
}

bool WorkerSplitter::run() {
  if (!checkProgram())
    return false;
  Host = deviceOf("", false);
  std::vector<WorkerBroadcast> Broadcasts;
  if (Count > 1)
    Broadcasts = findBroadcasts(M, Diags);
  lowerContexts(M, Worker);
  rememberClasses();
  placeNodes();
  int64_t Key = 0;
  for (const WorkerBroadcast &B : Broadcasts)
    broadcast(B, ++Key);
  NodeId Size = G.size();
  mergeTruths();
  // Splits look at the merges of the program, so they are lowered before the
  // merges.
  for (NodeId N = 0; N < Size; ++N)
    if (G.isLive(N) && G.isOp(N, ToReplicasOp) && !split(N))
      return false;
  for (NodeId N = 0; N < Size; ++N) {
    if (!G.isLive(N))
      continue;
    if (G.node(N).Count == Copies::Once && Count > 1 &&
        isEffect(G.opName(N), G.opDef(N)))
      leaveToChief(N);
    else if (G.node(N).Flags & NF_ElidePrimary)
      elide(N);
    else if (G.isOp(N, FromReplicasOp))
      merge(N);
    else if (G.isOp(N, ScaleOp))
      scale(N);
  }
  placeWithVariables();
  rename();
  writeClasses();
  clear();
  if (Count > 1)
    writeMarks();
  return true;
}

} // namespace

bool splitWorker(Module &M, unsigned Worker, DiagnosticEngine &Diags) {
  return WorkerSplitter(M, Worker, Diags).run();
}

} // namespace graft
