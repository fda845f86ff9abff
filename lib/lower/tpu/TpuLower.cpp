//===- lib/lower/tpu/TpuLower.cpp - a program in TPU form -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The members of the step are written once, in the form that TpuForm builds;
// all other nodes are expanded as for any other device. Between the two, a
// TPUReplicatedInput reads all copies of a tensor, and copy i of a reader of a
// result reads output i of its TPUReplicatedOutput.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/lower/expand/Contexts.h"
#include "lib/lower/expand/Expand.h"
#include "lib/lower/tpu/TpuProgram.h"
#include "lib/ops/Ops.h"
#include "lib/support/Glob.h"

#include "tensorflow/core/framework/variable.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class Lowering {
public:
  Lowering(Module &M, TpuStep &Step, TpuComputation C, DiagnosticEngine &Diags)
      : M(M), G(M.graph()), Step(Step), C(std::move(C)), Diags(Diags) {}

  bool run();

private:
  void waitForValues();
  void keepNames();
  void describe();
  void dropClasses(NodeId N);
  void connect(const TpuForm &Form);
  bool isInside(NodeId N) const {
    return Step.isMember(N) || G.hasAttr(N, TpuClusterAttr);
  }

  Module &M;
  Graph &G;
  TpuStep &Step;
  TpuComputation C;
  DiagnosticEngine &Diags;
  /// Members that users run by name, with their names in the input graph.
  std::vector<std::pair<NodeId, std::string>> Named;
};

/// Makes members wait for a new constant instead of an outside node that has
/// copies or no output. The constant waits for that node. A computation can
/// wait for values only.
void Lowering::waitForValues() {
  DenseMap<NodeId, NodeId> Values;
  for (NodeId N : C.Members)
    for (unsigned I = G.node(N).NumData; I < G.node(N).NumInputs; ++I) {
      NodeId Source = G.input(N, I).Node;
      if (Step.isMember(Source) || (G.node(Source).Count == Copies::Once &&
                                    G.numOutputs(Source).value_or(1) > 0))
        continue;
      NodeId &Value = Values.try_emplace(Source, NoNode).first->second;
      if (Value == NoNode) {
        SmallString<128> Name(G.name(Source));
        Name += "/done";
        Value = G.insertNode(
            Name, op::Const, Endpoint{Source, ControlPort}, Source,
            AttrRun()
                .type("dtype", DT_INT32)
                .raw("value", encodeIntTensor(DT_INT32, {}, int64_t(0))));
        Step.Members.resize(G.size());
      }
      G.setInput(N, I, {Value, ControlPort});
    }
}

/// Finds the ops that users run by name. Nodes outside get these names.
void Lowering::keepNames() {
  StringSet<> Collected;
  if (const tensorflow::MetaGraphDef *Meta = M.metaGraph())
    for (const auto &[Key, Collection] : Meta->collection_def())
      for (const std::string &Name : Collection.node_list().value())
        Collected.insert(Name);
  for (NodeId N : Step.Effects) {
    if (G.node(N).Kind != Inserted::No ||
        (G.hasUses(N) && !Collected.contains(G.name(N))))
      continue;
    Named.push_back({N, originName(G, N).str()});
  }
}

/// Drops colocation across the border of the computation.
void Lowering::dropClasses(NodeId N) {
  G.keepClasses(N, [&](StringRef Name) {
    NodeId With = Name.consume_front("loc:@") ? G.find(Name) : NoNode;
    return With != NoNode && Step.isMember(With) == Step.isMember(N);
  });
}

void Lowering::describe() {
  for (Endpoint E : Step.Inputs)
    C.Inputs.push_back({E, {E}, {}});
  for (NodeId Var : Step.Variables)
    C.Variables.push_back({Var, {Var}, true, false});
  for (Endpoint E : Step.Results)
    C.Outputs.push_back({E, {}});
  C.Operations = Step.Effects;
  C.NameFetches = false;
  C.Crossing = true;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Flags & NF_MayHaveClass)
      dropClasses(N);
  for (NodeId N : C.Members) {
    Node &This = G.node(N);
    if (This.Count == Copies::PerReplica)
      G.setDevice(N, "");
    This.Count = Copies::Once;
    This.NameSplit = 0;
    This.Flags &= static_cast<uint8_t>(
        ~(NF_LocalName | NF_Led | NF_ElidePrimary | NF_FixedDevice));
    if (Step.HostCluster[N] >= 0)
      G.setStringAttr(N, HostClusterAttr, std::to_string(Step.HostCluster[N]));
  }
  G.markModified();
}

/// Makes nodes outside read and wait for the results.
void Lowering::connect(const TpuForm &Form) {
  NodeId Ran = Form.Runs.empty() ? Form.Shards[0][0] : Form.Runs[0];
  for (auto [Result, Shards] : zip(Step.Results, Form.Shards))
    for (Use U : G.uses(Result.Node))
      if (G.isData(U) && !isInside(U.User) && G.input(U) == Result &&
          U.User != Shards[0])
        G.setInput(U.User, U.Index, {Shards[0], 0});
  for (NodeId N : Step.Effects)
    for (Use U : G.uses(N)) {
      if (G.isData(U) || isInside(U.User) ||
          G.node(U.User).Kind == Inserted::Merge)
        continue;
      // A node may wait for many effects. One wait for the computation is
      // enough.
      SmallVector<Endpoint, 8> Inputs;
      bool Waits = false;
      for (Endpoint E : G.inputs(U.User)) {
        if (E.isControl() && (E.Node == Ran || isInside(E.Node))) {
          if (!Waits)
            Inputs.push_back({Ran, ControlPort});
          Waits = true;
        } else {
          Inputs.push_back(E);
        }
      }
      G.setInputs(U.User, Inputs);
    }
  for (auto &[N, Name] : Named) {
    G.rename(N, G.uniqueName(Form.Cluster + "/" + Name));
    G.insertNode(Name, op::NoOp, Endpoint{Ran, ControlPort}, N, {},
                 Inserted::Identity);
  }
}

bool Lowering::run() {
  for (NodeId N = 0; N < Step.Members.size(); ++N)
    if (Step.isMember(N) && G.isLive(N))
      C.Members.push_back(N);
  waitForValues();
  keepNames();
  describe();
  std::optional<TpuForm> Form = buildTpuForm(G, C, Diags);
  if (Form)
    connect(*Form);
  return Form.has_value();
}

} // namespace

/// Returns the nodes that collections name as the values of variables.
static StringSet<> declaredReads(const Module &M) {
  StringSet<> Reads;
  if (!M.metaGraph())
    return Reads;
  for (const auto &[Key, Collection] : M.metaGraph()->collection_def())
    for (const std::string &Bytes : Collection.bytes_list().value()) {
      tensorflow::VariableDef V;
      if (V.ParseFromString(Bytes))
        Reads.insert(StringRef(V.snapshot_name()).split(':').first);
    }
  return Reads;
}

/// Removes results that no node reads and no name declares, unless they are
/// scalars: a computation pays for each result that it returns.
static void dropResults(Module &M, const ProgramFacts &Facts,
                        ArrayRef<StringRef> Fetches, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  StringSet<> Declared = M.declaredNames();
  std::vector<Glob> Patterns;
  for (StringRef Name : Fetches) {
    StringRef Node = Name.rsplit(':').first;
    Declared.insert(Node);
    if (Glob::is(Node))
      Patterns.emplace_back(Node);
  }
  auto IsDeclared = [&](NodeId N) {
    return Declared.contains(G.name(N)) || any_of(Patterns, [&](const Glob &P) {
             return P.matches(G.name(N));
           });
  };
  std::vector<NodeId> Dropped;
  auto IsResult = [&](NodeId N) {
    const Node &This = G.node(N);
    bool Makes = This.Kind == Inserted::Merge || This.Kind == Inserted::Scale ||
                 This.Kind == Inserted::Blocks || G.isOp(N, op::IdentityN);
    return This.Count == Copies::Once && !This.isDead() && !G.hasUses(N) &&
           This.NumInputs > 0 && Makes;
  };
  // A node that splits rows into blocks has no use without their merge.
  auto IsLeft = [&](NodeId N) {
    return IsResult(N) ||
           (G.node(N).Kind == Inserted::Blocks && G.isLive(N) && !G.hasUses(N));
  };
  std::optional<Conditions> Branches;
  if (Conditions::any(G))
    Branches.emplace(G, Facts.Order);
  for (NodeId N : Facts.Order) {
    auto Shape = Facts.Dims.shape({N, 0});
    // A scalar in a branch that does not run has no value to return.
    bool IsNumber =
        Shape && Shape->empty() && !(Branches && !Branches->of(N).empty());
    if (!IsResult(N) || IsNumber || IsDeclared(N))
      continue;
    Dropped.push_back(N);
  }
  if (Dropped.empty())
    return;
  if (Diags.wantsRemarks())
    Diags.remark(
        "local", G.name(Dropped.front()),
        formatv("is not a result of the TPU computation and does not exist in "
                "the output; the same holds for {0} more nodes of the input; "
                "name the tensors that you need with --fetch=NAME",
                Dropped.size() - 1)
            .str());
  while (!Dropped.empty()) {
    NodeId N = Dropped.back();
    Dropped.pop_back();
    if (!IsLeft(N))
      continue;
    for (Endpoint E : G.dataInputs(N))
      Dropped.push_back(E.Node);
    G.remove(N);
  }
}

bool lowerStepToTpu(Module &M, const TpuComputation &Options,
                    ArrayRef<StringRef> Fetches, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  Mesh Devices = readMesh(G);
  dropResults(M, programFacts(M), Fetches, Diags);
  std::optional<TpuStep> Step =
      findTpuStep(G, programFacts(M), declaredReads(M), Diags);
  if (!Step || !lowerTpuExchanges(G, *Step, Devices, Diags))
    return false;
  TpuComputation C = Options;
  C.Replicas = Devices.replicas();
  if (!Lowering(M, *Step, std::move(C), Diags).run())
    return false;
  M.Lowered = std::make_unique<ReplicaExpander>(G, Devices);
  lowerContexts(M);
  return true;
}

} // namespace graft
