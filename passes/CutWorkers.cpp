//===- passes/CutWorkers.cpp - cut-workers ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Between-graph replication with parameter servers: of the graph that
// expand-replicas writes for all tasks, the part that one worker runs in a
// session of its own. What one worker gives another goes through a queue that
// both have under one shared name:
//
//     g = MatMul(..) @/job:worker/task:1     worker 1: g/to_0/put =
//     s = AddN(.., g) @/job:ps/task:0            QueueEnqueueV2(g/to_0, g)
//                                        →   worker 0: s = AddN(..,
//                                                QueueDequeueV2(g/to_0))
//
// A name of the step that can be run every worker has: the chief's has sent
// what the others need before it is done, and another worker's sends what the
// chief needs and has its value. A write of a variable waits until all workers
// have read it. Variables, their first values and checkpoints are in all
// files. The rest is in lib/lower/workers/Cut.cpp.
//
// Relies on: a graph for all tasks, as expand-replicas writes it, read again.
//
//===----------------------------------------------------------------------===//

#include "lib/io/ControlContexts.h"
#include "lib/io/Module.h"
#include "lib/lower/workers/Cut.h"
#include "passes/Options.h"

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

PassResult CutWorkers::run(Module &M, DiagnosticEngine &Diags) {
  CutPlan Plan;
  Plan.Tasks = *Options.Tasks;
  Plan.Names = *Options.Names;
  if (Plan.Tasks.empty())
    return PassResult::Unchanged;
  if (*Options.Worker >= Plan.Tasks.size()) {
    Diags.error("", "there is no worker " + std::to_string(*Options.Worker) +
                        ": the workers are counted from 0");
    return PassResult::Failure;
  }
  Plan.Server = Options.Server->empty() ? Plan.Tasks.front() + "/device:CPU:0"
                                        : *Options.Server;
  if (!cutWorker(M.graph(), Plan, *Options.Worker, Diags))
    return PassResult::Failure;
  pruneContexts(M);
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(CutWorkers)

} // namespace graft
