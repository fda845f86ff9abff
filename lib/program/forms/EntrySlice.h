//===- lib/program/forms/EntrySlice.h - entries of some rows ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The entries that a sparse tensor has in the rows of one replica. Its rows are
// numbered by nobody, so each replica counts its own, of zeros that are split,
// and begins behind those of the replicas before it:
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
// Output i of the slice is what the replica has of input i.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H
#define GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H

#include "lib/graph/Graph.h"

namespace graft {

/// Of a SparseSlice that takes the rows of each of \p Replicas, of however many
/// if that is 0: what has as many rows, along axis 0. NoNode if \p N is
/// something else.
NodeId rowsSliced(const Graph &G, NodeId N, unsigned Replicas);

/// The SparseSlice of which \p E is output \p Port, of the rows of each of \p
/// Replicas; also behind an Identity or, of the shape, a Cast. NoNode if it is
/// something else.
NodeId entriesSliced(const Graph &G, Endpoint E, uint32_t Port,
                     unsigned Replicas);

/// What \p Split, of kind Inserted::Split, gives each replica its part of at
/// \p Port.
Endpoint splitSource(const Graph &G, NodeId Split, uint32_t Port);

/// Has replicas read the entries of their rows instead of the sparse tensor of
/// these parts; of its shape only uses \p OfShape. \p Name is what it is called
/// by. Returns the nodes at which replicas begin to differ.
llvm::SmallVector<NodeId, 3> insertEntrySlice(Graph &G, llvm::StringRef Name,
                                              Endpoint Indices, Endpoint Values,
                                              Endpoint Shape,
                                              llvm::ArrayRef<Use> OfShape,
                                              unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_ENTRYSLICE_H
