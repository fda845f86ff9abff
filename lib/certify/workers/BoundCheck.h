//===- lib/certify/workers/BoundCheck.h - nobody runs ahead -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The files of workers that count their steps (lib/program/forms/StepCount.h).
// What is checked of each file:
//
//   - what counts and waits is, node for node, what StepCount writes for this
//     worker, of so many, and for the bound of all; the variable and what wakes
//     workers up are at one place under one name in all files, and nothing else
//     uses them or has their names;
//   - what writes a gradient waits, nothing else does, and it is in no loop;
//   - every name of the input that is run and writes a gradient is counted, and
//     no other;
//   - the counts become zeros before what is trained gets a first value, or
//     that of a checkpoint, and at no other time.
//
// So between two such values, with steps[i] counting the steps of worker i:
// steps[i] grows by one only after the gate has let this run through, when
// steps[i] - min(steps) was less than the bound; the least never shrinks. If a
// worker makes one step at a time, it is never further ahead than the bound,
// and an update is made only by who was less than the bound ahead.
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

/// What is the same for all files.
struct BoundPlan {
  const Graph &In;
  const llvm::StringSet<> &Local;   ///< Variables that each worker has.
  const llvm::StringSet<> &Trained; ///< Variables that gradients are for.
  const llvm::StringSet<> &Runs;    ///< What is run of the input.
  unsigned Workers = 0;
  int64_t Ahead = 0;
};

/// Where steps are counted.
struct Counter {
  std::string Name, Device;
};

/// The file \p G of worker \p Worker without what counts its steps and waits,
/// if that is as above. \p At is where the files before it count, if there are
/// any. Null after an error.
std::unique_ptr<Graph> withoutBound(const Graph &G, unsigned Worker,
                                    const BoundPlan &Plan,
                                    std::optional<Counter> &At,
                                    DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_BOUNDCHECK_H
