//===- lib/program/OrderedReads.h - updates that wait -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_ORDEREDREADS_H
#define GRAFT_LIB_PROGRAM_ORDEREDREADS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Marks an update that waits for reads which the input leaves open; it stays
/// in outputs.
inline constexpr llvm::StringRef OrderedAttr = "_graft_ordered";

/// A reader of the memory of a variable, and an update of it that nothing
/// orders with it.
struct OpenRead {
  NodeId Reader;
  NodeId Update;
};

/// Makes the updates wait for these reads, which is one of the orders that the
/// input allows, and the one that its author sees.
void orderReads(Graph &G, llvm::ArrayRef<OpenRead> Reads);

/// Whether \p Output was made of a graph with updates that wait.
bool hasOrderedReads(const Graph &Output);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_ORDEREDREADS_H
