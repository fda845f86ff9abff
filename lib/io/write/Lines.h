//===- lib/io/write/Lines.h - the text form of a graph ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_LINES_H
#define GRAFT_LIB_IO_WRITE_LINES_H

#include "lib/io/Module.h"

namespace graft {

/// Writes a GraphDef or MetaGraphDef, \p Bytes in wire form, with a line for
/// each node. The reader (lib/io/read/Lines.h) reads the same message from it.
llvm::Error writeLines(InputKind Kind, llvm::StringRef Bytes, ByteSink &Sink);

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_LINES_H
