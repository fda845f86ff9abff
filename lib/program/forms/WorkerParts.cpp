//===- lib/program/forms/WorkerParts.cpp - graphs of workers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/WorkerParts.h"

#include "tensorflow/core/framework/function.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace graft {

std::string freeScope(const Graph &G) {
  constexpr StringLiteral Usual = "between";
  StringSet<> Taken;
  auto Take = [&](StringRef Text) {
    StringRef First = Text.take_until([](char C) { return C == '/'; });
    if (First.starts_with(Usual))
      Taken.insert(First);
  };
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    Take(G.name(N));
    const OpDef *Def = G.opDef(N);
    if (Def && Def->hasSharedName())
      Take(G.stringAttr(N, "shared_name").value_or(""));
  }
  // Names of functions begin with the scope.
  constexpr unsigned LibraryField = 2; // In a GraphDef.
  tensorflow::FunctionDefLibrary Library;
  Library.ParseFromString(G.otherField(LibraryField));
  auto IsFree = [&](const std::string &Scope) {
    return !Taken.contains(Scope) &&
           none_of(Library.function(), [&](const auto &F) {
             return StringRef(F.signature().name()).starts_with(Scope + "_");
           });
  };
  std::string Scope = Usual.str();
  for (unsigned I = 1; !IsFree(Scope); ++I)
    Scope = (Usual + "_" + utostr(I)).str();
  return Scope;
}

} // namespace graft
