//===- lib/io/read/InputFile.h - files that are mapped ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A large input is mapped, so somebody who writes to the file while it is read
// changes the graph under the feet of passes, and who cuts it takes pages away.
// Neither may become an output.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_INPUTFILE_H
#define GRAFT_LIB_IO_READ_INPUTFILE_H

#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/MemoryBuffer.h"

#include <optional>
#include <string>

namespace graft {

/// Maps or reads the file at \p Path.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>>
openInputFile(llvm::StringRef Path);

/// One of the files that are mapped which has been written to since. A file
/// that another one took the place of is not: its bytes are where they were.
std::optional<std::string> changedInputFile();

/// Has the program end with an error and status 1, temporary files removed,
/// when a page of a mapped file cannot be read any more.
void catchLostPages();

} // namespace graft

#endif // GRAFT_LIB_IO_READ_INPUTFILE_H
