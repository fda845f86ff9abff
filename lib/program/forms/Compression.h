//===- lib/program/forms/Compression.h - values sent in fewer bits --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A reduction in 16 bits stands for the one in 32. The pass that inserts it
// warns that its rounding error is only assumed not to matter:
//
//     sum = AddV2(x, read)           with error feedback only, as is all
//     narrow = Cast(sum)             that is about the residual
//     y = Cast(_Reduce(narrow))      stands for the reduction of x
//     residual = VarHandleOp()       of each replica, zeros at first
//     read = ReadVariableOp(residual)
//     lost = Sub(sum, Cast(narrow))
//     AssignVariableOp(residual, lost)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_COMPRESSION_H
#define GRAFT_LIB_PROGRAM_FORMS_COMPRESSION_H

#include "lib/graph/Graph.h"

namespace graft {

/// On all nodes of a compression. It stays in outputs, where a Cast or an
/// addition does not show its purpose.
inline constexpr llvm::StringRef CompressAttr = "_graft_compress";

/// Returns true if \p Type is a floating-point type of 16 bits.
bool isNarrow(unsigned Type);

/// Returns the tensor that \p N, of a compression's kind, stands for; no node
/// if there is none.
Endpoint uncompressed(const Graph &G, NodeId N);

/// Returns true if \p N gives a residual its first value.
bool clearsResidual(const Graph &G, NodeId N);

/// Returns true if \p N is the op \p Op of a compression.
bool isCompressPart(const Graph &G, NodeId N, llvm::StringRef Op);

/// Returns the residual that \p N reads or assigns, or NoNode.
NodeId residualOf(const Graph &G, NodeId N);

/// Returns the residual that is added to the first operand of \p N, or NoNode.
NodeId addedResidual(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_COMPRESSION_H
