//===- lib/io/write/Changes.cpp - the changes of a pass ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/Changes.h"

#include "lib/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace graft {
namespace {

class Printer {
public:
  Printer(raw_ostream &OS, bool Colors) : OS(OS), Colors(Colors) {}

  void gone(const Twine &Text) { line('-', raw_ostream::RED, Text); }
  void added(const Twine &Text) { line('+', raw_ostream::GREEN, Text); }
  /// Prints the differences of a node that is still there.
  void changed(const NodeText &Old, const NodeText &New);

private:
  void line(char Sign, raw_ostream::Colors Color, const Twine &Text) {
    if (Colors)
      OS.changeColor(Color);
    OS << Sign << escapeControls(Text.str());
    if (Colors)
      OS.resetColor();
    OS << '\n';
  }
  void part(StringRef What, StringRef Old, StringRef New) {
    if (Old == New)
      return;
    if (!Old.empty())
      gone("  " + What + Old);
    if (!New.empty())
      added("  " + What + New);
  }
  void dataInputs(const NodeText &Old, const NodeText &New);
  void controlInputs(const NodeText &Old, const NodeText &New);
  void attributes(const NodeText &Old, const NodeText &New);

  raw_ostream &OS;
  bool Colors;
};

void Printer::dataInputs(const NodeText &Old, const NodeText &New) {
  for (size_t I = 0; I < std::max(Old.Inputs.size(), New.Inputs.size()); ++I)
    part(("input " + Twine(I) + ": ").str(),
         I < Old.Inputs.size() ? Old.Inputs[I] : "",
         I < New.Inputs.size() ? New.Inputs[I] : "");
}

void Printer::controlInputs(const NodeText &Old, const NodeText &New) {
  StringSet<> InOld, InNew;
  for (const std::string &Each : Old.Controls)
    InOld.insert(Each);
  for (const std::string &Each : New.Controls)
    InNew.insert(Each);
  for (const std::string &Each : Old.Controls)
    if (!InNew.contains(Each))
      gone("  ^" + Each);
  for (const std::string &Each : New.Controls)
    if (!InOld.contains(Each))
      added("  ^" + Each);
}

/// Merges both lists, which are sorted by key.
void Printer::attributes(const NodeText &Old, const NodeText &New) {
  auto O = Old.Attrs.begin(), N = New.Attrs.begin();
  while (O != Old.Attrs.end() || N != New.Attrs.end()) {
    bool FromOld =
        O != Old.Attrs.end() && (N == New.Attrs.end() || O->first <= N->first);
    bool FromNew =
        N != New.Attrs.end() && (O == Old.Attrs.end() || N->first <= O->first);
    part(((FromOld ? O : N)->first + "="), FromOld ? O->second : "",
         FromNew ? N->second : "");
    O += FromOld;
    N += FromNew;
  }
}

void Printer::changed(const NodeText &Old, const NodeText &New) {
  if (Old == New)
    return;
  if (Old.Op != New.Op) {
    gone(Old.Name + " = " + Old.Op);
    added(New.Name + " = " + New.Op);
  } else {
    OS << ' ' << escapeControls(New.Name + " = " + New.Op) << '\n';
  }
  dataInputs(Old, New);
  controlInputs(Old, New);
  part("@", Old.Device, New.Device);
  attributes(Old, New);
}

} // namespace

void printChanges(raw_ostream &OS, ArrayRef<NodeText> Before,
                  ArrayRef<NodeText> After, bool Colors) {
  StringMap<const NodeText *> InOld;
  StringSet<> InNew;
  for (const NodeText &Node : Before)
    InOld[Node.Name] = &Node;
  for (const NodeText &Node : After)
    InNew.insert(Node.Name);
  Printer Print(OS, Colors);
  size_t Next = 0;
  // Prints the new nodes of After up to the next old node, and this old node.
  auto Advance = [&] {
    for (; Next < After.size(); ++Next) {
      const NodeText &New = After[Next];
      if (auto Old = InOld.find(New.Name); Old != InOld.end()) {
        Print.changed(*Old->second, New);
        ++Next;
        return;
      }
      Print.added(New.str());
    }
  };
  for (const NodeText &Old : Before) {
    if (InNew.contains(Old.Name))
      Advance();
    else
      Print.gone(Old.str());
  }
  while (Next < After.size())
    Advance();
}

} // namespace graft
