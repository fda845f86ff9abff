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

std::string readNumber(StringRef Text, uint64_t Least, uint64_t Most,
                       uint64_t &To) {
  auto Number = parseSize(Text, Most);
  if (!Number || *Number < Least)
    return formatv("'{0}' is not a number from {1} to {2}", Text, Least, Most);
  To = *Number;
  return "";
}

std::string readWord(StringRef Text, StringRef Words, uint64_t &To) {
  std::vector<std::string> Known;
  readList(Words, '|', Known);
  auto Found = find(Known, Text);
  To = Found - Known.begin();
  if (Found != Known.end())
    return "";
  return "unknown value '" + Text.str() + "'" +
         didYouMean(Text, Known, "; give one of " + join(Known, ", "));
}

std::string readList(StringRef Text, char Separator,
                     std::vector<std::string> &To) {
  SmallVector<StringRef, 8> Items;
  Text.split(Items, Separator, -1, /*KeepEmpty=*/false);
  To.insert(To.end(), Items.begin(), Items.end());
  return "";
}

//===----------------------------------------------------------------------===//
// The options of a pass
//===----------------------------------------------------------------------===//

OptionBase::OptionBase(PassOptions &Of, const char *Name, std::string Help)
    : Name(Name), Help(std::move(Help)) {
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
