//===- lib/support/Glob.h - names that are like a pattern -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_GLOB_H
#define GRAFT_LIB_SUPPORT_GLOB_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace graft {

/// A pattern of the shell, as fnmatch() has it; `*` matches `/` too.
class Glob {
public:
  explicit Glob(llvm::StringRef Pattern) : Pattern(Pattern.str()) {}

  /// Returns true if \p Text has wildcards.
  static bool is(llvm::StringRef Text) {
    return Text.find_first_of("*?[") != llvm::StringRef::npos;
  }
  bool matches(llvm::StringRef Name) const;

private:
  std::string Pattern;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_GLOB_H
