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

/// What --plan asks for.
llvm::Expected<std::optional<PlanFormat>> choosePlan(bool HasPasses);

/// What each strategy is predicted to cost for the graph in \p Input on the
/// machines of \p Strategy. Messages of reading it are errors.
llvm::Expected<std::string> printPlan(PlanFormat Format,
                                      const StrategyOptions &Strategy,
                                      llvm::MemoryBufferRef Input,
                                      const ReadOptions &Read);

/// What a step of each strategy is predicted to cost.
struct StepPlan {
  ResourceSpec Machines;
  std::string Chosen; ///< The strategy that is taken, maybe none of the rows.
  std::vector<PlanRow> Rows; ///< The fastest first.
};

/// That of a graph with \p Variables that was rewritten for \p Strategy;
/// \p Diags say what is gathered.
StepPlan planSteps(llvm::ArrayRef<VariableRow> Variables,
                   const StrategyOptions &Strategy, bool OnGpus,
                   const DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_PLAN_H
