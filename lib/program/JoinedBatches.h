//===- lib/program/JoinedBatches.h - several elements as a batch -*- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_JOINEDBATCHES_H
#define GRAFT_LIB_PROGRAM_JOINEDBATCHES_H

#include "lib/graph/Graph.h"

namespace graft {

/// Marks the nodes that take several elements of an iterator as one batch. The
/// IdentityN with the batch has the number of elements. Each node that returns
/// one element has true. The attribute stays in the written file, so that the
/// input can be given the same batch when the file is checked.
inline constexpr llvm::StringRef JoinedAttr = "_graft_joined";

/// Returns true if \p N is the batch that several elements of an iterator make.
bool isJoinedBatch(const Graph &G, NodeId N);

/// Returns true if \p N reads an iterator whose elements can be concatenated:
/// all components have an open number of rows and are otherwise static.
bool isJoinable(const Graph &G, NodeId N);

/// Makes \p Read, which returns one element of an iterator, return the
/// concatenation of the next \p Elements elements. The first element must
/// exist. If the iterator has no other element, the others have no rows.
///
///     r/element = IteratorGetNext(i)
///     r/element_1 = IteratorGetNextAsOptional(i, ^r/element)
///     r/element_1/value = OptionalGetValue(
///         Select(OptionalHasValue(r/element_1), r/element_1,
///                OptionalFromValue(Slice(r/element, 0 rows))))
///     r = IdentityN(ConcatV2(r/element, r/element_1/value))
void joinElements(Graph &G, NodeId Read, unsigned Elements);

/// Joins the reads of \p G that are joined in \p Output, which was made from
/// it.
void joinLike(Graph &G, const Graph &Output);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_JOINEDBATCHES_H
