//===- lib/support/InternalError.h - bugs of graft --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_INTERNALERROR_H
#define GRAFT_LIB_SUPPORT_INTERNALERROR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

namespace graft {

/// The exit status of a program that has a bug: EX_SOFTWARE of sysexits.h.
inline constexpr int InternalErrorStatus = 70;

/// Ends the program because graft has a bug. Prints one line and removes
/// temporary files; the outputs stay as they were.
[[noreturn]] void internalError(const llvm::Twine &Message);

/// Limits a fixpoint to the number of iterations that the height of its lattice
/// allows.
class TurnLimit {
public:
  TurnLimit(llvm::StringRef What, uint64_t Most) : What(What), Left(Most) {}

  /// Counts an iteration in which \p Name() changed.
  template <typename Fn> void turn(Fn Name) {
    if (Left-- == 0)
      internalError("node '" + Name() + "': " + What + " do not converge");
  }

private:
  llvm::StringRef What;
  uint64_t Left;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_INTERNALERROR_H
