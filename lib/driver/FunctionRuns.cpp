//===- lib/driver/FunctionRuns.cpp - functions of a SavedModel --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A function body is a graph. A separate Run reads, rewrites, certifies and
// writes this graph in memory, and the result replaces the body. The variables
// of a body are arguments: the caller owns them. All replicas share these
// variables, as with --strategy=ps, so TensorFlow tracks, saves and restores
// the same objects as before.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/FunctionRuns.h"

#include "lib/driver/Distribution.h"
#include "lib/driver/Report.h"
#include "lib/driver/Run.h"
#include "lib/io/functions/SavedFunctions.h"
#include "lib/support/Glob.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

bool rewritesFunctions(const ToolOptions &O, const Module &M) {
  // If a SavedModel has several MetaGraphDefs, TensorFlow 2 runs its graph and
  // not its functions.
  return O.Passes.Strategy && !O.SignaturesOnly &&
         M.Kind == InputKind::SavedModel && M.MetaGraphTags.size() == 1 &&
         hasSavedFunctions(*M.metaGraph());
}

namespace {

bool isForPeople(const ToolOptions &O) {
  return O.Format == OutputFormat::Summary || O.Format == OutputFormat::Dot ||
         O.Format == OutputFormat::Types;
}

class FunctionRuns {
public:
  FunctionRuns(Module &M, const ToolOptions &O, StringRef File, Progress &Line,
               DiagnosticEngine &All)
      : M(M), O(O), File(File), Line(Line), All(All), Library(M.graph()) {}

  bool run();

  std::string Shown;
  Summary Made;

private:
  Error mapDevices(const InputDevices &Devices);
  Error choose();
  Error run(const SavedFunction &F);
  ToolOptions optionsFor(const FunctionGraph &Graph);
  void say();

  Module &M;
  const ToolOptions &O;
  std::string File;
  Progress &Line;
  DiagnosticEngine &All;
  FunctionLibrary Library;
  StrategyOptions Strategy;
  std::vector<SavedFunction> Chosen;
  std::vector<bool> HasFeed; ///< By --feed rule: set if it fits a function.
  std::map<std::string, tensorflow::FunctionDef> Bodies;
  std::vector<std::string> Spread, Left;
  uint64_t Bytes = 0; ///< The size of all bodies.
};

/// Returns the reason why the body \p Def cannot run on several devices, or "".
std::string obstacle(const tensorflow::FunctionDef &Def) {
  auto It = Def.attr().find("_XlaMustCompile");
  return It != Def.attr().end() && It->second.b()
             ? "is compiled by XLA (jit_compile), for one device"
             : "";
}

/// Maps the devices of all functions and of the graph that calls them.
Error FunctionRuns::mapDevices(const InputDevices &Devices) {
  if (Error E = moveAccelerators(Strategy, Devices))
    return E;
  if (!Strategy.Devices.Map.isGiven())
    return Error::success();
  std::unique_ptr<Pass> Map = createMapDevicesPass(Strategy.Devices);
  DiagnosticEngine Diags;
  if (Map->run(M, Diags) == PassResult::Failure)
    return usageError(Diags.all().back().Message);
  Strategy.Devices = MapDevicesOptions();
  Library = FunctionLibrary(M.graph());
  return Error::success();
}

Error FunctionRuns::choose() {
  if (Error E = chooseForFunctions(*O.Passes.Strategy).moveInto(Strategy))
    return E;
  InputDevices Devices = devicesOf(M.graph());
  if (Strategy.InputChoosesDevices) {
    Strategy.InputChoosesDevices = false;
    Strategy.DeviceType = Devices.HasGpu ? "GPU" : "CPU";
  }
  if (Error E = mapDevices(Devices))
    return E;
  HasFeed.resize(Strategy.Replicate.Feed->size());
  SavedFunctions Found = findSavedFunctions(*M.metaGraph(), Library);
  Left = std::move(Found.Inner);
  std::vector<std::string> Paths;
  std::vector<bool> Named(O.Functions.size());
  auto Writes = [&](const SavedFunction &F) {
    return Library.hasEffects(*Library.find(F.Name));
  };
  // A function that only serves requests gains nothing from a second device.
  bool AnyWrites = any_of(Found.Called, Writes);
  for (SavedFunction &F : Found.Called) {
    bool Wanted = O.Functions.empty() && (Writes(F) || !AnyWrites);
    for (auto [I, Name] : enumerate(O.Functions))
      if (any_of(F.Paths, [&](StringRef Path) {
            return Path == Name || Glob(Name).matches(Path);
          }))
        Wanted = Named[I] = true;
    append_range(Paths, F.Paths);
    if (Wanted)
      Chosen.push_back(std::move(F));
    else
      Left.push_back(F.Shown);
  }
  for (auto [Name, IsNamed] : zip(O.Functions, Named))
    if (!IsNamed)
      return usageError(
          "--function: the SavedModel has no function '" + Name + "'" +
          didYouMean(Name, Paths, "; it has " + join(Paths, ", ")));
  if (Chosen.empty())
    return usageError(
        "the object graph of this SavedModel has no function that a user can "
        "call; give --signatures-only to rewrite its graph");
  if (Chosen.size() > 1 && !O.Explain.empty())
    return usageError(
        "--explain: this SavedModel has the functions " +
        join(map_range(Chosen, [](const SavedFunction &F) { return F.Shown; }),
             ", ") +
        "; name one with --function");
  return Error::success();
}

/// Returns the options for the run of one function.
ToolOptions FunctionRuns::optionsFor(const FunctionGraph &Graph) {
  ToolOptions Its;
  Its.Input = Its.Output = "-";
  Its.Kind = InputKind::GraphDef;
  Its.Format = isForPeople(O) ? *O.Format : OutputFormat::Binary;
  Its.Write.Threads = 1;
  Its.Drawing = O.Drawing;
  Its.Show = O.Show;
  Its.Strict = O.Strict;
  Its.VerifyOutput = O.VerifyOutput;
  Its.VerifyIfSmall = O.VerifyIfSmall;
  Its.Remarks = O.Remarks;
  Its.KeepRemarks = O.KeepRemarks;
  Its.IsFunction = true;
  Its.Inspect = O.Inspect;
  Its.Explain = O.Explain;
  StrategyOptions S = Strategy;
  S.MergesForward = false; // No user fetches a node of a body.
  S.Replicate.Handles = true;
  S.Fetches = Graph.Results;
  S.Fetches.push_back(Graph.Effects);
  append_range(S.Fetches, Graph.Named);
  // A rule of --feed applies only to functions with an argument of this name.
  std::vector<std::string> Rules;
  for (auto [I, Rule] : enumerate(*Strategy.Replicate.Feed)) {
    SmallVector<StringRef, 2> Names;
    StringRef(Rule).split('=').first.split(Names, '+');
    if (any_of(Names, [&](StringRef Name) {
          Glob Like(Name.split(':').first);
          return any_of(Graph.Arguments,
                        [&](StringRef A) { return Like.matches(A); });
        })) {
      Rules.push_back(Rule);
      HasFeed[I] = true;
    }
  }
  S.Replicate.Feed = std::move(Rules);
  for (const std::string &Name : Graph.Constants)
    S.WholeFeeds.push_back(Name);
  Its.Passes.Strategy = std::move(S);
  return Its;
}

Error FunctionRuns::run(const SavedFunction &F) {
  const tensorflow::FunctionDef &Def = *Library.find(F.Name);
  if (std::string Why = obstacle(Def); !Why.empty())
    return usageError("function '" + F.Shown + "' " + Why +
                      "; save it without jit_compile, or name the other "
                      "functions with --function");
  constexpr unsigned VersionsField = 4;
  Expected<FunctionGraph> Graph =
      graphOf(Def, Library, F.Captured, M.graph().otherField(VersionsField));
  if (!Graph)
    return Graph.takeError();
  Graph->Named = F.Named;
  ToolOptions Its = optionsFor(*Graph);
  std::string Name = File + ": function '" + F.Shown + "'";
  Line.stage("function " + F.Shown);
  Run Work(Its, MemoryBuffer::getMemBufferCopy(Graph->Bytes, Name));
  std::string Text;
  Work.work(&Text);
  // A function without a batch is left as it is.
  if (any_of(Work.diagnostics().all(),
             [](const Diagnostic &D) { return D.Id == "no-batch"; })) {
    Left.push_back(F.Shown);
    return Error::success();
  }
  All.appendOf(Work.diagnostics(), F.Shown);
  auto Hidden = Line.hide();
  if (!Work.finish())
    return Error::success();
  Hidden = {};
  Bytes += Text.size();
  if (Bytes > MessageLimit)
    return usageError(
        formatv("the functions have more than {0:N} bytes, the most "
                "that TensorFlow reads from one file: rewrite fewer "
                "of them, with --function",
                MessageLimit));
  Spread.push_back(F.Shown);
  Made += Work.summary();
  ++Made.Functions;
  if (isForPeople(O)) {
    Shown += "# function " + F.Shown + "\n" + Text;
    return Error::success();
  }
  return functionOf(Def, *Graph, Library, Text).moveInto(Bodies[F.Name]);
}

/// Reports which functions are distributed and which are not.
void FunctionRuns::say() {
  sort(Left);
  Left.erase(llvm::unique(Left), Left.end());
  std::string Message = "distributed functions: " + listText(Spread) +
                        "; all replicas share their variables, as with "
                        "--strategy=ps";
  if (!Left.empty())
    Message += "; unchanged functions, on one device: " + listText(Left);
  All.remark("functions", "", std::move(Message)).Shown = true;
}

bool FunctionRuns::run() {
  if (Error E = choose()) {
    All.error("", toString(std::move(E)));
    return false;
  }
  for (const SavedFunction &F : Chosen)
    if (Error E = run(F)) {
      All.error("", toString(std::move(E)));
      break;
    }
  for (auto [Rule, Has] : zip(*Strategy.Replicate.Feed, HasFeed))
    if (!Has)
      All.error("", "--feed: no function has an argument '" +
                        StringRef(Rule).split('=').first.str() + "'");
  if (All.hasErrors())
    return false;
  if (Spread.empty()) {
    All.error("", "no function of this SavedModel has rows to split: " +
                      join(Left, ", "));
    return false;
  }
  say();
  replaceFunctions(M.graph(), Bodies);
  M.OnlyFunctions = true;
  return true;
}

} // namespace

bool runFunctions(Module &M, const ToolOptions &O, StringRef File,
                  Progress &Line, std::string &Shown, Summary &Made,
                  DiagnosticEngine &All) {
  FunctionRuns Runs(M, O, File, Line, All);
  bool Good = Runs.run();
  Shown = std::move(Runs.Shown);
  Made = Runs.Made;
  return Good;
}

} // namespace graft
