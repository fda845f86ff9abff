//===- lib/io/read/InputFile.cpp - files that are mapped --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/InputFile.h"

#include "lib/support/Diagnostics.h"
#include "lib/support/ReadFile.h"
#include "lib/support/Temporaries.h"

#include "llvm/Support/FileSystem.h"

#include <atomic>
#include <csignal>
#include <unistd.h>

using namespace llvm;

namespace graft {
namespace {

constexpr StringLiteral Changed = "the file changed while it was read";

struct MappedFile {
  std::string Path;
  std::string Message; ///< Made early, because the handler cannot allocate.
  const char *Begin;
  const char *End;
  sys::fs::file_status Status; ///< At the time it was opened.
  const MappedFile *Next;
};

/// A list that a signal handler walks: entries are complete when they are
/// added, and are never removed.
std::atomic<const MappedFile *> Mapped = nullptr;

bool isSame(const sys::fs::file_status &A, const sys::fs::file_status &B) {
  return A.getSize() == B.getSize() &&
         A.getLastModificationTime() == B.getLastModificationTime();
}

void endOnLostPage(int Signal, siginfo_t *Info, void *) {
  const auto *Lost = static_cast<const char *>(Info->si_addr);
  for (const MappedFile *F = Mapped; F; F = F->Next) {
    if (Lost < F->Begin || Lost >= F->End)
      continue;
    // Removes temporary files first, because other threads may lose the same
    // pages.
    removeTemporaries();
    [[maybe_unused]] ssize_t Ignored =
        ::write(STDERR_FILENO, F->Message.data(), F->Message.size());
    ::_exit(1);
  }
  // For any other cause, the instruction runs again and the signal ends the
  // program.
  std::signal(Signal, SIG_DFL);
}

} // namespace

ErrorOr<std::unique_ptr<MemoryBuffer>> openInputFile(StringRef Path) {
  sys::fs::file_status Before, After;
  if (std::error_code Reason = sys::fs::status(Path, Before))
    return Reason;
  auto Buffer = readFile(Path);
  if (!Buffer)
    return Buffer;
  // A buffer in memory cannot change any more.
  if ((*Buffer)->getBufferKind() != MemoryBuffer::MemoryBuffer_MMap) {
    if (sys::fs::is_regular_file(Before) && !sys::fs::status(Path, After) &&
        Before.getUniqueID() == After.getUniqueID() && !isSame(Before, After))
      return std::make_error_code(std::errc::text_file_busy);
    return Buffer;
  }
  std::string Message =
      escapeControls((Path + ": error: " + Changed).str()) + "\n";
  Mapped = new MappedFile{Path.str(),
                          std::move(Message),
                          (*Buffer)->getBufferStart(),
                          (*Buffer)->getBufferEnd(),
                          Before,
                          Mapped};
  return Buffer;
}

std::optional<std::string> changedInputFile() {
  for (const MappedFile *F = Mapped; F; F = F->Next) {
    sys::fs::file_status Now;
    if (!sys::fs::status(F->Path, Now) &&
        Now.getUniqueID() == F->Status.getUniqueID() && !isSame(F->Status, Now))
      return F->Path + ": " + Changed.str();
  }
  return std::nullopt;
}

void catchLostPages() {
  struct sigaction Action = {};
  Action.sa_sigaction = endOnLostPage;
  Action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&Action.sa_mask);
  sigaction(SIGBUS, &Action, nullptr);
}

} // namespace graft
