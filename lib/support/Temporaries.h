//===- lib/support/Temporaries.h - removal of temporary files ---*- C++ -*-===//
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

/// While an object lives, only a fault ends the program: signals wait, and
/// another thread that wants to end the program waits. Use it for a sequence of
/// short operations that must be complete.
class Uninterrupted {
public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted &) = delete;
  Uninterrupted &operator=(const Uninterrupted &) = delete;

private:
  sigset_t Before;
  pid_t Outer; ///< Nonzero inside of another Uninterrupted.
};

/// Calls \p Open, which creates the file \p Path. If any thread ends the
/// program later, the file is removed.
std::error_code createTemporary(llvm::StringRef Path,
                                llvm::function_ref<std::error_code()> Open);

/// Creates the folder \p Path for this user only. If the program ends later,
/// the folder is removed. It stays if it contains anything but files of
/// createTemporary() and folders of this function.
std::error_code createTemporaryFolder(llvm::StringRef Path);

/// Forgets the temporary folder \p Path, which was removed or renamed.
void releaseTemporaryFolder(llvm::StringRef Path);

/// Removes all temporary files and folders. Call this function only before the
/// program ends. A signal handler may call it, too. If several threads end the
/// program, the call returns in only one of them.
void removeTemporaries();

/// Removes the folder \p Path with its contents. Links are removed, not
/// followed, also if \p Path is one.
std::error_code removeFolder(const std::string &Path);

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_TEMPORARIES_H
