//===- lib/io/read/Lines.h - the text form of a graph -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads graphs with a line for each node, as --emit=lines writes them:
//
//     # A comment.
//     x = Placeholder() dtype=float shape=[?,4]
//     y = MatMul(x, w) T=float
//         transpose_b=true
//     --- GraphDef
//     versions { producer: 1087 }
//
// A line that begins with a space continues the line before it. The fields of
// the message that are not nodes stand in protobuf's text form after ---.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_LINES_H
#define GRAFT_LIB_IO_READ_LINES_H

#include "lib/io/read/Text.h"

#include "tensorflow/core/framework/graph.pb.h"

namespace graft {

/// The parts of a file with lines.
struct LineFile {
  llvm::StringRef Nodes; ///< The lines of the nodes.
  llvm::StringRef Kind;  ///< The message whose other fields follow, or "".
  llvm::StringRef Rest;  ///< The text of these fields.
};

/// Returns true if \p Text begins with the line of a node, or with the line
/// before the other fields.
bool looksLikeLines(llvm::StringRef Text);

LineFile splitLines(llvm::StringRef Text);

/// Adds the nodes of \p Lines to \p Graph. \p Places gets the line and column
/// of each node.
llvm::Error readLines(llvm::StringRef Lines, llvm::StringRef FileName,
                      tensorflow::GraphDef &Graph, LineMap &Places);

} // namespace graft

#endif // GRAFT_LIB_IO_READ_LINES_H
