//===- lib/launch/Tasks.h - tasks and their settings ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LAUNCH_TASKS_H
#define GRAFT_LIB_LAUNCH_TASKS_H

#include "lib/strategy/Cluster.h"

namespace graft {

struct Task {
  std::string Job;
  unsigned Index = 0;

  /// `worker/1`.
  std::string str() const { return Job + "/" + std::to_string(Index); }
  /// Returns true if the run ends once all tasks like this one have ended.
  bool trains() const { return Job == "chief" || Job == "worker"; }
};

/// Returns all tasks in the order chief, workers, ps, evaluator.
std::vector<Task> tasksOf(const ClusterSpec &Cluster);

/// Replaces port 0 of the addresses by free ports, from \p Base on if it is not
/// 0. `:0` becomes `localhost:PORT`.
llvm::Error choosePorts(ClusterSpec &Cluster, unsigned Base);

/// Returns the value of `TF_CONFIG` for \p T.
std::string tfConfig(const ClusterSpec &Cluster, const Task &T);

/// Returns \p Argument with `{task}`, `{job}` and `{index}` replaced.
std::string fillIn(llvm::StringRef Argument, const Task &T);

} // namespace graft

#endif // GRAFT_LIB_LAUNCH_TASKS_H
