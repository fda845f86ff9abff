//===- lib/driver/Inspect.cpp - a verdict on one file -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The description comes from the graph as it was read. The verdict comes from a
// trial run of the passes that --replicas=2 selects. The trial writes no
// output.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Inspect.h"

#include "lib/driver/Report.h"
#include "lib/driver/Run.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/read/Read.h"
#include "lib/report/Contents.h"
#include "lib/strategy/Cost.h"
#include "lib/support/Escape.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace graft {
namespace {

/// The replicas of the trial. Options.cpp sets the strategy.
constexpr StringLiteral TrialFlag = "--replicas=2";

/// The result of the trial.
struct Verdict {
  bool Distributed = false;
  bool Proved = false;
  std::optional<int64_t> Percent; ///< The distributed share of a step's work.
  std::vector<std::string> Causes;
  std::vector<std::string> Functions; ///< `train: 97 %`.
};

/// Runs the trial and judges it.
Verdict tryIt(const ToolOptions &O, std::unique_ptr<MemoryBuffer> Buffer) {
  Run Trial(O, std::move(Buffer));
  Trial.work(nullptr);
  const DiagnosticEngine &Diags = Trial.diagnostics();
  Verdict V;
  V.Distributed = !Diags.hasErrors() && Trial.summary().Replicas != 0;
  V.Proved = V.Distributed;
  bool IsOnce = false;
  constexpr size_t Most = 5;
  for (const Diagnostic &D : Diags.all()) {
    if (D.Id == "spread") {
      for (const auto &[Key, Value] : D.Facts)
        if (Key == "percent") {
          int64_t Percent = std::get<int64_t>(Value);
          if (!D.Function.empty())
            V.Functions.push_back(
                formatv("{0}: {1} %", D.Function, Percent).str());
          V.Percent = std::min(V.Percent.value_or(100), Percent);
        }
      IsOnce |= D.Facts.empty();
      for (const auto &[Node, Why] : D.Notes)
        if (V.Causes.size() < Most)
          V.Causes.push_back(
              Node.empty() ? Why : formatv("'{0}' {1}", Node, Why).str());
    }
    bool Tells = D.Level == Severity::Error || D.Level == Severity::Warning;
    if (!Tells || (Diags.hasErrors() && D.Level != Severity::Error))
      continue;
    V.Proved &= D.Id == "spread" && !IsOnce;
    if ((D.Id != "spread" || D.Facts.empty()) && V.Causes.size() < Most)
      V.Causes.push_back(diagnosticText(D));
  }
  if (IsOnce) {
    V.Percent = 0;
    V.Distributed = false;
  } else if (V.Distributed && !V.Percent) {
    V.Percent = 100;
  }
  return V;
}

std::string count(uint64_t N, const Twine &What) {
  return (Twine(N) + " " + What + (N == 1 ? "" : "s")).str();
}

std::string countsText(const std::map<std::string, uint64_t> &Counts) {
  std::string Text;
  for (const auto &[What, N] : Counts)
    Text += formatv("{0}{1} ({2})", Text.empty() ? "" : ", ", What, N);
  return Text;
}

/// Returns the name that the next command gives its output.
std::string outputName(StringRef Path) {
  if (Path == "-")
    return "model.x2.meta";
  StringRef Extension = sys::path::extension(Path);
  return (Path.drop_back(Extension.size()).rtrim('/') + ".x2" + Extension)
      .str();
}

std::string verdictText(const Contents &C, const Verdict &V) {
  if (!C.Changes && C.Trained == 0)
    return "no op updates a variable, so there is no training step to "
           "distribute; export the graph that trains";
  if (!V.Distributed)
    return V.Percent ? "two replicas would compute the step once, on the whole "
                       "batch"
                     : "graft cannot distribute this graph as it is";
  std::string Text =
      formatv("{0} % of the work of a step is spread over 2 replicas",
              V.Percent.value_or(0))
          .str();
  return Text + (V.Proved ? "; the result is proved"
                          : "; parts of the result are not proved");
}

void printText(raw_ostream &OS, const ToolOptions &O, const Contents &C,
               const Verdict &V) {
  auto Line = [&](StringRef Title, const Twine &Text) {
    if (std::string S = Text.str(); !S.empty())
      OS << formatv("  {0,-13} ", Title) << escapeControls(S) << '\n';
  };
  OS << escapeControls(O.Input) << ": a " << C.Kind << " of "
     << count(C.Nodes, "node") << ", "
     << bytesText(static_cast<double>(C.Bytes)) << '\n';
  constexpr size_t Most = 12;
  for (const auto &[I, In] : enumerate(C.Inputs)) {
    if (I == Most) {
      Line("", formatv("and {0} more", C.Inputs.size() - Most).str());
      break;
    }
    Line(I == 0 ? "inputs" : "",
         In.Name + ": " + In.Type +
             (In.Shape.empty() ? " of unknown rank" : " " + In.Shape));
  }
  std::string Trained =
      C.Trained == 0 ? ""
                     : formatv("; {0} trained, {1}", C.Trained,
                               bytesText(static_cast<double>(C.TrainedBytes)))
                           .str();
  Line("variables", utostr(C.Variables) + ", " +
                        bytesText(static_cast<double>(C.VariableBytes)) +
                        Trained);
  Line("updates", countsText(C.Updates));
  Line("train ops", listText(C.TrainOps));
  Line("losses", listText(C.Losses));
  Line("functions", listText(C.Functions));
  Line("signatures", listText(C.Signatures));
  Line("control flow", countsText(C.ControlFlow));
  Line("no rule for", countsText(C.WithoutRule));
  OS << "verdict: " << verdictText(C, V) << '\n';
  for (StringRef Function : V.Functions)
    OS << "  function " << escapeControls(Function) << '\n';
  for (StringRef Cause : V.Causes)
    OS << "  " << escapeControls(Cause) << '\n';
  if (V.Distributed && (C.Changes || C.Trained != 0))
    OS << "next: graft-opt " << shellWord(O.Input) << " -o "
       << shellWord(outputName(O.Input)) << ' ' << TrialFlag << '\n';
}

void printJson(raw_ostream &OS, const ToolOptions &O, const Contents &C,
               const Verdict &V) {
  json::OStream J(OS, 2);
  auto Text = [&](StringRef Key, StringRef Value) {
    J.attribute(Key, utf8(Value));
  };
  auto List = [&](StringRef Key, ArrayRef<std::string> Names) {
    J.attributeArray(Key, [&] {
      for (StringRef Name : Names)
        J.value(utf8(Name));
    });
  };
  auto Counts = [&](StringRef Key,
                    const std::map<std::string, uint64_t> &Values) {
    J.attributeObject(Key, [&] {
      for (const auto &[What, N] : Values)
        J.attribute(utf8(What), static_cast<int64_t>(N));
    });
  };
  auto Number = [&](StringRef Key, uint64_t N) {
    J.attribute(Key, static_cast<int64_t>(N));
  };
  J.object([&] {
    Text("file", O.Input);
    Text("kind", C.Kind);
    Number("nodes", C.Nodes);
    Number("bytes", C.Bytes);
    J.attributeArray("inputs", [&] {
      for (const ContentsInput &In : C.Inputs)
        J.object([&] {
          Text("name", In.Name);
          Text("type", In.Type);
          Text("shape", In.Shape);
        });
    });
    Number("variables", C.Variables);
    Number("variable-bytes", C.VariableBytes);
    Number("trained", C.Trained);
    Number("trained-bytes", C.TrainedBytes);
    Counts("updates", C.Updates);
    List("train-ops", C.TrainOps);
    List("losses", C.Losses);
    List("functions", C.Functions);
    List("signatures", C.Signatures);
    Counts("control-flow", C.ControlFlow);
    Counts("without-rule", C.WithoutRule);
    J.attributeObject("verdict", [&] {
      J.attribute("distributed", V.Distributed);
      J.attribute("proved", V.Proved);
      if (V.Percent)
        J.attribute("percent", *V.Percent);
      Text("text", verdictText(C, V));
      List("causes", V.Causes);
      List("functions", V.Functions);
    });
  });
  OS << '\n';
}

} // namespace

int inspectFile(const ToolOptions &O, std::unique_ptr<MemoryBuffer> Buffer) {
  Expected<Module> M = readModule(
      MemoryBuffer::getMemBuffer(*Buffer, /*RequiresNullTerminator=*/false),
      readOptions(O));
  if (!M) {
    errs() << escapeControls(toString(M.takeError())) << '\n';
    return ExitInput;
  }
  DiagnosticEngine Diags;
  Diags.setLocator([&](StringRef Node) { return M->location(Node); });
  if (!verifyModule(*M, Diags) || !verifyImport(*M, Diags)) {
    for (const Diagnostic &D : groupAlike(Diags, /*ShowAll=*/false))
      printDiagnostic(errs(), M->FileName, D);
    return ExitInput;
  }
  Contents C = contentsOf(*M);
  Verdict V = tryIt(O, std::move(Buffer));
  (O.InspectJson ? printJson : printText)(outs(), O, C, V);
  return flushPrinted() ? ExitGood : ExitInput;
}

} // namespace graft
