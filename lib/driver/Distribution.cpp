//===- lib/driver/Distribution.cpp - flags of strategies --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Distribution.h"
#include "lib/driver/BuildPipeline.h"
#include "lib/driver/RecordFlags.h"
#include "lib/graph/DeviceName.h"
#include "lib/io/inline/Functions.h"
#include "lib/io/inline/Inline.h"
#include "lib/pass/PassManager.h"
#include "lib/strategy/Cluster.h"
#include "lib/strategy/Resources.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

Error failure(const Twine &Message) {
  return createStringError(inconvertibleErrorCode(), Message);
}

Error checkWord(StringRef Flag, StringRef Value,
                const std::vector<std::string> &Known, StringRef Noun) {
  if (is_contained(Known, Value))
    return Error::success();
  return failure(
      Flag + ": unknown " + Noun + " '" + Value + "'" +
      didYouMean(Value, Known, "; give one of " + join(Known, ", ")));
}

std::optional<uint64_t> parseSize(StringRef Text, uint64_t Limit) {
  unsigned Shift = StringSwitch<unsigned>(Text.take_back(1))
                       .CaseLower("k", 10)
                       .CaseLower("m", 20)
                       .CaseLower("g", 30)
                       .Default(0);
  if (Shift != 0)
    Text = Text.drop_back(1);
  uint64_t Size;
  if (Text.getAsInteger(10, Size) || Size > (Limit >> Shift))
    return std::nullopt;
  return Size << Shift;
}

// Flags of other files may be made first.
cl::OptionCategory &distributionCategory() {
  static cl::OptionCategory Category("Distribution");
  return Category;
}

namespace {

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

cl::OptionCategory &Distribution = distributionCategory();

using Text = cl::opt<std::string>;
using TextList = cl::list<std::string>;
using Flag = cl::opt<bool>;

cl::opt<unsigned> Replicas("replicas", cl::value_desc("N"),
                           cl::cat(Distribution),
                           cl::desc("Replicas on this machine, or on each "
                                    "worker of --cluster"));
Text DeviceType(
    "device-type", cl::value_desc("type"), cl::cat(Distribution),
    cl::desc("Replica i is on /device:TYPE:i. Default: GPU if the input names "
             "one, else CPU, or the device that the strategy is named after"));
TextList
    Devices("devices", cl::CommaSeparated, cl::value_desc("D,..."),
            cl::cat(Distribution),
            cl::desc("The devices of the replicas, instead of --replicas"));
Text Cluster("cluster", cl::value_desc("file"), cl::cat(Distribution),
             cl::desc("The workers, as JSON in the form of TF_CONFIG; one "
                      "graph for all of them"));
Text Resources("resources", cl::value_desc("file"), cl::cat(Distribution),
               cl::desc("The machines and their devices, in the form of "
                        "AutoDist's resource_spec.yml; one graph for all of "
                        "them"));
Text Strategy("strategy", cl::init("all-reduce"), cl::value_desc("name|file"),
              cl::cat(Distribution),
              cl::desc("all-reduce (default), partitioned-all-reduce, "
                       "random-axis-partition-all-reduce, ps, "
                       "ps-load-balancing, partitioned-ps, "
                       "uneven-partitioned-ps, parallax, auto, tpu, "
                       "ipu-multi-worker, or a strategy file"));
cl::opt<unsigned> Workers("workers", cl::value_desc("W"), cl::cat(Distribution),
                          cl::desc("Number of workers of ipu-multi-worker, "
                                   "which writes a graph for each"));
cl::opt<unsigned> Worker("worker", cl::value_desc("I"), cl::cat(Distribution),
                         cl::desc("The worker whose graph is written, from 0 "
                                  "on"));
TextList Feed("feed", cl::value_desc("NAME[+NAME...][=how]"),
              cl::cat(Distribution),
              cl::desc("A feed, and how replicas get it: split, split(AXIS), "
                       "copy or sparse"));
Text Batch("batch", cl::init("global"), cl::value_desc("whose"),
           cl::cat(Distribution),
           cl::desc("What a queue or an iterator gives: global, the batch of "
                    "the step (default), or per-replica, that of one replica"));
TextList Fetch("fetch", cl::value_desc("NAME"), cl::cat(Distribution),
               cl::desc("A tensor or operation that will be fetched; none: "
                        "only what is named and what no op reads"));
Text Reduction(
    "reduction", cl::init("auto"), cl::value_desc("how"), cl::cat(Distribution),
    cl::desc("How values are reduced: auto, add, collective, or accumulator "
             "for the gradients of shared variables"));
Text BucketBytes("bucket-bytes", cl::value_desc("size"), cl::cat(Distribution),
                 cl::desc("Reduce gradients in buckets of at most that many "
                          "bytes, such as 64M"));
Text BatchNorm("batch-norm", cl::init("local"), cl::value_desc("how"),
               cl::cat(Distribution),
               cl::desc("Statistics of fused batch norms: local (default), of "
                        "each replica's rows; exact, moving averages of the "
                        "whole batch; sync, all of the whole batch"));
TextList Grad("grad", cl::value_desc("VAR=TENSOR,how"), cl::cat(Distribution),
              cl::desc("The gradient of a variable, to be reduced by mean or "
                       "sum"));
TextList Variable(
    "variable", cl::value_desc("GLOB=policy[,how]"), cl::cat(Distribution),
    cl::desc("Synchronization of variables: mirrored, sync-on-read, "
             "replicated, host or shared; and aggregation of what replicas "
             "write to them: none, sum, mean or only-first-replica"));
Flag CheckCopies("check-copies", cl::cat(Distribution),
                 cl::desc("Fail the step if the copies of a variable differ"));
Flag NoGradientSlots("no-gradient-slots", cl::Hidden, cl::cat(Distribution),
                     cl::desc("Forget which inputs of optimizers are "
                              "gradients, for tests"));

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

Error checkFeed(StringRef Value) {
  auto [Name, How] = Value.split('=');
  if (Name.empty())
    return failure("--feed: '" + Value + "' names no feed");
  if (How.empty() && !Value.contains('='))
    return Error::success();
  StringRef Axis = How;
  int64_t Number;
  if (Axis.consume_front("split(") && Axis.consume_back(")") &&
      !Axis.getAsInteger(10, Number))
    return Error::success();
  return checkWord("--feed", How, {"split", "split(AXIS)", "copy", "sparse"});
}

Error checkGrad(StringRef Value) {
  auto [Variable, Rest] = Value.split('=');
  auto [Tensor, How] = Rest.rsplit(',');
  if (Variable.empty() || Tensor.empty() || (How != "mean" && How != "sum"))
    return failure("--grad: '" + Value +
                   "' does not have the form VAR=TENSOR,mean or "
                   "VAR=TENSOR,sum");
  return Error::success();
}

constexpr unsigned MaxReplicas = 65536;

/// What is ignored in the file is said.
Expected<ResourceSpec> readResourcesFlag() {
  std::vector<std::string> Notes;
  Expected<ResourceSpec> Spec = readResources(Resources, Notes);
  if (!Spec)
    return failure("--resources: " + toString(Spec.takeError()));
  for (const std::string &Note : Notes)
    errs() << "graft-opt: note: " << Note << '\n';
  return Spec;
}

/// The replicas of each worker of --cluster.
Error placeOnCluster(StrategyOptions &S) {
  Expected<ClusterSpec> Spec = readCluster(Cluster);
  if (!Spec)
    return failure("--cluster: " + toString(Spec.takeError()));
  std::vector<std::string> Tasks = trainingTasks(*Spec);
  if (Tasks.size() * Replicas > MaxReplicas)
    return failure(formatv("--cluster: {0} workers with {1} replicas each are "
                           "more than {2}",
                           Tasks.size(), Replicas.getValue(), MaxReplicas));
  StringRef Type = S.DeviceType;
  for (const std::string &Task : Tasks)
    for (unsigned I = 0; I < Replicas; ++I)
      S.Devices.push_back((Task + "/device:" + Type + ":" + Twine(I)).str());
  S.DeviceType.clear();
  return Error::success();
}

/// One replica on each GPU of --resources, or on each CPU of a machine without.
Error placeOnResources(StrategyOptions &S) {
  Expected<ResourceSpec> Spec = readResourcesFlag();
  if (!Spec)
    return Spec.takeError();
  S.Resources = Resources;
  S.Devices = Spec->replicaDevices();
  if (S.Devices.size() > MaxReplicas)
    return failure(formatv("--resources: {0} replicas are more than {1}",
                           S.Devices.size(), MaxReplicas));
  return Error::success();
}

Error checkDeviceType(StrategyOptions &S, const OtherOptions &Other) {
  // The form of a TPU's computation has reductions of its own, and is no longer
  // the program of which a check of the file could find the copies.
  if (Strategy == "tpu") {
    S.DeviceType = "TPU";
    for (auto [Name, Given] :
         {std::pair("--reduction", given(Reduction)),
          std::pair("--bucket-bytes", given(BucketBytes)),
          std::pair("--check-copies", given(CheckCopies)),
          std::pair("--resources", given(Resources)),
          std::pair("--verify-output", Other.VerifyOutput)})
      if (Given)
        return failure(Twine(Name) + " does not go with --strategy=tpu, whose "
                                     "step is one computation");
  }
  if (given(DeviceType)) {
    auto Device = DeviceName::parse("/device:" + DeviceType + ":0");
    if (!Device || Device->Type.empty())
      return failure("--device-type: '" + DeviceType +
                     "' is not a type of device, such as CPU or GPU");
    S.DeviceType = Device->Type;
  }
  if (inputChoosesDevices()) {
    S.DeviceType = Other.OnGpus ? "GPU" : "CPU";
    // All CPUs add anyway. GPUs that are not there would be one device, on
    // which members of a collective wait for each other.
    S.AskedForDevices = !Other.OnGpus;
  }
  return Error::success();
}

/// The devices of the replicas, or their number and type.
Error checkPlaces(StrategyOptions &S, const OtherOptions &Other) {
  for (auto [Name, Given] : {std::pair("--replicas", given(Replicas)),
                             std::pair("--device-type", given(DeviceType)),
                             std::pair("--cluster", given(Cluster))})
    if (Given && given(Devices))
      return failure(Twine("--devices and ") + Name + ": give only one");
  for (auto [Name, Given] : {std::pair("--replicas", given(Replicas)),
                             std::pair("--device-type", given(DeviceType)),
                             std::pair("--cluster", given(Cluster)),
                             std::pair("--devices", given(Devices))})
    if (Given && given(Resources))
      return failure(Twine("--resources and ") + Name + ": give only one");
  if (given(Cluster) && !given(Replicas))
    return failure("--cluster needs --replicas, the number of replicas on each "
                   "worker");
  bool IsFile = !is_contained(strategyNames(), Strategy);
  if (!given(Devices) && !given(Replicas) && !given(Resources) && !IsFile)
    return failure("--strategy needs --replicas or --devices");
  if (Error E = checkDeviceType(S, Other))
    return E;
  if (given(Resources)) {
    if (Error E = placeOnResources(S))
      return E;
  } else if (!given(Devices) && !given(Replicas)) {
    auto Listed = devicesOfStrategyFile(Strategy);
    if (!Listed)
      return Listed.takeError();
    S.Devices = std::move(*Listed);
  } else if (given(Devices)) {
    auto Listed =
        checkDevices(std::vector<std::string>(Devices.begin(), Devices.end()));
    if (!Listed)
      return Listed.takeError();
    S.Devices = std::move(*Listed);
  } else {
    if (Replicas == 0 || Replicas > MaxReplicas)
      return failure(formatv("--replicas: {0} is not between 1 and {1}",
                             Replicas.getValue(), MaxReplicas));
    if (given(Cluster)) {
      if (Error E = placeOnCluster(S))
        return E;
    } else {
      S.Replicas = Replicas;
    }
  }
  if (Reduction == "collective" && areOfSeveralTasks(S.Devices))
    return failure("--reduction=collective: In-graph multi-worker training is "
                   "not supported but with a reduction to one device; give "
                   "--reduction=add");
  return Error::success();
}

/// The tasks of ipu-multi-worker: those of --cluster, or numbered workers.
Expected<std::vector<std::string>> chooseWorkers(StrategyOptions &S) {
  if (given(Cluster)) {
    if (given(Workers) || given(Worker))
      return failure("--cluster and --workers: give only one");
    Expected<ClusterSpec> Spec = readCluster(Cluster);
    if (!Spec)
      return failure("--cluster: " + toString(Spec.takeError()));
    std::vector<std::string> Tasks = trainingTasks(*Spec);
    auto Mine = find(Tasks, formatv("/job:{0}/task:{1}", Spec->TaskType,
                                    Spec->TaskIndex.value_or(0))
                                .str());
    if (Mine == Tasks.end())
      return failure("--cluster: " + Cluster +
                     ": 'task' does not say which worker this is");
    S.Worker = static_cast<unsigned>(Mine - Tasks.begin());
    return Tasks;
  }
  if (!given(Workers) || !given(Worker))
    return failure("--strategy=ipu-multi-worker needs --workers and --worker, "
                   "or --cluster");
  if (Workers == 0 || Workers > MaxReplicas)
    return failure(formatv("--workers: {0} is not between 1 and {1}",
                           Workers.getValue(), MaxReplicas));
  if (Worker >= Workers)
    return failure(formatv("--worker: {0} is not between 0 and {1}",
                           Worker.getValue(), Workers - 1));
  std::vector<std::string> Tasks;
  Tasks.reserve(Workers);
  for (unsigned I = 0; I < Workers; ++I)
    Tasks.push_back(formatv("/job:worker/task:{0}", I));
  S.Worker = Worker;
  return Tasks;
}

/// One replica on each worker of ipu-multi-worker, which is a task.
Error checkWorkers(StrategyOptions &S, const OtherOptions &Other) {
  for (auto [Name, Given] :
       {std::pair("--replicas", given(Replicas)),
        std::pair("--devices", given(Devices)),
        std::pair("--resources", given(Resources)),
        std::pair("--reduction", given(Reduction)),
        std::pair("--check-copies", given(CheckCopies)),
        // There is no program any more, and one file is not all of it.
        std::pair("--explain", Other.Explain),
        std::pair("--verify-output", Other.VerifyOutput)})
    if (Given)
      return failure(Twine(Name) + " does not go with "
                                   "--strategy=ipu-multi-worker, which has one "
                                   "replica in the graph of each worker");
  auto Tasks = chooseWorkers(S);
  if (!Tasks)
    return Tasks.takeError();
  if (Error E = checkDeviceType(S, Other))
    return E;
  StringRef Type = S.DeviceType.empty() ? "IPU" : StringRef(S.DeviceType);
  for (const std::string &Task : *Tasks)
    S.Devices.push_back((Task + "/device:" + Type + ":0").str());
  S.DeviceType.clear();
  return Error::success();
}

Expected<StrategyOptions> checkStrategy(const OtherOptions &Other) {
  StrategyOptions S;
  S.Strategy = Strategy;
  if (Error E = checkStrategyName(Strategy))
    return E;
  if (Error E = checkRecordFlags(S))
    return E;
  if (!S.EmitStrategy.empty() && S.EmitStrategy == Other.Output)
    return failure("--emit-strategy and -o: '" + Other.Output +
                   "' cannot be both");
  bool BetweenGraphs = Strategy == "ipu-multi-worker";
  if (!BetweenGraphs && (given(Workers) || given(Worker)))
    return failure("--workers and --worker need --strategy=ipu-multi-worker");
  if (Error E = BetweenGraphs ? checkWorkers(S, Other) : checkPlaces(S, Other))
    return E;
  if (Error E = checkWord("--reduction", Reduction,
                          {"auto", "add", "collective", "accumulator"}))
    return E;
  if (given(BucketBytes)) {
    auto Size = parseSize(BucketBytes, INT32_MAX);
    if (!Size || *Size == 0)
      return failure(formatv("--bucket-bytes: '{0}' is not a size between 1 "
                             "and {1}, such as 64M",
                             BucketBytes.getValue(), INT32_MAX));
    S.BucketBytes = *Size;
  }
  if (Error E =
          checkWord("--batch-norm", BatchNorm, {"local", "exact", "sync"}))
    return E;
  if (Error E = checkWord("--batch", Batch, {"global", "per-replica"}))
    return E;
  for (const std::string &F : Feed)
    if (Error E = checkFeed(F))
      return E;
  for (const std::string &F : Fetch)
    if (F.empty())
      return failure("--fetch: the name is empty");
  for (const std::string &G : Grad)
    if (Error E = checkGrad(G))
      return E;
  S.Feeds.assign(Feed.begin(), Feed.end());
  S.Batch = Batch;
  S.MergesHeads = !is_contained(Fetch, "none");
  copy_if(Fetch, std::back_inserter(S.Fetches),
          [](StringRef F) { return F != "none"; });
  S.Reduction = Reduction;
  S.BatchNorm = BatchNorm;
  S.Grads.assign(Grad.begin(), Grad.end());
  for (const std::string &V : Variable)
    if (StringRef(V).contains(';'))
      return failure("--variable: '" + V +
                     "' is more than one rule; repeat "
                     "the option");
  S.Variables.assign(Variable.begin(), Variable.end());
  S.NoGradientSlots = NoGradientSlots;
  S.CheckCopies = CheckCopies;
  return S;
}

/// --passes, with what --replicas and --feed say to its passes.
Expected<std::string> completePipeline(const PassRegistry &Registry,
                                       StringRef Passes) {
  if (!given(Replicas) && !given(Feed))
    return Passes.str();
  PassManager Manager(Registry);
  if (Error E = Manager.parse(Passes))
    return E;
  auto Set = [&](StringRef Option, const std::string &Value) -> Error {
    if (Manager.setOptionOfAll(Option, Value))
      return Error::success();
    return failure("--" + Option +
                   " and --passes: no pass of the pipeline has "
                   "the option '" +
                   Option + "'");
  };
  for (const std::string &F : Feed)
    if (Error E = checkFeed(F))
      return E;
  if (given(Replicas))
    if (Error E = Set("replicas", utostr(Replicas)))
      return E;
  if (given(Feed))
    if (Error E = Set("feed", join(Feed, ";")))
      return E;
  return Manager.str();
}

} // namespace

bool inputChoosesDevices() {
  return given(Replicas) && !given(DeviceType) && !given(Devices) &&
         !given(Resources) && Strategy != "tpu" &&
         Strategy != "ipu-multi-worker";
}

bool namesGpu(const Graph &G) {
  std::vector<bool> IsGpu;
  for (uint32_t Id = 0; Id < G.numDevices(); ++Id) {
    auto Device = DeviceName::parse(G.deviceName(Id));
    IsGpu.push_back(Device && Device->Type == "GPU");
  }
  if (is_contained(IsGpu, true))
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && IsGpu[G.node(N).Device])
        return true;
  if (!mayCall(G))
    return false;
  return FunctionLibrary(G).anyNode([](const tensorflow::NodeDef &Node) {
    auto Device = DeviceName::parse(Node.device());
    return Device && Device->Type == "GPU";
  });
}

std::vector<std::string> distributionFiles() {
  std::vector<std::string> Files;
  if (given(Cluster))
    Files.push_back(Cluster);
  if (given(Resources))
    Files.push_back(Resources);
  if (!is_contained(strategyNames(), Strategy))
    Files.push_back(Strategy);
  return Files;
}

Expected<ResourceSpec> distributionMachines(const OtherOptions &Other) {
  if (given(Resources)) {
    // What is ignored in the file is said when the pipeline is made.
    std::vector<std::string> Notes;
    Expected<ResourceSpec> Spec = readResources(Resources, Notes);
    if (!Spec)
      return failure("--resources: " + toString(Spec.takeError()));
    return Spec;
  }
  if (!given(Replicas) && !given(Devices))
    return failure("--plan needs --resources, --replicas or --devices");
  Expected<StrategyOptions> S = checkStrategy(Other);
  if (!S)
    return S.takeError();
  return resourcesOf(devicesOf(*S));
}

Expected<std::string> choosePipeline(const PassRegistry &Registry,
                                     const OtherOptions &Other) {
  std::vector<std::pair<const char *, bool>> Own = {
      {"--replicas", given(Replicas)},
      {"--devices", given(Devices)},
      {"--cluster", given(Cluster)},
      {"--resources", given(Resources)},
      {"--workers", given(Workers)},
      {"--worker", given(Worker)},
      {"--strategy", given(Strategy)},
      {"--device-type", given(DeviceType)},
      {"--feed", given(Feed)},
      {"--batch", given(Batch)},
      {"--fetch", given(Fetch)},
      {"--reduction", given(Reduction)},
      {"--bucket-bytes", given(BucketBytes)},
      {"--batch-norm", given(BatchNorm)},
      {"--grad", given(Grad)},
      {"--variable", given(Variable)},
      {"--no-gradient-slots", NoGradientSlots},
      {"--check-copies", CheckCopies},
  };
  append_range(Own, recordFlags());
  bool Wanted = given(Replicas) || given(Devices) || given(Cluster) ||
                given(Resources) || given(Strategy);
  for (auto [Name, Given] : Own) {
    // These two every pass may have that has such an option.
    bool IsShared =
        StringRef(Name) == "--replicas" || StringRef(Name) == "--feed";
    if (Given && Other.HasPasses && IsShared)
      continue;
    if (Given && Other.HasPasses)
      return failure(Twine(Name) + " and --passes: give only one; an option "
                                   "of a pass goes into the pipeline");
    if (Given && !Wanted)
      return failure(Twine(Name) + " needs --replicas or --devices");
  }
  if (Other.HasPasses)
    return completePipeline(Registry, Other.Passes);
  if (!Wanted)
    return std::string();
  Expected<StrategyOptions> S = checkStrategy(Other);
  if (!S)
    return S.takeError();
  return buildPipeline(*S);
}

} // namespace graft
