//===- lib/support/ReadFile.cpp - bytes of files and streams ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/ReadFile.h"

#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

#include <cerrno>
#include <unistd.h>

using namespace llvm;

namespace graft {

ErrorOr<std::unique_ptr<MemoryBuffer>> readStream(int FD, StringRef Name,
                                                  uint64_t Limit) {
  constexpr size_t Piece = 1 << 16;
  SmallVector<char, 0> Bytes;
  while (true) {
    size_t Size = Bytes.size();
    Bytes.resize_for_overwrite(Size + Piece);
    ssize_t Count =
        sys::RetryAfterSignal(-1, ::read, FD, Bytes.data() + Size, Piece);
    if (Count < 0)
      return std::error_code(errno, std::generic_category());
    Bytes.truncate(Size + static_cast<size_t>(Count));
    if (Bytes.size() > Limit)
      return std::make_error_code(std::errc::file_too_large);
    if (Count == 0)
      return std::make_unique<SmallVectorMemoryBuffer>(std::move(Bytes), Name);
  }
}

ErrorOr<std::unique_ptr<MemoryBuffer>> readFile(StringRef Path,
                                                bool RequiresNullTerminator) {
  if (sys::fs::is_regular_file(Path))
    return MemoryBuffer::getFile(Path, /*IsText=*/false,
                                 RequiresNullTerminator);
  int FD = -1;
  if (std::error_code Reason = sys::fs::openFileForRead(Path, FD))
    return Reason;
  auto Buffer = readStream(FD, Path);
  ::close(FD);
  return Buffer;
}

} // namespace graft
