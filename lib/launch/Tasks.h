//===- lib/launch/Tasks.h - what a process is told --------------*- C++ -*-===//
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
  /// Whether all is done once it, and those like it, have ended.
  bool trains() const { return Job == "chief" || Job == "worker"; }
};

/// All of them: chief, workers, ps, evaluator.
std::vector<Task> tasksOf(const ClusterSpec &Cluster);

/// Puts ports that are free into the addresses with port 0, or the free ones
/// from \p Base on if it is not 0. `:0` becomes `localhost:PORT`.
llvm::Error choosePorts(ClusterSpec &Cluster, unsigned Base);

/// The value of `TF_CONFIG`.
std::string tfConfig(const ClusterSpec &Cluster, const Task &T);

/// \p Argument with what stands for `{task}`, `{job}` and `{index}`.
std::string fillIn(llvm::StringRef Argument, const Task &T);

} // namespace graft

#endif // GRAFT_LIB_LAUNCH_TASKS_H
