//===- lib/io/write/OutputFile.cpp - a file that is replaced ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/OutputFile.h"

#include "lib/support/Temporaries.h"

#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
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

std::string temporaryName(StringRef Target, unsigned Try) {
  std::string Suffix =
      ("." + Twine(sys::Process::getProcessId()) + "-" + Twine(Try) + ".tmp")
          .str();
  StringRef File = Target.substr(Target.rfind('/') + 1);
  StringRef Folder = Target.drop_back(File.size());
  if (size_t Most = NAME_MAX - Suffix.size(); File.size() > Most) {
    // Do not cut within a UTF-8 character.
    while (Most != 0 && (static_cast<uint8_t>(File[Most]) & 0xc0) == 0x80)
      --Most;
    File = File.take_front(Most);
  }
  return (Folder + File + Suffix).str();
}

ErrorOr<std::string> throughLinks(StringRef Given) {
  constexpr unsigned MaxLinks = 40;
  std::string Path = Given.str();
  for (unsigned Links = 0;; ++Links) {
    char To[PATH_MAX];
    ssize_t Size = ::readlink(Path.c_str(), To, sizeof To);
    if (Size < 0)
      return Path;
    if (Links == MaxLinks)
      return std::make_error_code(std::errc::too_many_symbolic_link_levels);
    StringRef Named(To, static_cast<size_t>(Size));
    if (sys::path::is_absolute(Named))
      Path = Named.str();
    else
      Path = Path.substr(0, Path.rfind('/') + 1) + Named.str();
  }
}

std::error_code swapPaths(const std::string &A, const std::string &B) {
  auto LastError = [](int Failed) {
    return std::error_code(Failed == 0 ? 0 : errno, std::generic_category());
  };
  std::error_code Reason = LastError(
      ::renameat2(AT_FDCWD, A.c_str(), AT_FDCWD, B.c_str(), RENAME_EXCHANGE));
  if (Reason != std::errc::invalid_argument &&
      Reason != std::errc::function_not_supported)
    return Reason;
  // The file system cannot swap, so rename one after the other.
  std::string Aside = temporaryName(B, 100);
  Reason = LastError(::rename(B.c_str(), Aside.c_str()));
  if (Reason)
    return Reason;
  Reason = LastError(::rename(A.c_str(), B.c_str()));
  std::error_code Back =
      LastError(::rename(Aside.c_str(), (Reason ? B : A).c_str()));
  return Reason ? Reason : Back;
}

std::error_code OutputFile::create(StringRef Path) {
  Target = Path.str();
  sys::fs::file_status Status;
  std::error_code Reason = sys::fs::status(Path, Status);
  Exists = !Reason && sys::fs::exists(Status);
  if (Reason && Reason != std::errc::no_such_file_or_directory)
    return Reason;
  SmallString<256> Real;
  if (!Exists) {
    ErrorOr<std::string> Place = throughLinks(Path);
    Reason = Place.getError();
    if (Place)
      Target = *Place;
  } else if (Reason = sys::fs::real_path(Path, Real); !Reason) {
    Target = Real.str().str();
  }
  if (Reason)
    return Reason;
  if (Exists)
    Mode = Status.permissions();
  Reason = std::make_error_code(std::errc::file_exists);
  for (unsigned Try = 0; Try < 100 && Reason == std::errc::file_exists; ++Try) {
    Name = temporaryName(Target, Try);
    if (sys::fs::exists(Name))
      continue;
    // Only this user can read the file until it is complete.
    Reason = createTemporary(Name, [&] {
      return sys::fs::openFileForWrite(Name, FD, sys::fs::CD_CreateNew,
                                       sys::fs::OF_None, 0600);
    });
  }
  if (Reason) {
    FD = -1;
    Name.clear();
  }
  return Reason;
}

std::error_code OutputFile::close() {
  int Closed = FD < 0 ? 0 : ::close(std::exchange(FD, -1));
  return {Closed == 0 ? 0 : errno, std::generic_category()};
}

/// Closes the file and gives it the permissions of the file that it replaces.
std::error_code OutputFile::complete() {
  std::error_code Reason = close();
  if (Reason)
    return Reason;
  if (!Exists)
    Mode = static_cast<sys::fs::perms>(0666 & ~sys::fs::getUmask());
  // Best effort: some file systems have no permissions to set.
  [[maybe_unused]] std::error_code Ignored =
      sys::fs::setPermissions(Name, Mode);
  return Reason;
}

std::error_code OutputFile::keep() {
  Uninterrupted Whole;
  std::error_code Reason = complete();
  if (!Reason)
    Reason = sys::fs::rename(Name, Target);
  if (Reason)
    remove();
  else
    sys::DontRemoveFileOnSignal(Name);
  Name.clear();
  return Reason;
}

std::error_code OutputFile::hide() {
  if (sys::fs::is_directory(Target))
    return std::make_error_code(std::errc::is_a_directory);
  std::string Aside = temporaryName(Target, 100);
  std::error_code Reason = sys::fs::rename(Target, Aside);
  if (Reason == std::errc::no_such_file_or_directory)
    return {};
  if (!Reason)
    Hidden = Aside;
  return Reason;
}

std::error_code OutputFile::replace() {
  if (std::error_code Reason = complete())
    return Reason;
  sys::fs::file_status Status;
  IsOld = !sys::fs::status(Target, Status, /*follow=*/false);
  if (std::error_code Reason =
          IsOld ? swapPaths(Name, Target) : sys::fs::rename(Name, Target))
    return Reason;
  Replaced = true;
  // Another process may have created a folder with this name meanwhile.
  return sys::fs::is_directory(Name)
             ? std::make_error_code(std::errc::is_a_directory)
             : std::error_code();
}

void OutputFile::restore() {
  [[maybe_unused]] std::error_code Ignored;
  if (std::exchange(Replaced, false))
    Ignored = IsOld ? swapPaths(Name, Target) : sys::fs::rename(Target, Name);
  if (!Hidden.empty())
    Ignored = sys::fs::rename(std::exchange(Hidden, ""), Target);
}

bool OutputFile::isUnchanged() const {
  if (!Exists || !sys::fs::is_regular_file(Target))
    return false;
  auto Read = [](StringRef Path) {
    return MemoryBuffer::getFile(Path, /*IsText=*/false,
                                 /*RequiresNullTerminator=*/false);
  };
  auto Old = Read(Target), New = Read(Name);
  return Old && New && (*Old)->getBuffer() == (*New)->getBuffer();
}

void OutputFile::remove() {
  Uninterrupted Whole;
  // After replace() Name may be the old destination. unlink() keeps a folder.
  ::unlink(Name.c_str());
  sys::DontRemoveFileOnSignal(Name);
  if (!Hidden.empty())
    ::unlink(Hidden.c_str());
}

} // namespace graft
