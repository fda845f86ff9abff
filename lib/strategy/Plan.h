//===- lib/strategy/Plan.h - strategies side by side ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What each builder's strategy is predicted to cost, and the strategy `auto`,
// which is made of these predictions.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_PLAN_H
#define GRAFT_LIB_STRATEGY_PLAN_H

#include "lib/strategy/Builders.h"
#include "lib/strategy/Cost.h"

namespace graft {

/// The strategy `auto`: for each variable, those with the most bytes first,
/// what adds the least time; or that of a builder whose time is less.
StrategyRecord buildAuto(llvm::ArrayRef<VariableRow> Variables,
                         const ResourceSpec &Spec,
                         const BuilderOptions &Options);

struct PlanRow {
  std::string Strategy;
  Prediction Cost;
};

/// All builders and `auto`, the fastest first. All join \p Joined.
std::vector<PlanRow> makePlan(llvm::ArrayRef<VariableRow> Variables,
                              const ResourceSpec &Spec,
                              const BuilderOptions &Options,
                              JoinedBytes Joined = {});

/// \p Rows as a table for people, after a line that says of what.
std::string planText(llvm::ArrayRef<PlanRow> Rows,
                     llvm::ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined = {});
/// The same as YAML, in bytes and seconds.
std::string planYaml(llvm::ArrayRef<PlanRow> Rows,
                     llvm::ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined = {});
/// The same as JSON.
std::string planJson(llvm::ArrayRef<PlanRow> Rows,
                     llvm::ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined = {});

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_PLAN_H
