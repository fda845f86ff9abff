//===- lib/support/Glob.cpp - names that are like a pattern -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Glob.h"

#include "llvm/ADT/SmallString.h"

#include <fnmatch.h>

using namespace llvm;

namespace graft {

bool Glob::matches(StringRef Name) const {
  SmallString<128> Text(Name);
  return fnmatch(Pattern.c_str(), Text.c_str(), 0) == 0;
}

} // namespace graft
