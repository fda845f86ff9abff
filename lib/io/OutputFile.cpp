//===- lib/io/OutputFile.cpp - a file that is replaced ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/OutputFile.h"

#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <unistd.h>
#include <utility>

using namespace llvm;

namespace graft {

void FileSink::write(StringRef Bytes) {
  if (Buffer.size() + Bytes.size() <= BufferSize) {
    Buffer.append(Bytes.data(), Bytes.size());
    return;
  }
  put(Buffer);
  Buffer.clear();
  if (Bytes.size() >= BufferSize / 2)
    put(Bytes);
  else
    Buffer.append(Bytes.data(), Bytes.size());
}

std::error_code FileSink::finish() {
  put(Buffer);
  Buffer.clear();
  return Status;
}

void FileSink::put(StringRef Bytes) {
  while (!Bytes.empty() && !Status) {
    ssize_t Written =
        sys::RetryAfterSignal(-1, ::write, FD, Bytes.data(), Bytes.size());
    if (Written < 0)
      Status = std::error_code(errno, std::generic_category());
    else
      Bytes = Bytes.drop_front(static_cast<size_t>(Written));
  }
}

OutputFile::~OutputFile() {
  if (FD >= 0)
    ::close(FD);
  if (!Name.empty())
    remove();
}

std::error_code OutputFile::create(StringRef Path) {
  Target = Path.str();
  sys::fs::file_status Status;
  Exists = !sys::fs::status(Path, Status) && sys::fs::exists(Status);
  SmallString<256> Real;
  if (Exists && !sys::fs::real_path(Path, Real))
    Target = Real.str().str();
  std::error_code Reason;
  for (unsigned Try = 0; Try < 100; ++Try) {
    Name = (Twine(Target) + "." + Twine(sys::Process::getProcessId()) + "-" +
            Twine(Try) + ".tmp")
               .str();
    Reason = sys::fs::openFileForWrite(Name, FD, sys::fs::CD_CreateNew);
    if (Reason != std::errc::file_exists)
      break;
  }
  if (Reason) {
    FD = -1;
    Name.clear();
    return Reason;
  }
  sys::RemoveFileOnSignal(Name);
  // Best effort: some file systems have no permissions to set.
  if (Exists) {
    [[maybe_unused]] std::error_code Ignored =
        sys::fs::setPermissions(FD, Status.permissions());
  }
  return Reason;
}

std::error_code OutputFile::close() {
  int Closed = FD < 0 ? 0 : ::close(std::exchange(FD, -1));
  return {Closed == 0 ? 0 : errno, std::generic_category()};
}

std::error_code OutputFile::keep() {
  std::error_code Reason = close();
  if (!Reason)
    Reason = sys::fs::rename(Name, Target);
  if (Reason)
    remove();
  else
    sys::DontRemoveFileOnSignal(Name);
  Name.clear();
  return Reason;
}

bool OutputFile::isUnchanged() const {
  if (!Exists)
    return false;
  auto Read = [](StringRef Path) {
    return MemoryBuffer::getFile(Path, /*IsText=*/false,
                                 /*RequiresNullTerminator=*/false);
  };
  auto Old = Read(Target), New = Read(Name);
  return Old && New && (*Old)->getBuffer() == (*New)->getBuffer();
}

void OutputFile::remove() {
  [[maybe_unused]] std::error_code Ignored = sys::fs::remove(Name);
  sys::DontRemoveFileOnSignal(Name);
}

} // namespace graft
