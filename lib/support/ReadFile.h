//===- lib/support/ReadFile.h - bytes of files and streams ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_READFILE_H
#define GRAFT_LIB_SUPPORT_READFILE_H

#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>

namespace graft {

/// The most bytes that are read from a pipe or a device, which may have no end:
/// the limit of protobuf for a message.
inline constexpr uint64_t StreamLimit = 0x7fffffff;

/// Reads \p FD to its end; an error if it has more than \p Limit bytes.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>>
readStream(int FD, llvm::StringRef Name, uint64_t Limit = StreamLimit);

/// Maps or reads the file at \p Path; a pipe or a device is a stream.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>>
readFile(llvm::StringRef Path, bool RequiresNullTerminator = false);

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_READFILE_H
