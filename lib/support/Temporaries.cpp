//===- lib/support/Temporaries.cpp - removal of temporary files -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Temporaries.h"

#include "llvm/Support/Signals.h"

#include <atomic>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace llvm;

namespace graft {
namespace {

// Thread ids; 0 is none. Both are sequentially consistent: if one thread
// becomes uninterruptible while another ends the program, at least one of them
// sees the other.
std::atomic<pid_t> Holding = 0;
std::atomic<pid_t> Ending = 0;

/// The folders, the last one first, so that each comes before its parent. A
/// signal handler walks them, so entries are never freed.
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

std::error_code lastError() { return {errno, std::generic_category()}; }

/// Removes \p Name in the folder \p Parent, with its contents.
std::error_code removeAt(int Parent, const char *Name) {
  if (::unlinkat(Parent, Name, 0) == 0)
    return {};
  if (errno != EISDIR && errno != EPERM)
    return lastError();
  int FD =
      ::openat(Parent, Name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *Stream = FD < 0 ? nullptr : ::fdopendir(FD);
  if (!Stream)
    return lastError();
  std::vector<std::string> Names;
  while (const dirent *Entry = ::readdir(Stream))
    if (StringRef File = Entry->d_name; File != "." && File != "..")
      Names.push_back(File.str());
  std::error_code Reason;
  for (const std::string &File : Names)
    if (std::error_code R = removeAt(FD, File.c_str()); R && !Reason)
      Reason = R;
  ::closedir(Stream);
  if (::unlinkat(Parent, Name, AT_REMOVEDIR) != 0 && !Reason)
    Reason = lastError();
  return Reason;
}

} // namespace

Uninterrupted::Uninterrupted() {
  sigset_t Held;
  sigfillset(&Held);
  for (int Fault : {SIGABRT, SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP, SIGSYS})
    sigdelset(&Held, Fault);
  pthread_sigmask(SIG_BLOCK, &Held, &Before);
  Outer = Holding.exchange(::gettid());
  if (Ending == 0)
    return;
  Holding = Outer;
  waitForTheEnd();
}

Uninterrupted::~Uninterrupted() {
  Holding = Outer;
  pthread_sigmask(SIG_SETMASK, &Before, nullptr);
}

std::error_code createTemporary(StringRef Path,
                                function_ref<std::error_code()> Open) {
  // A signal must neither leave the file behind nor remove a file of another
  // process.
  Uninterrupted Whole;
  sys::RemoveFileOnSignal(Path);
  std::error_code Reason = Open();
  if (Reason)
    sys::DontRemoveFileOnSignal(Path);
  return Reason;
}

std::error_code createTemporaryFolder(StringRef Path) {
  auto *Made = new Folder{Path.str(), true, Folders};
  return createTemporary(Path, [&]() -> std::error_code {
    if (::mkdir(Made->Path.c_str(), 0700) != 0)
      return lastError();
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
  // Waits for an uninterruptible thread, which is soon done. If this thread is
  // the uninterruptible one, it is in the handler of its fault and cannot wait.
  while (Holding != 0 && Holding != Self)
    ::usleep(100);
  sys::RunInterruptHandlers();
  for (const Folder *F = Folders; F; F = F->Next)
    if (F->IsTemporary)
      ::rmdir(F->Path.c_str());
}

std::error_code removeFolder(const std::string &Path) {
  return removeAt(AT_FDCWD, Path.c_str());
}

} // namespace graft
