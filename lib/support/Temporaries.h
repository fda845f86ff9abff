//===- lib/support/Temporaries.h - files that must not stay -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_TEMPORARIES_H
#define GRAFT_LIB_SUPPORT_TEMPORARIES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <csignal>
#include <string>
#include <system_error>

namespace graft {

/// While one lives nothing ends the program but a fault: signals wait, and so
/// does another thread that wants to end it. For steps that belong together,
/// none of which may take long.
class Uninterrupted {
public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted &) = delete;
  Uninterrupted &operator=(const Uninterrupted &) = delete;

private:
  sigset_t Before;
  pid_t Outer; ///< Nonzero inside of another one.
};

/// Calls \p Open, which makes the file \p Path; if the program is ended from
/// then on, by whichever thread, the file is removed.
std::error_code createTemporary(llvm::StringRef Path,
                                llvm::function_ref<std::error_code()> Open);

/// Makes the folder \p Path, which nobody else can read. If the program is
/// ended from then on, it is removed, provided that nothing is in it but files
/// of createTemporary() and folders that were made like this.
std::error_code createTemporaryFolder(llvm::StringRef Path);

/// Lets go of such a folder, which is removed or has another name now.
void releaseTemporaryFolder(llvm::StringRef Path);

/// Removes all of them, for a program that is about to end: to be called once
/// nothing but the end follows, also from signal handlers. Of several threads
/// that end the program one comes back from it.
void removeTemporaries();

/// Removes the folder \p Path and all that is in it. No link is followed: one
/// goes itself, in the folder as in its place.
std::error_code removeFolder(const std::string &Path);

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_TEMPORARIES_H
