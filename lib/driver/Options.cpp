//===- lib/driver/Options.cpp - the command line ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The names of flags never change, because build files depend on them.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Options.h"

#include "lib/driver/Distribution.h"
#include "lib/report/Page.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <array>
#include <thread>

using namespace llvm;

namespace graft {
namespace {

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

cl::OptionCategory Files("Input and output");
cl::OptionCategory Pipelines("Passes");
cl::OptionCategory Checking("Checking and reporting");
cl::OptionCategory Debugging("Debugging");

using Text = cl::opt<std::string>;
using TextList = cl::list<std::string>;
using Flag = cl::opt<bool>;

TextList Inputs(cl::Positional, cl::cat(Files),
                cl::desc("<graph file, SavedModel directory or - for stdin>"));
Text Output(
    "o", cl::init("-"), cl::value_desc("file"), cl::cat(Files),
    cl::desc(
        "The output; text if it ends in .pbtxt, lines if it ends in .graph. "
        "For the folder of a "
        "SavedModel: a folder, or the graph alone if it ends in .pb or .pbtxt. "
        "Default: stdout"));
Flag AsText("S", cl::cat(Files), cl::desc("Write text"));
Flag Force("f", cl::cat(Files), cl::desc("Write binary even to a terminal"));
TextList Tags(
    "tags", cl::CommaSeparated, cl::value_desc("tag,..."), cl::cat(Files),
    cl::desc("For a SavedModel: the MetaGraphDef with these tags. Default: the "
             "first. Others stay as they are"));
TextList CapturedNames(
    "capture", cl::value_desc("PLACEHOLDER=NAME"), cl::cat(Files),
    cl::desc(
        "For the graph of a concrete function: the variable behind the "
        "placeholder of a handle, with its shape as in w[4,3] if the graph has "
        "none"));
TextList Functions(
    "function", cl::value_desc("name"), cl::cat(Files),
    cl::desc(
        "For a SavedModel of TensorFlow 2: rewrite only the functions that "
        "match, with * and ?. Default: those that change something, or all if "
        "none does"));
Flag SignaturesOnly(
    "signatures-only", cl::cat(Files),
    cl::desc(
        "For a SavedModel: rewrite only the graph that "
        "tf.compat.v1.saved_model.load runs, and no function of TensorFlow 2"));
Flag ReplaceFolder("force", cl::cat(Files),
                   cl::desc("Allow graft to replace the SavedModel at -o"));
Flag LinkFiles(
    "link", cl::cat(Files),
    cl::desc(
        "Link variables, assets and other files of the input into an output "
        "folder instead of copying them"));
Choice Kind("input-kind",
            {"auto", "graph", "metagraph", "savedmodel", "graphitem"},
            cl::init("auto"), cl::value_desc("kind"), cl::cat(Files),
            cl::desc("The kind of the input: auto, graph, metagraph, "
                     "savedmodel or graphitem"));
Choice Emit(
    "emit", {"pb", "pbtxt", "lines", "summary", "dot", "types", "none"},
    cl::value_desc("format"), cl::cat(Files),
    cl::desc("The format of the output: pb, pbtxt, lines (a line for each "
             "node, which graft reads back), summary (such lines without large "
             "constants), "
             "dot, types (a line for each tensor of the program) or none"));
Text Around(
    "around", cl::value_desc("node[:hops]"), cl::cat(Files),
    cl::desc(
        "With --emit=dot: a node and its neighbors within this many edges. "
        "Default: 1"));
TextList Scopes("scope", cl::value_desc("glob"), cl::cat(Files),
                cl::desc("With --emit=dot: the nodes of scopes that match"));
Text Depfile("d", cl::value_desc("file"), cl::cat(Files),
             cl::desc("Write a Make rule that names all input files"));
Flag InPlace("in-place", cl::cat(Files),
             cl::desc("Allow graft to replace the input by the output"));
Flag IfChanged(
    "write-if-changed", cl::cat(Files),
    cl::desc("Do not write an output that already has the same bytes"));

Text ShardSize("shard-size", cl::value_desc("size"), cl::cat(Files),
               cl::desc("Write files of at most this size, with a suffix K, M "
                        "or G: STEM-00000-of-00002.pb, ..."));
cl::opt<unsigned> Threads(
    "threads", cl::value_desc("N"), cl::cat(Files),
    cl::desc("The number of threads that write. Default: one for each core"));

Text Passes(
    "passes", cl::value_desc("pipeline"), cl::cat(Pipelines),
    cl::desc(
        "Run these passes, a,b{option=value}, instead of those of a strategy"));
Flag PrintPipeline("print-pipeline-passes", cl::cat(Pipelines),
                   cl::desc("Print the pipeline and exit"));
Flag ListPasses("list-passes", cl::cat(Pipelines),
                cl::desc("List the passes and exit"));
Text HelpPass("help-pass", cl::value_desc("pass"), cl::cat(Pipelines),
              cl::desc("Describe a pass and its options and exit"));
Flag PassesMarkdown("print-passes-md", cl::Hidden, cl::cat(Pipelines),
                    cl::desc("Print docs/Passes.md and exit"));
Flag OptionsJson("print-options-json", cl::Hidden, cl::cat(Pipelines),
                 cl::desc("Print all options as JSON and exit"));

Flag
    InspectJson("json", cl::cat(Checking),
                cl::desc("Describe the input as JSON, and try to distribute it "
                         "over two replicas; write nothing"));
Flag Quiet("quiet", cl::cat(Checking),
           cl::desc("Do not print the closing line on a terminal"));
Flag Strict("strict", cl::cat(Checking),
            cl::desc("Make warnings about unproved values errors"));
TextList CustomOps(
    "custom-ops", cl::CommaSeparated, cl::value_desc("op,..."),
    cl::cat(Checking),
    cl::desc("Ops that TensorFlow does not have, from libraries of your own"));
Flag VerifyOutput(
    "verify-output", cl::cat(Checking),
    cl::desc(
        "Read the written file and check it against the input. This is the "
        "default for replicated inputs of up to 1 MiB"));
Flag NoVerifyOutput("no-verify-output", cl::cat(Checking),
                    cl::desc("Do not read and check the written file"));
Flag Certify(
    "certify", cl::cat(Checking),
    cl::desc(
        "Check that a file, or the files of all workers in any order, compute "
        "the step of --against=FILE"));
Text Against("against", cl::value_desc("file"), cl::cat(Checking),
             cl::desc("The single-device graph of --certify"));
TextList Explain(
    "explain", cl::value_desc("node"), cl::cat(Checking),
    cl::desc("Explain how the replication type of a node, or of all nodes that "
             "match, follows from the split feeds"));
Text Remarks(
    "remarks", cl::ValueOptional, cl::value_desc("file"), cl::cat(Checking),
    cl::desc(
        "Explain what graft did and why, on stderr or in a file. The ending of "
        "the file chooses the format: .yaml, .opt.yaml (for LLVM's tools), "
        ".json, .sarif or .txt. Default: YAML"));
Choice RemarksAs(
    "remarks-format", {"yaml", "opt-yaml", "json", "sarif", "text"},
    cl::value_desc("how"), cl::cat(Checking),
    cl::desc(
        "The format of --remarks=FILE, whatever its ending: yaml, opt-yaml, "
        "json, sarif or text"));

Text ReportTo(
    "report", cl::value_desc("file"), cl::cat(Checking),
    cl::desc(
        "Write a report of variables, gradients, scopes and unproved values: "
        "JSON, or a page for a browser if the file ends in .html"));
Choice ShowProgress(
    "progress", {"auto", "never"}, cl::init("auto"), cl::value_desc("when"),
    cl::cat(Checking),
    cl::desc(
        "Show the stage of a run that takes more than two seconds: auto, on a "
        "terminal only, or never"));

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
Choice PrintChanged(
    "print-changed", {"diff", "quiet"}, cl::ValueOptional,
    cl::value_desc("how"), cl::cat(Debugging),
    cl::desc(
        "Print the graph after each pass that changed it. 'diff': only the "
        "differences of each node; 'quiet': do not name the other passes"));
Flag TimePasses("time-passes", cl::cat(Debugging),
                cl::desc("Print the time that each pass took"));
Flag Statistics("pass-statistics", cl::cat(Debugging),
                cl::desc("Print the statistics of the passes"));
Flag VerifyDiagnostics("verify-diagnostics", cl::cat(Debugging),
                       cl::desc("Check messages against the "
                                "'expected-error@below {{...}}' comments of "
                                "the input"));
Flag SplitInput(
    "split-input-file", cl::cat(Debugging),
    cl::desc("Read the text between '# -----' lines as one input each"));

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

Error checkPass(StringRef Flag, StringRef Name, const PassRegistry &Registry) {
  // Hidden passes for tests are accepted but not suggested.
  if (Registry.find(Name))
    return Error::success();
  return checkWord(Flag, Name, Registry.names(), "pass");
}

Error chooseShardSize(ToolOptions &O) {
  if (!given(ShardSize))
    return Error::success();
  auto Size = parseSize(ShardSize, MessageLimit);
  if (!Size || *Size == 0)
    return usageError(formatv("--shard-size: '{0}' is not a size between 1 and "
                              "{1}, such as 512M",
                              ShardSize.getValue(), MessageLimit));
  if (Output == "-" || O.Format != OutputFormat::Binary)
    return usageError("--shard-size needs -o with the name of a binary file");
  if (O.Kind == InputKind::MetaGraph || O.Kind == InputKind::SavedModel)
    return usageError("--shard-size writes GraphDefs only");
  O.Write.ShardSize = *Size;
  return Error::success();
}

/// Returns true if graft reads files of \p Format.
bool isGraph(std::optional<OutputFormat> Format) {
  return Format == OutputFormat::Binary || Format == OutputFormat::Text ||
         Format == OutputFormat::Lines;
}

Error chooseFormat(ToolOptions &O) {
  if (AsText && given(Emit) && Emit != "pbtxt")
    return usageError("-S and --emit: give only one");
  if (Error E = Kind.check())
    return E;
  O.Kind = StringSwitch<InputKind>(Kind)
               .Case("graph", InputKind::GraphDef)
               .Case("metagraph", InputKind::MetaGraph)
               .Case("savedmodel", InputKind::SavedModel)
               .Case("graphitem", InputKind::GraphItem)
               .Default(InputKind::Auto);
  if (given(Emit)) {
    if (Error E = Emit.check())
      return E;
    O.Format = StringSwitch<OutputFormat>(Emit)
                   .Case("pb", OutputFormat::Binary)
                   .Case("pbtxt", OutputFormat::Text)
                   .Case("lines", OutputFormat::Lines)
                   .Case("summary", OutputFormat::Summary)
                   .Case("dot", OutputFormat::Dot)
                   .Case("types", OutputFormat::Types)
                   .Default(OutputFormat::None);
  } else if (AsText || StringRef(Output).ends_with(".pbtxt")) {
    O.Format = OutputFormat::Text;
  } else if (StringRef(Output).ends_with(".graph")) {
    O.Format = OutputFormat::Lines;
  } else if (Output != "-") {
    O.Format = OutputFormat::Binary;
  }
  if ((given(Around) || given(Scopes)) && O.Format != OutputFormat::Dot)
    return usageError("--around and --scope need --emit=dot");
  O.Drawing.Around = Around;
  O.Drawing.Scopes.assign(Scopes.begin(), Scopes.end());
  if (given(Depfile) && Output == "-")
    return usageError("-d needs -o with the name of a file");
  if (VerifyOutput && (Output == "-" || !isGraph(O.Format)))
    return usageError("--verify-output needs -o with the name of a graph file");
  if (SplitInput && Output != "-" && O.Format == OutputFormat::Binary)
    return usageError("--split-input-file writes text: add -S or --emit");
  return chooseShardSize(O);
}

std::array<const cl::OptionCategory *, 5> categories() {
  return {&Files, &distributionCategory(), &Checking, &Pipelines, &Debugging};
}

/// Returns the first given option other than --json, --progress and the options
/// of the reader, or null. If there is none, the task is a verdict on the
/// input.
const cl::Option *otherTask() {
  const cl::Option *OfReader[] = {
      std::addressof<cl::Option>(InspectJson), std::addressof<cl::Option>(Kind),
      std::addressof<cl::Option>(Tags), std::addressof<cl::Option>(CustomOps),
      std::addressof<cl::Option>(ShowProgress)};
  for (const cl::Option *O : optionsOf(categories()))
    if (given(*O) && !is_contained(OfReader, O))
      return O;
  return nullptr;
}

/// Chooses the format of remarks by the flag, or else by the file name.
Error chooseRemarks(ToolOptions &O) {
  O.Remarks = given(Remarks);
  O.RemarksFile = Remarks;
  if (!given(RemarksAs)) {
    O.RemarksAs = remarksFormatOf(Remarks);
    return Error::success();
  }
  if (Remarks.empty())
    return usageError("--remarks-format needs --remarks=FILE");
  O.RemarksAs = StringSwitch<RemarksFormat>(RemarksAs)
                    .Case("opt-yaml", RemarksFormat::OptYaml)
                    .Case("json", RemarksFormat::Json)
                    .Case("sarif", RemarksFormat::Sarif)
                    .Case("text", RemarksFormat::Text)
                    .Default(RemarksFormat::Yaml);
  return RemarksAs.check();
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
    if (Error E = PrintChanged.check())
      return E;
  Show.PrintChanged = StringSwitch<Instrumentation::Changed>(PrintChanged)
                          .Case("diff", Instrumentation::Changed::Diff)
                          .Case("quiet", Instrumentation::Changed::Quiet)
                          .Default(Instrumentation::Changed::Verbose);
  return Error::success();
}

constexpr StringLiteral Overview =
    "graft-opt rewrites the training step of a TensorFlow graph for many "
    "devices.\n"
    "Without an output and other options, it says what is in the file and if "
    "the step\ncan be distributed.\n";

constexpr StringLiteral Examples =
    "  graft-opt model.meta\n"
    "  graft-opt model.meta -o model.x4.meta --replicas=4 --device-type=CPU\n"
    "  graft-opt saved_model -o saved_model.x2 --replicas=2\n"
    "  graft-opt model.meta --plan --replicas=4\n"
    "  graft-opt model.meta -o ps.meta --replicas=2 --strategy=ps --strict\n";

constexpr StringRef Common[] = {
    "o",    "replicas", "device-type", "devices", "strategy",
    "feed", "fetch",    "strict",      "remarks", "custom-ops"};

} // namespace

void printOptionsJson(raw_ostream &OS) {
  static constexpr std::pair<StringRef, StringRef> Exits[] = {
      {"0", "the output is written, and TensorFlow runs it; messages say how "
            "it differs from the step of the input"},
      {"1", "an input, an output or a file that an option names is at fault, "
            "or the proof fails; an existing output is unchanged"},
      {"2", "the command line is at fault; nothing was read or written"},
      {"70", "a fault of graft, which one line on stderr describes; an "
             "existing output is unchanged"}};
  auto Ours = categories();
  printOptionsJson(OS, {Overview, Inputs, Ours, Exits});
}

Expected<ToolOptions> parseCommandLine(int Argc, char **Argv,
                                       const PassRegistry &Registry) {
  auto Ours = categories();
  cl::HideUnrelatedOptions(Ours);
  printHelpIfAsked(Argc, Argv, {Overview, Inputs, Ours, {}}, Examples, Common);
  parseOptions(Argc, Argv, Overview);
  if (Error E = checkRepeated(Ours))
    return E;
  ToolOptions O;
  if (Certify != given(Against))
    return usageError("--certify and --against: give both");
  if (Certify) {
    if (Inputs.empty())
      return usageError("--certify needs the name of a file");
    if (given(Output) || given(Passes) || given(Emit) || AsText)
      return usageError(
          "--certify writes nothing: give it without -o, -S, --emit "
          "and --passes");
    O.Certified.assign(Inputs.begin(), Inputs.end());
    O.Against = Against;
  } else if (Inputs.size() > 1) {
    return usageError("'" + Inputs[1] +
                      "': graft rewrites one input; give --certify to "
                      "check several files");
  }
  const cl::Option *Task = otherTask();
  O.Inspect = Task == nullptr;
  if (InspectJson && Task)
    return usageError("--json describes a file and writes nothing: give it "
                      "without " +
                      Twine(Task->ArgStr.size() == 1 ? "-" : "--") +
                      Task->ArgStr);
  if (Inputs.empty() && sys::Process::StandardInIsUserInput())
    return usageError("give the name of a graph file, or - to read it from a "
                      "terminal; --help lists the options");
  O.Input = Inputs.empty() ? "-" : Inputs[0];
  O.Output = Output;
  O.Depfile = Depfile;
  O.Write.Force = Force;
  O.Write.WriteIfChanged = IfChanged;
  O.Write.Threads = Threads != 0
                        ? Threads
                        : std::max(1U, std::thread::hardware_concurrency());
  if (Error E = ShowProgress.check())
    return E;
  if (given(ReportTo) && !StringRef(ReportTo).ends_with(".json") &&
      !isPage(StringRef(ReportTo)))
    return usageError("--report: '" + ReportTo +
                      "' ends in neither .json nor .html");
  O.ReportFile = ReportTo;
  O.KeepRemarks = given(ReportTo);
  O.InPlace = InPlace;
  O.Captures.assign(CapturedNames.begin(), CapturedNames.end());
  O.Functions.assign(Functions.begin(), Functions.end());
  O.SignaturesOnly = SignaturesOnly;
  if (SignaturesOnly && given(Functions))
    return usageError("--signatures-only and --function: give only one");
  O.Tags.assign(Tags.begin(), Tags.end());
  O.ReplaceFolder = ReplaceFolder;
  O.LinkFiles = LinkFiles;
  O.Quiet = Quiet;
  O.Strict = Strict;
  O.VerifyOutput = VerifyOutput;
  if (VerifyOutput && NoVerifyOutput)
    return usageError("--verify-output and --no-verify-output: give only one");
  O.VerifyDiagnostics = VerifyDiagnostics;
  O.SplitInput = SplitInput;
  if (Error E = chooseRemarks(O))
    return E;
  O.Explain.assign(Explain.begin(), Explain.end());
  O.CustomOps.assign(CustomOps.begin(), CustomOps.end());
  O.PrintPipeline = PrintPipeline;
  O.ListPasses = ListPasses;
  O.PassesMarkdown = PassesMarkdown;
  O.OptionsJson = OptionsJson;
  O.HelpPass = HelpPass;
  O.FurtherInputs = distributionFiles();
  for (int I = 1; I < Argc; ++I)
    if (Argv[I][0] == '@' && Argv[I][1] != '\0')
      O.FurtherInputs.push_back(Argv[I] + 1);
  if (!O.HelpPass.empty())
    if (Error E = checkPass("--help-pass", O.HelpPass, Registry))
      return E;
  constexpr unsigned MaxThreads = 1024;
  if (given(Threads) && (Threads == 0 || Threads > MaxThreads))
    return usageError(formatv("--threads: {0} is not between 1 and {1}",
                              Threads.getValue(), MaxThreads));
  if (Error E = chooseFormat(O))
    return E;
  if (Error E = chooseInstrumentation(O.Show, Registry))
    return E;
  // No other output may be printed while the progress line is shown.
  O.ShowProgress = ShowProgress == "auto" && !Quiet && !O.Show.prints() &&
                   !SplitInput &&
                   (Output != "-" || !sys::Process::StandardOutIsDisplayed());
  if (O.Inspect) {
    chooseTrial();
    O.InspectJson = InspectJson;
    O.Format = OutputFormat::None;
    O.KeepRemarks = true;
  }
  Expected<std::optional<PlanFormat>> Plan = choosePlan(given(Passes));
  if (!Plan)
    return Plan.takeError();
  O.Plan = *Plan;
  if (Error E =
          choosePasses(Registry,
                       {given(Passes), Passes, VerifyOutput, given(Explain),
                        O.Format == OutputFormat::Types, Output})
              .moveInto(O.Passes))
    return E;
  O.Copies = O.Passes.empty() && !given(Passes) && Output != "-" &&
             O.Format == OutputFormat::Binary && !given(Emit) &&
             O.Captures.empty() && O.Write.ShardSize == 0 && !given(InPlace) &&
             !SplitInput;
  if (Certify && !O.Passes.empty())
    return usageError(
        "--certify does not go with flags of a strategy: the files themselves "
        "show how the step is distributed");
  O.VerifyIfSmall = !NoVerifyOutput && Output != "-" && !SplitInput &&
                    isGraph(O.Format) && O.Passes.Strategy &&
                    O.Passes.Strategy->To == Lowering::Replicas;
  return O;
}

} // namespace graft
