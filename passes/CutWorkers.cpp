//===- passes/CutWorkers.cpp - cut-workers ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Between-graph replication with parameter servers: of the graph that
// expand-replicas writes for all tasks, the part that one worker runs in a
// session of its own. What one worker gives another goes through a queue that
// both have under one shared name, behind the number of the run, so that a
// worker can be killed and started again (lib/lower/workers/Messages.h):
//
//     g = MatMul(..) @/job:worker/task:1     worker 1: q/put =
//     s = AddN(.., g) @/job:ps/task:0            QueueEnqueueV2(q, number, g)
//                                        →   worker 0: s = AddN(.., q/get)
//
// A name of the step that can be run every worker has: the chief's has sent
// what the others need before it is done, and another worker's sends what the
// chief needs and has its value. A write of a variable waits until all workers
// have read it and have given all that the step needs. Variables, their first
// values and checkpoints are in all files. The rest is in
// lib/lower/workers/Cut.cpp.
//
// Relies on: a graph for all tasks, as expand-replicas writes it, read again.
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

#include "tensorflow/core/protobuf/meta_graph.pb.h"

using namespace llvm;

namespace graft {
namespace {

class CutWorkers final : public PassBase<CutWorkers, CutWorkersOptions> {
public:
  static constexpr PassInfo Info = {
      "cut-workers", "Cut the graph for all workers to that of one",
      "Leaves of a graph for several tasks what one of them runs, with queues\n"
      "on servers to the others."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

/// Takes out of collections of names what this worker does not have, such as an
/// iterator that the chief reads for all. \p Had are the names that were there.
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

/// Adds what prepares a session of this worker, to be cut with the rest.
NodeId addLocalInit(Module &M) {
  // Of a bare GraphDef nobody knows what is run.
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

PassResult CutWorkers::run(Module &M, DiagnosticEngine &Diags) {
  CutPlan Plan;
  Plan.Tasks = *Options.Tasks;
  Plan.Names = *Options.Names;
  Plan.Refreshes = *Options.Refreshes;
  Plan.Word = *Options.Word;
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
                          "' is not on the next of the workers");
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
  if (M.metaGraph())
    pruneCollections(M, Had);
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(CutWorkers)

} // namespace graft
