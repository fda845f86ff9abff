//===- lib/certify/workers/BoundCheck.h - bounded staleness -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks the files of workers that count their steps
// (lib/program/forms/StepCount.h). For each file:
//
//   - the nodes that count and wait are, node for node, those that StepCount
//     writes for this worker, for all workers and the bound; the variable and
//     the accumulators that wake workers up have one device and one name in all
//     files, and no other node uses them or has their names;
//   - each write of a gradient waits and is in no loop; no other node waits;
//   - a run of a name counts as a step if, and only if, it writes a gradient;
//   - the counts are reset before a trained variable is initialized or restored
//     from a checkpoint, and at no other time.
//
// Let steps[i] count the steps of worker i. Between two resets, steps[i] grows
// by one only after the run has passed the gate, when steps[i] - min(steps) was
// less than the bound; the minimum never shrinks. If a worker makes one step at
// a time, it is never further ahead than the bound, and only a worker that was
// less than the bound ahead makes an update.
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
