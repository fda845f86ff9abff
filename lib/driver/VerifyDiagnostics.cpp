//===- lib/driver/VerifyDiagnostics.cpp - expected-error --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//   # expected-error@below {{text or regular expression}}
//
// The message is expected at the line of the comment, or at `@above`, `@below`
// (the nearest line without such a comment), `@+N`, `@-N`, `@any`.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Report.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace graft {
namespace {

struct Expectation {
  Severity Level;
  unsigned Line; ///< Where the message is expected; 0: anywhere.
  unsigned At;   ///< Where the comment stands.
  std::string Text;
  bool Met = false;
};

/// A message that was produced. A note is a separate message.
struct Message {
  Severity Level;
  unsigned Line;
  std::string Text;
  bool Used = false;
};

Severity severityOf(StringRef Word) {
  for (Severity S : {Severity::Error, Severity::Warning, Severity::Remark})
    if (Word == severityName(S))
      return S;
  return Severity::Note;
}

bool isExpectation(StringRef Line) {
  return Line.contains('#') && Line.contains("expected-") &&
         Line.contains("{{");
}

unsigned lineFor(StringRef Place, unsigned At, ArrayRef<StringRef> Lines) {
  int Offset;
  if (Place == "any")
    return 0;
  if (Place == "above" || Place == "below") {
    unsigned Step = Place == "above" ? -1U : 1U, Line = At;
    do
      Line += Step;
    while (Line - 1 < Lines.size() && isExpectation(Lines[Line - 1]));
    return Line;
  }
  if (Place.consume_front("+") && !Place.getAsInteger(10, Offset))
    return At + static_cast<unsigned>(Offset);
  if (!Place.getAsInteger(10, Offset))
    return At + static_cast<unsigned>(Offset);
  return At;
}

std::vector<Expectation> collect(StringRef Text) {
  std::vector<Expectation> Result;
  SmallVector<StringRef, 0> Lines;
  Text.split(Lines, '\n');
  Regex Pattern("expected-(error|warning|remark|note)"
                "(@(above|below|any|[+-][0-9]+))? *\\{\\{");
  for (unsigned I = 0; I < Lines.size(); ++I) {
    StringRef Rest = Lines[I];
    if (!isExpectation(Rest))
      continue;
    SmallVector<StringRef, 4> Match;
    while (Pattern.match(Rest, &Match)) {
      Rest = Rest.substr(Match[0].end() - Rest.begin());
      StringRef Body = Rest.substr(0, Rest.find("}}"));
      Result.push_back({severityOf(Match[1]), lineFor(Match[3], I + 1, Lines),
                        I + 1, Body.str()});
    }
  }
  return Result;
}

bool matches(const Expectation &E, const Message &M) {
  if (E.Level != M.Level || (E.Line != 0 && E.Line != M.Line))
    return false;
  return StringRef(M.Text).contains(E.Text) || Regex(E.Text).match(M.Text);
}

} // namespace

bool verifyDiagnostics(raw_ostream &OS, StringRef Text, StringRef File,
                       const DiagnosticEngine &Diags,
                       const DiagnosticEngine::Locator &Locate) {
  std::vector<Message> Messages;
  for (const Diagnostic &D : Diags.all()) {
    Messages.push_back({D.Level, D.Line, diagnosticText(D)});
    for (const auto &[Node, Note] : D.Notes)
      Messages.push_back({Severity::Note, Locate ? Locate(Node).first : 0,
                          withNode(Node, Note)});
  }
  std::vector<Expectation> Expected = collect(Text);
  for (Expectation &E : Expected)
    for (Message &M : Messages)
      if (!M.Used && matches(E, M)) {
        M.Used = E.Met = true;
        break;
      }
  bool Good = true;
  for (const Message &M : Messages)
    if (!M.Used &&
        (M.Level == Severity::Error || M.Level == Severity::Warning)) {
      OS << File << ':' << M.Line << ": error: unexpected "
         << severityName(M.Level) << ": " << M.Text << '\n';
      Good = false;
    }
  for (const Expectation &E : Expected)
    if (!E.Met) {
      OS << File << ':' << E.At << ": error: expected " << severityName(E.Level)
         << " {{" << E.Text << "}} was not produced";
      if (E.Line != 0 && E.Line != E.At)
        OS << " on line " << E.Line;
      OS << '\n';
      Good = false;
    }
  return Good;
}

} // namespace graft
