//===- lib/driver/Distribution.cpp - flags of strategies --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Distribution.h"
#include "lib/driver/BuildPipeline.h"
#include "lib/driver/OptionFlag.h"
#include "lib/driver/RecordFlags.h"
#include "lib/graph/DeviceName.h"
#include "lib/io/inline/Functions.h"
#include "lib/io/inline/Inline.h"
#include "lib/strategy/Cluster.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>
#include <memory>
#include <set>

using namespace llvm;

namespace graft {

Error usageError(const Twine &Message) {
  return make_error<UsageError>(Message.str());
}

Error Choice::check() const {
  return checkWord(("--" + ArgStr).str(), *this, Words);
}

Error checkWord(StringRef Flag, StringRef Value,
                const std::vector<std::string> &Known, StringRef Noun) {
  if (is_contained(Known, Value))
    return Error::success();
  return usageError(
      Flag + ": unknown " + Noun + " '" + Value + "'" +
      didYouMean(Value, Known, "; give one of " + join(Known, ", ")));
}

// A function, so that the category exists before the flags of other files.
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
                           cl::desc("The number of replicas on this machine, "
                                    "or on each worker of --cluster"));
// Completion offers the usual types. A plug-in may define others.
struct DeviceTypeText : Text {
  DeviceTypeText()
      : Text("device-type", cl::value_desc("type"), cl::cat(Distribution),
             cl::desc("Replica i runs on /device:TYPE:i, with a type such as "
                      "CPU, GPU, TPU or IPU. Default: the type that the "
                      "strategy is named after, else GPU if the input names "
                      "one, else CPU")) {
    setWords(*this, {"CPU", "GPU", "TPU", "IPU"});
  }
};
DeviceTypeText DeviceType;
// A hidden flag that always reports an error. For `--device=GPU` LLVM would
// suggest the similar --devices, but the user means --device-type.
Text Device("device", cl::Hidden, cl::value_desc("type"), cl::cat(Distribution),
            cl::desc("Always an error: give --device-type or --devices"));
TextList
    Devices("devices", cl::CommaSeparated, cl::value_desc("D,..."),
            cl::cat(Distribution),
            cl::desc("The devices of the replicas, instead of --replicas"));
Text Cluster(
    "cluster", cl::value_desc("file"), cl::cat(Distribution),
    cl::desc(
        "The workers, as JSON in the form of TF_CONFIG. graft writes one graph "
        "for all of them"));
Text Resources(
    "resources", cl::value_desc("file"), cl::cat(Distribution),
    cl::desc("The machines and their devices, in the form of AutoDist's "
             "resource_spec.yml. graft writes one graph for all of them"));
std::string strategyHelp() {
  return join(strategyNames(), ", ") +
         ", or a strategy file. Default: " + *AssignStrategyOptions().Strategy;
}
const std::string StrategyHelp = strategyHelp();
struct StrategyFlag : Text {
  StrategyFlag()
      : Text("strategy", cl::init(*AssignStrategyOptions().Strategy),
             cl::value_desc("name|file"), cl::cat(Distribution),
             cl::desc(StrategyHelp)) {
    setWords(*this, strategyNames());
  }
} Strategy;
cl::opt<unsigned> Workers("workers", cl::value_desc("W"), cl::cat(Distribution),
                          cl::desc("Number of workers of ipu-multi-worker, "
                                   "which writes a graph for each"));
OptionFlag Worker(&SplitWorkersOptions::Worker, cl::value_desc("I"));
Choice Mode(
    "mode", {"in-graph", "between-graph"}, cl::init("in-graph"),
    cl::value_desc("mode"), cl::cat(Distribution),
    cl::desc(
        "With --cluster. in-graph (default): one graph for all workers. "
        "between-graph: one graph for each worker; write %d for the worker "
        "into the name of -o, or give --worker=I"));
Flag Async(
    "async", cl::cat(Distribution),
    cl::desc("With --mode=between-graph --strategy=ps: each worker updates the "
             "variables without waiting for others"));
cl::opt<unsigned> Staleness(
    "staleness", cl::init(0), cl::value_desc("N"), cl::cat(Distribution),
    cl::desc(
        "Like --async, but a worker waits while it is N steps ahead of the "
        "slowest. Default: 0, all workers make each step together"));
OptionFlag DeviceMap(&MapDevicesOptions::Map, "device-map",
                     cl::value_desc("OLD=NEW"));
OptionFlag Feed(&ReplicateOptions::Feed,
                cl::value_desc("NAME[+NAME...][=how]"));
OptionFlag Batch(&ReplicateOptions::Batch, cl::value_desc("whose"));
TextList Fetch(
    "fetch", cl::value_desc("NAME"), cl::cat(Distribution),
    cl::desc(
        "A tensor or operation that a run fetches, or all that match with * "
        "and ?. none: only those that are named or that no op reads"));
Choice Reduction(
    "reduction", {"auto", "add", "collective", "accumulator"}, cl::init("auto"),
    cl::value_desc("how"), cl::cat(Distribution),
    cl::desc(
        "The ops that reduce values: add; collective; accumulator, for "
        "gradients of shared variables; or auto (default), which adds unless "
        "--spec=nccl asks for collectives on GPUs"));
OptionFlag CollectiveTimeout(&InsertCollectivesOptions::Timeout,
                             cl::value_desc("seconds"));
OptionFlag BucketBytes(&FuseReductionsOptions::BucketBytes,
                       cl::value_desc("size"));
Choice BatchNorm(
    "batch-norm", {"local", "exact", "sync"}, cl::init("sync"),
    cl::value_desc("how"), cl::cat(Distribution),
    cl::desc(
        "Statistics of fused batch norms. sync (default): of the whole batch. "
        "exact: of each replica's rows, with moving averages of the whole "
        "batch. local: of each replica's rows"));
OptionFlag HowFallback(&InsertReductionsOptions::What, cl::value_desc("what"));
OptionFlag MinSpread(&InsertReductionsOptions::MinSpread,
                     cl::value_desc("percent"));
OptionFlag Grad(&InsertReductionsOptions::Grad,
                cl::value_desc("VAR=TENSOR,how"));
OptionFlag Variable(&MirrorVariablesOptions::Rules, "variable",
                    cl::value_desc("GLOB=policy[,how]"));
Flag EvenBatches("even-batches", cl::cat(Distribution),
                 cl::desc("Fail a step if the number of replicas does not "
                          "divide its rows, instead of repeating rows"));
Flag CheckCopies("check-copies", cl::cat(Distribution),
                 cl::desc("Fail the step if the copies of a variable differ"));
OptionFlag NoGradientSlots(&InsertReductionsOptions::NoGradientSlots,
                           cl::Hidden);

/// Returns the flags that set the distribution of a step, sorted by name.
std::vector<const cl::Option *> distributionFlags() {
  std::vector<const cl::Option *> Flags;
  for (const auto &[Name, Flag] : cl::getRegisteredOptions())
    if (is_contained(Flag->Categories, &Distribution))
      Flags.push_back(Flag);
  sort(Flags, [](const cl::Option *A, const cl::Option *B) {
    return A->ArgStr < B->ArgStr;
  });
  return Flags;
}

/// Returns the spelling of the first of \p Flags that is given, or \p Other.
std::string firstGiven(
    std::initializer_list<std::reference_wrapper<const cl::Option>> Flags,
    StringRef Other = "") {
  for (const cl::Option &Flag : Flags)
    if (given(Flag))
      return ("--" + Flag.ArgStr).str();
  return Other.str();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

Error checkFeed(StringRef Value) {
  auto [Name, How] = Value.split('=');
  if (Name.empty())
    return usageError("--feed: '" + Value + "' names no feed");
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
    return usageError("--grad: '" + Value +
                      "' does not have the form VAR=TENSOR,mean or "
                      "VAR=TENSOR,sum");
  return Error::success();
}

constexpr unsigned MaxReplicas = 65536;

/// Returns \p E if it reports the contents of a file, else a usage error.
Error ofFile(StringRef Flag, Error E) {
  return E.isA<SideFileError>()
             ? std::move(E)
             : usageError(Flag + ": " + toString(std::move(E)));
}

/// Places the replicas on the workers of --cluster.
Error placeOnCluster(StrategyOptions &S) {
  Expected<ClusterSpec> Spec = readCluster(Cluster);
  if (!Spec)
    return ofFile("--cluster", Spec.takeError());
  S.Tasks = trainingTasks(*Spec);
  S.Share.Servers = serverDevices(*Spec);
  if (S.Tasks.size() * Replicas > MaxReplicas)
    return usageError(
        formatv("--cluster: {0} workers with {1} replicas each exceed the "
                "limit of {2} replicas",
                S.Tasks.size(), Replicas.getValue(), MaxReplicas));
  return Error::success();
}

/// Places one replica on each GPU of --resources, or on each CPU of a machine
/// without GPUs. Prints a note for each entry of the file that is ignored.
Error placeOnResources(StrategyOptions &S) {
  std::vector<std::string> Notes;
  Expected<ResourceSpec> Spec = readResources(Resources, Notes);
  if (!Spec)
    return ofFile("--resources", Spec.takeError());
  for (const std::string &Note : Notes)
    errs() << "graft-opt: note: " << Note << '\n';
  S.Assign.Resources = Resources;
  S.Assign.Machines = std::make_shared<ResourceSpec>(std::move(*Spec));
  S.Replicate.Devices = S.Assign.Machines->replicaDevices();
  if (S.Replicate.Devices->size() > MaxReplicas)
    return usageError(
        formatv("--resources: {0} replicas exceed the limit of {1}",
                S.Replicate.Devices->size(), MaxReplicas));
  return Error::success();
}

Error checkDeviceType(StrategyOptions &S) {
  // A TPU computation reduces gradients by itself.
  if (S.To == Lowering::Tpu) {
    S.DeviceType = "TPU";
    std::string Flag =
        firstGiven({Reduction, BucketBytes, CheckCopies, Resources});
    if (!Flag.empty())
      return usageError(Flag +
                        " does not go with --strategy=tpu, whose step is "
                        "one computation");
  }
  if (given(DeviceType)) {
    auto Device = DeviceName::parse("/device:" + DeviceType + ":0");
    if (!Device || Device->Type.empty())
      return usageError("--device-type: '" + DeviceType +
                        "' is not a type of device, such as CPU or GPU");
    S.DeviceType = Device->Type;
    // A plug-in may define any type, but an unknown type that is similar to a
    // known one is most likely a typing error.
    const std::vector<std::string> Known = {"CPU", "GPU", "TPU",     "IPU",
                                            "HPU", "NPU", "XPU",     "VPU",
                                            "MLU", "VE",  "XLA_CPU", "XLA_GPU"};
    std::string Meant = didYouMean(S.DeviceType, Known);
    if (!is_contained(Known, S.DeviceType) && !Meant.empty())
      return usageError("--device-type: there are no devices of type '" +
                        DeviceType + "'" + Meant +
                        " if a plug-in defines this type, give --devices");
  }
  S.InputChoosesDevices =
      (given(Replicas) || given(Cluster)) && S.DeviceType.empty();
  return Error::success();
}

/// Refuses --device and suggests --device-type or --devices.
Error checkNoDevice() {
  if (!given(Device))
    return Error::success();
  StringRef Value = Device;
  return usageError("--device: there is no such option; did you mean '" +
                    (Value.find_first_of(":,/") == StringRef::npos
                         ? "--device-type=" + Value
                         : "--devices=" + Value) +
                    "'?");
}

/// Sets the devices of the replicas, or their number and type.
Error checkPlaces(StrategyOptions &S) {
  std::string Flag = firstGiven({Replicas, DeviceType, Cluster});
  if (given(Devices) && !Flag.empty())
    return usageError("--devices and " + Flag + ": give only one");
  Flag = firstGiven({Replicas, DeviceType, Cluster, Devices});
  if (given(Resources) && !Flag.empty())
    return usageError("--resources and " + Flag + ": give only one");
  if (given(Cluster) && !given(Replicas) && Mode != "between-graph")
    return usageError(
        "--cluster needs --replicas, the number of replicas on each "
        "worker");
  if (!given(Devices) && !given(Replicas) && !given(Resources) &&
      !given(Cluster) && S.Builder)
    return usageError("--strategy needs --replicas or --devices");
  if (Error E = checkDeviceType(S))
    return E;
  if (given(Resources)) {
    if (Error E = placeOnResources(S))
      return E;
  } else if (given(Devices)) {
    auto Listed =
        checkDevices(std::vector<std::string>(Devices.begin(), Devices.end()));
    if (!Listed)
      return Listed.takeError();
    S.Replicate.Devices = std::move(*Listed);
  } else if (!given(Replicas) && !given(Cluster)) {
    if (S.Assign.Record->Replicas.empty())
      return usageError("--strategy: '" + Strategy +
                        "' lists no replicas; give --replicas or --devices");
    S.Replicate.Devices =
        resourcesOf(S.Assign.Record->Replicas).replicaDevices();
  } else {
    if (!given(Replicas))
      Replicas = 1;
    if (Replicas == 0 || Replicas > MaxReplicas)
      return usageError(formatv("--replicas: {0} is not between 1 and {1}",
                                Replicas.getValue(), MaxReplicas));
    S.Replicas = Replicas;
    if (given(Cluster))
      if (Error E = placeOnCluster(S))
        return E;
  }
  if (Reduction == "collective" && areOfSeveralTasks(S.devices(false)))
    return usageError(
        "--reduction=collective: In-graph multi-worker training is "
        "not supported with collectives, only with a reduction to one device; "
        "give --reduction=add");
  return Error::success();
}

/// Checks --mode=between-graph, which writes a graph for each task.
Error checkMode(StrategyOptions &S, StringRef Output) {
  std::string Loose = Async            ? firstGiven({Async})
                      : Staleness != 0 ? firstGiven({Staleness})
                                       : "";
  if (Mode == "in-graph")
    return Loose.empty()
               ? Error::success()
               : usageError(Loose +
                            " needs --mode=between-graph: the replicas of "
                            "one graph run each step together");
  if (!given(Cluster))
    return usageError("--mode=between-graph needs --cluster");
  if (!Loose.empty() && (!S.Builder || S.Builder->ForAll != Policy::Shared))
    return usageError(Loose + ": --strategy=" + Strategy +
                      " has copies of variables, which stay equal only if all "
                      "workers update them in the same step; give "
                      "--strategy=ps");
  if (S.To == Lowering::Tpu)
    return usageError("--mode=between-graph does not go with --strategy=tpu, "
                      "whose step is one computation");
  if (S.To == Lowering::Workers)
    return usageError("--mode=between-graph and --strategy=ipu-multi-worker, "
                      "which writes a graph for each worker anyway: give only "
                      "one");
  if (Reduction == "accumulator")
    return usageError("--mode=between-graph does not go with "
                      "--reduction=accumulator: workers exchange values, not "
                      "accumulators; give --reduction=add");
  S.BetweenGraphs = true;
  S.Async = !Loose.empty();
  S.Staleness = Staleness;
  // An asynchronous worker with one replica runs the step of the input, so no
  // feed is split.
  S.Replicate.Once = S.Async && S.Replicas == 1;
  if (given(Worker)) {
    if (Error E = Worker.take(S.Split))
      return E;
    S.OnlyWorker = *S.Split.Worker;
    if (S.OnlyWorker >= S.Tasks.size())
      return usageError(formatv("--worker: {0} is not between 0 and {1}",
                                *S.OnlyWorker, S.Tasks.size() - 1));
  } else if (S.Tasks.size() > 1 && !Output.contains("%d")) {
    return usageError("--mode=between-graph: '-o " + Output +
                      "' names one file for all workers; put %d into the name, "
                      "as in worker-%d.meta, or give --worker");
  }
  return Error::success();
}

/// Sets the tasks of ipu-multi-worker from --cluster, or to numbered workers.
Error chooseWorkers(StrategyOptions &S, std::vector<std::string> &Tasks) {
  if (given(Cluster)) {
    if (given(Workers) || given(Worker))
      return usageError("--cluster and --workers: give only one");
    Expected<ClusterSpec> Spec = readCluster(Cluster);
    if (!Spec)
      return ofFile("--cluster", Spec.takeError());
    Tasks = trainingTasks(*Spec);
    auto Mine = find(Tasks, formatv("/job:{0}/task:{1}", Spec->TaskType,
                                    Spec->TaskIndex.value_or(0))
                                .str());
    if (Mine == Tasks.end())
      return fileError(
          Cluster,
          createStringError(inconvertibleErrorCode(),
                            "'task' does not say which worker this is"));
    S.Split.Worker = static_cast<unsigned>(Mine - Tasks.begin());
    return Error::success();
  }
  if (!given(Workers) || !given(Worker))
    return usageError(
        "--strategy=ipu-multi-worker needs --workers and --worker, "
        "or --cluster");
  if (Workers == 0 || Workers > MaxReplicas)
    return usageError(formatv("--workers: {0} is not between 1 and {1}",
                              Workers.getValue(), MaxReplicas));
  if (Error E = Worker.take(S.Split))
    return E;
  if (S.Split.Worker >= Workers)
    return usageError(formatv("--worker: {0} is not between 0 and {1}",
                              *S.Split.Worker, Workers - 1));
  for (unsigned I = 0; I < Workers; ++I)
    Tasks.push_back(formatv("/job:worker/task:{0}", I));
  return Error::success();
}

/// Places one replica on each worker of ipu-multi-worker. Each worker is a
/// task.
Error checkWorkers(StrategyOptions &S, const OtherOptions &Other) {
  // After the lowering there is no replicated program to print or explain. Each
  // file has one replica, so flags for several replicas do not apply.
  std::string Flag =
      firstGiven({Replicas, Devices, Resources, Reduction, CheckCopies},
                 Other.EmitsTypes ? "--emit=types"
                 : Other.Explain  ? "--explain"
                                  : "");
  if (!Flag.empty())
    return usageError(Flag +
                      " does not go with --strategy=ipu-multi-worker, "
                      "which has one replica in the graph of each worker");
  std::vector<std::string> Tasks;
  if (Error E = chooseWorkers(S, Tasks))
    return E;
  if (Error E = checkDeviceType(S))
    return E;
  StringRef Type = S.DeviceType.empty() ? "IPU" : StringRef(S.DeviceType);
  for (std::string &Task : Tasks)
    Task += ("/device:" + Type + ":0").str();
  S.Replicate.Devices = std::move(Tasks);
  return Error::success();
}

/// Checks --reduction and --batch-norm, which set options of several passes.
Error checkReduction(StrategyOptions &S) {
  if (Error E = Reduction.check())
    return E;
  S.Accumulates = Reduction == "accumulator";
  if (Reduction != "auto" && !S.Accumulates)
    S.Collectives.How.parse(Reduction);
  if (Error E = BatchNorm.check())
    return E;
  if (BatchNorm != "local")
    S.BatchNorm.emplace().How.parse(BatchNorm);
  if (BatchNorm != "sync")
    S.Reduce.LocalBatchNorm = true;
  return Error::success();
}

Expected<StrategyOptions> checkStrategy(const OtherOptions &Other) {
  if (Error E = checkStrategyName(Strategy))
    return E;
  StrategyOptions S{StringRef(Strategy)};
  if (Error E = checkRecordFlags(S, Strategy))
    return E;
  if (!S.Assign.Emit->empty() && *S.Assign.Emit == Other.Output)
    return usageError("--emit-strategy and -o: both name the file '" +
                      Other.Output + "'; give two names");
  if (Error E = Mode.check())
    return E;
  bool IsSplit = S.To == Lowering::Workers;
  if (!IsSplit && (given(Workers) || (given(Worker) && Mode == "in-graph")))
    return usageError(
        "--workers and --worker need --strategy=ipu-multi-worker");
  if (Error E = IsSplit ? checkWorkers(S, Other) : checkPlaces(S))
    return E;
  if (Error E = checkMode(S, Other.Output))
    return E;
  if (Error E = checkReduction(S))
    return E;
  for (const std::string &F : Feed)
    if (Error E = checkFeed(F))
      return E;
  for (const std::string &F : Fetch)
    if (F.empty())
      return usageError("--fetch: the name is empty");
  for (const std::string &G : Grad)
    if (Error E = checkGrad(G))
      return E;
  for (const std::string &V : Variable)
    if (StringRef(V).contains(';'))
      return usageError("--variable: '" + V +
                        "' is more than one rule; repeat "
                        "the option");
  if (Error E =
          takeAll(DeviceMap, S.Devices, CollectiveTimeout, S.Collectives,
                  BucketBytes, S.Fuse, Batch, S.Replicate, Feed, S.Replicate,
                  HowFallback, S.Reduce, MinSpread, S.Reduce, Grad, S.Reduce,
                  NoGradientSlots, S.Reduce, Variable, S.Mirror))
    return E;
  if (S.To != Lowering::Replicas && S.Reduce.What.isGiven() &&
      *S.Reduce.What == Fallback::Once)
    return usageError(
        "--fallback=once does not go with --strategy=" + Strategy +
        ", which does not gather values of replicas in the middle of a step");
  S.MergesForward = !is_contained(Fetch, "none");
  copy_if(Fetch, std::back_inserter(S.Fetches),
          [](StringRef F) { return F != "none"; });
  S.CheckCopies = CheckCopies;
  S.EvenBatches = EvenBatches;
  return S;
}

/// Parses --passes and sets the values of --replicas and --feed in its passes.
Expected<Pipeline> completePipeline(const PassRegistry &Registry,
                                    StringRef Passes) {
  Expected<Pipeline> P = Pipeline::parse(Passes, Registry);
  if (!P)
    return P;
  for (const std::string &F : Feed)
    if (Error E = checkFeed(F))
      return E;
  auto Set = [&](const cl::Option &Flag, ArrayRef<std::string> Texts) -> Error {
    bool Any = !given(Flag);
    for (const std::unique_ptr<Pass> &Each : P->Passes)
      if (OptionBase *O = Each->options().find(Flag.ArgStr); O && given(Flag)) {
        Any = true;
        if (!O->isGiven())
          for (const std::string &Text : Texts)
            if (std::string Fault = O->add(Text); !Fault.empty())
              return usageError("--" + Flag.ArgStr + ": " + Fault);
      }
    return Any ? Error::success()
               : usageError("--" + Flag.ArgStr +
                            " and --passes: no pass of the pipeline has the "
                            "option '" +
                            Flag.ArgStr + "'");
  };
  if (Error E = Set(Replicas, utostr(Replicas)))
    return E;
  if (Error E = Set(Feed, std::vector<std::string>(Feed.begin(), Feed.end())))
    return E;
  return P;
}

} // namespace

bool namesMachines() {
  return given(Resources) || given(Replicas) || given(Devices);
}

Expected<StrategyOptions> chooseForFunctions(StrategyOptions S) {
  constexpr StringLiteral Shared = "ps";
  std::string Flag = firstGiven(
      {Cluster, Resources, Mode, Variable, Grad, CheckCopies}, recordFlag());
  if (given(Strategy) && Strategy != Shared)
    Flag = "--strategy=" + Strategy;
  if (Reduction == "collective" || Reduction == "accumulator")
    Flag = "--reduction=" + Reduction;
  if (Flag.empty() && !S.Fetches.empty())
    Flag = "--fetch";
  if (Flag.empty() && areOfSeveralTasks(S.devices(false)))
    Flag = "--devices of several tasks";
  if (!Flag.empty())
    return usageError(Flag +
                      " does not go with functions of a SavedModel, which "
                      "TensorFlow 2 calls: all replicas share their variables, "
                      "as with --strategy=ps, and reductions are additions; "
                      "give --signatures-only to rewrite instead the graph "
                      "that tf.compat.v1.saved_model.load runs");
  S.Assign.Strategy = Shared.str();
  S.Builder = findBuilder(Shared);
  S.Collectives.How = ReductionKind::Add;
  return S;
}

Error checkCaptures(const StrategyOptions &S) {
  if (S.Builder && S.Builder->ForAll == Policy::Shared)
    return Error::success();
  return usageError("--capture needs --strategy=ps: the graph of a concrete "
                    "function does not initialize copies of its variables");
}

InputDevices devicesOf(const Graph &G) {
  InputDevices Result;
  std::set<std::string> Found;
  auto See = [&](StringRef Name) {
    auto Device = DeviceName::parse(Name);
    if (!Device || Device->Type.empty() || Device->Type == "CPU")
      return;
    Result.HasGpu |= Device->Type == "GPU";
    DeviceName Local;
    Local.Type = Device->Type;
    Local.Index = Device->Index.value_or(0);
    Found.insert(Local.str());
  };
  std::vector<bool> Used(G.numDevices());
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N))
      Used[G.node(N).Device] = true;
  for (uint32_t Id = 0; Id < G.numDevices(); ++Id)
    if (Used[Id])
      See(G.deviceName(Id));
  if (mayCall(G))
    forEachBodyNode(G, [&](StringRef, StringRef Device) {
      if (!Device.empty())
        See(Device);
    });
  Result.Accelerators.assign(Found.begin(), Found.end());
  return Result;
}

Error moveAccelerators(StrategyOptions &S, const InputDevices &Input) {
  if (S.Devices.Map.isGiven() || Input.Accelerators.empty())
    return Error::success();
  std::vector<std::string> Replicas = S.devices(Input.HasGpu);
  auto Local = [](StringRef Name) {
    auto Device = DeviceName::parse(Name);
    DeviceName Result;
    if (Device) {
      Result.Type = Device->Type;
      Result.Index = Device->Index.value_or(0);
    }
    return Result.str();
  };
  std::vector<std::string> Here;
  Here.reserve(Replicas.size());
  for (StringRef Device : Replicas)
    Here.push_back(Local(Device));
  if (all_of(Input.Accelerators,
             [&](const std::string &D) { return is_contained(Here, D); }))
    return Error::success();
  if (Input.Accelerators.size() > 1)
    return usageError(
        "the input places nodes on " + join(Input.Accelerators, ", ") +
        ", and not all of these are devices of replicas; map each to one, "
        "with --device-map=" +
        Input.Accelerators.front() + "=" + Here.front() + " and so on");
  // A TPU runs only its computation, so these nodes go to the CPU.
  std::string To =
      S.To == Lowering::Tpu ? std::string("/device:CPU:0") : Here.front();
  S.Devices.Map.add(Input.Accelerators.front() + "=" + To);
  return Error::success();
}

Expected<Pipeline> ChosenPasses::pipeline(const InputDevices &Input,
                                          bool Once) const {
  if (!Strategy)
    return Own.clone();
  StrategyOptions S = *Strategy;
  S.Replicate.Once = Once || S.Replicate.Once;
  if (Error E = moveAccelerators(S, Input))
    return E;
  return buildPipeline(S, Input.HasGpu);
}

void chooseTrial() {
  // These options were not given, because a trial runs only without them.
  Replicas.addOccurrence(0, "replicas", "2");
  DeviceType.addOccurrence(0, "device-type", "CPU");
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

Expected<ChosenPasses> choosePasses(const PassRegistry &Registry,
                                    const OtherOptions &Other) {
  if (Error E = checkNoDevice())
    return E;
  bool Wanted = namesMachines() || given(Cluster) || given(Strategy);
  for (const cl::Option *Flag : distributionFlags()) {
    // With --passes, --replicas and --feed set pass options of the same names.
    if (!given(*Flag) ||
        (Other.HasPasses &&
         (Flag == &Replicas || Flag == std::addressof<const cl::Option>(Feed))))
      continue;
    if (Other.HasPasses)
      return usageError(
          "--" + Flag->ArgStr +
          " and --passes: give only one; an option of a pass goes "
          "into the pipeline");
    // --device-map works without a strategy.
    if (!Wanted && Flag != std::addressof<const cl::Option>(DeviceMap))
      return usageError("--" + Flag->ArgStr + " needs --replicas or --devices");
  }
  ChosenPasses Result;
  if (!Wanted && given(DeviceMap)) {
    MapDevicesOptions Map;
    if (Error E = DeviceMap.take(Map))
      return E;
    Result.Own.add(createMapDevicesPass(Map));
    Result.OnlyMapsDevices = true;
    return Result;
  }
  Error E = Other.HasPasses
                ? completePipeline(Registry, Other.Passes).moveInto(Result.Own)
            : Wanted ? checkStrategy(Other).moveInto(Result.Strategy)
                     : Error::success();
  if (E)
    return E;
  return Result;
}

} // namespace graft
