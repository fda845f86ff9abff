//===- lib/driver/BuildPipeline.cpp - options to pipeline text --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/BuildPipeline.h"

#include "lib/pass/PipelineText.h"
#include "lib/strategy/Builders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <utility>

using namespace llvm;

namespace graft {

std::vector<std::string> strategyNames() {
  std::vector<std::string> Names = builderNames();
  Names.insert(Names.end(), {"tpu", "ipu-multi-worker"});
  return Names;
}

std::vector<std::string> devicesOf(const StrategyOptions &O) {
  std::vector<std::string> Devices = O.Devices;
  for (unsigned I = 0; Devices.size() < O.Replicas; ++I)
    Devices.push_back(
        (Twine("/device:") +
         (O.DeviceType.empty() ? "GPU" : StringRef(O.DeviceType)) + ":" +
         Twine(I))
            .str());
  return Devices;
}

namespace {

using OptionList = std::vector<std::pair<std::string, std::string>>;

void addPass(std::string &Pipeline, StringRef Name,
             const OptionList &Options = {}) {
  if (!Pipeline.empty())
    Pipeline += ',';
  Pipeline += Name;
  std::string Text;
  for (const auto &[Key, Value] : Options)
    if (!Value.empty())
      Text += (Text.empty() ? "" : ",") + Key + "=" + quotePipelineValue(Value);
  if (!Text.empty())
    Pipeline += "{" + Text + "}";
}

std::string list(const std::vector<std::string> &Values) {
  return join(Values, ";");
}

/// Whether a strategy of this name is a policy for all variables.
bool isPlain(StringRef Strategy) {
  return is_contained({"all-reduce", "ps", "tpu", "ipu-multi-worker"},
                      Strategy);
}

void addAssignStrategy(std::string &P, const StrategyOptions &O) {
  bool IsKnown = is_contained(strategyNames(), O.Strategy);
  bool IsDefault = O.Strategy == "all-reduce" || O.Strategy == "tpu" ||
                   O.Strategy == "ipu-multi-worker";
  std::string Name = IsDefault ? "" : O.Strategy;
  if (!O.hasRecord())
    return addPass(P, "assign-strategy", {{"strategy", Name}});
  addPass(P, "assign-strategy",
          {{"strategy", Name},
           {"devices", list(devicesOf(O))},
           {"resources", O.Resources},
           {"seed", O.Seed},
           {"min-shard-size", O.MinShardSize},
           {"max-shards", O.MaxShards},
           {"group-size", O.GroupSize},
           {"spec", O.Spec},
           {"compressor", O.Compressor},
           {"local-replication", O.LocalReplication},
           {"emit", O.EmitStrategy}});
  // A file may say anything.
  if (!IsKnown || builderCuts(O.Strategy))
    addPass(P, "partition-variables");
}

} // namespace

bool StrategyOptions::hasRecord() const {
  return !isPlain(Strategy) ||
         any_of(ArrayRef({&Resources, &EmitStrategy, &Seed, &MinShardSize,
                          &MaxShards, &GroupSize, &Spec, &Compressor,
                          &LocalReplication}),
                [](const std::string *Option) { return !Option->empty(); });
}

std::string buildPipeline(const StrategyOptions &O) {
  std::string P;
  bool IsTpu = O.Strategy == "tpu";
  std::string Slots = O.NoGradientSlots ? "true" : "";
  addPass(P, "inline-functions", {{"fetch", list(O.Fetches)}});
  bool Workers = O.Strategy == "ipu-multi-worker";
  addAssignStrategy(P, O);
  addPass(P, "replicate",
          {{"replicas", O.Replicas ? utostr(O.Replicas) : ""},
           {"device-type", O.DeviceType},
           {"devices", list(O.Devices)},
           {"feed", list(O.Feeds)},
           {"batch", O.Batch == "global" ? "" : O.Batch}});
  addPass(P, "mirror-variables", {{"rules", list(O.Variables)}});
  addPass(P, "share-variables");
  // Nothing of these asks for proxies.
  if (!isPlain(O.Strategy) || !O.LocalReplication.empty())
    addPass(P, "proxy-variables");
  addPass(P, "place-draws");
  if (O.BatchNorm == "exact" || O.BatchNorm == "sync")
    addPass(P, "sync-batch-norm",
            {{"how", O.BatchNorm == "sync" ? "" : O.BatchNorm}});
  addPass(P, "insert-reductions",
          {{"grad", list(O.Grads)}, {"no-gradient-slots", Slots}});
  // A TPU runs its computation as a whole: what could be outside between two
  // parts of it stays inside, and reductions are part of it.
  if (!IsTpu)
    addPass(P, "refine-copies");
  addPass(P, "merge-fetches",
          {{"fetch", list(O.Fetches)},
           {"pick", IsTpu ? "true" : ""},
           {"heads", IsTpu || Workers || !O.MergesHeads ? "" : "true"}});
  // What a record says of sums; a plain strategy has no compressors and groups.
  bool IsFile = !is_contained(strategyNames(), O.Strategy);
  if (!IsTpu && (IsFile || !O.Compressor.empty()))
    addPass(P, "compress-reductions");
  if (!IsTpu && (IsFile || !isPlain(O.Strategy) || O.BucketBytes != 0 ||
                 !O.GroupSize.empty()))
    addPass(P, "fuse-reductions",
            {{"bucket-bytes", O.BucketBytes ? utostr(O.BucketBytes) : ""}});
  bool Accumulates = O.Reduction == "accumulator";
  if (Accumulates && !IsTpu)
    addPass(P, "insert-accumulators");
  if (!IsTpu)
    addPass(P, "insert-collectives",
            {{"reduction", Workers                                 ? "workers"
                           : O.Reduction != "auto" && !Accumulates ? O.Reduction
                           : O.AskedForDevices                     ? ""
                                                                   : "add"}});
  if (!Workers)
    addPass(P, "refresh-copies");
  if (O.CheckCopies)
    addPass(P, "check-copies");
  addPass(P, "place");
  addPass(P, "check-replication");
  if (IsTpu)
    addPass(P, "tpu-replicate", {{"fetch", list(O.Fetches)}});
  else if (Workers)
    addPass(P, "split-workers",
            {{"worker", O.Worker != 0 ? utostr(O.Worker) : ""}});
  else
    addPass(P, "expand-replicas");
  return P;
}

} // namespace graft
