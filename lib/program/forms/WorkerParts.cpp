//===- lib/program/forms/WorkerParts.cpp - graphs of workers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/WorkerParts.h"

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
  std::string Scope = Usual.str();
  for (unsigned I = 1; Taken.contains(Scope); ++I)
    Scope = (Usual + "_" + utostr(I)).str();
  return Scope;
}

} // namespace graft
