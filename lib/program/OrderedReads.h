//===- lib/program/OrderedReads.h - reads and updates -----------*- C++ -*-===//
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

/// Marks an update that waits for reads which the input leaves unordered, a
/// node that reads again, and the users of that read; it stays in outputs.
inline constexpr llvm::StringRef OrderedAttr = "_graft_ordered";

/// A reader of the memory of a variable, and an update that nothing orders with
/// it.
struct OpenRead {
  NodeId Reader;
  NodeId Update;
};

/// Makes the updates wait for these reads. The input allows this order among
/// others, and its author sees this one.
void orderReads(Graph &G, llvm::ArrayRef<OpenRead> Reads);

/// A use of the value of a reference variable that comes after an update, and
/// so has the written value: it can read the variable again.
struct LateUse {
  NodeId Var; ///< One of them if there are several.
  Use Of;
  std::vector<NodeId> Views; ///< Between the variable and it, in order.
  llvm::SmallVector<NodeId, 4> Waits; ///< The nodes that the read has to
                                      ///< follow.
};

/// Makes these uses read again. A use by a view of another use stands behind
/// that one.
void readAgain(Graph &G, llvm::ArrayRef<LateUse> Uses);

/// Returns true if \p Output was made from a graph whose reads were ordered.
bool hasOrderedReads(const Graph &Output);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_ORDEREDREADS_H
