//===- lib/program/OrderedReads.h - reads and updates ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_ORDEREDREADS_H
#define GRAFT_LIB_PROGRAM_ORDEREDREADS_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace graft {

/// Marks an update that waits for reads which the input leaves open, what reads
/// again, and what uses that; it stays in outputs.
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

/// A use of what was read of a reference variable that comes after an update,
/// and so has what was written: it can read the variable again.
struct LateUse {
  NodeId Var; ///< One of them if it is of several.
  Use Of;
  std::vector<NodeId> Views; ///< Between the variable and it, in order.
  llvm::SmallVector<NodeId, 4> Waits; ///< What the read has to come after.
};

/// Makes them read again. A view that one of them is of stands behind it.
void readAgain(Graph &G, llvm::ArrayRef<LateUse> Uses);

/// Whether \p Output was made of a graph whose reads were ordered.
bool hasOrderedReads(const Graph &Output);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_ORDEREDREADS_H
