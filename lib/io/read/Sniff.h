//===- lib/io/read/Sniff.h - what kind of graph file is this? ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Protobuf messages do not say what they are, and a MetaGraphDef can parse as
// a GraphDef without an error. The bytes are therefore looked at before they
// are believed.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_SNIFF_H
#define GRAFT_LIB_IO_READ_SNIFF_H

#include "lib/io/Module.h"

namespace graft {

/// Messages inside each other that are read from text, as many as protobuf
/// reads from bytes.
inline constexpr int TextDepth = 100;

/// Whether \p Bytes are text: no control characters near the start.
bool looksLikeText(llvm::StringRef Bytes);

/// The kind of the message in \p Bytes. \p Wanted is what the user says it is;
/// an error explains why it cannot be that, or why nothing fits.
llvm::Expected<InputKind> sniffBinary(llvm::StringRef Bytes, InputKind Wanted);

/// The same for text, by the name of the first field.
llvm::Expected<InputKind> sniffText(llvm::StringRef Text, InputKind Wanted);

/// "GraphDef", "MetaGraphDef", "SavedModel".
llvm::StringRef kindName(InputKind Kind);
/// The value of --input-kind that means \p Kind.
llvm::StringRef kindFlag(InputKind Kind);

} // namespace graft

#endif // GRAFT_LIB_IO_READ_SNIFF_H
