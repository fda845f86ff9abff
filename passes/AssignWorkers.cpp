//===- passes/AssignWorkers.cpp - assign-workers ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous between-graph replication with parameter servers. Turns the
// graph that expand-replicas writes for the chief into the graph of another
// worker. Variables, and nodes that use them in place, stay where they are; all
// other nodes go to the task of the worker.
//
//     w = VarHandleOp() @/job:ps/task:0           w, step: the same
//     g = MatMul(..) @/job:worker/task:0      →   g = MatMul(..)
//     step = ResourceApplyAdam(w, .., g)              @/job:worker/task:1
//         @/job:ps/task:0                         step: use_locking=true
//
// Updates lock the variable, so no update is lost. Each worker has its own copy
// of local variables. If `staleness` is set, an update waits while its worker
// is that number of steps ahead of the slowest worker. The rest is in
// lib/lower/workers/Async.cpp.
//
// Relies on: a graph for the chief alone, as expand-replicas wrote it to a
// file.
//
//===----------------------------------------------------------------------===//

#include "lib/io/VariableCollections.h"
#include "lib/lower/workers/Async.h"
#include "lib/strategy/Resources.h"
#include "passes/Options.h"

using namespace llvm;

namespace graft {
namespace {

class AssignWorkers final
    : public PassBase<AssignWorkers, AssignWorkersOptions> {
public:
  static constexpr PassInfo Info = {
      "assign-workers", "Give the graph of the chief to one worker",
      "Moves the nodes of the chief to the task of another worker. Shared\n"
      "variables and their updates stay in place."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

PassResult AssignWorkers::run(Module &M, DiagnosticEngine &Diags) {
  AsyncPlan Plan;
  Plan.Tasks = *Options.Tasks;
  Plan.Names = *Options.Names;
  Plan.DeviceType = *Options.DeviceType;
  Plan.Staleness = *Options.Staleness;
  if (Plan.Tasks.empty())
    return PassResult::Unchanged;
  if (*Options.Worker >= Plan.Tasks.size()) {
    Diags.error("", "there is no worker " + std::to_string(*Options.Worker) +
                        ": the workers are counted from 0");
    return PassResult::Failure;
  }
  Plan.Server = Options.Server->empty() ? Plan.Tasks.front() + "/device:CPU:0"
                                        : *Options.Server;
  Graph &G = M.graph();
  Plan.Local = localVariablesOf(M);
  if (Plan.Staleness != 0)
    for (const VariableRow &Row :
         listVariables(G, VariableIndex(G), declaredVariables(M)))
      Plan.Trained.push_back(Row.Node);
  return assignWorker(G, Plan, *Options.Worker, Diags) ? PassResult::Changed
                                                       : PassResult::Failure;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(AssignWorkers)

} // namespace graft
