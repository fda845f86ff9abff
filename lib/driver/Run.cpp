//===- lib/driver/Run.cpp - the work on one input ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Run.h"

#include "lib/driver/Distribution.h"
#include "lib/driver/FileChecks.h"
#include "lib/driver/FunctionRuns.h"
#include "lib/driver/NoUpdate.h"
#include "lib/driver/OutputCheck.h"
#include "lib/driver/Picture.h"
#include "lib/driver/Report.h"
#include "lib/driver/ReportJson.h"
#include "lib/driver/UnknownOps.h"
#include "lib/driver/WorkerFiles.h"
#include "lib/infer/facts/Explain.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/facts/TypesText.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/functions/CapturedHandles.h"
#include "lib/io/read/InputFile.h"
#include "lib/io/read/Sniff.h"
#include "lib/io/write/OutputFolder.h"
#include "lib/program/Program.h"
#include "lib/report/Page.h"
#include "lib/support/Glob.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <utility>

using namespace llvm;

namespace graft {

/// Turns an error of reading or writing into a diagnostic.
static void report(Error E, DiagnosticEngine &Diags) {
  handleAllErrors(
      std::move(E),
      [&](const InputError &I) {
        Diagnostic &D = Diags.error("", I.Message);
        D.Line = I.Line;
        D.Column = I.Column;
      },
      [&](const ErrorInfoBase &Other) { Diags.error("", Other.message()); });
}

bool Run::mayWrite(StringRef Output, ArrayRef<std::string> Graph) {
  Error E = checkFiles(O, Output, Graph);
  if (!E && IsFolder)
    E = checkFolder(O, Output);
  MayWrite = !E;
  BadUsage |= E.isA<UsageError>();
  if (!MayWrite)
    report(std::move(E), Diags);
  return MayWrite;
}

/// Returns \p Read with variables for the handles that --capture names.
Expected<Module> Run::withCaptures(const Module &Read) const {
  if (Read.Kind != InputKind::GraphDef)
    return createStringError(inconvertibleErrorCode(),
                             "--capture is for the GraphDef of a concrete "
                             "function, but the input is a " +
                                 kindName(Read.Kind));
  std::string Bytes;
  for (StringRef Part : Read.graphBytes())
    Bytes += Part;
  if (Error E = captureVariables(Bytes, O.Captures).moveInto(Bytes))
    return E;
  Expected<Module> New =
      readModule(MemoryBuffer::getMemBufferCopy(Bytes, Read.FileName),
                 {.Kind = Read.Kind, .Form = ReadOptions::Encoding::Binary});
  if (New) {
    New->Text = Read.Text;
    New->Files = Read.Files;
  }
  return New;
}

bool Run::load() {
  Timer T(Manager.Read);
  if (!mayWrite(O.Output, O.Input))
    return false;
  Expected<Module> Read = readModule(std::move(Buffer), readOptions(O));
  if (!O.Captures.empty() && Read)
    Read = withCaptures(*Read);
  if (!Read) {
    report(Read.takeError(), Diags);
    return false;
  }
  M = std::move(*Read);
  if (!O.Functions.empty() && !rewritesFunctions(O, M)) {
    Diags.error("", "--function: graft rewrites no function of this input; "
                    "give a SavedModel of TensorFlow 2, and --replicas or "
                    "--devices");
    return false;
  }
  Locate = [this](StringRef Node) { return M.location(Node); };
  Diags.setLocator(Locate);
  if (O.Write.ShardSize != 0 && M.Kind != InputKind::GraphDef) {
    Diags.error("",
                "--shard-size writes GraphDefs only, but the input is a " +
                    std::string(M.Kind == InputKind::MetaGraph ? "MetaGraphDef"
                                                               : "SavedModel"));
    return false;
  }
  OutputFormat Format =
      O.Format.value_or(M.Text ? OutputFormat::Text : OutputFormat::Binary);
  IsFolder = writesFolder(Format);
  if (!mayWrite(O.Output, M.Files))
    return false;
  // A graph that a runtime dumped has names that TensorFlow cannot import. Such
  // a graph can only be shown.
  bool OnlyShown = O.Passes.empty() && (O.Format == OutputFormat::Summary ||
                                        O.Format == OutputFormat::Dot);
  if (!verifyModule(M, Diags, /*Original=*/nullptr, OnlyShown) ||
      (!OnlyShown && !verifyImport(M, Diags)))
    return false;
  M.graph().markVerified();
  if (O.Copies && !M.Text)
    Diags.warning("copy", "",
                  "the output is a copy of the input; give --replicas=N to "
                  "distribute the step, or --passes= for a copy");
  // The run on the whole graph warns about the ops of functions, too.
  if (O.Passes.Strategy && !O.IsFunction)
    warnOfUnknownOps(M, O.CustomOps, Diags);
  if (O.Passes.Strategy && !O.IsFunction && M.Kind != InputKind::SavedModel)
    warnOfNoUpdate(M, Diags);
  return true;
}

/// Prints the chosen device type, so that the user can check it. The line is no
/// diagnostic, because --strict must not turn it into an error.
void Run::sayDevices(bool OnGpus) {
  Diagnostic D;
  D.Level = Severity::Remark;
  D.Message = OnGpus ? "the input names GPUs, so replicas are on GPUs; give "
                       "--device-type or --devices for others"
                     : "the input names no GPU, so replicas are on CPUs; give "
                       "--device-type or --devices for others";
  if (O.VerifyDiagnostics)
    return;
  auto Hidden = Line.hide();
  printDiagnostic(errs(), File, D);
}

/// Adds a remark that names the rewritten MetaGraphDef of a SavedModel.
void Run::sayMetaGraphs() {
  std::vector<std::string> Others = M.MetaGraphTags;
  if (Others.size() < 2)
    return;
  Others.erase(Others.begin() + static_cast<ptrdiff_t>(M.MetaGraphIndex));
  std::string Message =
      "the MetaGraphDef with the tags '" + M.MetaGraphTags[M.MetaGraphIndex] +
      "' is rewritten, but not those with '" + join(Others, "', '") +
      "'; choose another one with --tags";
  Diags.remark("meta-graph", "", std::move(Message)).Shown = true;
}

bool Run::transform(const std::string *Text) {
  if (O.Passes.empty())
    return true;
  sayMetaGraphs();
  if (!O.Captures.empty() && O.Passes.Strategy)
    if (Error E = checkCaptures(*O.Passes.Strategy)) {
      report(std::move(E), Diags);
      return false;
    }
  InputDevices Devices;
  if (O.Passes.Strategy)
    Devices = devicesOf(M.graph());
  OnGpus = O.Passes.dependOnInput() && Devices.HasGpu;
  if (O.Passes.dependOnInput())
    sayDevices(OnGpus);
  Expected<Pipeline> Passes = O.Passes.pipeline(Devices, Once);
  if (!Passes) {
    report(Passes.takeError(), Diags);
    return false;
  }
  Manager.add(std::move(*Passes));
  // If Late is set, the checks at the end run while the output is written. To
  // time or print passes, all of them must run in their order.
  Late = Text == nullptr && !betweenGraphs() && O.Write.Threads > 1 &&
         O.Output != "-" && !O.Show.VerifyEach && !O.Show.TimePasses &&
         !O.Show.Statistics && !O.Show.prints() &&
         (!sys::fs::exists(O.Output) || sys::fs::is_regular_file(O.Output)) &&
         O.Format.value_or(OutputFormat::Binary) == OutputFormat::Binary;
  Manager.OnPass = [this](StringRef Pass, size_t I, size_t Count) {
    Line.stage("pass " + Twine(I) + " of " + Twine(Count) + ", " + Pass);
    if (Pass == "assign-strategy" && O.Passes.Strategy && !O.ReportFile.empty())
      Planned = listVariables(M.graph(), VariableIndex(M.graph()),
                              declaredVariables(M));
  };
  bool Good = Manager.run(M, Diags, O.Show, Late);
  if (Good && M.Kind == InputKind::SavedModel && !O.Passes.OnlyMapsDevices &&
      M.metaGraph()->object_graph_def().concrete_functions_size() != 0 &&
      (M.Lowered || M.graph().modified()))
    Diags.unproved(
        "object-graph", "",
        "graft does not rewrite the functions of the object graph, which "
        "TensorFlow 2 (tf.saved_model.load) runs on one device; load the "
        "output with tf.compat.v1.saved_model.load, which runs the rewritten "
        "graph");
  // With --verify-each the last pass has already been verified.
  if (!Good || Late || O.Show.VerifyEach)
    return Good;
  Timer T(Manager.Verify);
  return verifyModule(M, Diags);
}

/// Explains types. The program is still in memory after lowering.
bool Run::explain() {
  const Graph &G = M.graph();
  if (O.Explain.empty())
    return true;
  if (readMesh(G).Node == NoNode) {
    Diags.error("",
                "--explain: only a replicated program has replication types; "
                "give --replicas or --devices");
    return false;
  }
  ProgramFacts Facts(G);
  bool Good = true;
  for (const std::string &Name : O.Explain) {
    if (NodeId N = findOrigin(G, Name); N != NoNode) {
      Explained += explainType(G, Facts, N);
      continue;
    }
    std::vector<NodeId> Found;
    std::vector<std::string> Names;
    Glob Like(Name);
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N))
        continue;
      Names.push_back(originName(G, N).str());
      if (G.node(N).Kind == Inserted::No && Glob::is(Name) &&
          Like.matches(Names.back()))
        Found.push_back(N);
    }
    if (!Found.empty()) {
      Explained += explainTypes(G, Facts, Found);
      continue;
    }
    Diags.error("", "--explain: the graph has no node '" + Name + "'" +
                        didYouMean(Name, Names, "; give the name of one"));
    Good = false;
  }
  return Good;
}

/// Lists the types of the program, because a lowered graph has none.
bool Run::listTypes() {
  if (O.Format != OutputFormat::Types)
    return true;
  if (readMesh(M.graph()).Node == NoNode) {
    Diags.error("", "--emit=types: only a replicated program has replication "
                    "types; give --replicas or --devices");
    return false;
  }
  Shown = typesText(M.graph(), ProgramFacts(M.graph()));
  return true;
}

bool Run::draw() {
  if (O.Format != OutputFormat::Dot || betweenGraphs())
    return true;
  Shown.emplace();
  if (Error E = pictureText(M, O.Drawing).moveInto(*Shown)) {
    report(std::move(E), Diags);
    return false;
  }
  return true;
}

Expected<std::string> Run::writeOutput(const std::string &Path,
                                       const WriteOptions &Options) const {
  if (!Shown)
    return writeModule(M, Path, Options);
  if (Error E = writeFile(Path, Options, [&](ByteSink &Sink) {
        Sink.write(*Shown);
        return Error::success();
      }))
    return E;
  return Path;
}

/// Returns true if the output is a folder: the input is the folder of a
/// SavedModel, and the name of the output is not that of a graph file.
bool Run::writesFolder(OutputFormat Format) const {
  StringRef Extension = sys::path::extension(O.Output);
  return M.Kind == InputKind::SavedModel && sys::fs::is_directory(O.Input) &&
         (Format == OutputFormat::Binary || Format == OutputFormat::Text) &&
         O.Output != "-" && Extension != ".pb" && Extension != ".pbtxt";
}

/// Returns true if a graph is written for each worker.
bool Run::betweenGraphs() const {
  return O.Passes.Strategy && O.Passes.Strategy->BetweenGraphs;
}

/// Returns true if the graph of one worker of ipu-multi-worker is written.
bool Run::writesReplica() const {
  return O.Passes.Strategy && O.Passes.Strategy->To == Lowering::Workers;
}

/// Checks the graph of one worker, written to \p Files. The certificate needs
/// the graphs of all workers, so this also builds the other graphs in memory.
Error Run::checkWithOthers(ArrayRef<std::string> Files, OutputFormat Format) {
  const StrategyOptions &S = *O.Passes.Strategy;
  std::vector<std::string> Texts(S.Replicate.Devices->size());
  for (unsigned I = 0; I < Texts.size(); ++I) {
    if (I == *S.Split.Worker) {
      auto Mine = openWritten(Files, O.Output);
      if (!Mine)
        return Mine.takeError();
      Texts[I] = (*Mine)->getBuffer().str();
      continue;
    }
    auto Again = openAgain();
    if (!Again)
      return Again.takeError();
    Expected<Module> Other = readModule(std::move(*Again), readOptions(O));
    if (!O.Captures.empty() && Other)
      Other = withCaptures(*Other);
    if (!Other)
      return Other.takeError();
    ChosenPasses Its;
    Its.Strategy = S;
    Its.Strategy->Split.Worker = I;
    Expected<Pipeline> Passes = Its.pipeline(devicesOf(Other->graph()), Once);
    if (!Passes)
      return Passes.takeError();
    DiagnosticEngine Said; // Dropped: repeats this worker's messages.
    PassManager Runs;
    Runs.add(std::move(*Passes));
    if (!Runs.run(*Other, Said, Instrumentation()))
      return createStringError(inconvertibleErrorCode(),
                               "there is no graph for worker " +
                                   std::to_string(I));
    StringSink Sink;
    if (Error E = writeModule(*Other, Format, Sink))
      return E;
    Texts[I] = std::move(Sink.Text);
  }
  return checkWorkers(M, Texts, Format, Diags);
}

/// Returns true if the output must be read again and checked. This takes only
/// milliseconds for a small graph.
bool Run::verifiesOutput() const {
  static constexpr size_t MaxSmall = size_t(1) << 20;
  size_t Size = 0;
  for (StringRef Part : M.graphBytes())
    Size += Part.size();
  return O.VerifyOutput || (O.VerifyIfSmall && Size <= MaxSmall);
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
    *Text = Shown ? *Shown : std::move(Sink.Text);
    if (O.IsFunction && !Shown && verifiesOutput())
      if (Error E =
              checkMessage(M, MemoryBuffer::getMemBufferCopy(*Text, M.FileName),
                           Format, Diags))
        return report(std::move(E), Diags);
    if (Error E = writeSideFiles())
      report(std::move(E), Diags);
    return;
  }
  WriteOptions Options = O.Write;
  Options.Format = Format;
  if (betweenGraphs()) {
    std::string First = workerPath(O.Output, 0);
    Options.Check = [&](ArrayRef<std::string>) {
      return writeBeside(First, Diags);
    };
    if (Error E = writeWorkerFiles(M, *O.Passes.Strategy, O.Output, Options,
                                   O.Drawing, verifiesOutput(), Diags))
      return report(std::move(E), Diags);
    if (Error E = writeBeside(First, Diags))
      report(std::move(E), Diags);
    return;
  }
  // The certificate and the verifier check the program while it is written to a
  // temporary file. This file replaces the output only if both succeed.
  DiagnosticEngine LateDiags;
  LateDiags.configureLike(Diags);
  if (Late)
    Options.Beside = [&] {
      if (Manager.runLate(M, LateDiags))
        verifyModule(M, LateDiags);
    };
  // Copies the other files of the folder. A fingerprint is valid only for equal
  // bytes.
  OutputFolder Folder;
  std::string GraphFile =
      Format == OutputFormat::Text ? "saved_model.pbtxt" : "saved_model.pb";
  if (IsFolder) {
    bool IsSame =
        Format == (M.Text ? OutputFormat::Text : OutputFormat::Binary) &&
        !M.Lowered && !M.graph().modified();
    auto Others = listFolder(O.Input, [&](StringRef Name) {
      return Name.starts_with("saved_model.") ||
             (Name == "fingerprint.pb" && !IsSame);
    });
    if (!Others)
      return report(Others.takeError(), Diags);
    Copied = std::move(*Others);
    if (Error E =
            Folder.create(O.Output, O.ReplaceFolder || O.Write.WriteIfChanged))
      return report(std::move(E), Diags);
  }
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
    if (writesReplica() && O.VerifyOutput) {
      if (Error E = checkWithOthers(Files, Format))
        return E;
    } else if (verifiesOutput()) {
      if (Error E = checkWritten(M, Files, Format, O.Output, Diags))
        return E;
    }
    if (IsFolder)
      if (Error E = Folder.copy(O.Input, Copied, O.LinkFiles))
        return E;
    DiagnosticEngine All = Diags;
    All.append(LateDiags);
    return writeBeside(shardPath(O.Output, 0, Files.size()), All);
  };
  Expected<std::string> Written =
      writeOutput(IsFolder ? Folder.add(GraphFile) : O.Output, Options);
  Diags.append(LateDiags);
  if (LateDiags.hasErrors())
    return consumeError(Written.takeError());
  // If mapped bytes of an input are gone, the write fails with "bad address".
  // So an error of the inputs is reported instead.
  if (Error E = !Written || !Checked ? CheckInputs() : Error::success()) {
    consumeError(Written.takeError());
    return report(std::move(E), Diags);
  }
  if (!Written)
    return report(Written.takeError(), Diags);
  if (IsFolder && (!O.Write.WriteIfChanged || !Folder.isUnchanged()))
    if (Error E = Folder.keep(O.ReplaceFolder))
      return report(std::move(E), Diags);
  // If the output replaced no file, Check was not called.
  if (Error E = writeBeside(*Written, Diags))
    report(std::move(E), Diags);
}

/// Writes the side files, the Make rule and the reports, once and before the
/// output is replaced: if a write fails, the output stays as it was. \p First
/// is the first file of an output of several files.
Error Run::writeBeside(StringRef First, const DiagnosticEngine &All) {
  if (Error E = writeSideFiles())
    return E;
  if (Error E = writeDepfile(First))
    return E;
  return writeReports(All);
}

/// Writes the Make rule for the output. If the output is several files, the
/// target of the rule is \p First, which is complete only when all files are.
Error Run::writeDepfile(StringRef First) {
  if (O.Depfile.empty() || std::exchange(HasDepfile, true))
    return Error::success();
  std::vector<std::string> Inputs = M.Files;
  for (StringRef File : Copied)
    if (!File.ends_with("/"))
      Inputs.push_back((StringRef(O.Input).rtrim('/') + "/" + File).str());
  append_range(Inputs, O.FurtherInputs);
  Expected<std::string> Text =
      depfileText(O.Write.ShardSize == 0 ? StringRef(O.Output) : First, Inputs);
  if (!Text)
    return createStringError("-d: " + toString(Text.takeError()));
  WriteOptions Plain{.Format = OutputFormat::Text};
  return writeFile(O.Depfile, Plain, [&](ByteSink &Sink) {
    Sink.write(*Text);
    return Error::success();
  });
}

/// Writes the files that report what was done.
Error Run::writeReports(const DiagnosticEngine &All) {
  if (!MayWrite || std::exchange(HasReports, true))
    return Error::success();
  auto Write = [](StringRef Path, const std::string &Text) {
    WriteOptions Plain{.Format = OutputFormat::Text};
    return writeFile(Path, Plain, [&](ByteSink &Sink) {
      Sink.write(Text);
      return Error::success();
    });
  };
  if (!O.RemarksFile.empty())
    if (Error E = Write(O.RemarksFile, remarksText(All, O.RemarksAs, File)))
      return E;
  if (O.ReportFile.empty())
    return Error::success();
  std::optional<StepPlan> Plan;
  if (!Planned.empty() && !All.hasErrors())
    Plan = planSteps(Planned, *O.Passes.Strategy, OnGpus, All);
  std::string Json =
      reportJson(M, All, File, O.Output, Plan ? &*Plan : nullptr);
  return Write(O.ReportFile, isPage(O.ReportFile) ? reportPage(Json) : Json);
}

/// Distributes the functions of a SavedModel, which TensorFlow 2 runs.
bool Run::distributeFunctions() {
  InputDevices Devices = devicesOf(M.graph());
  if (O.Passes.dependOnInput())
    sayDevices(Devices.HasGpu);
  std::string Text;
  if (!runFunctions(M, O, File, Line, Text, OfFunctions, Diags))
    return false;
  if (!Text.empty())
    Shown = std::move(Text);
  return verifyModule(M, Diags) && verifyImport(M, Diags);
}

void Run::process(std::string *Text) {
  if (O.ShowProgress)
    Line.start("graft-opt");
  Line.stage("reading " + File);
  bool Loaded = load();
  if (Loaded && rewritesFunctions(O, M)) {
    if (distributeFunctions()) {
      Line.stage("writing " + O.Output);
      write(Text);
    }
    Line.stop();
    return;
  }
  // With --strict the passes continue, to report every value not proved.
  bool Good = Loaded && transform(Text);
  // If passes refuse a program for its types, explain() shows the types, too.
  if (Loaded && !Once && (Good || readMesh(M.graph()).Node != NoNode))
    Good &= explain();
  if (Good)
    Good = listTypes() && draw();
  if (Good && betweenGraphs() && O.Passes.Strategy->Async)
    sayAsync(*O.Passes.Strategy, Diags);
  Line.stage("writing " + O.Output);
  if (Good && !Diags.hasErrors())
    write(Text);
  Line.stop();
  if (!Manager.empty())
    Manager.report(O.Show);
}

/// Returns the diagnostic because of which the step is computed once and not
/// distributed. Returns null if the step must not be computed once, for example
/// because the user must correct an option.
const Diagnostic *Run::whyOnce() const {
  if (!O.Passes.Strategy || O.Strict || O.VerifyDiagnostics ||
      !Diags.hasErrors())
    return nullptr;
  const StrategyOptions &S = *O.Passes.Strategy;
  if (S.To != Lowering::Replicas || *S.Reduce.What != Fallback::Once ||
      S.Reduce.MinSpread != 0 || !S.Reduce.Grad->empty() ||
      !S.Mirror.Rules->empty())
    return nullptr;
  const Diagnostic *First = nullptr, *Write = nullptr;
  for (const Diagnostic &D : Diags.all()) {
    if (!Write && D.Id == "write")
      Write = &D;
    if (D.Level != Severity::Error)
      continue;
    if (!D.Function.empty())
      return nullptr;
    if (D.Id != "unproved" && D.Pass != "check-replication" &&
        D.Pass != "verify-output")
      return nullptr;
    // The user has to correct a --feed rule that asks for an impossible split.
    if (D.Pass == "replicate" && !S.Replicate.Feed->empty())
      return nullptr;
    if (!First)
      First = &D;
  }
  // If a write is not proved, the error of the certificate is a consequence.
  return First && First->Id.empty() && Write ? Write : First;
}

Expected<std::unique_ptr<MemoryBuffer>> Run::openAgain() const {
  return Bytes.empty() ? openInput(O.Input)
                       : Expected<std::unique_ptr<MemoryBuffer>>(
                             MemoryBuffer::getMemBufferCopy(Bytes, File));
}

/// Discards the first attempt and reports why the step is computed once.
void Run::restart(const Diagnostic &Why) {
  Diagnostic Said = Why;
  Diags.clear();
  Manager = PassManager();
  M = Module();
  Once = true;
  auto Again = openAgain();
  if (!Again) {
    Diags.error("", toString(Again.takeError()));
    return;
  }
  Buffer = std::move(*Again);
  Diags.setPass(Said.Pass);
  Diagnostic &D = Diags.unproved("spread", Said.Node,
                                 "the step is not distributed over the "
                                 "replicas, but computed once on the whole "
                                 "batch: " +
                                     Said.Message);
  D.Line = Said.Line;
  D.Column = Said.Column;
  D.Notes = std::move(Said.Notes);
  Diags.setPass("");
}

void Run::work(std::string *Text) {
  process(Text);
  if (const Diagnostic *Why = whyOnce()) {
    restart(*Why);
    if (!Diags.hasErrors())
      process(Text);
  }
}

int Run::run(std::string *Text) {
  work(Text);
  bool Good = finish();
  return Good ? ExitGood : BadUsage ? ExitUsage : ExitInput;
}

Summary Run::summary() const {
  Summary S;
  auto Of = [&](StringRef Pass, StringRef What) {
    return Manager.statistic(Pass, What);
  };
  if (Of("replicate", "splits") != 0 || M.Lowered)
    S.Replicas = static_cast<unsigned>(readMesh(M.graph()).replicas());
  S.Variables = Of("assign-strategy", "variables");
  S.SplitFeeds = Of("replicate", "splits");
  S.WholeFeeds = Of("replicate", "feeds that are whole");
  S.Reductions = Of("insert-reductions", "reductions");
  S.NotProved = count_if(Diags.all(), [](const Diagnostic &D) {
    return D.Level == Severity::Warning && D.Function.empty();
  });
  S += OfFunctions;
  return S;
}

/// Prints the summary line if a user waits at a terminal.
void Run::saySuccess() const {
  if (O.Quiet || O.IsFunction || O.VerifyDiagnostics || O.Output == "-" ||
      O.Format == OutputFormat::None || Diags.hasErrors() ||
      !sys::Process::StandardErrIsDisplayed())
    return;
  uint64_t Size = 0;
  auto Add = [&](const Twine &File) {
    uint64_t Its = 0;
    if (!sys::fs::file_size(File, Its))
      Size += Its;
  };
  if (!IsFolder)
    Add(O.Output);
  else if (auto Files = listFolder(O.Output, [](StringRef) { return false; }))
    for (StringRef File : *Files)
      Add(O.Output + "/" + File);
  else
    consumeError(Files.takeError());
  std::chrono::duration<double> Time =
      std::chrono::steady_clock::now() - Started;
  errs() << escapeControls(summaryLine(O.Output, summary(), Size, Time.count()))
         << '\n';
}

bool Run::finish() {
  if (O.VerifyDiagnostics)
    return verifyDiagnostics(errs(), Source, File, Diags, Locate);
  // The verdict has the messages.
  if (O.Inspect)
    return !Diags.hasErrors();
  bool ShowRemarks = O.Remarks && O.RemarksFile.empty();
  for (const Diagnostic &D :
       groupAlike(Diags, /*ShowAll=*/ShowRemarks || O.Strict))
    // The Run of a function has printed the messages about it.
    if (D.Function.empty() &&
        (D.Level != Severity::Remark || ShowRemarks || D.Shown))
      printDiagnostic(errs(), File, D);
  printLines(Explained);
  if (ShowRemarks && !M.OnlyFunctions)
    printRemarkTable(errs(), Diags);
  if (Error E = writeReports(Diags)) {
    fail(std::move(E));
    return false;
  }
  saySuccess();
  return !Diags.hasErrors();
}

} // namespace graft
