//===- tools/graft-opt/graft-opt.cpp - the compiler -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Graph bytes go to the output and nowhere else; all messages go to stderr.
// Exit status 0, or 1 after any error, with the output untouched.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Report.h"

#include "lib/analysis/Explain.h"
#include "lib/analysis/PartitionCheck.h"
#include "lib/analysis/Program.h"
#include "lib/io/Inline.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/lower/Fold.h"
#include "lib/lower/PartitionLike.h"

#include "google/protobuf/stubs/common.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BuryPointer.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <algorithm>
#include <csignal>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace llvm;
using namespace graft;

namespace {

constexpr StringLiteral SplitMarker = "# -----";

int fail(Error E) {
  errs() << "graft-opt: error: " << toString(std::move(E)) << '\n';
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
  bool transform(const std::string *Text);
  bool explain();
  void write(std::string *Text);
  Error writeSideFiles();
  Error checkWritten(ArrayRef<std::string> Files, OutputFormat Format);
  std::string outputPath(OutputFormat Format) const;

  const ToolOptions &O;
  PassManager Manager;
  std::unique_ptr<MemoryBuffer> Buffer;
  std::string File;
  std::string Source; ///< The text with its comments.
  DiagnosticEngine Diags;
  std::string Explained; ///< What --explain asked for.
  bool Late = false;     ///< Checks run while the output is written.
  DiagnosticEngine::Locator Locate;
  Module M;
};

bool Run::load() {
  Timer T(Manager.Read);
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
  if (!verifyModule(M, Diags))
    return false;
  M.graph().markVerified();
  return true;
}

bool Run::transform(const std::string *Text) {
  if (O.Pipeline.empty())
    return true;
  if (Error E = Manager.parse(O.Pipeline)) {
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
  // An error shows when the file is made.
  [[maybe_unused]] std::error_code Ignored =
      sys::fs::create_directories(O.Output);
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
  Options.Check = [&](ArrayRef<std::string> Files) -> Error {
    if (LateDiags.hasErrors())
      return createStringError(inconvertibleErrorCode(),
                               "the output is not kept");
    if (O.VerifyOutput)
      if (Error E = checkWritten(Files, Format))
        return E;
    return writeSideFiles();
  };
  Expected<std::string> Written = writeModule(M, outputPath(Format), Options);
  Diags.append(LateDiags);
  if (LateDiags.hasErrors())
    return consumeError(Written.takeError());
  if (!Written)
    return report(Written.takeError(), Diags);
  // Where the output replaces no file, nobody looked at it before.
  if (Error E = writeSideFiles())
    return report(std::move(E), Diags);
  if (O.Depfile.empty())
    return;
  std::vector<std::string> Inputs = M.Files;
  append_range(Inputs, O.FurtherInputs);
  // Of several files the first is complete when all are.
  const std::string &Target = Options.ShardSize == 0 ? O.Output : *Written;
  WriteOptions Plain{.Format = OutputFormat::Text};
  if (Error E = writeFile(O.Depfile, Plain, [&](ByteSink &Sink) {
        Sink.write(depfileText(Target, Inputs));
        return Error::success();
      }))
    report(std::move(E), Diags);
}

bool Run::run(std::string *Text) {
  // Under --strict the passes run on, so that all that is not proved is said.
  if (load() && transform(Text) && explain() && !Diags.hasErrors())
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
  errs() << Explained;
  if (ShowRemarks)
    printRemarkTable(errs(), Diags);
  if (!O.RemarksFile.empty()) {
    WriteOptions Plain{.Format = OutputFormat::Text};
    if (Error E = writeFile(O.RemarksFile, Plain, [&](ByteSink &Sink) {
          Sink.write(remarksYaml(Diags));
          return Error::success();
        })) {
      fail(std::move(E));
      return false;
    }
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
  InitLLVM Init(Argc, Argv, /*InstallPipeSignalExitHandler=*/false);
  setBugReportMsg("PLEASE report this as a bug of graft, with the command line "
                  "and the input.\n");
  // A reader that goes away and a limit on files are errors of write(), not the
  // end.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);

  cl::SetVersionPrinter(printVersion);

  PassRegistry Registry;
  registerAllPasses(Registry);
  registerTestPasses(Registry);
  Expected<ToolOptions> O = parseCommandLine(Argc, Argv, Registry);
  if (!O)
    return fail(O.takeError());
  PassManager Manager(Registry);
  if (Error E = Manager.parse(O->Pipeline))
    return fail(std::move(E));
  if (printInformation(*O, Registry, Manager))
    return 0;

  Expected<std::unique_ptr<MemoryBuffer>> Buffer = openInput(O->Input);
  if (!Buffer) {
    errs() << toString(Buffer.takeError()) << '\n';
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
