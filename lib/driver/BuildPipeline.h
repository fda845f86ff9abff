//===- lib/driver/BuildPipeline.h - a strategy to its passes ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Builds the pipeline of passes that implements a strategy. A user can print
// this pipeline, edit it and run it with --passes.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_BUILDPIPELINE_H
#define GRAFT_LIB_DRIVER_BUILDPIPELINE_H

#include "lib/pass/PassManager.h"

#include "passes/Options.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// The form of the output.
enum class Lowering : uint8_t { Replicas, Tpu, Workers };

/// The wanted distribution.
struct StrategyOptions {
  /// \p Strategy is one of strategyNames() or a file.
  explicit StrategyOptions(llvm::StringRef Strategy = "all-reduce");

  const StrategyTraits *Builder; ///< Null: the strategy is a file.
  Lowering To = Lowering::Replicas;

  unsigned Replicas = 0;  ///< Per task; 0: see Replicate.Devices.
  std::string DeviceType; ///< Empty: see InputChoosesDevices.
  /// If true, replicas are on GPUs if the input names a GPU, else on CPUs. If
  /// false, replicas are on the default devices of `replicate`.
  bool InputChoosesDevices = false;
  std::vector<std::string> Tasks; ///< Empty: tasks have no names.
  bool BetweenGraphs = false;     ///< Write a graph for each of Tasks.
  /// With BetweenGraphs: each worker runs steps at its own pace. It waits for
  /// another worker only if that worker is Staleness steps behind.
  bool Async = false;
  unsigned Staleness = 0; ///< 0: workers never wait.
  /// With BetweenGraphs: the only worker whose graph is written.
  std::optional<unsigned> OnlyWorker;

  MapDevicesOptions Devices; ///< Applied first, to the devices of the input.
  AssignStrategyOptions Assign;
  ReplicateOptions Replicate;
  MirrorVariablesOptions Mirror;
  ShareVariablesOptions Share;
  std::optional<SyncBatchNormOptions> BatchNorm;
  InsertReductionsOptions Reduce;
  FuseReductionsOptions Fuse;
  InsertCollectivesOptions Collectives;
  SplitWorkersOptions Split;
  std::vector<std::string> Fetches;
  /// Feeds that every replica gets whole, in addition to Replicate.Feed.
  std::vector<std::string> WholeFeeds;
  /// The option `forward` of `merge-fetches`; false with --fetch=none.
  bool MergesForward = true;
  bool Accumulates = false; ///< Gradients of shared variables are accumulated.
  bool EvenBatches = false; ///< N divides the rows of every step.
  bool CheckCopies = false; ///< A step with stale copies fails.

  /// Returns the devices of the replicas.
  std::vector<std::string> devices(bool OnGpus) const;
  /// Returns true if the strategy has the same policy for all variables.
  bool isPlain() const { return Builder && Builder->ForAll != Policy::None; }
};

/// Returns the names of strategies. Any other word is the path of a file.
std::vector<std::string> strategyNames();

/// Returns the pipeline of \p O for an input with or without GPUs.
Pipeline buildPipeline(const StrategyOptions &O, bool OnGpus = false);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_BUILDPIPELINE_H
