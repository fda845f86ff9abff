//===- lib/driver/Plan.h - the flag --plan ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_PLAN_H
#define GRAFT_LIB_DRIVER_PLAN_H

#include "lib/driver/Distribution.h"
#include "lib/io/Module.h"
#include "lib/strategy/Builders.h"

#include <optional>

namespace graft {

/// What --plan asks for.
struct PlanRequest {
  ResourceSpec Machines;
  /// For an input that names GPUs, if the flags leave the devices to it.
  std::optional<ResourceSpec> MachinesOnGpus;
  BuilderOptions Options;
  bool Yaml = false;
};

llvm::Expected<std::optional<PlanRequest>>
choosePlan(const OtherOptions &Other);

/// What each strategy is predicted to cost for the graph in \p Input. Messages
/// of reading it are errors.
llvm::Expected<std::string> printPlan(const PlanRequest &Request,
                                      llvm::MemoryBufferRef Input,
                                      InputKind Kind);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_PLAN_H
