//===- lib/certify/workers/BoundCheck.h - bounded staleness -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks the files of workers that count their steps
// (lib/program/forms/StepCount.h). For each file:
//
//   - the nodes that count and wait are, node for node, those that StepCount
//     writes for this worker, this number of workers and this bound;
//   - the variable and the accumulators that wake workers up have one device
//     and one name in all files; no other node uses them or has their names;
//   - each write of a gradient waits for the gate and is in no loop; no other
//     node waits for the gate;
//   - a run of a name counts as a step if, and only if, it writes a gradient;
//   - the counts are reset before a trained variable is initialized or restored
//     from a checkpoint, and at no other time.
//
// Let steps[i] count the steps of worker i. Between two resets, steps[i] grows
// by one only after the run has passed the gate. At the gate, steps[i] -
// min(steps) was less than the bound, and the minimum never shrinks. So a
// worker that makes one step at a time is never further ahead than the bound.
// The worker makes an update only if it was less than the bound ahead.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_BOUNDCHECK_H
#define GRAFT_LIB_CERTIFY_WORKERS_BOUNDCHECK_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

#include <memory>
#include <optional>

namespace graft {

/// The facts that are the same for all files.
struct BoundPlan {
  const Graph &In;
  const llvm::StringSet<> &Local;   ///< Variables local to a worker.
  const llvm::StringSet<> &Trained; ///< Variables that have gradients.
  const llvm::StringSet<> &Runs;    ///< Nodes of the input that callers run.
  unsigned Workers = 0;
  int64_t Ahead = 0;
};

/// The name and device of the variable that counts steps.
struct Counter {
  std::string Name, Device;
};

/// Checks the step counter and the gate of worker \p Worker, and returns its
/// file \p G without them. \p At is the counter of the earlier files; the first
/// file sets it. Returns null after an error.
std::unique_ptr<Graph> withoutBound(const Graph &G, unsigned Worker,
                                    const BoundPlan &Plan,
                                    std::optional<Counter> &At,
                                    DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_BOUNDCHECK_H
