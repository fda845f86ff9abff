//===- lib/io/read/Shards.cpp - one graph in several files ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/Shards.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace graft {

std::optional<ShardName> ShardName::parse(StringRef File) {
  constexpr size_t Digits = 5;
  ShardName Result;
  Result.Extension = sys::path::extension(File);
  StringRef Rest = File.drop_back(Result.Extension.size());
  auto Number = [&](StringRef Before, unsigned &Value) {
    StringRef Text = Rest.take_back(Digits);
    if (Text.size() != Digits || !all_of(Text, isDigit) ||
        Text.getAsInteger(10, Value))
      return false;
    Rest = Rest.drop_back(Digits);
    return Rest.consume_back(Before);
  };
  if (!Number("-of-", Result.Count) || !Number("-", Result.Index) ||
      Result.Count < 2 || Result.Index >= Result.Count)
    return std::nullopt;
  Result.Stem = Rest;
  return Result;
}

std::string ShardName::name(unsigned I) const {
  return formatv("{0}-{1,0+5}-of-{2,0+5}{3}", Stem, I, Count, Extension);
}

} // namespace graft
