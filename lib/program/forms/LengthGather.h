//===- lib/program/forms/LengthGather.h - rows of any number ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Collectives take tensors of one shape on all replicas, and rows of which each
// replica has another number, or none, are not. So the numbers are gathered
// first, the rows are padded to the largest, and after the gather those that
// pad are cut off:
//
//     len = Slice(Shape(x), [0], [1])         lens = CollectiveGather(len)
//     most = Maximum(Max(lens, [0]), [1])     at least 1: a gather of no rows
//     pad = Pad(x, [[0, most - len], [0, 0], ...])            does not return
//     all = CollectiveGather(pad)
//     is_row = Less(Range(0, most, 1), Reshape(lens, [-1, 1]))
//     y = GatherV2(all, Where(is_row), 0)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_LENGTHGATHER_H
#define GRAFT_LIB_PROGRAM_FORMS_LENGTHGATHER_H

#include "lib/graph/Graph.h"

namespace graft {

/// On all nodes of such a gather; it stays in outputs, where nothing else tells
/// what they are for.
inline constexpr llvm::StringRef LengthsAttr = "_graft_lengths";

/// Whether \p N is a node of such a gather, other than its collectives.
bool isLengthGatherOp(const Graph &G, NodeId N);

/// What \p N gathers the rows of, if it is y above to the last attribute; no
/// node if it is not.
Endpoint lengthGatherSource(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_LENGTHGATHER_H
