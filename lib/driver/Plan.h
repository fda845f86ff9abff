//===- lib/driver/Plan.h - the flag --plan ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_PLAN_H
#define GRAFT_LIB_DRIVER_PLAN_H

#include "lib/driver/Distribution.h"
#include "lib/io/Module.h"
#include "lib/io/read/Read.h"
#include "lib/strategy/Plan.h"
#include "lib/support/Diagnostics.h"

#include <optional>

namespace graft {

enum class PlanFormat : uint8_t { Table, Yaml, Json };

/// Returns the format that --plan asks for, if it is given.
llvm::Expected<std::optional<PlanFormat>> choosePlan(bool HasPasses);

/// Prints the predicted cost of a step with each strategy, for the graph in \p
/// Input on the machines of \p Strategy. Returns an error if the input does not
/// verify.
llvm::Expected<std::string> printPlan(PlanFormat Format,
                                      const StrategyOptions &Strategy,
                                      llvm::MemoryBufferRef Input,
                                      const ReadOptions &Read);

/// The predicted cost of a step with each strategy.
struct StepPlan {
  ResourceSpec Machines;
  std::string Chosen;        ///< The chosen strategy. It may have no row.
  std::vector<PlanRow> Rows; ///< The fastest first.
};

/// Returns the plan of a graph with \p Variables that was rewritten for
/// \p Strategy; \p Diags have the bytes that are gathered.
StepPlan planSteps(llvm::ArrayRef<VariableRow> Variables,
                   const StrategyOptions &Strategy, bool OnGpus,
                   const DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_PLAN_H
