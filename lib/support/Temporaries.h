//===- lib/support/Temporaries.h - files that must not stay -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_TEMPORARIES_H
#define GRAFT_LIB_SUPPORT_TEMPORARIES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <system_error>

namespace graft {

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

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_TEMPORARIES_H
