//===- lib/strategy/Cluster.h - devices and clusters ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The devices of replicas, from a list or the description of a cluster. Rules
// and message texts are those of TensorFlow's MirroredStrategy. This code
// refuses some lists that MirroredStrategy accepts in graph mode, because the
// graph would not do what the user asks for.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_CLUSTER_H
#define GRAFT_LIB_STRATEGY_CLUSTER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace graft {

/// The contents of `TF_CONFIG`.
struct ClusterSpec {
  /// `host:port` of each task, by job.
  std::map<std::string, std::vector<std::string>> Jobs;
  /// The task that reads `TF_CONFIG`, if it is named.
  std::string TaskType;
  std::optional<unsigned> TaskIndex;
};

/// Parses `{"cluster": {"worker": ["host:port", ...]}, "task": {...}}`. Port 0
/// means any free port and needs no host. An error names \p File, and line and
/// column if it is a JSON error.
llvm::Expected<ClusterSpec> parseCluster(llvm::StringRef Text,
                                         llvm::StringRef File);

/// Reads the cluster in the file \p File.
llvm::Expected<ClusterSpec> readCluster(llvm::StringRef File);

/// Returns the tasks that train, `/job:worker/task:0` ...: the chief first.
std::vector<std::string> trainingTasks(const ClusterSpec &Cluster);

/// Returns the devices of parameter servers, `/job:ps/task:0/device:CPU:0` ...
std::vector<std::string> serverDevices(const ClusterSpec &Cluster);

/// Returns the full names of the devices in \p List, one for each replica, or
/// an error if they cannot be used.
llvm::Expected<std::vector<std::string>>
checkDevices(llvm::ArrayRef<std::string> List);

/// Returns true if \p Devices belong to more than one task.
bool areOfSeveralTasks(llvm::ArrayRef<std::string> Devices);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_CLUSTER_H
