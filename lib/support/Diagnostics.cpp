//===- lib/support/Diagnostics.cpp - errors, warnings, remarks --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Diagnostics.h"

#include "lib/support/Escape.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace llvm;

namespace graft {

char SideFileError::ID = 0;

std::string SideFileError::place() const {
  return Line == 0 ? File : formatv("{0}:{1}:{2}", File, Line, Column).str();
}

void SideFileError::log(raw_ostream &OS) const {
  OS << place() << ": " << Message;
}

Error fileError(StringRef File, Error E) {
  if (E.isA<SideFileError>())
    return E;
  std::string Text = toString(std::move(E));
  auto Fault = std::make_unique<SideFileError>();
  Fault->File = File.str();
  StringRef Said = Text;
  if (Said.consume_front(File)) {
    StringRef Rest = Said;
    if (Rest.consume_front(":") && !Rest.consumeInteger(10, Fault->Line) &&
        Rest.consume_front(":") && !Rest.consumeInteger(10, Fault->Column))
      Said = Rest;
    else
      Fault->Line = Fault->Column = 0;
    Said.consume_front(":");
  }
  Fault->Message = Said.ltrim().str();
  return Error(std::move(Fault));
}

std::string errorLine(StringRef Program, Error E) {
  std::string Place = Program.str(), Message;
  handleAllErrors(
      std::move(E),
      [&](const SideFileError &F) {
        Place = F.place();
        Message = F.Message;
      },
      [&](const ErrorInfoBase &Other) { Message = Other.message(); });
  return Place + ": error: " + Message;
}

StringRef severityName(Severity Level) {
  switch (Level) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Remark:
    return "remark";
  case Severity::Note:
    return "note";
  }
  return "";
}

std::string withNode(StringRef Node, StringRef Message) {
  return Node.empty() ? Message.str()
                      : ("node '" + Node + "': " + Message).str();
}

std::string factText(const FactValue &Value) {
  if (const auto *Number = std::get_if<int64_t>(&Value))
    return std::to_string(*Number);
  if (const auto *List = std::get_if<std::vector<std::string>>(&Value))
    return join(*List, " ");
  return std::get<std::string>(Value);
}

Diagnostic &DiagnosticEngine::add(Severity Level, StringRef Id, StringRef Node,
                                  std::string Message) {
  Diagnostic D;
  D.Level = Level;
  D.Message = std::move(Message);
  D.Node = Node.str();
  D.Pass = CurrentPass;
  D.Id = Id.str();
  if (Locate && !Node.empty())
    std::tie(D.Line, D.Column) = Locate(Node);
  Errors += Level == Severity::Error;
  List.push_back(std::move(D));
  return List.back();
}

void DiagnosticEngine::append(const DiagnosticEngine &Other) {
  List.insert(List.end(), Other.List.begin(), Other.List.end());
  Errors += Other.Errors;
  Refused += Other.Refused;
}

void DiagnosticEngine::appendOf(const DiagnosticEngine &Other,
                                StringRef Function) {
  size_t Before = List.size();
  append(Other);
  for (Diagnostic &D : MutableArrayRef(List).drop_front(Before))
    D.Function = Function.str();
}

Diagnostic &DiagnosticEngine::error(StringRef Node, std::string Message) {
  return add(Severity::Error, "", Node, std::move(Message));
}

Diagnostic &DiagnosticEngine::error(Error E) {
  Diagnostic &D = error("", "");
  handleAllErrors(
      std::move(E),
      [&](const SideFileError &F) {
        D.File = F.File;
        D.Line = F.Line;
        D.Column = F.Column;
        D.Message = F.Message;
      },
      [&](const ErrorInfoBase &Other) { D.Message = Other.message(); });
  return D;
}

Diagnostic &DiagnosticEngine::warning(StringRef Node, std::string Message) {
  return add(Severity::Warning, "", Node, std::move(Message));
}

Diagnostic &DiagnosticEngine::warning(StringRef Id, StringRef Node,
                                      std::string Message) {
  return add(Severity::Warning, Id, Node, std::move(Message));
}

Diagnostic &DiagnosticEngine::unproved(StringRef Id, StringRef Node,
                                       std::string Message) {
  Diagnostic &D = add(Severity::Warning, Id, Node, std::move(Message));
  static constexpr StringLiteral OfNumbers[] = {"fallback", "write", "effect"};
  if (Strict || (RefusesUnproved && is_contained(OfNumbers, Id))) {
    D.Level = Severity::Error;
    ++Refused;
  }
  return D;
}

Diagnostic &DiagnosticEngine::remark(StringRef Id, StringRef Node,
                                     std::string Message) {
  return add(Severity::Remark, Id, Node, std::move(Message));
}

std::string escapeControls(StringRef Text) {
  std::string Out;
  Out.reserve(Text.size());
  while (!Text.empty()) {
    unsigned Size = shownLength(Text);
    if (Size != 0) {
      Out += Text.take_front(Size);
    } else {
      Size = 1;
      Out += "\\x";
      Out += toHex(Text.take_front(1), /*LowerCase=*/true);
    }
    Text = Text.drop_front(Size);
  }
  return Out;
}

std::string listText(ArrayRef<std::string> Names) {
  constexpr size_t Most = 8;
  std::string Text = join(Names.take_front(Most), ", ");
  if (Names.size() > Most)
    Text += formatv(" and {0} more", Names.size() - Most).str();
  return Text;
}

std::string didYouMean(StringRef Word,
                       const std::vector<std::string> &Candidates,
                       const Twine &Otherwise) {
  // One or two letters are similar to any other name.
  auto Limit = static_cast<unsigned>(Word.size() / 3);
  if (Limit == 0)
    return Otherwise.str();
  std::string Best;
  for (const std::string &Candidate : Candidates) {
    unsigned Distance = Word.edit_distance(Candidate, true, Limit + 1);
    if (Distance <= Limit) {
      Best = Candidate;
      Limit = Distance == 0 ? 0 : Distance - 1;
      if (Distance <= 1)
        break;
    }
  }
  return Best.empty() ? Otherwise.str() : "; did you mean '" + Best + "'?";
}

} // namespace graft
