//===- lib/support/Diagnostics.cpp - errors, warnings, remarks --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Diagnostics.h"

#include <algorithm>

using namespace llvm;

namespace graft {

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

Diagnostic &DiagnosticEngine::error(StringRef Node, std::string Message) {
  return add(Severity::Error, "", Node, std::move(Message));
}

Diagnostic &DiagnosticEngine::warning(StringRef Node, std::string Message) {
  return add(Severity::Warning, "", Node, std::move(Message));
}

Diagnostic &DiagnosticEngine::unproved(StringRef Id, StringRef Node,
                                       std::string Message) {
  Diagnostic &D = add(Severity::Warning, Id, Node, std::move(Message));
  if (Strict) {
    D.Level = Severity::Error;
    ++Refused;
  }
  return D;
}

Diagnostic &DiagnosticEngine::remark(StringRef Id, StringRef Node,
                                     std::string Message) {
  return add(Severity::Remark, Id, Node, std::move(Message));
}

std::string nearest(StringRef Word,
                    const std::vector<std::string> &Candidates) {
  unsigned Limit = std::max<unsigned>(1, Word.size() / 3);
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
  return Best;
}

} // namespace graft
