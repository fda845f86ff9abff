//===- lib/pass/Pass.cpp - passes and their metadata ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/pass/Pass.h"

#include "lib/pass/Registry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace graft {

void PassRegistry::add(std::unique_ptr<Pass> Prototype, bool Hidden) {
  StringRef Name = Prototype->info().Name;
  auto It = llvm::lower_bound(
      Entries, Name, [](const Entry &E, StringRef N) { return E.name() < N; });
  if (It != Entries.end() && It->name() == Name)
    report_fatal_error("two passes are called '" + Name + "'");
  Entries.insert(It, {std::move(Prototype), Hidden});
}

const PassRegistry::Entry *PassRegistry::find(StringRef Name) const {
  for (const Entry &E : Entries)
    if (Name == E.name())
      return &E;
  return nullptr;
}

std::vector<std::string> PassRegistry::names() const {
  std::vector<std::string> Result;
  for (const Entry &E : Entries)
    if (!E.Hidden)
      Result.push_back(E.name().str());
  return Result;
}

} // namespace graft
