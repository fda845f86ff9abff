//===- passes/SplitWorkers.cpp - split-workers ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The lowering for between-graph replication, always the last pass: writes the
// graph of one worker, which runs one replica in a process of its own. All
// workers have the same program, so the keys of collectives are equal in all
// files.
//
//     x/split = _ToReplicas(x)           y = MatMul(x, w) @/job:worker/task:1
//     y = MatMul*(x/split, w)       →    w/Assign = AssignVariableOp(w,
//     w/Assign =                             i/broadcast)
//         AssignVariableOp*(w, i)        i/broadcast = CollectiveBcastRecv()
//
// A worker is fed its rows. Worker 0 computes initial and restored values on
// its host, and sends them. Only worker 0 has effects outside of the graph
// (saving, printing). Every worker computes unreplicated nodes itself, from
// equal values. The rest is in lib/lower/workers/Workers.cpp.
//
// Relies on: a finished program, which check-replication proves;
// insert-collectives{reduction=workers}.
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"
#include "lib/lower/workers/Workers.h"
#include "lib/program/Program.h"
#include "passes/Options.h"

using namespace llvm;

namespace graft {
namespace {

class SplitWorkers final : public PassBase<SplitWorkers, SplitWorkersOptions> {
public:
  static constexpr PassInfo Info = {"split-workers",
                                    "Write the graph of one worker",
                                    "Lowers the program to the graph that one "
                                    "worker runs: one replica, with\n"
                                    "collectives to the others."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

PassResult SplitWorkers::run(Module &M, DiagnosticEngine &Diags) {
  Mesh Devices = readMesh(M.graph());
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  if (Devices.Devices.empty()) {
    Diags.error(M.graph().name(Devices.Node), "has no devices");
    return PassResult::Failure;
  }
  return splitWorker(M, Options.Worker, Diags) ? PassResult::Changed
                                               : PassResult::Failure;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(SplitWorkers)

} // namespace graft
