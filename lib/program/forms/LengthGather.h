//===- lib/program/forms/LengthGather.h - rows of any number ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Collectives need the same shape on all replicas, but replicas may have
// different row counts, or no rows. So the row counts are gathered first, and
// the rows are padded to the largest count. After the gather the padding is
// removed:
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

/// Marks all nodes of such a gather. The attribute stays in outputs, since the
/// ops alone do not show the purpose of the nodes.
inline constexpr llvm::StringRef LengthsAttr = "_graft_lengths";

/// Returns true if \p N is a node of such a gather, but not a collective.
bool isLengthGatherOp(const Graph &G, NodeId N);

/// Returns `x` if \p N is `y` above, with exactly these ops and attributes.
/// Returns no node otherwise.
Endpoint lengthGatherSource(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_LENGTHGATHER_H
