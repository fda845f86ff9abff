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

/// Returns the name of a temporary file beside \p Target, cut to a legal
/// length.
std::string temporaryName(llvm::StringRef Target, unsigned Try);

/// Returns the path that a write to \p Path creates or replaces. Follows
/// symbolic links, also if the file does not exist yet.
llvm::ErrorOr<std::string> throughLinks(llvm::StringRef Path);

/// Swaps the files, folders or links \p A and \p B. If the file system allows
/// it, \p B exists at all times.
std::error_code swapPaths(const std::string &A, const std::string &B);

/// Writes to a file descriptor and remembers the first error. Large pieces are
/// written directly, small ones are collected.
class FileSink final : public ByteSink {
public:
  /// If \p Reason is an error, nothing is written.
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

/// A temporary file next to the file that it will replace. It is removed unless
/// keep() was called, also if a signal ends the program. (LLVM's TempFile is
/// not used, because it replaces every '%' in the path.)
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  ~OutputFile();

  /// Makes the temporary file for \p Path. Only this user can read the file. If
  /// \p Path is a symbolic link, the link's target will be replaced or created.
  std::error_code create(llvm::StringRef Path);
  std::error_code close();
  /// Replaces the destination.
  std::error_code keep();
  /// For an output of several files: renames the old destination until the new
  /// file replaces it, or until restore().
  std::error_code hide();
  /// Replaces the destination so that restore() can undo it.
  std::error_code replace();
  /// Undoes hide() and replace().
  void restore();
  /// Returns true if the destination has these bytes already.
  bool isUnchanged() const;

  int descriptor() const { return FD; }
  const std::string &temporary() const { return Name; }
  const std::string &destination() const { return Target; }

private:
  void remove();
  std::error_code complete();

  int FD = -1;
  bool Exists = false;            ///< Set if the destination exists.
  llvm::sys::fs::perms Mode = {}; ///< The mode of the destination.
  std::string Target;
  std::string Name;   ///< The temporary file; empty: there is none.
  std::string Hidden; ///< The old destination, after hide().
  bool Replaced = false;
  bool IsOld = false; ///< After replace(): Name is the old destination.
};

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_OUTPUTFILE_H
