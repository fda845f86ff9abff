//===- lib/strategy/Cluster.h - devices and clusters ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Which devices replicas run on, when a list or the description of a cluster
// says so. The rules are those of TensorFlow's MirroredStrategy, and so are the
// words of its messages; it accepts some lists in graph mode that are refused
// here, since the graph would not be what was asked for.
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

/// What `TF_CONFIG` holds.
struct ClusterSpec {
  /// `host:port` of each task, by job.
  std::map<std::string, std::vector<std::string>> Jobs;
  /// The task that reads it, if it says so.
  std::string TaskType;
  std::optional<unsigned> TaskIndex;
};

/// Parses `{"cluster": {"worker": ["host:port", ...]}, "task": {...}}`. A port
/// 0 stands for one that is free, and then there need be no host. An error says
/// where in \p File it is, and line and column if it is one of JSON.
llvm::Expected<ClusterSpec> parseCluster(llvm::StringRef Text,
                                         llvm::StringRef File);

/// The cluster in the file \p File.
llvm::Expected<ClusterSpec> readCluster(llvm::StringRef File);

/// The tasks that train, `/job:worker/task:0` and so on: the chief first.
std::vector<std::string> trainingTasks(const ClusterSpec &Cluster);

/// The devices of parameter servers, `/job:ps/task:0/device:CPU:0` and so on.
std::vector<std::string> serverDevices(const ClusterSpec &Cluster);

/// Full names of the devices in \p List, one for each replica, or why they
/// cannot be.
llvm::Expected<std::vector<std::string>>
checkDevices(llvm::ArrayRef<std::string> List);

/// Whether \p Devices are of more than one task.
bool areOfSeveralTasks(llvm::ArrayRef<std::string> Devices);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_CLUSTER_H
