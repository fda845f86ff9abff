//===- lib/diff/Print.cpp - differences for people and scripts --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/diff/Print.h"

#include "lib/support/Diagnostics.h"
#include "lib/support/Escape.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace graft {
namespace {

/// Returns \p Text, cut if it is long, as a constant may be.
std::string shown(StringRef Text) {
  constexpr size_t Most = 120;
  std::string Result = escapeControls(Text);
  if (Result.size() > Most)
    Result = Result.substr(0, Most - 3) + "...";
  return Result;
}

class TextPrinter {
public:
  TextPrinter(raw_ostream &OS, bool Colors) : OS(OS), Colors(Colors) {}

  void print(const Difference &D);

private:
  void line(StringRef Sign, raw_ostream::Colors Color, const Twine &Text) {
    if (Colors)
      OS.changeColor(Color);
    OS << Sign << ' ' << Text;
    if (Colors)
      OS.resetColor();
    OS << '\n';
  }
  void change(const Difference &D, const Twine &What) {
    if (!D.Was.empty())
      line("-", raw_ostream::RED, "    " + What + shown(D.Was));
    if (!D.Now.empty())
      line("+", raw_ostream::GREEN, "    " + What + shown(D.Now));
  }

  raw_ostream &OS;
  bool Colors;
  std::string Node; ///< The node of the last heading.
};

void TextPrinter::print(const Difference &D) {
  std::string Name = escapeControls(D.Node);
  switch (D.Kind) {
  case Difference::Removed:
    return line("-", raw_ostream::RED, "node '" + Name + "' = " + D.Was);
  case Difference::Added:
    return line("+", raw_ostream::GREEN, "node '" + Name + "' = " + D.Now);
  case Difference::Collection:
  case Difference::Field:
    OS << "  " << nameOf(D.Kind) << " '" << escapeControls(D.Key) << "'\n";
    return change(D, "");
  case Difference::Function:
    OS << "  function '" << escapeControls(D.Key) << '\'';
    if (!Name.empty())
      OS << ", node '" << Name << '\'';
    OS << '\n';
    return change(D, "");
  default:
    break;
  }
  if (Name != Node)
    OS << "  node '" << Name << "'\n";
  Node = Name;
  std::string What = nameOf(D.Kind).str();
  if (D.Kind == Difference::Renamed)
    What = "name";
  else if (D.Kind == Difference::Colocation)
    What = "colocated with";
  if (!D.Key.empty())
    What += " " + escapeControls(D.Key);
  change(D, What + ": ");
}

std::string countOf(const GraphDiff &D, Difference::What Kind, StringRef Word) {
  auto Number = count_if(
      D.All, [&](const Difference &Each) { return Each.Kind == Kind; });
  return Number == 0 ? "" : (Twine(Number) + " " + Word + ", ").str();
}

} // namespace

void printText(raw_ostream &OS, const GraphDiff &D, StringRef A, StringRef B,
               bool Colors) {
  if (D.ReplicasOfA != D.ReplicasOfB && D.All.empty())
    OS << "the same program, for " << D.ReplicasOfA << " and for "
       << D.ReplicasOfB << " replicas\n";
  if (D.All.empty())
    return;
  OS << "--- " << A << "\n+++ " << B << '\n';
  if (D.ReplicasOfA != D.ReplicasOfB)
    OS << "  compared as programs, of " << D.ReplicasOfA << " and of "
       << D.ReplicasOfB << " replicas\n";
  TextPrinter P(OS, Colors);
  for (const Difference &Each : D.All)
    P.print(Each);
  StringRef Node;
  size_t Changed = 0;
  for (const Difference &Each : D.All)
    if (Each.Kind > Difference::Added && Each.Kind < Difference::Function &&
        Each.Node != Node) {
      Node = Each.Node;
      ++Changed;
    }
  OS << "  " << Changed << " changed, "
     << countOf(D, Difference::Removed, "removed")
     << countOf(D, Difference::Added, "added") << D.Same << " the same\n";
}

void printJson(raw_ostream &OS, const GraphDiff &D, StringRef A, StringRef B) {
  OS << jsonText(2, [&](json::OStream &J) {
    J.object([&] {
      J.attributeArray("files", [&] {
        J.value(utf8(A));
        J.value(utf8(B));
      });
      if (D.ReplicasOfA != 0)
        J.attributeArray("replicas", [&] {
          J.value(D.ReplicasOfA);
          J.value(D.ReplicasOfB);
        });
      J.attribute("same", D.Same);
      J.attributeArray("differences", [&] {
        for (const Difference &Each : D.All)
          J.object([&] {
            J.attribute("what", nameOf(Each.Kind));
            for (auto [Key, Text] :
                 {std::pair<StringRef, StringRef>{"node", Each.Node},
                  {"key", Each.Key},
                  {"was", Each.Was},
                  {"now", Each.Now}})
              if (!Text.empty())
                J.attribute(Key, utf8(Text));
          });
      });
    });
  });
}

} // namespace graft
