//===- lib/io/write/OutputFile.h - a file that is replaced (private) ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_OUTPUTFILE_H
#define GRAFT_LIB_IO_WRITE_OUTPUTFILE_H

#include "lib/io/Module.h"

#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/FileSystem.h"

#include <string>
#include <system_error>

namespace graft {

/// The name of a temporary file beside \p Target, as long as a name may be at
/// most.
std::string temporaryName(llvm::StringRef Target, unsigned Try);

/// Where a file that is written to \p Path comes to be: through links at its
/// end, whether or not there is anything yet.
llvm::ErrorOr<std::string> throughLinks(llvm::StringRef Path);

/// Has the files, folders or links \p A and \p B change places. At no time is
/// there nothing at \p B, where the file system can do that.
std::error_code swapPaths(const std::string &A, const std::string &B);

/// Writes to a file descriptor and remembers the first error. Large pieces go
/// as they are, small ones are collected.
class FileSink final : public ByteSink {
public:
  /// With an error \p Reason nothing is written.
  explicit FileSink(int FD, std::error_code Reason = {})
      : FD(FD), Status(Reason) {}

  void write(llvm::StringRef Bytes) override;
  std::error_code finish();

private:
  static constexpr size_t BufferSize = 64 << 10;

  void put(llvm::StringRef Bytes);

  int FD;
  std::string Buffer;
  std::error_code Status;
};

/// What will replace a file: a temporary file next to it that is removed unless
/// it is kept, also when a signal ends the program. (LLVM's TempFile replaces
/// every '%' in the path.)
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  ~OutputFile();

  /// Makes the temporary file for \p Path, which nobody else can read; through
  /// a symbolic link, the file that it points to will be replaced, or made.
  std::error_code create(llvm::StringRef Path);
  std::error_code close();
  /// Replaces the destination.
  std::error_code keep();
  /// For one of several files that are kept together. The old destination is
  /// out of the way until the new one is there, or until it is put back.
  std::error_code hide();
  /// Replaces the destination in a way that can be taken back.
  std::error_code replace();
  /// Takes back hide() and replace().
  void restore();
  /// Whether the destination has these bytes already.
  bool isUnchanged() const;

  int descriptor() const { return FD; }
  const std::string &temporary() const { return Name; }
  const std::string &destination() const { return Target; }

private:
  void remove();
  std::error_code complete();

  int FD = -1;
  bool Exists = false;            ///< The destination.
  llvm::sys::fs::perms Mode = {}; ///< The mode of the destination.
  std::string Target;
  std::string Name;   ///< The temporary file; empty: there is none.
  std::string Hidden; ///< The old destination, after hide().
  bool Replaced = false;
  bool IsOld = false; ///< Then Name is the old destination.
};

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_OUTPUTFILE_H
