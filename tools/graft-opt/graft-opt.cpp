//===- tools/graft-opt/graft-opt.cpp - the compiler -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Graph bytes go to the output and nowhere else; all messages go to stderr.
// Exit status 0, or 1 after any error, with the output untouched.
//
//===----------------------------------------------------------------------===//

#include "Distribution.h"
#include "FileChecks.h"
#include "Options.h"
#include "Report.h"
#include "Signals.h"

#include "lib/certify/fold/Fold.h"
#include "lib/certify/partition/PartitionCheck.h"
#include "lib/certify/partition/PartitionLike.h"
#include "lib/infer/facts/Explain.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/inline/Inline.h"
#include "lib/io/read/InputFile.h"
#include "lib/program/Program.h"

#include "google/protobuf/stubs/common.h"
#include "google/protobuf/stubs/logging.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BuryPointer.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <algorithm>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace llvm;
using namespace graft;

namespace {

constexpr StringLiteral SplitMarker = "# -----";

/// What has lines of its own, each of them ended.
void printLines(StringRef Text) {
  while (!Text.empty()) {
    StringRef Line;
    std::tie(Line, Text) = Text.split('\n');
    errs() << escapeControls(Line) << '\n';
  }
}

int fail(Error E) {
  printLines("graft-opt: error: " + toString(std::move(E)));
  return 1;
}

/// Turns an error of reading or writing into a diagnostic.
void report(Error E, DiagnosticEngine &Diags) {
  handleAllErrors(
      std::move(E),
      [&](const InputError &I) {
        Diagnostic &D = Diags.error("", I.Message);
        D.Line = I.Line;
        D.Column = I.Column;
      },
      [&](const ErrorInfoBase &Other) { Diags.error("", Other.message()); });
}

/// The work on one input.
class Run {
public:
  Run(const ToolOptions &O, const PassRegistry &Registry,
      std::unique_ptr<MemoryBuffer> Buffer)
      : O(O), Manager(Registry), Buffer(std::move(Buffer)),
        File(this->Buffer->getBufferIdentifier()),
        Source(O.VerifyDiagnostics ? this->Buffer->getBuffer().str() : "") {
    Diags.setStrict(O.Strict);
    Diags.setRemarks(O.Remarks || O.VerifyDiagnostics);
  }

  /// Reads, runs the passes, and writes: to the output, or to \p Text when
  /// several inputs go into one output. True when all was well.
  bool run(std::string *Text);
  /// Prints the messages; true when there is none that makes the run fail.
  bool finish();

private:
  bool load();
  bool mayWrite(StringRef Output, ArrayRef<std::string> Graph);
  void sayDevices(bool OnGpus);
  bool transform(const std::string *Text);
  bool explain();
  void write(std::string *Text);
  Error writeSideFiles();
  Error writeDepfile(StringRef First);
  Error writeRemarks(const DiagnosticEngine &All);
  Error checkWritten(ArrayRef<std::string> Files, OutputFormat Format);
  std::string outputPath(OutputFormat Format) const;

  const ToolOptions &O;
  PassManager Manager;
  std::unique_ptr<MemoryBuffer> Buffer;
  std::string File;
  std::string Source; ///< The text with its comments.
  DiagnosticEngine Diags;
  std::string Explained;   ///< What --explain asked for.
  bool HasDepfile = false; ///< It is written.
  bool HasRemarks = false;
  bool MayWrite = true; ///< No output is an input.
  bool Late = false;    ///< Checks run while the output is written.
  DiagnosticEngine::Locator Locate;
  Module M;
};

bool Run::mayWrite(StringRef Output, ArrayRef<std::string> Graph) {
  Error E = checkFiles(O, Output, Graph);
  MayWrite = !E;
  if (!MayWrite)
    report(std::move(E), Diags);
  return MayWrite;
}

bool Run::load() {
  Timer T(Manager.Read);
  if (!mayWrite(O.Output, O.Input))
    return false;
  Expected<Module> Read = readModule(std::move(Buffer), {.Kind = O.Kind});
  if (!Read) {
    report(Read.takeError(), Diags);
    return false;
  }
  M = std::move(*Read);
  Locate = [this](StringRef Node) { return M.location(Node); };
  Diags.setLocator(Locate);
  if (O.Write.ShardSize != 0 && M.Kind != InputKind::GraphDef) {
    Diags.error("",
                "--shard-size writes GraphDefs only, and this is a " +
                    std::string(M.Kind == InputKind::MetaGraph ? "MetaGraphDef"
                                                               : "SavedModel"));
    return false;
  }
  OutputFormat Format =
      O.Format.value_or(M.Text ? OutputFormat::Text : OutputFormat::Binary);
  if (!mayWrite(outputPath(Format), M.Files))
    return false;
  // What a runtime dumped has names that nobody can import, but can be looked
  // at.
  bool OnlyShown = O.Pipeline.empty() && (O.Format == OutputFormat::Summary ||
                                          O.Format == OutputFormat::Dot);
  if (!verifyModule(M, Diags, /*Original=*/nullptr, OnlyShown))
    return false;
  M.graph().markVerified();
  return true;
}

/// What was chosen is said, asked for or not: it is no reason to refuse
/// anything, and who meant something else sees it.
void Run::sayDevices(bool OnGpus) {
  Diagnostic D;
  D.Level = Severity::Remark;
  D.Message = OnGpus ? "the input names GPUs, so replicas are on GPUs, and "
                       "their values are added; give --device-type=GPU for "
                       "collectives"
                     : "the input names no GPU, so replicas are on CPUs; give "
                       "--device-type or --devices for others";
  if (!O.VerifyDiagnostics)
    printDiagnostic(errs(), File, D);
}

bool Run::transform(const std::string *Text) {
  if (O.Pipeline.empty())
    return true;
  bool OnGpus = !O.PipelineOnGpus.empty() && namesGpu(M.graph());
  if (!O.PipelineOnGpus.empty())
    sayDevices(OnGpus);
  if (Error E = Manager.parse(OnGpus ? O.PipelineOnGpus : O.Pipeline)) {
    report(std::move(E), Diags);
    return false;
  }
  // Timing and printing want every pass at its place.
  Late = Text == nullptr && O.Write.Threads > 1 && O.Output != "-" &&
         !O.Show.VerifyEach && !O.Show.TimePasses && !O.Show.Statistics &&
         !O.Show.PrintAfterAll && !O.Show.PrintBeforeAll &&
         O.Show.PrintBefore.empty() && O.Show.PrintAfter.empty() &&
         O.Show.PrintChanged == Instrumentation::Changed::Off &&
         (!sys::fs::exists(O.Output) || sys::fs::is_regular_file(O.Output)) &&
         O.Format.value_or(OutputFormat::Binary) == OutputFormat::Binary;
  bool Good = Manager.run(M, Diags, O.Show, Late);
  if (Good && M.Kind == InputKind::SavedModel &&
      M.metaGraph()->object_graph_def().concrete_functions_size() != 0 &&
      (M.Lowered || M.graph().modified()))
    Diags.unproved(
        "object-graph", "",
        "TensorFlow 2 (tf.saved_model.load) runs the functions of the object "
        "graph, which stay as they are, on one device; load the output with "
        "tf.compat.v1.saved_model.load, which runs the graph");
  // A pass that has just been verified need not be verified again.
  if (!Good || Late || O.Show.VerifyEach)
    return Good;
  Timer T(Manager.Verify);
  return verifyModule(M, Diags);
}

/// The program is still in memory: a lowering writes it, no more.
bool Run::explain() {
  const Graph &G = M.graph();
  if (O.Explain.empty())
    return true;
  if (readMesh(G).Node == NoNode) {
    Diags.error("", "--explain: only a replicated program has types; give "
                    "--replicas or --devices");
    return false;
  }
  ProgramFacts Facts(G);
  bool Good = true;
  for (const std::string &Name : O.Explain) {
    if (NodeId N = findOrigin(G, Name); N != NoNode) {
      Explained += explainType(G, Facts, N);
      continue;
    }
    std::vector<std::string> Names;
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N))
        Names.push_back(originName(G, N).str());
    std::string Near = nearest(Name, Names);
    Diags.error("", "--explain: the graph has no node '" + Name + "'" +
                        (Near.empty() ? "; give the name of one"
                                      : "; did you mean '" + Near + "'?"));
    Good = false;
  }
  return Good;
}

/// Of a SavedModel the output may be a directory, like the input.
std::string Run::outputPath(OutputFormat Format) const {
  if (O.Output == "-" || M.Kind != InputKind::SavedModel ||
      Format == OutputFormat::Summary || Format == OutputFormat::Dot)
    return O.Output;
  StringRef Extension = sys::path::extension(O.Output);
  bool IsDirectory = sys::fs::is_directory(O.Output) ||
                     StringRef(O.Output).ends_with("/") ||
                     (sys::fs::is_directory(O.Input) && Extension != ".pb" &&
                      Extension != ".pbtxt");
  if (!IsDirectory)
    return O.Output;
  SmallString<256> Path(O.Output);
  sys::path::append(Path, Format == OutputFormat::Text ? "saved_model.pbtxt"
                                                       : "saved_model.pb");
  return Path.str().str();
}

/// Reads the written files before they replace the output. One after the other
/// they are the bytes of one message.
Error Run::checkWritten(ArrayRef<std::string> Files, OutputFormat Format) {
  using Encoding = ReadOptions::Encoding;
  std::vector<std::unique_ptr<MemoryBuffer>> Parts;
  size_t Size = 0;
  for (const std::string &File : Files) {
    auto Part = openInput(File);
    if (!Part)
      return Part.takeError();
    Size += (*Part)->getBufferSize();
    Parts.push_back(std::move(*Part));
  }
  std::unique_ptr<MemoryBuffer> Bytes;
  if (Parts.size() == 1) {
    Bytes = std::move(Parts.front());
  } else {
    auto All = WritableMemoryBuffer::getNewUninitMemBuffer(Size, O.Output);
    char *To = All->getBufferStart();
    for (const auto &Part : Parts)
      To = std::copy(Part->getBufferStart(), Part->getBufferEnd(), To);
    Bytes = std::move(All);
  }
  bool IsText = Format == OutputFormat::Text;
  Expected<Module> Written = readModule(
      std::move(Bytes),
      {.Kind = M.Kind, .Form = IsText ? Encoding::Text : Encoding::Binary});
  if (!Written)
    return Written.takeError();
  Diags.setPass("verify-output");
  bool Good = verifyModule(*Written, Diags, &M);
  // The certificate again, on what was written instead of on the program.
  const Graph &Out = Written->graph();
  if (Good &&
      (M.Lowered || (M.graph().modified() && readMesh(Out).Node == NoNode))) {
    Module Input;
    if (Error E = Input.graph().parse(M.graphBytes()))
      return E;
    inlineCalls(Input.graph(), {.Kept = {}, .Like = &Out});
    if (M.Lowered)
      Good = partitionLike(Input, Out, Diags) &&
             certifyLowered(Input.graph(), Out, Diags);
    else
      Good = newPartitions(Input.graph(), Out).empty() ||
             checkPartition(InputGraph(Input.graph()), Out, Diags);
  }
  Diags.setPass("");
  if (Good)
    return Error::success();
  return createStringError(inconvertibleErrorCode(),
                           "the output does not verify and is not kept");
}

Error Run::writeSideFiles() {
  WriteOptions Plain{.Format = OutputFormat::Text};
  for (const auto &[Path, Bytes] : M.SideFiles)
    if (Error E = writeFile(Path, Plain, [&](ByteSink &Sink) {
          Sink.write(Bytes);
          return Error::success();
        }))
      return E;
  M.SideFiles.clear();
  return Error::success();
}

void Run::write(std::string *Text) {
  Timer T(Manager.Write);
  OutputFormat Format =
      O.Format.value_or(M.Text ? OutputFormat::Text : OutputFormat::Binary);
  if (Text) {
    StringSink Sink;
    if (Error E = writeModule(M, Format, Sink))
      return report(std::move(E), Diags);
    *Text = std::move(Sink.Text);
    if (Error E = writeSideFiles())
      report(std::move(E), Diags);
    return;
  }
  WriteOptions Options = O.Write;
  Options.Format = Format;
  // The certificate and the verifier look at the program while it is written
  // to a temporary file, which replaces the output only if they agree.
  DiagnosticEngine LateDiags;
  LateDiags.configureLike(Diags);
  if (Late)
    Options.Beside = [&] {
      if (Manager.runLate(M, LateDiags))
        verifyModule(M, LateDiags);
    };
  bool Checked = false;
  auto CheckInputs = [&]() -> Error {
    Checked = true;
    if (auto Changed = changedInputFile())
      return createStringError(inconvertibleErrorCode(), *Changed);
    return Error::success();
  };
  Options.Check = [&](ArrayRef<std::string> Files) -> Error {
    if (Error E = CheckInputs())
      return E;
    if (LateDiags.hasErrors())
      return createStringError(inconvertibleErrorCode(),
                               "the output is not kept");
    if (O.VerifyOutput)
      if (Error E = checkWritten(Files, Format))
        return E;
    if (Error E = writeSideFiles())
      return E;
    // What cannot be written beside the output leaves it as it was.
    if (Error E = writeDepfile(shardPath(O.Output, 0, Files.size())))
      return E;
    DiagnosticEngine All = Diags;
    All.append(LateDiags);
    return writeRemarks(All);
  };
  std::string Path = outputPath(Format);
  // The directory of a SavedModel. An error shows when the file is made.
  if (Path != O.Output) {
    [[maybe_unused]] std::error_code Ignored =
        sys::fs::create_directories(O.Output);
  }
  Expected<std::string> Written = writeModule(M, Path, Options);
  Diags.append(LateDiags);
  if (LateDiags.hasErrors())
    return consumeError(Written.takeError());
  // Of bytes that are gone the system says that their address is bad.
  if (Error E = !Written || !Checked ? CheckInputs() : Error::success()) {
    consumeError(Written.takeError());
    return report(std::move(E), Diags);
  }
  if (!Written)
    return report(Written.takeError(), Diags);
  // Where the output replaces no file, nobody looked at it before.
  if (Error E = writeSideFiles())
    return report(std::move(E), Diags);
  if (Error E = writeDepfile(*Written))
    report(std::move(E), Diags);
}

/// The rule of the output, of several files that of \p First, which is complete
/// when all are.
Error Run::writeDepfile(StringRef First) {
  if (O.Depfile.empty() || std::exchange(HasDepfile, true))
    return Error::success();
  std::vector<std::string> Inputs = M.Files;
  append_range(Inputs, O.FurtherInputs);
  WriteOptions Plain{.Format = OutputFormat::Text};
  return writeFile(O.Depfile, Plain, [&](ByteSink &Sink) {
    Sink.write(depfileText(O.Write.ShardSize == 0 ? StringRef(O.Output) : First,
                           Inputs));
    return Error::success();
  });
}

Error Run::writeRemarks(const DiagnosticEngine &All) {
  if (O.RemarksFile.empty() || !MayWrite || std::exchange(HasRemarks, true))
    return Error::success();
  WriteOptions Plain{.Format = OutputFormat::Text};
  return writeFile(O.RemarksFile, Plain, [&](ByteSink &Sink) {
    Sink.write(remarksYaml(All));
    return Error::success();
  });
}

bool Run::run(std::string *Text) {
  // Under --strict the passes run on, so that all that is not proved is said.
  bool Loaded = load(), Good = Loaded && transform(Text);
  // What is refused for its types is explained, too.
  if (Loaded && (Good || readMesh(M.graph()).Node != NoNode))
    Good &= explain();
  if (Good && !Diags.hasErrors())
    write(Text);
  if (!Manager.empty())
    Manager.report(O.Show);
  return finish();
}

bool Run::finish() {
  if (O.VerifyDiagnostics)
    return verifyDiagnostics(errs(), Source, File, Diags, Locate);
  bool ShowRemarks = O.Remarks && O.RemarksFile.empty();
  for (const Diagnostic &D :
       groupAlike(Diags, /*ShowAll=*/ShowRemarks || O.Strict))
    if (D.Level != Severity::Remark || ShowRemarks)
      printDiagnostic(errs(), File, D);
  printLines(Explained);
  if (ShowRemarks)
    printRemarkTable(errs(), Diags);
  if (Error E = writeRemarks(Diags)) {
    fail(std::move(E));
    return false;
  }
  return !Diags.hasErrors();
}

/// The inputs in a file of several, each with the lines before it blanked out
/// so that line numbers stay those of the file.
std::vector<std::unique_ptr<MemoryBuffer>> split(const MemoryBuffer &Buffer) {
  std::vector<std::unique_ptr<MemoryBuffer>> Result;
  std::string Part;
  StringRef Rest = Buffer.getBuffer();
  unsigned Lines = 0;
  while (true) {
    auto [Line, After] = Rest.split('\n');
    bool IsMarker = Line.starts_with(SplitMarker);
    if (!IsMarker)
      Part += (Line + "\n").str();
    if (IsMarker || After.empty())
      Result.push_back(
          MemoryBuffer::getMemBufferCopy(Part, Buffer.getBufferIdentifier()));
    ++Lines;
    if (IsMarker)
      Part.assign(Lines, '\n');
    if (After.empty())
      return Result;
    Rest = After;
  }
}

bool hasMarker(StringRef Text) {
  return Text.starts_with(SplitMarker) ||
         Text.contains(("\n" + SplitMarker).str());
}

int runSplit(const ToolOptions &O, const PassRegistry &Registry,
             const MemoryBuffer &Buffer) {
  if (Error E = checkFiles(O, O.Output, O.Input))
    return fail(std::move(E));
  std::string All;
  bool Good = true, IsFirst = true;
  for (std::unique_ptr<MemoryBuffer> &Part : split(Buffer)) {
    std::string Text;
    Good &= Run(O, Registry, std::move(Part)).run(&Text);
    All += (IsFirst ? "" : SplitMarker.str() + "\n") + Text;
    IsFirst = false;
  }
  if (!Good)
    return 1;
  WriteOptions Options = O.Write;
  Options.Format = O.Format.value_or(OutputFormat::Text);
  if (Error E = writeFile(O.Output, Options, [&](ByteSink &Sink) {
        Sink.write(All);
        return Error::success();
      }))
    return fail(std::move(E));
  return 0;
}

/// The pipeline that is printed: the input has a say in it. Otherwise the input
/// is not read before everything else is known to be right.
Expected<std::string> pipelineFor(const ToolOptions &O) {
  if (!O.PrintPipeline || O.PipelineOnGpus.empty() || O.Input == "-")
    return O.Pipeline;
  auto Buffer = openInput(O.Input);
  if (!Buffer)
    return Buffer.takeError();
  Expected<Module> M = readModule(std::move(*Buffer), {.Kind = O.Kind});
  if (!M)
    return M.takeError();
  return namesGpu(M->graph()) ? O.PipelineOnGpus : O.Pipeline;
}

/// Flags that print something and end the program.
bool printInformation(const ToolOptions &O, const PassRegistry &Registry,
                      const PassManager &Manager) {
  if (O.ListPasses)
    for (const PassRegistry::Entry &E : Registry.entries())
      if (!E.Hidden)
        outs() << formatv("{0,-20} {1}\n", E.Info->Name, E.Info->Summary);
  if (!O.HelpPass.empty())
    outs() << passHelp(*Registry.find(O.HelpPass)->Info);
  if (O.PassesMarkdown)
    outs() << passesMarkdown(Registry);
  if (O.PrintPipeline)
    outs() << Manager.str() << '\n';
  return O.ListPasses || !O.HelpPass.empty() || O.PassesMarkdown ||
         O.PrintPipeline;
}

void printVersion(raw_ostream &OS) {
  OS << "graft-opt " GRAFT_VERSION " (protobuf "
     << google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)
     << ", LLVM " LLVM_VERSION_STRING ")\n";
}

} // namespace

int main(int Argc, char **Argv) {
  SignalHandlers Signals;
  InitLLVM Init(Argc, Argv, /*InstallPipeSignalExitHandler=*/false);
  setBugReportMsg("PLEASE report this as a bug of graft, with the command line "
                  "and the input.\n");
  Signals.install();

  // What protobuf has to say is an error of what reads or writes.
  google::protobuf::SetLogHandler(nullptr);

  cl::SetVersionPrinter(printVersion);

  PassRegistry Registry;
  registerAllPasses(Registry);
  registerTestPasses(Registry);
  Expected<ToolOptions> O = parseCommandLine(Argc, Argv, Registry);
  if (!O)
    return fail(O.takeError());
  Expected<std::string> Pipeline = pipelineFor(*O);
  if (!Pipeline)
    return fail(Pipeline.takeError());
  PassManager Manager(Registry);
  if (Error E = Manager.parse(*Pipeline))
    return fail(std::move(E));
  if (printInformation(*O, Registry, Manager))
    return 0;

  Expected<std::unique_ptr<MemoryBuffer>> Buffer = openInput(O->Input);
  if (!Buffer) {
    errs() << escapeControls(toString(Buffer.takeError())) << '\n';
    return 1;
  }
  if (O->Plan) {
    auto Plan = printPlan(*O->Plan, (*Buffer)->getMemBufferRef(), O->Kind);
    if (!Plan)
      return fail(Plan.takeError());
    outs() << *Plan;
    if (O->Output == "-" && !O->Format)
      return 0;
  }
  if (O->SplitInput)
    return runSplit(*O, Registry, **Buffer);
  StringRef Name = (*Buffer)->getBufferIdentifier();
  if (Name.ends_with(".pbtxt") && hasMarker((*Buffer)->getBuffer()))
    return fail(createStringError(inconvertibleErrorCode(),
                                  "'" + Name + "' has the line '" +
                                      SplitMarker +
                                      "': give --split-input-file"));
  // The program ends now: to take the graph apart first costs time only.
  auto Whole = std::make_unique<Run>(*O, Registry, std::move(*Buffer));
  bool Good = Whole->run(nullptr);
  BuryPointer(std::move(Whole));
  return Good ? 0 : 1;
}
