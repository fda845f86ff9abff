//===- lib/pass/Pass.cpp - passes and their metadata ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/pass/Pass.h"

#include "lib/pass/Registry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static const PassOption *findOption(const PassInfo &Info, StringRef Name) {
  for (const PassOption &O : Info.Options)
    if (Name == O.Name)
      return &O;
  return nullptr;
}

StringRef Pass::option(StringRef Name) const {
  if (auto It = GivenOptions.find(Name.str()); It != GivenOptions.end())
    return It->second;
  const PassOption *O = findOption(info(), Name);
  assert(O && "a pass reads only options that it declares");
  return O ? O->Default : "";
}

Expected<unsigned> Pass::unsignedOption(StringRef Name) const {
  StringRef Text = option(Name);
  unsigned Value;
  if (!Text.getAsInteger(10, Value))
    return Value;
  return createStringError(
      inconvertibleErrorCode(),
      formatv("option '{0}' of pass '{1}' must be a number, not '{2}'", Name,
              info().Name, Text));
}

bool Pass::setOption(StringRef Name, StringRef Value) {
  if (!findOption(info(), Name))
    return false;
  GivenOptions[Name.str()] = Value.str();
  return true;
}

//===----------------------------------------------------------------------===//
// Registry
//===----------------------------------------------------------------------===//

void PassRegistry::add(const PassInfo &Info, Factory Create, bool Hidden) {
  auto It = llvm::lower_bound(Entries, StringRef(Info.Name),
                              [](const Entry &E, StringRef Name) {
                                return StringRef(E.Info->Name) < Name;
                              });
  if (It != Entries.end() && StringRef(It->Info->Name) == Info.Name)
    report_fatal_error(Twine("two passes are called '") + Info.Name + "'");
  Entries.insert(It, {&Info, Create, Hidden});
}

const PassRegistry::Entry *PassRegistry::find(StringRef Name) const {
  for (const Entry &E : Entries)
    if (Name == E.Info->Name)
      return &E;
  return nullptr;
}

std::vector<std::string> PassRegistry::names() const {
  std::vector<std::string> Result;
  for (const Entry &E : Entries)
    if (!E.Hidden)
      Result.push_back(E.Info->Name);
  return Result;
}

} // namespace graft
