//===- lib/driver/BuildPipeline.h - a strategy to its passes ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A strategy is a pipeline: what a command line means can be printed, edited
// and run again with --passes.
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

/// What the program becomes at the end.
enum class Lowering : uint8_t { Replicas, Tpu, Workers };

/// The wanted distribution.
struct StrategyOptions {
  /// \p Strategy is one of strategyNames() or a file.
  explicit StrategyOptions(llvm::StringRef Strategy = "all-reduce");

  const StrategyTraits *Builder; ///< Null: a file says what it is.
  Lowering To = Lowering::Replicas;

  unsigned Replicas = 0;  ///< Of each task; 0: see Replicate.Devices.
  std::string DeviceType; ///< Empty: see InputChoosesDevices.
  /// GPUs if the input names one, else CPUs; or else the default of replicate.
  bool InputChoosesDevices = false;
  std::vector<std::string> Tasks; ///< Empty: none has a name.
  bool BetweenGraphs = false;     ///< A graph for each of Tasks.
  /// Of these: each is a step on its own, and no worker waits for another, but
  /// for one that is Staleness steps behind.
  bool Async = false;
  unsigned Staleness = 0; ///< 0: it never waits.
  /// Of these, the only one whose graph is written.
  std::optional<unsigned> OnlyWorker;

  MapDevicesOptions Devices; ///< Where what the input places goes first.
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
  /// Feeds that every replica gets whole, beside what Replicate.Feed says.
  std::vector<std::string> WholeFeeds;
  bool MergesForward = true; ///< Of `merge-fetches`; --fetch=none.
  bool Accumulates = false;  ///< Gradients of shared variables.
  bool CheckCopies = false;  ///< A step on stale copies fails.

  /// The devices of the replicas.
  std::vector<std::string> devices(bool OnGpus) const;
  /// Whether the strategy is one policy for all variables.
  bool isPlain() const { return Builder && Builder->ForAll != Policy::None; }
};

/// The strategies that have names; any other is a file.
std::vector<std::string> strategyNames();

/// The pipeline of \p O for an input that names GPUs or not.
Pipeline buildPipeline(const StrategyOptions &O, bool OnGpus = false);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_BUILDPIPELINE_H
