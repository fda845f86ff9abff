//===- passes/Options.h - the options of passes -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// create<Class>Pass() for each pass, and the options that graft's pipelines
// set. All other options are in the files of their passes.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_PASSES_OPTIONS_H
#define GRAFT_PASSES_OPTIONS_H

#include "lib/graph/CopyWord.h"
#include "lib/pass/Pass.h"
#include "lib/strategy/Builders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <memory>

namespace graft {

struct AssignStrategyOptions : PassOptions {
  Option<std::string> Strategy{
      *this, "strategy",
      llvm::join(builderNames(), ", ") + ", or a strategy file", "all-reduce"};
  Option<Strings> Devices{*this, "devices", "The devices of the replicas"};
  Option<std::string> Resources{
      *this, "resources",
      "The machines of the replicas, as a resource_spec.yml"};
  Option<uint64_t> Seed{*this, "seed",
                        "Seed of the random choices of a strategy"};
  Option<uint64_t> MinShardSize{*this, "min-shard-size",
                                "Minimum bytes of a part of a variable",
                                BuilderOptions().MinShardBytes,
                                /*Least=*/1};
  Option<unsigned> MaxShards{*this, "max-shards",
                             "Maximum number of parts of a variable",
                             BuilderOptions().MaxShards,
                             /*Least=*/1};
  Option<unsigned> GroupSize{
      *this, "group-size",
      "The number of variables whose gradients are reduced as one group",
      BuilderOptions().GroupSize,
      /*Least=*/1};
  Option<Synchronizer::SpecType> Spec{
      *this, "spec", "The implementation of collectives: auto, nccl or ring"};
  Option<Synchronizer::CompressorType> Compressor{
      *this, "compressor",
      "Compressor of all-reduced gradients: none, fp16, bf16, fp16-ef or "
      "bf16-ef, with error feedback"};
  Option<bool> LocalReplication{
      *this, "local-replication",
      "Replicas read local copies (proxies) of variables on servers"};
  Option<Strings> Servers{*this, "servers",
                          "The devices of parameter servers; else the hosts of "
                          "the replicas"};
  Option<std::string> Emit{
      *this, "emit",
      "Write the strategy of each variable to this file; text if it ends in "
      ".pbtxt"};

  // The contents of the two files above, if these were read already.
  std::shared_ptr<const StrategyRecord> Record;
  std::shared_ptr<const ResourceSpec> Machines;

  /// Returns the policy of all variables if the strategy sets nothing else.
  /// Otherwise returns None: the pass makes a record.
  Policy forAll() const {
    const StrategyTraits *Builder = findBuilder(*Strategy);
    bool Alone = llvm::all_of(all(), [&](const OptionBase *O) {
      return O == &Strategy || !O->isGiven();
    });
    return Builder && Alone ? Builder->ForAll : Policy::None;
  }

  BuilderOptions forBuilder() const {
    return {Seed,      MinShardSize, MaxShards,  LocalReplication,
            GroupSize, Spec,         Compressor, Servers};
  }
};

struct AssignWorkersOptions : PassOptions {
  Option<Strings> Tasks{*this, "tasks",
                        "The workers, as /job:worker/task:0, the chief first"};
  Option<Strings> Names{*this, "names", "Nodes of the step that can be run"};
  Option<std::string> Server{*this, "server", "The device that counts steps"};
  Option<std::string> DeviceType{*this, "device-type",
                                 "The device type of nodes without a device; "
                                 "default: TensorFlow's choice"};
  Option<unsigned> Staleness{
      *this, "staleness",
      "How many steps a worker may be ahead of the slowest; 0: any number", 0};
  Option<unsigned> Worker{*this, "worker", "The number of the worker", 0};
};

struct FuseReductionsOptions : PassOptions {
  Option<uint64_t> BucketBytes{
      *this, "bucket-bytes",
      "The most bytes of a bucket of gradients, such as 64M. With a graph "
      "for each worker it is 64M unless given. 0: one bucket for each group of "
      "variables"};
};

struct InlineFunctionsOptions : PassOptions {
  Option<Strings> Fetch{*this, "fetch", "Tensors that keep their names"};
};

enum class ReductionKind : uint8_t { Auto, Add, Collective, Workers };
constexpr llvm::StringLiteral wordsOf(ReductionKind) {
  return "auto|add|collective|workers";
}

struct InsertCollectivesOptions : PassOptions {
  Option<ReductionKind> How{*this, "reduction",
                            "auto, add, collective or workers"};
  Option<unsigned> Timeout{
      *this, "collective-timeout",
      "Seconds that a member of a collective waits for the others before the "
      "step fails. 0: for ever",
      60};
};

enum class Fallback : uint8_t { Once, Mean, Refuse };
constexpr llvm::StringLiteral wordsOf(Fallback) { return "once|mean|refuse"; }

struct CutWorkersOptions : PassOptions {
  Option<Strings> Tasks{*this, "tasks",
                        "The workers, as /job:worker/task:0, the chief first"};
  Option<Strings> Devices{*this, "devices",
                          "The devices of the replicas, worker by worker"};
  Option<std::string> Word{*this, "word",
                           "The word before the number of the replica in "
                           "the name of a copy",
                           UsualCopyWord.str()};
  Option<Strings> Names{*this, "names",
                        "Nodes of the step that can be run on every worker"};
  Option<Strings> Refreshes{*this, "refreshes",
                            "Nodes that refresh copies of variables"};
  Option<std::string> Server{*this, "server",
                             "The device of a server that all workers reach; "
                             "empty: there is no such server",
                             ""};
  Option<unsigned> Worker{*this, "worker", "The number of the worker", 0};
};

struct ShareVariablesOptions : PassOptions {
  Option<Strings> Synchronizers{
      *this, "synchronizers",
      "GLOB=SYNCHRONIZER: for shared variables that have none "
      "in `_graft_synchronizer`"};
  Option<Strings> Servers{
      *this, "servers",
      "Devices for shared variables without a destination, balanced by bytes"};
};

struct InsertReductionsOptions : PassOptions {
  Option<Fallback> What{
      *this, "fallback",
      "For values that are not proved. once (default): compute them once, on "
      "the whole batch. mean: each replica computes them, and their mean is "
      "written. refuse: an error"};
  Option<unsigned> MinSpread{
      *this, "min-spread",
      "The least percentage of the step's work that has to be spread over "
      "the replicas; less is an error"};
  Option<bool> LocalBatchNorm{
      *this, "local-batch-norm",
      "A fused batch norm takes the statistics of one replica's rows"};
  Option<Strings> Fetch{*this, "fetch", "Further tensors that are fetched"};
  Option<Strings> Grad{
      *this, "grad",
      "VAR=TENSOR,mean|sum: the gradient of a variable and its reduction"};
  Option<bool> NoGradientSlots{
      *this, "no-gradient-slots",
      "Do not fall back to the mean at an optimizer's gradient slot"};
};

struct MapDevicesOptions : PassOptions {
  Option<Strings> Map{*this, "map",
                      "OLD=NEW: move the nodes of device OLD to NEW"};
};

struct CheckReplicationOptions : PassOptions {
  Option<std::string> Input{
      *this, "input",
      "The single-device graph; default: the file that was read"};
  Option<Strings> Fetch{*this, "fetch",
                        "Tensors whose names the output must have"};
};

struct MergeFetchesOptions : PassOptions {
  Option<Strings> Fetch{*this, "fetch", "Further tensors that are fetched"};
  Option<bool> Pick{
      *this, "pick",
      "Also merge fetches that are equal on all replicas, if a run cannot "
      "fetch the copy of one replica"};
  Option<bool> Forward{
      *this, "forward",
      "Also merge values from which a loss is computed, up to a limit on the "
      "output size"};
};

struct MirrorVariablesOptions : PassOptions {
  Option<Strings> Rules{
      *this, "rules",
      "GLOB=POLICY[,AGGREGATION]: the synchronization of variables "
      "(mirrored, sync-on-read, replicated, host or shared) and the "
      "aggregation of replicas' writes (none, sum, mean or "
      "only-first-replica)"};
};

struct OrderReadsOptions : PassOptions {
  Option<Strings> Fetch{*this, "fetch", "Tensors that are fetched"};
};

struct JoinBatchesOptions : PassOptions {
  Option<unsigned> Elements{*this, "elements",
                            "Number of elements that a step takes", 2,
                            /*Least=*/1};
};

enum class BatchSource : uint8_t { Global, PerReplica };
constexpr llvm::StringLiteral wordsOf(BatchSource) {
  return "global|per-replica";
}

struct ReplicateOptions : PassOptions {
  Option<unsigned> Replicas{*this, "replicas", "Number of replicas", 0,
                            /*Least=*/1};
  Option<std::string> DeviceType{*this, "device-type",
                                 "Replica i runs on /device:TYPE:i", "GPU"};
  Option<Strings> Devices{*this, "devices", "The device of each replica"};
  Option<Strings> Feed{
      *this, "feed",
      "NAME[:PORT][+NAME...][=how]: a feed, or all that match with * and ?, "
      "and how replicas get it: split, split(AXIS), copy or sparse"};
  Option<bool> Once{*this, "once", "Split nothing: the step is computed once"};
  Option<bool> Handles{*this, "handles",
                       "Handles of tables and iterators may be fed"};
  Option<bool> Prepared{*this, "prepared",
                        "Split a feed behind the nodes that only prepare it; a "
                        "run may feed the last of these nodes instead",
                        true};
  Option<bool> Defaults{*this, "defaults",
                        "Do not split a feed that is only read to compute the "
                        "default of a split feed",
                        true};
  Option<BatchSource> Batch{
      *this, "batch",
      "An element of a queue or iterator is the batch of the whole step "
      "(global) or of one replica (per-replica)"};
};

struct SplitWorkersOptions : PassOptions {
  Option<unsigned> Worker{*this, "worker",
                          "The worker whose graph graft writes, from 0 on"};
};

enum class SyncedStatistics : uint8_t { Sync, Exact };
constexpr llvm::StringLiteral wordsOf(SyncedStatistics) { return "sync|exact"; }

struct SyncBatchNormOptions : PassOptions {
  Option<SyncedStatistics> How{
      *this, "how",
      "exact: only the statistics for moving averages; sync: all"};
};

struct TpuReplicateOptions : PassOptions {
  Option<unsigned> Replicas{
      *this,       "replicas",    "Number of replicas; else that of --replicas",
      0,
      /*Least=*/1, /*Most=*/65536};
  Option<Strings, ','> Inputs{
      *this, "inputs",
      "Tensors that each replica gets for itself: TENSOR, as its --feed says "
      "(`split` if it says nothing), or T0|T1|..., one for each replica"};
  Option<Strings, ','> Outputs{*this, "outputs",
                               "Tensors that are returned, then ^OP that run"};
  Option<Strings, ','> Include{
      *this, "include", "Names, with * and ?, of ops that no output needs"};
  Option<Strings, ','> Captures{
      *this, "captures",
      "Tensors and ^OP from outside that each replica reads as "
      "they are"};
  Option<Strings, ','> MirroredVariables{
      *this, "mirrored-variables",
      "Names of variables with a copy for each replica"};
  Option<Strings, ','> ReplicatedVariables{
      *this, "replicated-variables",
      "The same, with copies that are called `<v>/<replica>`"};
  Option<Strings, ','> PackedVariables{
      *this, "packed-variables",
      "Names of variables with one handle for all their copies"};
  Option<Strings, ','> CrossReplicaSum{
      *this, "cross-replica-sum", "Tensors that are summed over the replicas"};
  Option<Strings, ','> Combine{*this, "combine",
                               "For each tensor of outputs, how it combines "
                               "replicas: concat(AXIS), mean, sum or first"};
  Option<Strings, ','> MaximumShapes{
      *this, "maximum-shapes",
      "For each input, the shape to which it is padded, such as 8x3; ? for the "
      "largest size there is, none for no padding"};
  Option<Strings> Feed{*this, "feed",
                       "How replicas get inputs; default: as --feed says"};
  Option<Strings> Fetch{*this, "fetch",
                        "For a replicated program: further results"};
  Option<std::string> Device{*this, "device",
                             "Device of the nodes that are added"};
  Option<std::string> Topology{*this, "topology",
                               "File with a serialized TopologyProto"};
  Option<Strings, ','> DeviceAssignment{
      *this, "device-assignment", "Coordinates of the cores of the replicas"};
  Option<unsigned> CoresPerReplica{
      *this,       "num-cores-per-replica", "Cores of one replica", 1,
      /*Least=*/1, /*Most=*/65536};
  Option<std::string> StepMarkerLocation{*this, "step-marker-location",
                                         "Field of the TPU metadata",
                                         "STEP_MARK_AT_ENTRY"};
  Option<bool> AllowSoftPlacement{*this, "allow-soft-placement",
                                  "Field of the TPU metadata"};
  Option<bool> UseSpmd{*this, "use-spmd-for-xla-partitioning",
                       "Field of the TPU metadata", true};
  Option<bool> UseTpu{*this, "use-tpu", "Field of the TPU metadata", true};
};

#define GRAFT_PASS(Class) std::unique_ptr<Pass> create##Class##Pass();
#define GRAFT_PASS_WITH_OPTIONS(Class)                                         \
  std::unique_ptr<Pass> create##Class##Pass(const Class##Options &Options = {});
#include "passes/Passes.def"

} // namespace graft

#endif // GRAFT_PASSES_OPTIONS_H
