//===- passes/CutWorkers.cpp - cut-workers ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Between-graph replication with parameter servers: cuts one worker's part,
// which runs in its own session, from the graph that expand-replicas writes for
// all tasks. A worker receives the value of another worker through a queue with
// a shared name. Each message begins with the number of its run, so that a
// worker can be killed and restarted (lib/program/forms/Messages.h):
//
//     g = MatMul(..) @/job:worker/task:1     worker 1: q/put =
//     s = AddN(.., g) @/job:ps/task:0            QueueEnqueueV2(q, number, g)
//                                        →   worker 0: s = AddN(.., q/get)
//
// Each name of the step that a session can run exists on every worker. On the
// chief a run of the name ends after the chief has sent the values that other
// workers need. On another worker the run sends the values that the chief
// needs, and returns the chief's value. A write of a variable waits until all
// workers have read the variable and sent all values that the step needs. All
// files have the variables, their initial values and checkpoints, and the node
// that reports when a session may be prepared. The rest is in
// lib/lower/workers/Cut.cpp.
//
// Relies on: a graph for all tasks, as expand-replicas wrote it to a file.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/io/ControlContexts.h"
#include "lib/io/Module.h"
#include "lib/lower/workers/Cut.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"
#include "lib/rewrite/LocalInit.h"
#include "passes/Options.h"

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/variable.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

using namespace llvm;

namespace graft {
namespace {

class CutWorkers final : public PassBase<CutWorkers, CutWorkersOptions> {
public:
  static constexpr PassInfo Info = {
      "cut-workers", "Cut the graph for all workers to that of one",
      "Keeps the nodes that one worker runs. Queues on servers pass values\n"
      "between the workers."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

/// Removes from collections the names that this worker does not have, such as
/// the name of an iterator that the chief reads for all workers. \p Had are the
/// names before the cut.
void pruneCollections(Module &M, const StringSet<> &Had) {
  const Graph &G = M.graph();
  auto IsGone = [&](StringRef Name) {
    Name.consume_front("^");
    Name = Name.split(':').first;
    return Had.contains(Name) && G.find(Name) == NoNode;
  };
  std::vector<std::pair<std::string, tensorflow::CollectionDef>> Changed;
  for (const auto &[Key, Collection] : M.metaGraph()->collection_def()) {
    if (none_of(Collection.node_list().value(), IsGone))
      continue;
    tensorflow::CollectionDef Left = Collection;
    auto &Names = *Left.mutable_node_list()->mutable_value();
    Names.erase(std::remove_if(Names.begin(), Names.end(), IsGone),
                Names.end());
    Changed.emplace_back(Key, std::move(Left));
  }
  llvm::sort(Changed, less_first());
  for (const auto &[Key, Collection] : Changed)
    M.setCollection(Key, Collection);
}

/// Adds the node that prepares a session of this worker. The node is then cut
/// like all others.
NodeId addLocalInit(Module &M) {
  // A bare GraphDef declares no local init op.
  auto Runs = M.metaGraph() ? localInit(M) : std::nullopt;
  if (!Runs)
    return NoNode;
  SmallVector<Endpoint, 8> Waits;
  for (NodeId N : *Runs)
    Waits.push_back({N, ControlPort});
  NodeId Init =
      M.graph().insertNode("graft/local_init_op", op::NoOp, Waits, NoNode,
                           AttrRun().string(PartAttr, part::LocalInit));
  setLocalInit(M, Init);
  return Init;
}

/// Adds the node that reports when a session may be prepared. The preparation
/// refreshes copies of variables, so the variables must have values. The node
/// returns the names of variables without a value, as TensorFlow expects of the
/// collection `ready_for_local_init_op`. A Supervisor reads only this
/// collection.
void addReadyForLocalInit(Module &M, StringRef Host) {
  static constexpr StringLiteral Key = "ready_for_local_init_op";
  Graph &G = M.graph();
  const auto &Collections = M.metaGraph()->collection_def();
  if (auto It = Collections.find(Key.str());
      It != Collections.end() && It->second.node_list().value_size() != 0)
    return;
  tensorflow::AttrValue Names;
  tensorflow::TensorProto &Text = *Names.mutable_tensor();
  SmallVector<Endpoint, 16> Have;
  auto Add = [&](const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                 AttrRun Attrs, StringRef Device) {
    NodeId N =
        G.insertNode(("graft/ready_for_local_init_op" + Name).str(), Op, Inputs,
                     NoNode, Attrs.string(PartAttr, part::Ready));
    G.setDevice(N, Device);
    return Endpoint{N, 0};
  };
  forEachVariable(M, "variables", [&](const tensorflow::VariableDef &V) {
    auto E = G.findEndpoint(V.variable_name());
    if (!E || E->isControl() || !isVariableOp(G.opName(E->Node)))
      return;
    bool IsHandle = G.isOp(E->Node, op::VarHandleOp);
    AttrRun Attrs;
    if (!IsHandle)
      Attrs.type("dtype", G.outputType(*E));
    Have.push_back(
        Add("/" + G.name(E->Node),
            IsHandle ? op::VarIsInitializedOp : op::IsVariableInitialized, *E,
            Attrs, G.device(E->Node)));
    Text.add_string_val(G.name(E->Node).str());
  });
  if (Have.empty())
    return;
  auto Count = static_cast<int64_t>(Have.size());
  Text.set_dtype(tensorflow::DT_STRING);
  Text.mutable_tensor_shape()->add_dim()->set_size(Count);
  Endpoint All = Add("/names", op::Const, {},
                     AttrRun()
                         .type("dtype", DT_STRING)
                         .raw("value", Names.SerializeAsString()),
                     Host);
  Endpoint Is =
      Add("/have", op::Pack, Have,
          AttrRun().integer("N", Count).type("T", DT_BOOL).integer("axis", 0),
          Host);
  Endpoint Not = Add("/have_not", op::LogicalNot, Is, {}, Host);
  Endpoint Where =
      Add("/where", op::Where, Not, AttrRun().type("T", DT_BOOL), Host);
  Endpoint Ready = Add(
      "", op::GatherNd, {All, Where},
      AttrRun().type("Tindices", DT_INT64).type("Tparams", DT_STRING), Host);
  tensorflow::CollectionDef Collection;
  Collection.mutable_node_list()->add_value((G.name(Ready.Node) + ":0").str());
  M.setCollection(Key, Collection);
}

PassResult CutWorkers::run(Module &M, DiagnosticEngine &Diags) {
  CutPlan Plan;
  Plan.Tasks = *Options.Tasks;
  Plan.Names = *Options.Names;
  Plan.Refreshes = *Options.Refreshes;
  Plan.Word = *Options.Word;
  Plan.Server = *Options.Server;
  if (Plan.Tasks.empty())
    return PassResult::Unchanged;
  for (unsigned I = 0; I < Plan.Tasks.size() && Options.Devices->empty(); ++I)
    Plan.WorkerOf.push_back(I);
  for (StringRef Device : *Options.Devices) {
    auto At = find_if(Plan.Tasks, [&](StringRef Task) {
      return Device.starts_with((Task + "/").str());
    });
    auto Worker = static_cast<unsigned>(At - Plan.Tasks.begin());
    if (At == Plan.Tasks.end() ||
        (!Plan.WorkerOf.empty() && Worker < Plan.WorkerOf.back())) {
      Diags.error("", "devices: '" + Device.str() +
                          "' is on no worker, or out of order; list the "
                          "devices in the order of the workers");
      return PassResult::Failure;
    }
    Plan.WorkerOf.push_back(Worker);
  }
  if (*Options.Worker >= Plan.Tasks.size()) {
    Diags.error("", "there is no worker " + std::to_string(*Options.Worker) +
                        ": the workers are counted from 0");
    return PassResult::Failure;
  }
  Plan.LocalInit = addLocalInit(M);
  StringSet<> Had;
  for (const auto &Name : M.declaredNames())
    if (M.graph().find(Name.getKey()) != NoNode)
      Had.insert(Name.getKey());
  if (!cutWorker(M.graph(), Plan, *Options.Worker, Diags))
    return PassResult::Failure;
  pruneContexts(M);
  if (M.metaGraph()) {
    pruneCollections(M, Had);
    if (Plan.LocalInit != NoNode && !Plan.Refreshes.empty())
      addReadyForLocalInit(M, Plan.Tasks[*Options.Worker] + "/device:CPU:0");
  }
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(CutWorkers)

} // namespace graft
