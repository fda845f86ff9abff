//===- lib/driver/Report.cpp - messages for people --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Report.h"

#include "lib/support/CommandLine.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace llvm;

namespace graft {

std::string diagnosticText(const Diagnostic &D) {
  return withNode(D.Node, D.Message);
}

void printDiagnostic(raw_ostream &OS, StringRef File, const Diagnostic &D) {
  OS << escapeControls(D.File.empty() ? File : StringRef(D.File));
  if (D.Line != 0)
    OS << ':' << D.Line << ':' << D.Column;
  OS << ": " << severityName(D.Level) << ": "
     << escapeControls(diagnosticText(D));
  if (!D.Pass.empty())
    OS << " [" << D.Pass << ']';
  OS << '\n';
  for (const auto &[Node, Message] : D.Notes)
    OS << "  note: " << escapeControls(withNode(Node, Message)) << '\n';
}

//===----------------------------------------------------------------------===//
// Warnings with the same reason
//===----------------------------------------------------------------------===//

/// Returns the message of \p D without the parts that differ between nodes. If
/// a warning has notes, returns the notes.
static std::string reasonOf(const Diagnostic &D) {
  std::string Reason = D.Id + "\n" + D.Pass + "\n";
  for (const auto &[Node, Message] : D.Notes)
    Reason += Message + "\n";
  if (!D.Notes.empty())
    return Reason;
  // A message may suggest an option that names the node: `--feed=x=split`.
  std::string Said = D.Message, Named = "=" + D.Node;
  if (!D.Node.empty())
    for (size_t At; (At = Said.find(Named)) != std::string::npos;)
      Said.replace(At, Named.size(), 1, '\0');
  return Reason + Said;
}

std::vector<Diagnostic> groupAlike(const DiagnosticEngine &Diags,
                                   bool ShowAll) {
  constexpr size_t Shown = 3;
  std::vector<Diagnostic> Result;
  // For each reason: the index in Result of its first diagnostic, and the other
  // diagnostics.
  StringMap<std::pair<size_t, std::vector<const Diagnostic *>>> Groups;
  for (const Diagnostic &D : Diags.all()) {
    if (D.Level != Severity::Remark && !D.Id.empty()) {
      auto [It, New] = Groups.try_emplace(reasonOf(D));
      if (!New) {
        It->second.second.push_back(&D);
        continue;
      }
      It->second.first = Result.size();
    }
    Result.push_back(D);
  }
  for (const auto &Entry : Groups) {
    const auto &[At, Others] = Entry.second;
    if (Others.empty())
      continue;
    Diagnostic &First = Result[At];
    std::string Said = First.Message;
    for (const Diagnostic *D : ArrayRef(Others).take_front(
             ShowAll ? Others.size() : std::min(Shown, Others.size()))) {
      bool Same = D->Message == Said;
      First.Notes.push_back({D->Node, Same ? "like this" : D->Message});
      if (ShowAll)
        append_range(First.Notes, D->Notes);
    }
    First.Message +=
        "; and " + std::to_string(Others.size()) + " more like this";
  }
  return Result;
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

namespace {

struct Row {
  std::string Node;
  std::string What;
};

/// Returns the message of a remark without the parts that differ between nodes,
/// so that most nodes share a row.
Row rowOf(const Diagnostic &D) {
  std::string What;
  for (const auto &[Key, Value] : D.Facts)
    if (Key != "for" && Key != "variables")
      What.append(What.empty() ? "" : ", ").append(Key + " " + factText(Value));
  return {D.Node.empty() ? "(graph)" : D.Node, What.empty() ? D.Message : What};
}

/// Prints one line for all nodes with the same message.
void printSection(raw_ostream &OS, StringRef Title, ArrayRef<Row> Rows) {
  constexpr size_t Shown = 4;
  OS << Title << ":\n";
  if (Rows.empty())
    OS << "  (none)\n";
  MapVector<StringRef, SmallVector<StringRef, 8>> Groups;
  for (const Row &R : Rows)
    Groups[R.What].push_back(R.Node);
  for (const auto &[What, Nodes] : Groups) {
    OS << "  " << Nodes.size() << " x " << escapeControls(What) << ": "
       << escapeControls(join(ArrayRef(Nodes).take_front(Shown), ", "));
    if (Nodes.size() > Shown)
      OS << " and " << Nodes.size() - Shown << " more";
    OS << '\n';
  }
}

} // namespace

void printLines(StringRef Text) {
  while (!Text.empty()) {
    StringRef Line;
    std::tie(Line, Text) = Text.split('\n');
    errs() << escapeControls(Line) << '\n';
  }
}

int fail(Error E) {
  int Status = E.isA<UsageError>() ? ExitUsage : ExitInput;
  printLines(errorLine("graft-opt", std::move(E)));
  return Status;
}

void printRemarkTable(raw_ostream &OS, const DiagnosticEngine &Diags) {
  std::vector<Row> Variables, Reductions, NotProved;
  for (const Diagnostic &D : Diags.all()) {
    if (D.Level == Severity::Remark && D.Id == "variable")
      Variables.push_back(rowOf(D));
    else if (D.Level == Severity::Remark && D.Id == "reduction")
      Reductions.push_back(rowOf(D));
    else if (D.Level != Severity::Remark && !D.Id.empty())
      NotProved.push_back({D.Node.empty() ? "(graph)" : D.Node, D.Message});
  }
  printSection(OS, "variables", Variables);
  printSection(OS, "reductions", Reductions);
  printSection(OS, "not proved", NotProved);
}

Summary &Summary::operator+=(const Summary &Other) {
  Functions += Other.Functions;
  Variables += Other.Variables;
  Replicas = std::max(Replicas, Other.Replicas);
  SplitFeeds += Other.SplitFeeds;
  WholeFeeds += Other.WholeFeeds;
  Reductions += Other.Reductions;
  NotProved += Other.NotProved;
  return *this;
}

std::string summaryLine(StringRef Output, const Summary &S, uint64_t Bytes,
                        double Seconds) {
  auto Count = [](uint64_t N, StringRef What) {
    return (Twine(N) + " " + What + (N == 1 ? "" : "s")).str();
  };
  std::string Line = ("graft-opt: " + Output + ": ").str();
  if (S.Functions != 0)
    Line += Count(S.Functions, "function") + ", ";
  if (S.Replicas != 0)
    Line += Count(S.Variables, "variable") + ", " +
            Count(S.Replicas, "replica") + ", " + Count(S.SplitFeeds, "feed") +
            " split and " + utostr(S.WholeFeeds) + " whole, " +
            Count(S.Reductions, "reduction") + ", " +
            (S.NotProved == 0
                 ? "all proved"
                 : Count(S.NotProved, "warning") + " about unproved values") +
            "; ";
  constexpr double Kilo = 1000;
  double Size = static_cast<double>(Bytes);
  StringRef Unit = "B";
  for (StringRef Next : {"kB", "MB", "GB"})
    if (Size >= Kilo) {
      Size /= Kilo;
      Unit = Next;
    }
  return Line + formatv(Unit == "B" ? "{0:F0} {1} in {2:F2} s"
                                    : "{0:F1} {1} in {2:F2} s",
                        Size, Unit, Seconds)
                    .str();
}

std::string remarksText(const DiagnosticEngine &Diags, RemarksFormat Format,
                        StringRef File) {
  switch (Format) {
  case RemarksFormat::Yaml:
    return remarksYaml(Diags);
  case RemarksFormat::OptYaml:
    return remarksOptYaml(Diags, File);
  case RemarksFormat::Json:
    return remarksJson(Diags);
  case RemarksFormat::Sarif:
    return remarksSarif(Diags, File);
  case RemarksFormat::Text:
    break;
  }
  std::string Out;
  raw_string_ostream OS(Out);
  for (const Diagnostic &D : groupAlike(Diags, /*ShowAll=*/true))
    printDiagnostic(OS, File, D);
  printRemarkTable(OS, Diags);
  return Out;
}

} // namespace graft
