//===- lib/driver/BuildPipeline.cpp - a strategy to its passes --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/BuildPipeline.h"

using namespace llvm;

namespace graft {

/// Strategies that choose only the form of the output. With them, the default
/// strategy chooses the policies of variables.
static constexpr std::pair<StringLiteral, Lowering> Forms[] = {
    {"tpu", Lowering::Tpu}, {"ipu-multi-worker", Lowering::Workers}};

/// The default bucket size if each worker has its own graph.
static constexpr uint64_t WorkerBucketBytes = uint64_t(64) << 20;

std::vector<std::string> strategyNames() {
  std::vector<std::string> Names = builderNames();
  for (auto [Name, Form] : Forms)
    Names.push_back(Name.str());
  return Names;
}

StrategyOptions::StrategyOptions(StringRef Strategy) {
  const auto *Form =
      find_if(Forms, [&](const auto &F) { return F.first == Strategy; });
  if (Form == std::end(Forms))
    Assign.Strategy = Strategy.str();
  else
    To = Form->second;
  Builder = findBuilder(*Assign.Strategy);
}

/// Returns the type of the replicas' devices, or "" for the default of
/// `replicate`.
static StringRef typeOf(const StrategyOptions &O, bool OnGpus) {
  if (!O.DeviceType.empty() || !O.InputChoosesDevices)
    return O.DeviceType;
  return OnGpus ? "GPU" : "CPU";
}

std::vector<std::string> StrategyOptions::devices(bool OnGpus) const {
  std::vector<std::string> Devices = Replicate.Devices;
  if (!Devices.empty())
    return Devices;
  StringRef Type = typeOf(*this, OnGpus);
  if (Type.empty())
    Type = *Replicate.DeviceType;
  std::vector<std::string> Of = Tasks;
  // With --async, each worker runs the step of the chief on its own devices. So
  // the list has only the devices of the chief.
  Of.resize(Async || Of.empty() ? 1 : Of.size());
  for (StringRef Task : Of)
    for (unsigned I = 0; I < Replicas; ++I)
      Devices.push_back((Task + "/device:" + Type + ":" + Twine(I)).str());
  return Devices;
}

static ReplicateOptions replicateOptions(const StrategyOptions &O,
                                         bool OnGpus) {
  ReplicateOptions R = O.Replicate;
  // Each worker prepares its shard of the feed and its default values itself.
  if (O.To != Lowering::Replicas || O.BetweenGraphs)
    R.Prepared = false;
  if (O.To == Lowering::Workers || O.BetweenGraphs)
    R.Defaults = false;
  for (const std::string &Name : O.WholeFeeds)
    R.Feed.add(Name + "=copy");
  if (!O.Tasks.empty()) {
    R.Devices = O.devices(OnGpus);
  } else if (O.Replicas != 0) {
    R.Replicas = O.Replicas;
    if (StringRef Type = typeOf(O, OnGpus); !Type.empty())
      R.DeviceType = Type.str();
  }
  return R;
}

Pipeline buildPipeline(const StrategyOptions &O, bool OnGpus) {
  Pipeline P;
  bool IsTpu = O.To == Lowering::Tpu, Workers = O.To == Lowering::Workers;
  if (O.Devices.Map.isGiven())
    P.add(createMapDevicesPass(O.Devices));
  InlineFunctionsOptions Inline;
  Inline.Fetch = O.Fetches;
  P.add(createInlineFunctionsPass(Inline));
  // A TPU computation reads its variables first, and writes them last.
  OrderReadsOptions Reads;
  Reads.Fetch = O.Fetches;
  if (!IsTpu)
    P.add(createOrderReadsPass(Reads));
  ReplicateOptions Replicate = replicateOptions(O, OnGpus);
  // Each process reads its own elements.
  if (*O.Replicate.Batch == BatchSource::PerReplica &&
      O.To == Lowering::Replicas && !O.BetweenGraphs) {
    JoinBatchesOptions Join;
    Join.Elements = Replicate.Devices->empty()
                        ? *Replicate.Replicas
                        : static_cast<unsigned>(Replicate.Devices->size());
    P.add(createJoinBatchesPass(Join));
  }
  AssignStrategyOptions Assign = O.Assign;
  bool HasRecord = Assign.forAll() == Policy::None;
  if (HasRecord)
    Assign.Devices = O.devices(OnGpus);
  if (HasRecord && !O.Share.Servers->empty())
    Assign.Servers = *O.Share.Servers;
  P.add(createAssignStrategyPass(Assign));
  // Some builders and each strategy file may partition variables.
  if (HasRecord && (!O.Builder || O.Builder->Cuts))
    P.add(createPartitionVariablesPass());
  P.add(createReplicatePass(Replicate));
  P.add(createMirrorVariablesPass(O.Mirror));
  P.add(createShareVariablesPass(O.Share));
  // The plain strategies never ask for proxies.
  if (!O.isPlain() || O.Assign.LocalReplication)
    P.add(createProxyVariablesPass());
  P.add(createPlaceDrawsPass());
  if (O.BatchNorm)
    P.add(createSyncBatchNormPass(*O.BatchNorm));
  InsertReductionsOptions Reduce = O.Reduce;
  Reduce.Fetch = O.Fetches;
  // A tensor cannot leave a worker or a TPU and come back within a step.
  if (!Reduce.What.isGiven() && O.To != Lowering::Replicas)
    Reduce.What = Fallback::Mean;
  P.add(createInsertReductionsPass(Reduce));
  // A TPU runs its computation as a whole, reductions included. A node between
  // two parts of the computation cannot run outside of it.
  if (!IsTpu)
    P.add(createRefineCopiesPass());
  MergeFetchesOptions Merge;
  Merge.Fetch = O.Fetches;
  Merge.Pick = IsTpu;
  Merge.Forward =
      O.To == Lowering::Replicas && O.MergesForward && !O.BetweenGraphs;
  P.add(createMergeFetchesPass(Merge));
  // Only a strategy file or the option of assign-strategy sets a compressor.
  if (!IsTpu && (!O.Builder || O.Assign.Compressor.isGiven()))
    P.add(createCompressReductionsPass());
  FuseReductionsOptions Fuse = O.Fuse;
  // Each message between processes has a latency, and sending a large tensor
  // costs more than copying it into a bucket.
  if ((Workers || (O.BetweenGraphs && !O.Async)) && !Fuse.BucketBytes.isGiven())
    Fuse.BucketBytes = WorkerBucketBytes;
  if (!IsTpu &&
      (!O.isPlain() || Fuse.BucketBytes != 0 || O.Assign.GroupSize.isGiven()))
    P.add(createFuseReductionsPass(Fuse));
  if (O.Accumulates && !IsTpu)
    P.add(createInsertAccumulatorsPass());
  InsertCollectivesOptions Collectives = O.Collectives;
  if (Workers)
    Collectives.How = ReductionKind::Workers;
  // The input chose these GPUs, so the machine may lack them. All replicas then
  // share one device, where members of a collective would wait forever.
  else if (!Collectives.How.isGiven() && O.InputChoosesDevices && OnGpus)
    Collectives.How = ReductionKind::Add;
  if (!IsTpu)
    P.add(createInsertCollectivesPass(Collectives));
  if (!IsTpu && !Workers && !O.BetweenGraphs && !O.EvenBatches)
    P.add(createRepeatRowsPass());
  if (O.BetweenGraphs && !O.Async)
    P.add(createWeighRowsPass());
  if (!Workers)
    P.add(createRefreshCopiesPass());
  if (O.CheckCopies)
    P.add(createCheckCopiesPass());
  P.add(createPlacePass());
  CheckReplicationOptions Check;
  Check.Fetch = O.Fetches;
  P.add(createCheckReplicationPass(Check));
  if (IsTpu) {
    TpuReplicateOptions Tpu;
    Tpu.Fetch = O.Fetches;
    P.add(createTpuReplicatePass(Tpu));
  } else if (Workers) {
    P.add(createSplitWorkersPass(O.Split));
  } else {
    P.add(createExpandReplicasPass());
  }
  return P;
}

} // namespace graft
