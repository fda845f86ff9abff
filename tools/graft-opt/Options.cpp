//===- tools/graft-opt/Options.cpp - the command line -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Names of flags are what build files are written against: they stay.
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "lib/graph/DeviceName.h"
#include "lib/strategy/Cluster.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"

#include <thread>

using namespace llvm;

namespace graft {
namespace {

Error failure(const Twine &Message) {
  return createStringError(inconvertibleErrorCode(), Message);
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

cl::OptionCategory Files("Input and output");
cl::OptionCategory Distribution("Distribution");
cl::OptionCategory Pipelines("Passes");
cl::OptionCategory Checking("Checking and reporting");
cl::OptionCategory Debugging("Debugging");

using Text = cl::opt<std::string>;
using TextList = cl::list<std::string>;
using Flag = cl::opt<bool>;

Text Input(cl::Positional, cl::init("-"), cl::cat(Files),
           cl::desc("<graph file or SavedModel directory>"));
Text Output("o", cl::init("-"), cl::value_desc("file"), cl::cat(Files),
            cl::desc("Output; text when it ends in .pbtxt. Of a SavedModel "
                     "only the graph file is written. Default: stdout"));
Flag AsText("S", cl::cat(Files), cl::desc("Write text"));
Flag Force("f", cl::cat(Files), cl::desc("Write binary even to a terminal"));
Text Kind("input-kind", cl::init("auto"), cl::value_desc("kind"),
          cl::cat(Files),
          cl::desc("What the input is: auto, graph, metagraph or savedmodel"));
Text Emit("emit", cl::value_desc("format"), cl::cat(Files),
          cl::desc("What to write: pb, pbtxt, summary (one line a node), dot "
                   "or none"));
Text Depfile("d", cl::value_desc("file"), cl::cat(Files),
             cl::desc("Write a Make rule with all files read"));
Flag IfChanged("write-if-changed", cl::cat(Files),
               cl::desc("Leave the output alone when it has these bytes"));

Text ShardSize("shard-size", cl::value_desc("size"), cl::cat(Files),
               cl::desc("Write files of at most this size, with a suffix K, M "
                        "or G: STEM-00000-of-00002.pb, ..."));
cl::opt<unsigned> Threads("threads", cl::value_desc("N"), cl::cat(Files),
                          cl::desc("Threads that write. Default: one for each "
                                   "core"));

cl::opt<unsigned> Replicas("replicas", cl::value_desc("N"),
                           cl::cat(Distribution),
                           cl::desc("Replicas on this machine, or on each "
                                    "worker of --cluster"));
Text DeviceType("device-type", cl::value_desc("type"), cl::cat(Distribution),
                cl::desc("Replica i is on /device:TYPE:i. Default: GPU, or "
                         "what the strategy is called after"));
TextList Devices("devices", cl::CommaSeparated, cl::value_desc("D,..."),
                 cl::cat(Distribution),
                 cl::desc("The devices of the replicas, instead"));
Text Cluster("cluster", cl::value_desc("file"), cl::cat(Distribution),
             cl::desc("The workers, as JSON in the form of TF_CONFIG; one "
                      "graph for all of them"));
Text Strategy("strategy", cl::init("all-reduce"), cl::value_desc("name"),
              cl::cat(Distribution),
              cl::desc("all-reduce (default), ps, tpu or ipu-multi-worker"));
cl::opt<unsigned> Workers("workers", cl::value_desc("W"), cl::cat(Distribution),
                          cl::desc("Workers of ipu-multi-worker, which has a "
                                   "graph for each"));
cl::opt<unsigned> Worker("worker", cl::value_desc("I"), cl::cat(Distribution),
                         cl::desc("The worker whose graph is written, from 0 "
                                  "on"));
TextList Feed("feed", cl::value_desc("NAME[=how]"), cl::cat(Distribution),
              cl::desc("A feed, and how replicas get it: split, split(AXIS), "
                       "copy or sparse"));
Text Batch("batch", cl::init("global"), cl::value_desc("whose"),
           cl::cat(Distribution),
           cl::desc("What a queue or an iterator gives: global, the batch of "
                    "the step (default), or per-replica, that of one replica"));
TextList Fetch("fetch", cl::value_desc("NAME"), cl::cat(Distribution),
               cl::desc("A tensor or operation that will be fetched"));
Text Reduction("reduction", cl::init("auto"), cl::value_desc("how"),
               cl::cat(Distribution),
               cl::desc("How values are reduced: auto, add or collective"));
Text BatchNorm("batch-norm", cl::init("local"), cl::value_desc("how"),
               cl::cat(Distribution),
               cl::desc("Statistics of fused batch norms: local (default), of "
                        "each replica's rows; exact, moving averages of the "
                        "whole batch; sync, all of the whole batch"));
TextList Grad("grad", cl::value_desc("VAR=TENSOR,how"), cl::cat(Distribution),
              cl::desc("The gradient of a variable, to be reduced by mean or "
                       "sum"));
TextList Variable("variable", cl::value_desc("GLOB=policy[,how]"),
                  cl::cat(Distribution),
                  cl::desc("What becomes of variables: mirrored, "
                           "sync-on-read, replicated, host or shared; and of "
                           "what replicas write to them: none, sum, mean or "
                           "only-first-replica"));
Flag CheckCopies("check-copies", cl::cat(Distribution),
                 cl::desc("Fail a step whose copies of a variable differ"));
Flag NoGradientSlots("no-gradient-slots", cl::Hidden, cl::cat(Distribution),
                     cl::desc("Forget which inputs of optimizers are "
                              "gradients, for tests"));

Text Passes("passes", cl::value_desc("pipeline"), cl::cat(Pipelines),
            cl::desc("Run these passes, a,b{option=value}, instead of a "
                     "strategy's"));
Flag PrintPipeline("print-pipeline-passes", cl::cat(Pipelines),
                   cl::desc("Print the pipeline and exit"));
Flag ListPasses("list-passes", cl::cat(Pipelines),
                cl::desc("List the passes and exit"));
Text HelpPass("help-pass", cl::value_desc("pass"), cl::cat(Pipelines),
              cl::desc("Describe a pass and its options and exit"));
Flag PassesMarkdown("print-passes-md", cl::Hidden, cl::cat(Pipelines),
                    cl::desc("Print docs/Passes.md and exit"));

Flag Strict("strict", cl::cat(Checking), cl::desc("Refuse what is not proved"));
Flag VerifyOutput("verify-output", cl::cat(Checking),
                  cl::desc("Read the written file again and check it against "
                           "the input"));
TextList Explain("explain", cl::value_desc("node"), cl::cat(Checking),
                 cl::desc("Say how the replication type of a node follows "
                          "from the feeds that are split"));
Text Remarks("remarks", cl::ValueOptional, cl::value_desc("file"),
             cl::cat(Checking),
             cl::desc("Say what was done and why: as text, or as YAML to a "
                      "file"));

Flag VerifyEach("verify-each", cl::cat(Debugging),
                cl::desc("Verify the graph after each pass"));
TextList PrintBefore("print-before", cl::CommaSeparated,
                     cl::value_desc("pass,..."), cl::cat(Debugging),
                     cl::desc("Print the graph before these passes"));
TextList PrintAfter("print-after", cl::CommaSeparated,
                    cl::value_desc("pass,..."), cl::cat(Debugging),
                    cl::desc("Print the graph after these passes"));
Flag PrintBeforeAll("print-before-all", cl::cat(Debugging),
                    cl::desc("Print the graph before each pass"));
Flag PrintAfterAll("print-after-all", cl::cat(Debugging),
                   cl::desc("Print the graph after each pass"));
Text PrintChanged("print-changed", cl::ValueOptional, cl::value_desc("how"),
                  cl::cat(Debugging),
                  cl::desc("Print the graph after each pass that changed it; "
                           "'diff': only the difference, 'quiet': say nothing "
                           "of other passes"));
Flag TimePasses("time-passes", cl::cat(Debugging),
                cl::desc("Print the time that each pass took"));
Flag Statistics("pass-statistics", cl::cat(Debugging),
                cl::desc("Print what the passes counted"));
Flag VerifyDiagnostics("verify-diagnostics", cl::cat(Debugging),
                       cl::desc("Check messages against the "
                                "'expected-error@below {{...}}' comments of "
                                "the input"));
Flag SplitInput("split-input-file", cl::cat(Debugging),
                cl::desc("Take the text between '# -----' lines as one input "
                         "each"));

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Refuses a \p Value of \p Flag that is not among \p Known.
Error checkWord(StringRef Flag, StringRef Value,
                const std::vector<std::string> &Known,
                StringRef Noun = "value") {
  if (is_contained(Known, Value))
    return Error::success();
  std::string Near = nearest(Value, Known);
  return failure(Flag + ": unknown " + Noun + " '" + Value + "'" +
                 (Near.empty() ? "; give one of " + join(Known, ", ")
                               : "; did you mean '" + Near + "'?"));
}

Error checkPass(StringRef Flag, StringRef Name, const PassRegistry &Registry) {
  // Passes for tests are known too, but not suggested.
  if (Registry.find(Name))
    return Error::success();
  return checkWord(Flag, Name, Registry.names(), "pass");
}

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

template <typename Option> bool given(const Option &O) {
  return O.getNumOccurrences() != 0;
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
  StringRef Type = S.DeviceType.empty() ? "GPU" : StringRef(S.DeviceType);
  for (const std::string &Task : Tasks)
    for (unsigned I = 0; I < Replicas; ++I)
      S.Devices.push_back((Task + "/device:" + Type + ":" + Twine(I)).str());
  S.DeviceType.clear();
  return Error::success();
}

Error checkDeviceType(StrategyOptions &S) {
  // The form of a TPU's computation has reductions of its own, and is no longer
  // the program of which a check of the file could find the copies.
  if (Strategy == "tpu") {
    S.DeviceType = "TPU";
    for (auto [Name, Given] :
         {std::pair("--reduction", given(Reduction)),
          std::pair("--check-copies", given(CheckCopies)),
          std::pair("--verify-output", given(VerifyOutput))})
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
  return Error::success();
}

/// The devices of the replicas, or their number and type.
Error checkPlaces(StrategyOptions &S) {
  for (auto [Name, Given] : {std::pair("--replicas", given(Replicas)),
                             std::pair("--device-type", given(DeviceType)),
                             std::pair("--cluster", given(Cluster))})
    if (Given && given(Devices))
      return failure(Twine("--devices and ") + Name + ": give only one");
  if (given(Cluster) && !given(Replicas))
    return failure("--cluster needs --replicas, the number of replicas on each "
                   "worker");
  if (!given(Devices) && !given(Replicas))
    return failure("--strategy needs --replicas or --devices");
  if (Error E = checkDeviceType(S))
    return E;
  if (given(Devices)) {
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
Error checkWorkers(StrategyOptions &S) {
  for (auto [Name, Given] :
       {std::pair("--replicas", given(Replicas)),
        std::pair("--devices", given(Devices)),
        std::pair("--reduction", given(Reduction)),
        std::pair("--check-copies", given(CheckCopies)),
        // There is no program any more, and one file is not all of it.
        std::pair("--explain", given(Explain)),
        std::pair("--verify-output", given(VerifyOutput))})
    if (Given)
      return failure(Twine(Name) + " does not go with "
                                   "--strategy=ipu-multi-worker, which has one "
                                   "replica in the graph of each worker");
  auto Tasks = chooseWorkers(S);
  if (!Tasks)
    return Tasks.takeError();
  if (Error E = checkDeviceType(S))
    return E;
  StringRef Type = S.DeviceType.empty() ? "IPU" : StringRef(S.DeviceType);
  for (const std::string &Task : *Tasks)
    S.Devices.push_back((Task + "/device:" + Type + ":0").str());
  S.DeviceType.clear();
  return Error::success();
}

Expected<StrategyOptions> checkStrategy() {
  StrategyOptions S;
  if (Error E = checkWord("--strategy", Strategy, strategyNames()))
    return E;
  bool BetweenGraphs = Strategy == "ipu-multi-worker";
  if (!BetweenGraphs && (given(Workers) || given(Worker)))
    return failure("--workers and --worker need --strategy=ipu-multi-worker");
  if (Error E = BetweenGraphs ? checkWorkers(S) : checkPlaces(S))
    return E;
  if (Error E =
          checkWord("--reduction", Reduction, {"auto", "add", "collective"}))
    return E;
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
  S.Strategy = Strategy;
  S.Feeds.assign(Feed.begin(), Feed.end());
  S.Batch = Batch;
  S.Fetches.assign(Fetch.begin(), Fetch.end());
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
Expected<std::string> completePipeline(const PassRegistry &Registry) {
  if (!given(Replicas) && !given(Feed))
    return Passes.getValue();
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

/// The pipeline that the flags ask for; empty when none does.
Expected<std::string> choosePipeline(const PassRegistry &Registry) {
  const std::pair<const char *, bool> Own[] = {
      {"--replicas", given(Replicas)},
      {"--devices", given(Devices)},
      {"--cluster", given(Cluster)},
      {"--workers", given(Workers)},
      {"--worker", given(Worker)},
      {"--strategy", given(Strategy)},
      {"--device-type", given(DeviceType)},
      {"--feed", given(Feed)},
      {"--batch", given(Batch)},
      {"--fetch", given(Fetch)},
      {"--reduction", given(Reduction)},
      {"--batch-norm", given(BatchNorm)},
      {"--grad", given(Grad)},
      {"--variable", given(Variable)},
      {"--no-gradient-slots", NoGradientSlots},
      {"--check-copies", CheckCopies},
  };
  bool Wanted =
      given(Replicas) || given(Devices) || given(Cluster) || given(Strategy);
  for (auto [Name, Given] : Own) {
    // These two every pass may have that has such an option.
    bool IsShared =
        StringRef(Name) == "--replicas" || StringRef(Name) == "--feed";
    if (Given && given(Passes) && IsShared)
      continue;
    if (Given && given(Passes))
      return failure(Twine(Name) + " and --passes: give only one; an option "
                                   "of a pass goes into the pipeline");
    if (Given && !Wanted)
      return failure(Twine(Name) + " needs --replicas or --devices");
  }
  if (given(Passes))
    return completePipeline(Registry);
  if (!Wanted)
    return std::string();
  Expected<StrategyOptions> S = checkStrategy();
  if (!S)
    return S.takeError();
  return buildPipeline(*S);
}

/// `64M` and the like.
Error chooseShardSize(ToolOptions &O) {
  if (!given(ShardSize))
    return Error::success();
  StringRef Digits = ShardSize;
  unsigned Shift = StringSwitch<unsigned>(Digits.take_back(1))
                       .CaseLower("k", 10)
                       .CaseLower("m", 20)
                       .CaseLower("g", 30)
                       .Default(0);
  if (Shift != 0)
    Digits = Digits.drop_back(1);
  uint64_t Size;
  if (Digits.getAsInteger(10, Size) || Size == 0 ||
      Size > (MessageLimit >> Shift))
    return failure(formatv("--shard-size: '{0}' is not a size between 1 and "
                           "{1}, such as 512M",
                           ShardSize.getValue(), MessageLimit));
  if (Output == "-" || O.Format != OutputFormat::Binary)
    return failure("--shard-size needs -o with the name of a binary file");
  if (O.Kind == InputKind::MetaGraph || O.Kind == InputKind::SavedModel)
    return failure("--shard-size writes GraphDefs only");
  O.Write.ShardSize = Size << Shift;
  return Error::success();
}

Error chooseFormat(ToolOptions &O) {
  if (AsText && given(Emit) && Emit != "pbtxt")
    return failure("-S and --emit: give only one");
  if (Error E = checkWord("--input-kind", Kind,
                          {"auto", "graph", "metagraph", "savedmodel"}))
    return E;
  O.Kind = StringSwitch<InputKind>(Kind)
               .Case("graph", InputKind::GraphDef)
               .Case("metagraph", InputKind::MetaGraph)
               .Case("savedmodel", InputKind::SavedModel)
               .Default(InputKind::Auto);
  if (given(Emit)) {
    if (Error E = checkWord("--emit", Emit,
                            {"pb", "pbtxt", "summary", "dot", "none"}))
      return E;
    O.Format = StringSwitch<OutputFormat>(Emit)
                   .Case("pb", OutputFormat::Binary)
                   .Case("pbtxt", OutputFormat::Text)
                   .Case("summary", OutputFormat::Summary)
                   .Case("dot", OutputFormat::Dot)
                   .Default(OutputFormat::None);
  } else if (AsText || StringRef(Output).ends_with(".pbtxt")) {
    O.Format = OutputFormat::Text;
  } else if (Output != "-") {
    O.Format = OutputFormat::Binary;
  }
  if (given(Depfile) && Output == "-")
    return failure("-d needs -o with the name of a file");
  if (VerifyOutput && (Output == "-" || (O.Format != OutputFormat::Binary &&
                                         O.Format != OutputFormat::Text)))
    return failure("--verify-output needs -o with the name of a graph file");
  if (SplitInput && Output != "-" && O.Format == OutputFormat::Binary)
    return failure("--split-input-file writes text: add -S or --emit");
  return chooseShardSize(O);
}

Error chooseInstrumentation(Instrumentation &Show,
                            const PassRegistry &Registry) {
  Show.VerifyEach = VerifyEach;
  Show.PrintBeforeAll = PrintBeforeAll;
  Show.PrintAfterAll = PrintAfterAll;
  Show.TimePasses = TimePasses;
  Show.Statistics = Statistics;
  for (const std::string &Name : PrintBefore)
    if (Error E = checkPass("--print-before", Name, Registry))
      return E;
  for (const std::string &Name : PrintAfter)
    if (Error E = checkPass("--print-after", Name, Registry))
      return E;
  Show.PrintBefore.assign(PrintBefore.begin(), PrintBefore.end());
  Show.PrintAfter.assign(PrintAfter.begin(), PrintAfter.end());
  if (!given(PrintChanged))
    return Error::success();
  if (!PrintChanged.empty())
    if (Error E = checkWord("--print-changed", PrintChanged, {"diff", "quiet"}))
      return E;
  Show.PrintChanged = StringSwitch<Instrumentation::Changed>(PrintChanged)
                          .Case("diff", Instrumentation::Changed::Diff)
                          .Case("quiet", Instrumentation::Changed::Quiet)
                          .Default(Instrumentation::Changed::Verbose);
  return Error::success();
}

} // namespace

Expected<ToolOptions> parseCommandLine(int Argc, char **Argv,
                                       const PassRegistry &Registry) {
  const cl::OptionCategory *Ours[] = {&Files, &Distribution, &Pipelines,
                                      &Checking, &Debugging};
  cl::HideUnrelatedOptions(Ours);
  cl::ParseCommandLineOptions(
      Argc, Argv,
      "graft-opt: rewrites a TensorFlow training graph for many devices\n\n"
      "  graft-opt model.meta -o model.x4.meta --replicas=4\n\n"
      "Without --replicas, --devices, --strategy or --passes the output is the "
      "input.\n");
  ToolOptions O;
  O.Input = Input;
  O.Output = Output;
  O.Depfile = Depfile;
  O.Write.Force = Force;
  O.Write.WriteIfChanged = IfChanged;
  O.Write.Threads = Threads != 0
                        ? Threads
                        : std::max(1U, std::thread::hardware_concurrency());
  O.Strict = Strict;
  O.VerifyOutput = VerifyOutput;
  O.VerifyDiagnostics = VerifyDiagnostics;
  O.SplitInput = SplitInput;
  O.Remarks = given(Remarks);
  O.RemarksFile = Remarks;
  O.Explain.assign(Explain.begin(), Explain.end());
  O.PrintPipeline = PrintPipeline;
  O.ListPasses = ListPasses;
  O.PassesMarkdown = PassesMarkdown;
  O.HelpPass = HelpPass;
  if (given(Cluster))
    O.FurtherInputs.push_back(Cluster);
  for (int I = 1; I < Argc; ++I)
    if (Argv[I][0] == '@' && Argv[I][1] != '\0')
      O.FurtherInputs.push_back(Argv[I] + 1);
  if (!O.HelpPass.empty())
    if (Error E = checkPass("--help-pass", O.HelpPass, Registry))
      return E;
  constexpr unsigned MaxThreads = 1024;
  if (given(Threads) && (Threads == 0 || Threads > MaxThreads))
    return failure(formatv("--threads: {0} is not between 1 and {1}",
                           Threads.getValue(), MaxThreads));
  if (Error E = chooseFormat(O))
    return E;
  if (Error E = chooseInstrumentation(O.Show, Registry))
    return E;
  Expected<std::string> Pipeline = choosePipeline(Registry);
  if (!Pipeline)
    return Pipeline.takeError();
  O.Pipeline = std::move(*Pipeline);
  return O;
}

} // namespace graft
