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

/// Marks three kinds of nodes: an update that waits for reads which the input
/// leaves unordered, a node that reads a variable again, and the users of such
/// a read. The attribute stays in outputs.
inline constexpr llvm::StringRef OrderedAttr = "_graft_ordered";

/// A reader of the memory of a variable, and an update that nothing orders with
/// it.
struct OpenRead {
  NodeId Reader;
  NodeId Update;
};

/// Makes each update wait for its reader. The input allows several orders, of
/// which its author sees this one.
void orderReads(Graph &G, llvm::ArrayRef<OpenRead> Reads);

/// A use of the value of a reference variable that comes after an update, and
/// so has the written value: it can read the variable again.
struct LateUse {
  NodeId Var; ///< The variable, or one of several.
  Use Of;
  std::vector<NodeId> Views; ///< From the variable to the use, in order.
  llvm::SmallVector<NodeId, 4> Waits; ///< The nodes that the read has to
                                      ///< follow.
};

/// Makes each of \p Uses read its variable again. In \p Uses, a use whose user
/// is a view of another use comes after that use.
void readAgain(Graph &G, llvm::ArrayRef<LateUse> Uses);

/// Returns true if \p Output was made from a graph whose reads were ordered.
bool hasOrderedReads(const Graph &Output);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_ORDEREDREADS_H
