//===- lib/program/forms/EntrySlice.h - entries of some rows ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Each replica slices its rows from a sparse tensor. No tensor of the input has
// one element per row, so the program splits zeros, one per row, among the
// replicas. A replica counts its rows in its shard of the zeros. Its slice
// begins after the rows of the preceding replicas:
//
//     all    = Range(0, Squeeze(Slice(shape, [0], [1])), 1)
//     rows   = _ToReplicas(ZerosLike(all))
//     rest   = Slice(shape, [1], [-1])
//     number = _ToReplicas(Range(0, N, 1))
//     count  = Shape*(rows)
//     start  = Concat*(0, Mul*(count, number), ZerosLike(rest))
//     size   = Concat*(0, count, rest)
//     slice  = SparseSlice*(indices, values, shape, start, size)
//
// Output i of the slice is the replica's part of input i. If rows may repeat
// (RowRepeat.h), the replica has slice FloorMod*(number, n).
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H
#define GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns the node `rows` above if \p N is the SparseSlice `slice` for \p
/// Replicas replicas (0: any number). Returns NoNode otherwise.
NodeId rowsSliced(const Graph &G, NodeId N, unsigned Replicas);

/// Returns the node `slice` above, for \p Replicas replicas, if its output \p
/// Port is \p E. Looks through Identity ops and, for the shape, Cast ops.
/// Returns NoNode if there is no such node.
NodeId entriesSliced(const Graph &G, Endpoint E, uint32_t Port,
                     unsigned Replicas);

/// Returns the node `Mul*(count, number)` of the slice \p N, see above.
NodeId rowsBefore(const Graph &G, NodeId N);

/// Returns the tensor that \p Split, of kind Inserted::Split, splits among
/// replicas at \p Port.
Endpoint splitSource(const Graph &G, NodeId Split, uint32_t Port);

/// Makes each replica read the entries of its rows instead of the sparse tensor
/// with the parts \p Indices, \p Values and \p Shape. Only the uses \p OfShape
/// of \p Shape change. Names of new nodes begin with \p Name. Returns the first
/// nodes whose values differ between replicas.
llvm::SmallVector<NodeId, 3> insertEntrySlice(Graph &G, llvm::StringRef Name,
                                              Endpoint Indices, Endpoint Values,
                                              Endpoint Shape,
                                              llvm::ArrayRef<Use> OfShape,
                                              unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H
