//===- lib/program/forms/Compression.h - values sent in fewer bits --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A reduction in 16 bits replaces a reduction in 32 bits. The pass that inserts
// it warns that the effect of the rounding error is not proved:
//
//     sum = AddV2(x, read)           only with error feedback, like all
//     narrow = Cast(sum)             nodes of the residual
//     y = Cast(_Reduce(narrow))      replaces the reduction of x
//     residual = VarHandleOp()       one per replica, initially zeros
//     read = ReadVariableOp(residual)
//     lost = Sub(sum, Cast(narrow))
//     AssignVariableOp(residual, lost)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_COMPRESSION_H
#define GRAFT_LIB_PROGRAM_FORMS_COMPRESSION_H

#include "lib/graph/Graph.h"

namespace graft {

/// Marks all nodes of a compression. The attribute stays in outputs, where a
/// Cast or an addition alone does not show its purpose.
inline constexpr llvm::StringRef CompressAttr = "_graft_compress";

/// Returns true if \p Type is a floating-point type of 16 bits.
bool isNarrow(unsigned Type);

/// Returns input 0 of \p N if \p N belongs to a compression and is a Cast or
/// the addition of a residual. Returns no node otherwise.
Endpoint uncompressed(const Graph &G, NodeId N);

/// Returns true if \p N assigns the initial zeros to a residual.
bool clearsResidual(const Graph &G, NodeId N);

/// Returns true if \p N belongs to a compression and has the op \p Op.
bool isCompressPart(const Graph &G, NodeId N, llvm::StringRef Op);

/// Returns the residual that \p N reads or assigns, or NoNode.
NodeId residualOf(const Graph &G, NodeId N);

/// Returns the residual that is added to the first operand of \p N, or NoNode.
NodeId addedResidual(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_COMPRESSION_H
