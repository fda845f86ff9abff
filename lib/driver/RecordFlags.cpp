//===- lib/driver/RecordFlags.cpp - flags of records ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/RecordFlags.h"

#include "lib/driver/Distribution.h"
#include "lib/strategy/RecordFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace graft {
namespace {

using Text = cl::opt<std::string>;

Text EmitStrategy("emit-strategy", cl::value_desc("file"),
                  cl::cat(distributionCategory()),
                  cl::desc("Write what the strategy decides of each variable; "
                           "text when it ends in .pbtxt"));
Text Seed("seed", cl::value_desc("N"), cl::cat(distributionCategory()),
          cl::desc("Seed of the random choices of a strategy. Default: 0"));
Text MinShardSize(
    "min-shard-size", cl::value_desc("size"), cl::cat(distributionCategory()),
    cl::desc("Minimum bytes of a part of a variable. Default: 256K"));
Text MaxShards("max-shards", cl::value_desc("N"),
               cl::cat(distributionCategory()),
               cl::desc("Maximum number of parts of a variable. Default: 16"));
Text GroupSize("group-size", cl::value_desc("N"),
               cl::cat(distributionCategory()),
               cl::desc("How many variables' gradients are reduced as one "
                        "group. Default: 128"));
Text Spec("spec", cl::value_desc("how"), cl::cat(distributionCategory()),
          cl::desc("How collectives work: auto (default), nccl or ring"));
cl::opt<bool> LocalReplication(
    "local-replication", cl::cat(distributionCategory()),
    cl::desc("Replicas read local copies (proxies) of variables on servers"));
Text
    Compressor("compressor", cl::value_desc("name"),
               cl::cat(distributionCategory()),
               cl::desc("Compressor of all-reduced gradients: none (default), "
                        "fp16, bf16, fp16-ef or bf16-ef, with error feedback"));

/// The number \p Flag, from \p Least on.
Error takeNumber(const Text &Flag, uint64_t Least, std::string &Result) {
  if (!given(Flag))
    return Error::success();
  auto Value = parseSize(Flag, UINT32_MAX);
  if (!Value || *Value < Least)
    return failure("--" + Flag.ArgStr + ": '" + Flag +
                   "' is not a number from " + Twine(Least) + " to " +
                   Twine(UINT32_MAX));
  Result = utostr(*Value);
  return Error::success();
}

} // namespace

std::vector<std::pair<const char *, bool>> recordFlags() {
  return {{"--emit-strategy", given(EmitStrategy)},
          {"--seed", given(Seed)},
          {"--min-shard-size", given(MinShardSize)},
          {"--max-shards", given(MaxShards)},
          {"--group-size", given(GroupSize)},
          {"--spec", given(Spec)},
          {"--local-replication", given(LocalReplication)},
          {"--compressor", given(Compressor)}};
}

std::string emittedStrategy() { return EmitStrategy; }

Error checkRecordFlags(StrategyOptions &S) {
  for (auto [Name, Given] : recordFlags())
    if (Given && (S.Strategy == "tpu" || S.Strategy == "ipu-multi-worker"))
      return failure(Twine(Name) + " does not go with --strategy=" +
                     S.Strategy + ", which decides nothing about variables");
  if (!is_contained(strategyNames(), S.Strategy))
    for (auto [Name, Given] : recordFlags())
      if (Given && Name != StringRef("--emit-strategy"))
        return failure(Twine(Name) + " does not go with the strategy file '" +
                       S.Strategy + "', which gives it for each variable");
  if (given(EmitStrategy) && (EmitStrategy.empty() || EmitStrategy == "-"))
    return failure("--emit-strategy needs the name of a file");
  S.EmitStrategy = EmitStrategy;
  if (Error E = takeNumber(Seed, 0, S.Seed))
    return E;
  if (Error E = takeNumber(MinShardSize, 1, S.MinShardSize))
    return E;
  if (Error E = takeNumber(MaxShards, 1, S.MaxShards))
    return E;
  if (Error E = takeNumber(GroupSize, 1, S.GroupSize))
    return E;
  if (given(Spec))
    if (Error E = checkWord("--spec", Spec, {"auto", "nccl", "ring"}))
      return E;
  if (given(Compressor))
    if (Error E = checkWord("--compressor", Compressor,
                            {"none", "fp16", "fp16-ef", "bf16", "bf16-ef"}))
      return E;
  S.LocalReplication = LocalReplication ? "true" : "";
  S.Spec = Spec;
  S.Compressor = Compressor;
  return Error::success();
}

Error checkStrategyName(const std::string &Strategy) {
  if (is_contained(strategyNames(), Strategy) ||
      sys::fs::is_regular_file(Strategy))
    return Error::success();
  // No strategy has a name like that.
  if (StringRef(Strategy).find_first_of("/.") != StringRef::npos)
    return failure("--strategy: there is no file '" + Strategy + "'");
  std::vector<std::string> Known = strategyNames();
  Known.emplace_back("the name of a strategy file");
  return checkWord("--strategy", Strategy, Known);
}

Expected<std::vector<std::string>>
devicesOfStrategyFile(const std::string &File) {
  Expected<StrategyRecord> Record = readRecord(File);
  if (!Record)
    return Record.takeError();
  if (Record->Replicas.empty())
    return failure("--strategy: '" + File +
                   "' lists no replicas; give --replicas or --devices");
  return resourcesOf(Record->Replicas).replicaDevices();
}

} // namespace graft
