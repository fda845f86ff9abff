//===- lib/strategy/Plan.h - strategies side by side ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The predicted cost of each builder's strategy, and the strategy `auto`, which
// is based on these predictions.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_PLAN_H
#define GRAFT_LIB_STRATEGY_PLAN_H

#include "lib/strategy/Builders.h"
#include "lib/strategy/Cost.h"

namespace graft {

/// Builds the strategy `auto`. Visits the variables with the most bytes first,
/// and selects for each the choice that adds the least time. Returns the
/// strategy of a builder if that is faster.
StrategyRecord buildAuto(llvm::ArrayRef<VariableRow> Variables,
                         const ResourceSpec &Spec,
                         const BuilderOptions &Options);

struct PlanRow {
  std::string Strategy;
  Prediction Cost;
};

/// Returns the predicted costs of all builders and `auto`, the fastest first.
/// Each includes the gather of \p Joined.
std::vector<PlanRow> makePlan(llvm::ArrayRef<VariableRow> Variables,
                              const ResourceSpec &Spec,
                              const BuilderOptions &Options,
                              JoinedBytes Joined = {});

/// Returns \p Rows as a table for people, after lines about the input.
std::string planText(llvm::ArrayRef<PlanRow> Rows,
                     llvm::ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined = {});
/// Returns \p Rows as YAML, in bytes and seconds.
std::string planYaml(llvm::ArrayRef<PlanRow> Rows,
                     llvm::ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined = {});
/// Returns \p Rows as JSON.
std::string planJson(llvm::ArrayRef<PlanRow> Rows,
                     llvm::ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined = {});

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_PLAN_H
