//===- lib/program/JoinedBatches.h - several elements as a batch -*- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_JOINEDBATCHES_H
#define GRAFT_LIB_PROGRAM_JOINEDBATCHES_H

#include "lib/graph/Graph.h"

namespace graft {

/// Marks the nodes that join several elements of an iterator to one batch. On
/// the IdentityN that returns the batch, the value is the number of elements.
/// On each node that returns one element, it is true. The attribute stays in
/// the written file, so that a check of the file can join the input in the same
/// way.
inline constexpr llvm::StringRef JoinedAttr = "_graft_joined";

/// Returns true if \p N returns the batch joined from several elements of an
/// iterator.
bool isJoinedBatch(const Graph &G, NodeId N);

/// Returns true if \p N reads an iterator whose elements can be concatenated:
/// the number of rows of each component is unknown, and all other sizes are
/// known.
bool isJoinable(const Graph &G, NodeId N);

/// Makes \p Read, which returns one element of an iterator, return the
/// concatenation of the next \p Elements elements. The first element must
/// exist. If the iterator ends after it, each missing element counts as one
/// without rows.
///
///     r/element = IteratorGetNext(i)
///     r/element_1 = IteratorGetNextAsOptional(i, ^r/element)
///     r/element_1/value = OptionalGetValue(
///         Select(OptionalHasValue(r/element_1), r/element_1,
///                OptionalFromValue(Slice(r/element, 0 rows))))
///     r = IdentityN(ConcatV2(r/element, r/element_1/value))
void joinElements(Graph &G, NodeId Read, unsigned Elements);

/// Joins the reads of \p G that are joined in \p Output, a graph made from \p
/// G.
void joinLike(Graph &G, const Graph &Output);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_JOINEDBATCHES_H
