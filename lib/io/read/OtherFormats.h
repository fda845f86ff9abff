//===- lib/io/read/OtherFormats.h - files that are no graphs ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A user may name a file that is no graph: a Keras archive, a checkpoint, a
// script. graft recognizes such a file and says what to do.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_OTHERFORMATS_H
#define GRAFT_LIB_IO_READ_OTHERFORMATS_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace graft {

/// Returns a message that names the format of \p Bytes and says what to do, if
/// this is a well-known format that holds no graph for graft.
std::optional<std::string> otherFormat(llvm::StringRef Bytes);

/// Returns a message like that of otherFormat() for \p Path, a file that is no
/// graph. Tests only the name of the file, because the values of a checkpoint
/// have no signature.
std::optional<std::string> otherName(llvm::StringRef Path);

/// Returns a message like that of otherFormat() for the folder \p Path, which
/// has no saved_model.pb.
std::optional<std::string> otherFolder(llvm::StringRef Path);

} // namespace graft

#endif // GRAFT_LIB_IO_READ_OTHERFORMATS_H
