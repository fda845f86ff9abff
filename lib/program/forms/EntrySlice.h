//===- lib/program/forms/EntrySlice.h - entries of some rows ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The entries of a sparse tensor in the rows of one replica. No tensor numbers
// the rows. So zeros, one for each row, are split among the replicas. A replica
// counts its rows in its shard of the zeros, and its slice begins after the
// rows of the replicas before it:
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
// Output i of the slice is the replica's part of input i.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H
#define GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns the node with the rows, along axis 0, that the SparseSlice \p N
/// takes on each of \p Replicas replicas (0: any number). NoNode if \p N is
/// something else.
NodeId rowsSliced(const Graph &G, NodeId N, unsigned Replicas);

/// Returns the SparseSlice that takes the rows of each of \p Replicas replicas
/// and whose output \p Port is \p E. Between them may be an Identity or, for
/// the shape, a Cast. Returns NoNode if \p E is something else.
NodeId entriesSliced(const Graph &G, Endpoint E, uint32_t Port,
                     unsigned Replicas);

/// Returns the tensor that \p Split, of kind Inserted::Split, splits among
/// replicas at \p Port.
Endpoint splitSource(const Graph &G, NodeId Split, uint32_t Port);

/// Makes each replica read the entries of its rows instead of the sparse tensor
/// with the parts \p Indices, \p Values and \p Shape. \p OfShape are the only
/// uses of \p Shape that change. The new nodes are called after \p Name.
/// Returns the nodes at which replicas begin to differ.
llvm::SmallVector<NodeId, 3> insertEntrySlice(Graph &G, llvm::StringRef Name,
                                              Endpoint Indices, Endpoint Values,
                                              Endpoint Shape,
                                              llvm::ArrayRef<Use> OfShape,
                                              unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H
