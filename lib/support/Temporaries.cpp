//===- lib/support/Temporaries.cpp - files that must not stay ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Temporaries.h"

#include "llvm/Support/Signals.h"

#include <atomic>
#include <cerrno>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace graft {
namespace {

// Threads by their numbers; 0 is none. Both are sequentially consistent: of a
// thread that creates a file and one that ends the program at least one sees
// the other.
std::atomic<pid_t> Creating = 0;
std::atomic<pid_t> Ending = 0;

/// The folders, the last one first, so that each comes before the one that it
/// is in. A signal handler walks them: entries stay.
struct Folder {
  std::string Path;
  std::atomic<bool> IsTemporary;
  Folder *Next;
};
std::atomic<Folder *> Folders = nullptr;

[[noreturn]] void waitForTheEnd() {
  while (true)
    ::pause();
}

} // namespace

std::error_code createTemporary(StringRef Path,
                                function_ref<std::error_code()> Open) {
  // First, so that there is no time when a signal would leave it.
  sys::RemoveFileOnSignal(Path);
  Creating = ::gettid();
  if (Ending != 0) {
    Creating = 0;
    waitForTheEnd();
  }
  std::error_code Reason = Open();
  Creating = 0;
  if (Reason)
    sys::DontRemoveFileOnSignal(Path);
  return Reason;
}

std::error_code createTemporaryFolder(StringRef Path) {
  auto *Made = new Folder{Path.str(), true, Folders};
  return createTemporary(Path, [&]() -> std::error_code {
    if (::mkdir(Made->Path.c_str(), 0700) != 0)
      return {errno, std::generic_category()};
    Folders = Made;
    return {};
  });
}

void releaseTemporaryFolder(StringRef Path) {
  for (Folder *F = Folders; F; F = F->Next)
    if (F->Path == Path)
      F->IsTemporary = false;
}

void removeTemporaries() {
  pid_t Self = ::gettid(), None = 0;
  if (!Ending.compare_exchange_strong(None, Self) && None != Self)
    waitForTheEnd();
  // A thread that is just creating a file has it in a moment, unless it is the
  // one that a signal handler runs on.
  while (Creating != 0 && Creating != Self)
    ::usleep(100);
  sys::RunInterruptHandlers();
  for (const Folder *F = Folders; F; F = F->Next)
    if (F->IsTemporary)
      ::rmdir(F->Path.c_str());
}

} // namespace graft
