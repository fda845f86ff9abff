//===- lib/lower/tpu/TpuForm.cpp - the TPU form of a computation *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The order and the control edges are those of TensorFlow's
// split_compile_and_replicate (python/tpu/tpu.py) and TPUReplicateContext
// (python/tpu/tpu_replication.py).
//
//===----------------------------------------------------------------------===//

#include "lib/lower/tpu/TpuForm.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <numeric>
#include <set>

using namespace llvm;

namespace graft {
namespace {

using Tensor = std::pair<NodeId, uint32_t>;

Tensor key(Endpoint E) { return {E.Node, E.Port}; }

Endpoint control(NodeId N) { return {N, ControlPort}; }

/// Returns \p Inner with unset fields filled in from \p Outer, as in nested
/// `tf.device` scopes.
std::string mergedDevice(StringRef Outer, StringRef Inner) {
  auto O = DeviceName::parse(Outer), I = DeviceName::parse(Inner);
  if (!O || !I)
    return Inner.str();
  if (!I->Job.empty())
    O->Job = I->Job;
  if (I->Replica)
    O->Replica = I->Replica;
  if (I->Task)
    O->Task = I->Task;
  if (!I->Type.empty()) {
    O->Type = I->Type;
    O->Index = I->Index;
  }
  return O->str();
}

/// Returns the first of `cluster`, `cluster_1`, ... that names no node and no
/// scope.
std::string clusterName(const Graph &G) {
  StringSet<> Taken;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.name(N).starts_with_insensitive("cluster"))
      Taken.insert(G.name(N).split('/').first.lower());
  std::string Name = "cluster";
  for (unsigned I = 1; Taken.contains(Name); ++I)
    Name = "cluster_" + std::to_string(I);
  return Name;
}

class Builder {
public:
  Builder(Graph &G, const TpuComputation &C, DiagnosticEngine &Diags)
      : G(G), C(C), Diags(Diags), IsMember(G.size()) {}

  std::optional<TpuForm> run();

private:
  NodeId insert(StringRef Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                const AttrRun &Attrs, NodeId After);
  NodeId replicatedInput(StringRef Name, ArrayRef<Endpoint> Values,
                         AttrRun Attrs);
  NodeId identity(StringRef Name, Endpoint Source, NodeId Waits, AttrRun Attrs,
                  NodeId After);
  /// Returns the number of nodes that this graph has for a per-replica value.
  unsigned copies() const { return C.Crossing ? 1 : C.Replicas; }
  void perReplica(NodeId N);
  void addMetadata();
  void addInputs();
  void addVariables();
  void convert(NodeId Member);
  void addSums();
  void addOutputs();
  void addRuns(ArrayRef<NodeId> Waits);
  std::vector<std::pair<std::string, NodeId>> classNames();
  void colocate(ArrayRef<std::pair<std::string, NodeId>> Names);
  bool isInCluster(Endpoint E) const {
    return Inside.count(key(E)) || IsMember[E.Node];
  }

  Graph &G;
  const TpuComputation &C;
  DiagnosticEngine &Diags;
  TpuForm Form;
  std::vector<bool> IsMember;           ///< By node, before the first edit.
  std::unique_ptr<LoopInfo> Loops;      ///< Null without loops.
  NodeId Front = NoNode, Back = NoNode; ///< The places of new nodes.
  NodeId Pivot = NoNode;
  std::vector<NodeId> FanIn;
  std::vector<std::string> HostCores; ///< `<host cluster>:<core>`.
  std::vector<NodeId> Added;          ///< New nodes that may be colocated.
  /// By tensor or node outside: the tensor inside that members read instead,
  /// and the node inside that they wait for instead.
  DenseMap<Tensor, Endpoint> Inside;
  DenseMap<NodeId, NodeId> InsideControl;
  DenseMap<Tensor, Endpoint> SumOf;
};

//===----------------------------------------------------------------------===//
// In front of the members
//===----------------------------------------------------------------------===//

NodeId Builder::insert(StringRef Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                       const AttrRun &Attrs, NodeId After) {
  NodeId N = G.insertNode(Name, Op, Inputs, After, Attrs);
  G.setDevice(N, C.Device);
  return N;
}

NodeId Builder::identity(StringRef Name, Endpoint Source, NodeId Waits,
                         AttrRun Attrs, NodeId After) {
  Attrs.type("T", G.outputType(Source));
  SmallVector<Endpoint, 2> Inputs{Source};
  if (Waits != NoNode)
    Inputs.push_back(control(Waits));
  return insert(Name, op::Identity, Inputs, Attrs, After);
}

NodeId Builder::replicatedInput(StringRef Name, ArrayRef<Endpoint> Values,
                                AttrRun Attrs) {
  // The expansion of the program writes the number of inputs.
  if (!C.Crossing)
    Attrs.integer("N", static_cast<int64_t>(Values.size()));
  Attrs.type("T", G.outputType(Values[0].Node, Values[0].Port))
      .integer("index", -1);
  return insert(Name, op::TPUReplicatedInput, Values, Attrs, Front);
}

/// Makes \p N per-replica, on its own device.
void Builder::perReplica(NodeId N) {
  if (!C.Crossing)
    return;
  Node &This = G.node(N);
  This.Count = Copies::PerReplica;
  This.Kind = Inserted::Merge;
  This.Flags |= NF_LocalName | NF_FixedDevice;
  This.NameSplit = This.NameSize;
}

void Builder::addMetadata() {
  Pivot = insert(Form.Cluster + "/pivot", op::NoOp, {},
                 AttrRun().string("_pivot_for_cluster", Form.Cluster), Front);
  AttrRun Attrs;
  Attrs.string(TpuClusterAttr, Form.Cluster)
      .integer("num_replicas", C.Replicas)
      .integer("num_cores_per_replica", C.CoresPerReplica)
      .string("step_marker_location", C.StepMarkerLocation)
      .boolean("allow_soft_placement", C.AllowSoftPlacement)
      .boolean("use_spmd_for_xla_partitioning", C.UseSpmd)
      .boolean("use_tpu", C.UseTpu);
  if (!C.Topology.empty())
    Attrs.string("topology", C.Topology);
  if (!C.DeviceAssignment.empty())
    Attrs.raw("device_assignment", encodeIntListAttr(C.DeviceAssignment));
  Form.Metadata = insert(op::TPUReplicateMetadata, op::TPUReplicateMetadata,
                         control(Pivot), Attrs, Front);
}

void Builder::addInputs() {
  std::vector<Endpoint> Given;
  Given.reserve(FanIn.size());
  for (NodeId N : FanIn)
    Given.push_back({N, 0});
  for (const TpuPadding &P : C.Paddings) {
    AttrRun Attrs;
    Attrs.string(TpuClusterAttr, Form.Cluster);
    AttrRun ConstAttrs = Attrs;
    ConstAttrs.type("dtype", DT_INT32)
        .raw("value", encodeIntTensor(DT_INT32, {}, P.Axis));
    NodeId Axis = insert("XlaSetDynamicDimensionSize/dim_index", op::Const,
                         control(Form.Metadata), ConstAttrs, Front);
    Attrs.type("T", G.outputType(Given[P.Input].Node, 0));
    Given[P.Input] = {
        insert(op::XlaSetDynamicDimensionSize, op::XlaSetDynamicDimensionSize,
               {Given[P.Input], {Axis, 0}, {FanIn[P.Size], 0}}, Attrs, Front),
        0};
  }
  for (size_t I = 0; I < C.Inputs.size(); ++I) {
    AttrRun Attrs;
    Attrs.string(TpuClusterAttr, Form.Cluster);
    // TensorFlow removes an unread Identity that has this mark. Later inputs
    // would then get other numbers, but paddings refer to inputs by number.
    if (C.Paddings.empty())
      Attrs.boolean("_tpu_input_identity", true);
    bool IsOutside = Given[I].Node == FanIn[I];
    NodeId N = identity(formatv("replicated_input_{0}", I).str(), Given[I],
                        IsOutside ? Form.Metadata : NoNode, Attrs, Front);
    if (C.Inputs[I].Read.Node == NoNode)
      continue;
    // If two inputs list one tensor, members read the first of these inputs.
    Inside.try_emplace(key(C.Inputs[I].Read), Endpoint{N, 0});
    InsideControl.try_emplace(C.Inputs[I].Read.Node, N);
  }
}

void Builder::addVariables() {
  for (const TpuVariable &V : C.Variables) {
    SmallVector<Endpoint, 8> Inputs;
    for (NodeId Copy : V.Copies)
      Inputs.push_back({Copy, 0});
    AttrRun Attrs;
    Attrs.boolean("is_mirrored_variable", V.IsMirrored)
        .boolean("is_packed", V.IsPacked);
    NodeId N =
        replicatedInput((G.name(V.Handle) + "/handle").str(), Inputs, Attrs);
    G.addControlInput(N, Form.Metadata);
    Inside.try_emplace({V.Handle, 0}, Endpoint{N, 0});
  }
}

//===----------------------------------------------------------------------===//
// The members
//===----------------------------------------------------------------------===//

/// Marks \p M, and replaces its inputs by those inside of the computation.
void Builder::convert(NodeId M) {
  SmallVector<Endpoint, 8> Inputs;
  bool ReadsInside = false;
  for (Endpoint E : G.dataInputs(M)) {
    ReadsInside |= isInCluster(E);
    auto It = Inside.find(key(E));
    Inputs.push_back(It == Inside.end() ? E : It->second);
  }
  SmallVector<Endpoint, 4> Waits(G.controlInputs(M));
  auto Host = G.stringAttr(M, HostClusterAttr);
  // A node of a loop that waited for the metadata alone would be in no frame.
  bool WaitsInFrame = false;
  for (Endpoint E : Waits) {
    NodeId From = E.Node;
    WaitsInFrame |= Loops && Loops->isInLoop(M) && Loops->givesInside(From);
    if (auto It = InsideControl.find(From); It != InsideControl.end()) {
      From = It->second;
    } else if (!IsMember[From]) {
      // The cluster cannot wait for an op outside, but it can read a value.
      if (G.outputType(From, 0) == DT_INVALID)
        continue;
      AttrRun Attrs;
      Attrs.string(TpuClusterAttr, Form.Cluster);
      if (Host)
        Attrs.string(HostClusterAttr, *Host);
      From = identity((G.name(M) + "/Identity").str(), {E.Node, 0}, NoNode,
                      Attrs, M);
      G.setDevice(From, G.device(M));
    }
    Inputs.push_back(control(From));
  }
  if (!ReadsInside && !WaitsInFrame)
    Inputs.push_back(control(Form.Metadata));
  if (ArrayRef(Inputs) != G.inputs(M))
    G.setInputs(M, Inputs);
  G.setStringAttr(M, TpuClusterAttr, Form.Cluster);
  G.removeAttr(M, "_output_shapes");
  if (!Host)
    return;
  // Host ops are on no core. The metadata state the core that they send to.
  auto Device = DeviceName::parse(G.device(M));
  if (!Device || Device->Type != TpuCoreType || !Device->Index)
    return;
  std::string Core = (*Host + ":" + Twine(*Device->Index)).str();
  if (!is_contained(HostCores, Core))
    HostCores.push_back(Core);
  Device->Type.clear();
  Device->Index.reset();
  G.setDevice(M, Device->str());
}

void Builder::addSums() {
  if (C.Sums.empty())
    return;
  SmallVector<int64_t, 8> All(C.Replicas);
  std::iota(All.begin(), All.end(), 0);
  std::string Group =
      encodeIntTensor(DT_INT32, {1, static_cast<int64_t>(C.Replicas)}, All);
  for (Endpoint S : C.Sums) {
    if (SumOf.count(key(S)))
      continue;
    auto Class = G.attr(S.Node, "_class");
    std::string Own =
        encodeStringListAttr(StringRef(G.save("loc:@" + G.name(S.Node))));
    AttrRun Attrs;
    Attrs.string(TpuClusterAttr, Form.Cluster)
        .raw("_class", Class ? *Class : StringRef(Own));
    AttrRun ConstAttrs = Attrs;
    ConstAttrs.type("dtype", DT_INT32).raw("value", Group);
    NodeId Const =
        insert((G.name(S.Node) + "/group_assignment").str(), op::Const,
               control(Form.Metadata), ConstAttrs, S.Node);
    Attrs.type("T", G.outputType(S));
    NodeId Sum = insert((G.name(S.Node) + "/CrossReplicaSum").str(),
                        op::CrossReplicaSum, {S, {Const, 0}}, Attrs, S.Node);
    for (NodeId N : {Const, Sum}) {
      Added.push_back(N);
      G.setDevice(N, G.device(S.Node));
      if (auto Host = G.attr(S.Node, HostClusterAttr))
        G.setAttr(N, HostClusterAttr, *Host);
    }
    SumOf[key(S)] = {Sum, 0};
    for (Use U : G.uses(S.Node))
      if (U.User < IsMember.size() && IsMember[U.User] && G.input(U) == S)
        G.setInput(U.User, U.Index, {Sum, 0});
  }
}

//===----------------------------------------------------------------------===//
// Behind the members
//===----------------------------------------------------------------------===//

/// Groups ops on several devices device by device, as `tf.group` does.
void Builder::addRuns(ArrayRef<NodeId> Waits) {
  std::map<std::string, SmallVector<Endpoint, 4>> ByDevice;
  for (NodeId N : Waits)
    ByDevice[G.device(N).str()].push_back(control(N));
  for (unsigned R = 0; R < copies(); ++R) {
    std::string Name = C.Crossing ? "shard" : formatv("shard_{0}", R).str();
    auto Group = [&](StringRef Of, StringRef Device,
                     ArrayRef<Endpoint> Inputs) {
      NodeId N = insert(Of, op::NoOp, Inputs, {}, Back);
      G.setDevice(N, mergedDevice(C.Device, Device));
      perReplica(N);
      return N;
    };
    if (ByDevice.size() == 1) {
      const auto &[Device, Inputs] = *ByDevice.begin();
      Form.Runs.push_back(Group(Name, Device, Inputs));
      continue;
    }
    SmallVector<Endpoint, 4> Groups;
    for (const auto &[Device, Inputs] : ByDevice)
      Groups.push_back(control(Group(Name + "/NoOp", Device, Inputs)));
    Form.Runs.push_back(Group(Name, "", Groups));
  }
}

void Builder::addOutputs() {
  AttrRun InCluster;
  InCluster.string(TpuClusterAttr, Form.Cluster);
  NodeId NoOp = insert(op::NoOp, op::NoOp, control(Pivot), InCluster, Back);
  SmallVector<NodeId, 4> Waits{NoOp};
  append_range(Waits, C.Operations);

  bool UsesCore0 =
      !(C.UseSpmd && !C.DeviceAssignment.empty() && C.CoresPerReplica > 1);
  SmallVector<NodeId, 4> Returned;
  for (const TpuOutput &O : C.Outputs) {
    Endpoint E = O.Tensor;
    if (auto It = SumOf.find(key(E)); It != SumOf.end())
      E = It->second;
    else if (auto In = Inside.find(key(E)); In != Inside.end())
      E = In->second;
    AttrRun Attrs = InCluster;
    Attrs.boolean("_tpu_output_identity", true);
    NodeId N = identity(op::Identity, E, NoNode, Attrs, Back);
    if (UsesCore0)
      G.setDevice(N,
                  mergedDevice(C.Device,
                               !G.device(E.Node).empty()
                                   ? G.device(E.Node).str()
                                   : ("/device:" + TpuCoreType + ":0").str()));
    Returned.push_back(N);
  }
  AttrRun Status;
  if (C.UseTpu)
    Status.string("_tpu_compilation_status", Form.Cluster);
  insert(C.UseTpu ? op::TPUCompilationResult : "compilation_status",
         C.UseTpu ? op::TPUCompilationResult : op::NoOp, control(Form.Metadata),
         Status, Back);
  if (Returned.empty())
    return addRuns(Waits);

  for (size_t I = 0; I < Returned.size(); ++I) {
    AttrRun Attrs;
    Attrs.integer("num_replicas", C.Replicas)
        .type("T", G.outputType(Returned[I], 0));
    NodeId Out = insert(formatv("output{0}", I).str(), op::TPUReplicatedOutput,
                        Endpoint{Returned[I], 0}, Attrs, Back);
    std::vector<NodeId> &Shards = Form.Shards.emplace_back();
    if (C.Crossing) {
      G.node(Out).Count = Copies::PerReplica;
      G.node(Out).Flags |= NF_FixedDevice;
    }
    for (unsigned R = 0; R < copies(); ++R) {
      std::string Name = formatv("output_{0}_shard", I).str();
      if (!C.Crossing)
        Name += "_" + std::to_string(R);
      NodeId N = identity(Name, {Out, R}, NoNode, {}, Back);
      perReplica(N);
      SmallVector<Endpoint, 4> Inputs{{Out, R}};
      for (NodeId W : Waits)
        Inputs.push_back(control(W));
      G.setInputs(N, Inputs);
      Shards.push_back(N);
    }
  }
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Returns the nodes that members may be colocated with: the class name in the
/// plain graph, and the node that replaces it inside of the computation.
std::vector<std::pair<std::string, NodeId>> Builder::classNames() {
  std::vector<std::pair<std::string, NodeId>> Names;
  auto Add = [&](NodeId Plain, NodeId In) {
    Names.push_back({("loc:@" + G.name(Plain)).str(), In});
  };
  for (const auto &[Input, In] : InsideControl)
    Add(Input, In);
  for (const TpuVariable &V : C.Variables)
    Add(V.Handle, Inside.lookup({V.Handle, 0}).Node);
  for (const TpuOutput &O : C.Outputs)
    if (IsMember[O.Tensor.Node])
      Add(O.Tensor.Node, O.Tensor.Node);
  for (NodeId N : C.Operations)
    Add(N, N);
  return Names;
}

void Builder::colocate(ArrayRef<std::pair<std::string, NodeId>> Names) {
  StringMap<NodeId> ByEntry;
  for (const auto &[Entry, N] : Names)
    ByEntry.try_emplace(Entry, N);
  append_range(Added, C.Members);
  for (NodeId M : Added) {
    if (!(G.node(M).Flags & NF_MayHaveClass))
      continue;
    auto Class = G.stringListAttr(M, "_class");
    if (!Class ||
        none_of(*Class, [&](StringRef S) { return ByEntry.count(S); }))
      continue;
    for (StringRef &Entry : *Class)
      if (auto It = ByEntry.find(Entry); It != ByEntry.end())
        Entry = G.save("loc:@" + G.name(It->second));
    G.setAttr(M, "_class", encodeStringListAttr(*Class));
  }
}

std::optional<TpuForm> Builder::run() {
  for (NodeId M : C.Members)
    IsMember[M] = true;
  if (!checkTpuComputation(G, C, IsMember, Diags))
    return std::nullopt;
  std::set<NodeId> Named(C.Operations.begin(), C.Operations.end());
  for (const TpuOutput &O : C.Outputs)
    if (IsMember[O.Tensor.Node])
      Named.insert(O.Tensor.Node);
  for (NodeId N : Named)
    for (Use U : G.uses(N))
      if (!IsMember[U.User])
        Form.Readers.push_back(U);
  Loops = LoopInfo::find(G);
  for (NodeId M : C.Members)
    Back = Back == NoNode ? M : std::max(M, Back);
  for (const TpuInput &I : C.Inputs)
    for (Endpoint E : I.Values)
      Front = Front == NoNode ? E.Node : std::max(E.Node, Front);
  if (Front == NoNode)
    Front = Back;
  if (Back == NoNode)
    Back = Front;

  Form.Cluster = clusterName(G);
  if (!keepTpuControlFlow(G, C.Members, Form.Cluster, Diags))
    return std::nullopt;
  FanIn.reserve(C.Inputs.size());
  for (size_t I = 0; I < C.Inputs.size(); ++I)
    FanIn.push_back(
        replicatedInput(formatv("input{0}", I).str(), C.Inputs[I].Values, {}));
  addMetadata();
  addInputs();
  addVariables();
  for (NodeId M : C.Members)
    convert(M);
  addSums();
  addOutputs();
  if (!HostCores.empty()) {
    SmallVector<StringRef, 4> List(HostCores.begin(), HostCores.end());
    G.setAttr(Form.Metadata, "host_compute_core", encodeStringListAttr(List));
  }
  auto Names = classNames();
  if (C.NameFetches && !nameTpuFetches(G, C, Form, Diags))
    return std::nullopt;
  colocate(Names);
  return std::move(Form);
}

} // namespace

std::vector<Endpoint> splitForReplicas(Graph &G, Endpoint Tensor,
                                       unsigned Replicas, unsigned Axis,
                                       StringRef Device) {
  NodeId After = Tensor.Node;
  std::string Name = G.uniqueName("split");
  NodeId Dim =
      G.insertNode(Name + "/split_dim", op::Const, {}, After,
                   AttrRun()
                       .type("dtype", DT_INT32)
                       .raw("value", encodeIntTensor(DT_INT32, {}, Axis)));
  NodeId Split = G.insertNode(
      Name, op::Split, {{Dim, 0}, Tensor}, After,
      AttrRun().type("T", G.outputType(Tensor)).integer("num_split", Replicas));
  G.setDevice(Dim, Device);
  G.setDevice(Split, Device);
  std::vector<Endpoint> Parts;
  Parts.reserve(Replicas);
  for (unsigned R = 0; R < Replicas; ++R)
    Parts.push_back({Split, R});
  return Parts;
}

std::optional<TpuForm> buildTpuForm(Graph &G, const TpuComputation &C,
                                    DiagnosticEngine &Diags) {
  return Builder(G, C, Diags).run();
}

} // namespace graft
