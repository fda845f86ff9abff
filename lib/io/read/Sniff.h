//===- lib/io/read/Sniff.h - kinds of graph files ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a protobuf message do not name its type, and a MetaGraphDef may
// parse as a GraphDef without an error. Therefore graft inspects the bytes.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_SNIFF_H
#define GRAFT_LIB_IO_READ_SNIFF_H

#include "lib/io/Module.h"

namespace graft {

/// The depth of nested messages that are read from text: the same as protobuf's
/// limit for bytes.
inline constexpr int TextDepth = 100;

/// Returns true if \p Bytes are text: no control characters near the start.
bool looksLikeText(llvm::StringRef Bytes);

/// Returns \p Text from the first line on that is neither empty nor a comment.
llvm::StringRef skipComments(llvm::StringRef Text);

/// Returns the kind of the message in \p Bytes. \p Wanted is the kind that the
/// user gives. Returns an error if the message has another kind or none.
llvm::Expected<InputKind> sniffBinary(llvm::StringRef Bytes, InputKind Wanted);

/// Returns the kind of a message in text, by the name of its first field.
llvm::Expected<InputKind> sniffText(llvm::StringRef Text, InputKind Wanted);

/// Returns "GraphDef", "MetaGraphDef", "SavedModel" or "GraphItem".
llvm::StringRef kindName(InputKind Kind);
/// Returns the value of --input-kind that means \p Kind.
llvm::StringRef kindFlag(InputKind Kind);

} // namespace graft

#endif // GRAFT_LIB_IO_READ_SNIFF_H
