//===- lib/pass/PassManager.cpp - runs pipelines ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/pass/PassManager.h"

#include "lib/graph/FileWalk.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/write/Changes.h"
#include "lib/io/write/Write.h"

#include "llvm/Support/Process.h"

#include <fmt/format.h>

using namespace llvm;

namespace graft {
namespace {

std::string summaryOf(const Module &M) {
  StringSink Sink;
  if (Error E = writeModule(M, OutputFormat::Summary, Sink))
    return "<" + toString(std::move(E)) + ">\n";
  return std::move(Sink.Text);
}

std::vector<NodeText> nodesOf(const Module &M) {
  std::vector<NodeText> Nodes;
  if (Error E =
          withWrittenGraph(M, [&](const Graph &G) { Nodes = nodeTexts(G); }))
    Nodes.push_back({"<" + toString(std::move(E)) + ">"});
  return Nodes;
}

/// Returns true if \p OS is a terminal with colors and NO_COLOR is not set.
bool wantsColors(const raw_ostream &OS) {
  return OS.has_colors() && !sys::Process::GetEnv("NO_COLOR");
}

/// Prints the program around one pass as the options ask.
class Printer {
public:
  Printer(const Instrumentation &Show, StringRef Pass, bool IsFirst)
      : Show(Show), OS(*Show.OS), Pass(Pass), IsFirst(IsFirst) {}

  void before(const Module &M) {
    using Changed = Instrumentation::Changed;
    if (Show.PrintChanged == Changed::Diff) {
      OldNodes = nodesOf(M);
    } else if (Show.PrintChanged != Changed::Off) {
      Old = summaryOf(M);
      if (IsFirst && Show.PrintChanged == Changed::Verbose)
        OS << "*** IR Dump At Start ***\n" << Old;
    }
    if (Show.PrintBeforeAll || is_contained(Show.PrintBefore, Pass))
      OS << "*** IR Dump Before " << Pass << " ***\n" << summaryOf(M);
  }

  void after(const Module &M) {
    if (Show.PrintAfterAll || is_contained(Show.PrintAfter, Pass))
      OS << "*** IR Dump After " << Pass << " ***\n" << summaryOf(M);
    if (Show.PrintChanged == Instrumentation::Changed::Diff)
      difference(nodesOf(M));
    else if (Show.PrintChanged != Instrumentation::Changed::Off)
      changed(summaryOf(M));
  }

private:
  void difference(ArrayRef<NodeText> New) {
    if (New == ArrayRef(OldNodes))
      return;
    OS << "*** IR Dump After " << Pass << " ***\n";
    printChanges(OS, OldNodes, New, wantsColors(OS));
  }

  void changed(StringRef New) {
    if (New != Old)
      OS << "*** IR Dump After " << Pass << " ***\n" << New;
    else if (Show.PrintChanged == Instrumentation::Changed::Verbose)
      OS << "*** IR Dump After " << Pass << " omitted because no change ***\n";
  }

  const Instrumentation &Show;
  raw_ostream &OS;
  StringRef Pass;
  bool IsFirst;
  std::string Old;
  std::vector<NodeText> OldNodes;
};

/// Checks that the result of a pass agrees with the graph and the errors.
bool checkResult(PassResult Result, bool SameGraph, unsigned ErrorsBefore,
                 StringRef Pass, DiagnosticEngine &Diags) {
  if (Result == PassResult::Failure) {
    if (Diags.errorCount() == ErrorsBefore)
      Diags.error("", "the pass failed without an error message; report this "
                      "as a bug of '" +
                          Pass.str() + "'");
    return false;
  }
  if (Diags.errorCount() != ErrorsBefore)
    return false;
  if (Result == PassResult::Unchanged && !SameGraph) {
    Diags.error("", "the pass reported no change, but the graph is "
                    "different; report this as a bug of '" +
                        Pass.str() + "'");
    return false;
  }
  return true;
}

} // namespace

void PassManager::add(Pipeline Of) {
  for (std::unique_ptr<Pass> &P : Of.Passes)
    Passes.push_back({std::move(P)});
}

bool PassManager::runLate(Module &M, DiagnosticEngine &Diags) {
  bool Good = true;
  for (Step &S : Passes) {
    if (!S.IsLate || !Good)
      continue;
    Diags.setPass(S.P->info().Name);
    unsigned Errors = Diags.errorCount();
    Good = checkResult(S.P->run(M, Diags), /*SameGraph=*/true, Errors,
                       S.P->info().Name, Diags);
    FileWalk::releaseAll(M.graph());
  }
  Diags.setPass("");
  return Good;
}

bool PassManager::run(Module &M, DiagnosticEngine &Diags,
                      const Instrumentation &Show, bool Late) {
  bool IsFirst = true, Good = true;
  bool NoMoreEdits = Late;
  for (size_t I = Passes.size(); I-- > 0;) {
    NoMoreEdits &= Passes[I].P->effect() != Pass::Effect::Edits &&
                   Passes[I].P->effect() != Pass::Effect::Normalises;
    Passes[I].IsLate =
        NoMoreEdits && Passes[I].P->effect() == Pass::Effect::Checks;
  }
  // A check compares the program with the input, which the first edit
  // overwrites.
  bool Keep = any_of(Passes, [](const Step &S) {
    return S.P->effect() == Pass::Effect::Checks;
  });
  FileWalk::releaseAll(M.graph());
  for (Step &S : Passes) {
    if (S.IsLate)
      continue;
    if (OnPass)
      OnPass(S.P->info().Name, &S - Passes.data() + 1, Passes.size());
    bool Normalises = S.P->effect() == Pass::Effect::Normalises;
    if (Keep && !Normalises)
      M.keepInput();
    StringRef Name = S.P->info().Name;
    bool AsRead = M.isInput();
    Printer Print(Show, Name, IsFirst);
    IsFirst = false;
    Diags.setPass(Name);
    Print.before(M);
    uint64_t Before = Show.VerifyEach ? M.graph().fingerprint() : 0;
    unsigned Errors = Diags.errorCount();
    PassResult Result = [&] {
      Timer T(S.Time);
      return S.P->run(M, Diags);
    }();
    bool Same = !Show.VerifyEach || M.graph().fingerprint() == Before;
    Good = checkResult(Result, Same, Errors, Name, Diags);
    if (!Good)
      break;
    if (Normalises && AsRead)
      M.setNormalForm();
    // Stale facts only take memory.
    if (M.FactsRevision != M.graph().revision())
      M.Facts.reset();
    FileWalk::releaseAll(M.graph());
    Print.after(M);
    if (Show.VerifyEach) {
      Timer T(Verify);
      Good = verifyModule(M, Diags);
      if (!Good)
        break;
    }
  }
  Diags.setPass("");
  // Late checks infer their own facts.
  if (Late)
    M.Facts.reset();
  return Good;
}

uint64_t PassManager::statistic(StringRef Name, StringRef What) const {
  uint64_t Sum = 0;
  for (const Step &S : Passes)
    if (StringRef(S.P->info().Name) == Name)
      if (auto It = S.P->Statistics.find(What.str());
          It != S.P->Statistics.end())
        Sum += It->second;
  return Sum;
}

void PassManager::report(const Instrumentation &Show) const {
  if (Show.TimePasses) {
    std::vector<std::pair<const char *, Seconds>> Rows;
    auto Add = [&](const char *Name, Seconds Time) {
      if (Time.Wall > 0)
        Rows.push_back({Name, Time});
    };
    Add("(read)", Read);
    for (const Step &S : Passes)
      Rows.push_back({S.P->info().Name, S.Time});
    Add("(verify)", Verify);
    Add("(write)", Write);
    Seconds Total;
    for (const auto &[Name, Time] : Rows) {
      Total.Wall += Time.Wall;
      Total.Cpu += Time.Cpu;
    }
    Rows.push_back({"total", Total});
    *Show.OS << "===--- Pass execution time ---===\n"
             << "   wall (s)     cpu (s)       %  pass\n";
    for (const auto &[Name, Time] : Rows)
      *Show.OS << fmt::format(
          "{:>11.6f} {:>11.6f}  {:>5.1f}%  {}\n", Time.Wall, Time.Cpu,
          Total.Wall > 0 ? 100 * Time.Wall / Total.Wall : 0, Name);
  }
  if (Show.Statistics) {
    *Show.OS << "===--- Pass statistics ---===\n";
    for (const Step &S : Passes) {
      *Show.OS << S.P->info().Name << '\n';
      for (const auto &[What, Count] : S.P->Statistics)
        *Show.OS << fmt::format("{:>11}  {}\n", Count, What);
    }
  }
}

//===----------------------------------------------------------------------===//
// Documentation
//===----------------------------------------------------------------------===//

/// The help of \p O; for a list also its separator.
static std::string describe(const OptionBase &O) {
  char Separator = O.separator();
  return Separator ? O.help() + " (separated by " + Separator + ")" : O.help();
}

std::string passHelp(Pass &P) {
  const PassInfo &Info = P.info();
  std::string Out =
      fmt::format("{}: {}\n\n{}\n", Info.Name, Info.Summary,
                  std::string_view(StringRef(Info.Description).trim()));
  auto Options = P.options().all();
  if (!Options.empty())
    Out += "\nOptions:\n";
  for (const OptionBase *O : Options) {
    std::string Default = O->printDefault();
    Out += fmt::format("  {:<18} {}", O->name(), describe(*O));
    Out += Default.empty() ? "\n" : fmt::format(" (default {})\n", Default);
  }
  return Out;
}

std::string passesMarkdown(const PassRegistry &Registry) {
  std::string Out =
      "# Passes\n\n"
      "Generated by `graft-opt --print-passes-md`; edit the passes instead. A "
      "pipeline is written\n`a,b{option=value}`; see `graft-opt --help`. "
      "Commas or spaces separate options. In the value of\nan option that is a "
      "list, a comma separates entries, unless `name=` of another option of "
      "the\npass follows.\n";
  for (const PassRegistry::Entry &E : Registry.entries()) {
    if (E.Hidden)
      continue;
    const PassInfo &I = E.Prototype->info();
    Out += fmt::format("\n## `{}`\n\n{}.\n\n{}\n", I.Name, I.Summary,
                       std::string_view(StringRef(I.Description).trim()));
    auto Options = E.Prototype->options().all();
    if (Options.empty())
      continue;
    Out += "\n| option | default | meaning |\n|---|---|---|\n";
    for (const OptionBase *O : Options) {
      std::string Default = O->printDefault(), Help;
      for (char C : describe(*O))
        Help += C == '|' ? "\\|" : std::string(1, C);
      if (!Default.empty())
        Default.insert(0, "`").push_back('`');
      Out += fmt::format("| `{}` | {} | {} |\n", O->name(), Default, Help);
    }
  }
  return Out;
}

} // namespace graft
