//===- lib/io/WriteFile.cpp - bytes to files --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/Write.h"

#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace llvm;

namespace graft {
namespace {

/// Writes to a file descriptor in chunks and remembers the first error.
/// Writes chunks to a file. From the second chunk on a thread of its own does
/// it, so that the kernel's copy overlaps with the making of the next chunk.
class FileSink final : public ByteSink {
public:
  explicit FileSink(int FD) : FD(FD) { Buffer.reserve(ChunkSize); }
  ~FileSink() override { join(); }

  void write(StringRef Bytes) override {
    if (Buffer.size() + Bytes.size() > ChunkSize)
      flush();
    Buffer.append(Bytes.data(), Bytes.size());
  }

  std::error_code finish() {
    flush();
    join();
    return Status;
  }

private:
  static constexpr size_t ChunkSize = 512 << 10;

  void join() {
    if (!Writer.joinable())
      return;
    {
      std::lock_guard Lock(Mutex);
      Done = true;
    }
    Wake.notify_all();
    Writer.join();
  }

  void flush() {
    if (!Started) {
      // One chunk is written in place: most files need no thread.
      put(Buffer);
      Buffer.clear();
      Started = true;
      return;
    }
    if (Buffer.empty())
      return;
    if (!Writer.joinable()) {
      Full.reserve(ChunkSize);
      Writer = std::thread([this] { writeChunks(); });
    }
    std::unique_lock Lock(Mutex);
    Wake.wait(Lock, [this] { return Full.empty(); });
    std::swap(Full, Buffer);
    Wake.notify_all();
  }

  void writeChunks() {
    std::unique_lock Lock(Mutex);
    for (;;) {
      Wake.wait(Lock, [this] { return Done || !Full.empty(); });
      if (Full.empty())
        return;
      // Nobody touches Full until it is empty again.
      Lock.unlock();
      put(Full);
      Lock.lock();
      Full.clear();
      Wake.notify_all();
    }
  }

  void put(StringRef Bytes) {
    while (!Bytes.empty() && !Status) {
      ssize_t Written =
          sys::RetryAfterSignal(-1, ::write, FD, Bytes.data(), Bytes.size());
      if (Written < 0)
        Status = std::error_code(errno, std::generic_category());
      else
        Bytes = Bytes.drop_front(static_cast<size_t>(Written));
    }
  }

  int FD;
  std::string Buffer; ///< Being filled.
  std::string Full;   ///< Being written, guarded by Mutex while it is swapped.
  std::error_code Status;
  std::thread Writer;
  std::mutex Mutex;
  std::condition_variable Wake;
  bool Started = false;
  bool Done = false;
};

Error cannotWrite(StringRef Path, std::error_code Reason) {
  return createStringError(Reason,
                           "cannot write '" + Path + "': " + Reason.message());
}

Error writeTo(int FD, StringRef Name, function_ref<Error(ByteSink &)> Produce) {
  FileSink Sink(FD);
  if (Error E = Produce(Sink))
    return E;
  if (std::error_code Reason = Sink.finish())
    return cannotWrite(Name, Reason);
  return Error::success();
}

bool sameBytes(StringRef A, StringRef B) {
  auto Old = MemoryBuffer::getFile(A, /*IsText=*/false,
                                   /*RequiresNullTerminator=*/false);
  auto New = MemoryBuffer::getFile(B, /*IsText=*/false,
                                   /*RequiresNullTerminator=*/false);
  return Old && New && (*Old)->getBuffer() == (*New)->getBuffer();
}

/// A file next to its destination that is removed unless it is kept, also when
/// a signal ends the program. (LLVM's TempFile replaces every '%' in the path.)
class TemporaryFile {
public:
  ~TemporaryFile() {
    if (FD < 0)
      return;
    ::close(FD);
    remove();
  }

  std::error_code create(const Twine &Destination) {
    std::error_code Reason;
    for (unsigned Try = 0; Try < 100; ++Try) {
      Name = (Destination + "." + Twine(sys::Process::getProcessId()) + "-" +
              Twine(Try) + ".tmp")
                 .str();
      Reason = sys::fs::openFileForWrite(Name, FD, sys::fs::CD_CreateNew);
      if (Reason != std::errc::file_exists)
        break;
    }
    if (Reason)
      FD = -1;
    else
      sys::RemoveFileOnSignal(Name);
    return Reason;
  }

  std::error_code keep(StringRef Destination) {
    int Closed = ::close(std::exchange(FD, -1));
    std::error_code Reason(Closed == 0 ? 0 : errno, std::generic_category());
    if (!Reason)
      Reason = sys::fs::rename(Name, Destination);
    if (Reason)
      remove();
    else
      sys::DontRemoveFileOnSignal(Name);
    return Reason;
  }

  int FD = -1;
  std::string Name;

private:
  void remove() {
    [[maybe_unused]] std::error_code Ignored = sys::fs::remove(Name);
    sys::DontRemoveFileOnSignal(Name);
  }
};

} // namespace

Error writeFile(StringRef Path, const WriteOptions &Options,
                function_ref<Error(ByteSink &)> Produce) {
  if (Options.Format == OutputFormat::None)
    return Error::success();
  if (Path == "-") {
    if (Options.Format == OutputFormat::Binary && !Options.Force &&
        sys::Process::StandardOutIsDisplayed())
      return createStringError(
          inconvertibleErrorCode(),
          "standard output is a terminal: name a file with -o, ask for text "
          "with -S, or force binary output with -f");
    return writeTo(STDOUT_FILENO, "<stdout>", Produce);
  }

  // Through a symbolic link, the file that it points to is replaced.
  SmallString<256> Target(Path);
  sys::fs::file_status Status;
  bool Exists = !sys::fs::status(Path, Status) && sys::fs::exists(Status);
  if (Exists && sys::fs::is_directory(Status))
    return createStringError(inconvertibleErrorCode(),
                             "cannot write '" + Path + "': is a directory");
  if (Exists && !sys::fs::is_regular_file(Status)) {
    // A device or a pipe cannot be replaced.
    int FD;
    if (std::error_code Reason =
            sys::fs::openFileForWrite(Path, FD, sys::fs::CD_OpenExisting))
      return cannotWrite(Path, Reason);
    Error E = writeTo(FD, Path, Produce);
    ::close(FD);
    return E;
  }
  if (Exists && !sys::fs::real_path(Path, Target))
    Path = Target;

  TemporaryFile Temp;
  if (std::error_code Reason = Temp.create(Path))
    return cannotWrite(Path, Reason);
  if (Error E = writeTo(Temp.FD, Path, Produce))
    return E;
  if (Options.Check)
    if (Error E = Options.Check(Temp.Name))
      return E;
  if (Exists && Options.WriteIfChanged && sameBytes(Path, Temp.Name))
    return Error::success();
  if (Exists) {
    // Best effort: some file systems have no permissions to set.
    [[maybe_unused]] std::error_code Ignored =
        sys::fs::setPermissions(Temp.FD, Status.permissions());
  }
  if (std::error_code Reason = Temp.keep(Path))
    return cannotWrite(Path, Reason);
  return Error::success();
}

/// Make's quoting of a file name, as compilers write it.
static void appendMakeName(std::string &Out, StringRef Name) {
  for (char C : Name) {
    if (C == ' ' || C == '\t' || C == '#' || C == '\\')
      Out += '\\';
    else if (C == '$')
      Out += '$';
    Out += C;
  }
}

std::string depfileText(StringRef Target, ArrayRef<std::string> Inputs) {
  std::string Out;
  appendMakeName(Out, Target);
  Out += ':';
  for (const std::string &Input : Inputs) {
    Out += " \\\n  ";
    appendMakeName(Out, Input);
  }
  Out += '\n';
  return Out;
}

} // namespace graft
