//===- lib/pass/Option.cpp - options of passes ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/pass/Option.h"

#include "lib/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace llvm;

namespace graft {

std::optional<uint64_t> parseSize(StringRef Text, uint64_t Limit) {
  unsigned Shift = StringSwitch<unsigned>(Text.take_back(1))
                       .CaseLower("k", 10)
                       .CaseLower("m", 20)
                       .CaseLower("g", 30)
                       .Default(0);
  if (Shift != 0)
    Text = Text.drop_back(1);
  uint64_t Size;
  if (Text.getAsInteger(10, Size) || Size > (Limit >> Shift))
    return std::nullopt;
  return Size << Shift;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::string OptionBase::readNumber(StringRef Text, uint64_t Most,
                                   uint64_t &To) const {
  Most = std::min(Most, Syntax.Most);
  auto Number = parseSize(Text, Most);
  if (!Number || *Number < Syntax.Least)
    return formatv("'{0}' is not a number from {1} to {2}", Text, Syntax.Least,
                   Most);
  To = *Number;
  return "";
}

std::string OptionBase::readWord(StringRef Text, uint64_t &To) const {
  SmallVector<StringRef, 8> Words;
  Syntax.Words.split(Words, '|');
  auto *Found = find(Words, Text);
  To = Found - Words.begin();
  if (Found != Words.end())
    return "";
  return "unknown value '" + Text.str() + "'" +
         didYouMean(Text, std::vector<std::string>(Words.begin(), Words.end()),
                    "; give one of " + join(Words, ", "));
}

std::string OptionBase::word(uint64_t Index) const {
  SmallVector<StringRef, 8> Words;
  Syntax.Words.split(Words, '|');
  return Words[Index].str();
}

std::string OptionBase::readList(StringRef Text,
                                 std::vector<std::string> &To) const {
  SmallVector<StringRef, 8> Items;
  Text.split(Items, Syntax.Separator, -1, /*KeepEmpty=*/false);
  To.insert(To.end(), Items.begin(), Items.end());
  return "";
}

std::string OptionBase::printList(const std::vector<std::string> &List) const {
  return join(List, StringRef(&Syntax.Separator, 1));
}

//===----------------------------------------------------------------------===//
// Options together
//===----------------------------------------------------------------------===//

OptionBase::OptionBase(PassOptions &Of, const char *Name, std::string Help,
                       const OptionSyntax &Syntax)
    : Name(Name), Help(std::move(Help)), Syntax(Syntax) {
  Of.Offsets.push_back(static_cast<uint16_t>(reinterpret_cast<char *>(this) -
                                             reinterpret_cast<char *>(&Of)));
}

SmallVector<const OptionBase *, 8> PassOptions::all() const {
  SmallVector<const OptionBase *, 8> Result;
  for (uint16_t Offset : Offsets)
    Result.push_back(reinterpret_cast<const OptionBase *>(
        reinterpret_cast<const char *>(this) + Offset));
  return Result;
}

OptionBase *PassOptions::find(StringRef Name) {
  for (const OptionBase *O : all())
    if (Name == O->name())
      return const_cast<OptionBase *>(O);
  return nullptr;
}

} // namespace graft
