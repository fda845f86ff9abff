//===- lib/io/read/Text.h - protobuf text format ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_TEXT_H
#define GRAFT_LIB_IO_READ_TEXT_H

#include "lib/io/Module.h"

namespace graft {

using LineMap = llvm::StringMap<std::pair<unsigned, unsigned>>;

/// Parses \p Text, a message of \p Kind, and returns its wire form, which
/// depends only on the text. Stores the place of each node in \p Lines.
llvm::Expected<std::string> textToBinary(llvm::StringRef Text,
                                         llvm::StringRef FileName,
                                         InputKind Kind, LineMap &Lines);

} // namespace graft

#endif // GRAFT_LIB_IO_READ_TEXT_H
