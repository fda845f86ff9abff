//===- lib/driver/BuildPipeline.h - options to pipeline text ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A strategy is a pipeline. It is made as text, the same that --passes takes,
// so that what a command line means can be printed, edited and run again.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_BUILDPIPELINE_H
#define GRAFT_LIB_DRIVER_BUILDPIPELINE_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace graft {

/// What the command line says about the wanted distribution.
struct StrategyOptions {
  std::string Strategy = "all-reduce";
  unsigned Replicas = 0;            ///< 0: see Devices.
  std::string DeviceType;           ///< Empty: the default of `replicate`.
  std::vector<std::string> Devices; ///< Full device names.
  /// Of ipu-multi-worker: which of Devices is this worker's.
  unsigned Worker = 0;
  std::vector<std::string> Feeds; ///< NAME or NAME=HOW.
  std::string Batch;              ///< Empty: global.
  std::vector<std::string> Fetches;
  bool MergesHeads = true;            ///< Of `merge-fetches`; --fetch=none.
  std::string Reduction;              ///< Empty: auto.
  bool AskedForDevices = true;        ///< Or chosen: then auto is add.
  std::vector<std::string> Grads;     ///< VAR=TENSOR,mean|sum.
  std::vector<std::string> Variables; ///< GLOB=POLICY[,AGGREGATION].
  std::string BatchNorm;              ///< exact or sync; else local.
  uint64_t BucketBytes = 0;           ///< Of fused reductions; 0: by group.
  bool NoGradientSlots = false;
  bool CheckCopies = false; ///< A step on stale copies fails.

  // What makes a record of even a plain strategy: options of assign-strategy.
  std::string Resources; ///< A file.
  std::string EmitStrategy;
  std::string Seed;
  std::string MinShardSize;
  std::string MaxShards;
  std::string GroupSize;
  std::string LocalReplication; ///< "true", or empty.
  std::string Spec;
  std::string Compressor;

  /// Whether variables have more to say than a policy.
  bool hasRecord() const;
};

/// The strategies that buildPipeline knows; any other is a file.
std::vector<std::string> strategyNames();

/// The devices of the replicas.
std::vector<std::string> devicesOf(const StrategyOptions &Options);

/// The pipeline of \p Options.Strategy, a known one or a file. Options that say
/// nothing are left out.
std::string buildPipeline(const StrategyOptions &Options);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_BUILDPIPELINE_H
