//===- lib/io/read/InputFile.h - files that are mapped ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A large input is mapped. If another process writes to the file, the graph
// changes under the passes. If another process truncates the file, pages
// disappear. In both cases no output may be written.
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

/// Returns an error for a mapped file that was modified in place. A file that
/// was replaced by a rename does not count: the mapping still has the old
/// bytes.
std::optional<std::string> changedInputFile();

/// Installs a handler for pages of mapped files that cannot be read any more.
/// The handler removes temporary files and ends the program with an error and
/// status 1.
void catchLostPages();

} // namespace graft

#endif // GRAFT_LIB_IO_READ_INPUTFILE_H
