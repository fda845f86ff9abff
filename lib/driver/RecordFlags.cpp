//===- lib/driver/RecordFlags.cpp - flags of records ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/RecordFlags.h"

#include "lib/driver/OptionFlag.h"
#include "lib/strategy/RecordFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace graft {
namespace {

OptionFlag EmitStrategy(&AssignStrategyOptions::Emit, "emit-strategy",
                        cl::value_desc("file"));
OptionFlag Seed(&AssignStrategyOptions::Seed, cl::value_desc("N"));
OptionFlag MinShardSize(&AssignStrategyOptions::MinShardSize,
                        cl::value_desc("size"));
OptionFlag MaxShards(&AssignStrategyOptions::MaxShards, cl::value_desc("N"));
OptionFlag GroupSize(&AssignStrategyOptions::GroupSize, cl::value_desc("N"));
OptionFlag Spec(&AssignStrategyOptions::Spec, cl::value_desc("how"));
OptionFlag LocalReplication(&AssignStrategyOptions::LocalReplication);
OptionFlag Compressor(&AssignStrategyOptions::Compressor,
                      cl::value_desc("name"));

constexpr const cl::Option *Flags[] = {
    &EmitStrategy, &Seed, &MinShardSize,     &MaxShards,
    &GroupSize,    &Spec, &LocalReplication, &Compressor};

} // namespace

std::string recordFlag() {
  for (const cl::Option *Flag : Flags)
    if (given(*Flag))
      return ("--" + Flag->ArgStr).str();
  return "";
}

Error checkRecordFlags(StrategyOptions &S, const std::string &Strategy) {
  for (const cl::Option *Flag : Flags) {
    if (given(*Flag) && S.To != Lowering::Replicas)
      return usageError("--" + Flag->ArgStr + " does not go with --strategy=" +
                        Strategy + ", which decides nothing about variables");
    if (given(*Flag) && !S.Builder && Flag != &EmitStrategy)
      return usageError("--" + Flag->ArgStr +
                        " does not go with the strategy file '" + Strategy +
                        "', which gives it for each variable");
  }
  if (given(EmitStrategy) && (EmitStrategy.empty() || EmitStrategy == "-"))
    return usageError("--emit-strategy needs the name of a file");
  AssignStrategyOptions &A = S.Assign;
  if (Error E =
          takeAll(EmitStrategy, A, Seed, A, MinShardSize, A, MaxShards, A,
                  GroupSize, A, Spec, A, LocalReplication, A, Compressor, A))
    return E;
  if (S.Builder)
    return Error::success();
  Expected<StrategyRecord> Record = readRecord(Strategy);
  if (!Record)
    return Record.takeError();
  S.Assign.Record = std::make_shared<StrategyRecord>(std::move(*Record));
  return Error::success();
}

Error checkStrategyName(const std::string &Strategy) {
  if (is_contained(strategyNames(), Strategy) ||
      sys::fs::is_regular_file(Strategy))
    return Error::success();
  // No name of a strategy has these characters: a file was meant.
  if (StringRef(Strategy).find_first_of("/.") != StringRef::npos)
    return usageError("--strategy: there is no file '" + Strategy + "'");
  // Names of strategies in other programs, compared without the suffix
  // "Strategy".
  std::string Lower = StringRef(Strategy).lower();
  StringRef Other(Lower);
  Other.consume_back("strategy");
  StringRef Ours = StringSwitch<StringRef>(Other)
                       .Cases("mirrored", "horovod", "ddp", "all-reduce")
                       .Cases("parameterserver", "parameter-server", "ps")
                       .Case("multiworkermirrored",
                             "all-reduce --mode=between-graph --cluster=FILE")
                       .Case("centralstorage", "ps")
                       .Case("tpu", "tpu")
                       .Default("");
  if (!Ours.empty())
    return usageError("--strategy: graft has no strategy '" + Strategy +
                      "'; use the equivalent --strategy=" + Ours);
  std::vector<std::string> Known = strategyNames();
  Known.emplace_back("the name of a strategy file");
  return checkWord("--strategy", Strategy, Known);
}

} // namespace graft
