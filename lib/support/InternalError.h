//===- lib/support/InternalError.h - what must not happen -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_INTERNALERROR_H
#define GRAFT_LIB_SUPPORT_INTERNALERROR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

namespace graft {

/// The exit status of a program that has a fault: EX_SOFTWARE of sysexits.h.
inline constexpr int InternalErrorStatus = 70;

/// Ends the program: graft has a fault. One line says so, temporary files are
/// removed, the outputs stay as they were.
[[noreturn]] void internalError(const llvm::Twine &Message);

/// Holds a fixpoint to the number of turns that the height of its lattice
/// allows: what rises at most so often has settled by then.
class TurnLimit {
public:
  TurnLimit(llvm::StringRef What, uint64_t Most) : What(What), Left(Most) {}

  /// One more turn, since \p Name() has changed.
  template <typename Fn> void turn(Fn Name) {
    if (Left-- == 0)
      internalError("node '" + Name() + "': " + What + " do not settle");
  }

private:
  llvm::StringRef What;
  uint64_t Left;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_INTERNALERROR_H
