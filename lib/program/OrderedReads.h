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
/// does not order, a node that reads a variable again, and the users of such a
/// node. The attribute stays in outputs.
inline constexpr llvm::StringRef OrderedAttr = "_graft_ordered";

/// A node that reads the memory of a variable, and an update of the variable.
/// No dependency orders the two nodes.
struct OpenRead {
  NodeId Reader;
  NodeId Update;
};

/// Makes each update wait for its reader. The input allows both orders, but
/// usually the read runs first.
void orderReads(Graph &G, llvm::ArrayRef<OpenRead> Reads);

/// A use of a reference variable's value by a node that runs after an update.
/// The node sees the written value, so it may as well read the variable again.
struct LateUse {
  NodeId Var; ///< The variable, or one of several.
  Use Of;
  std::vector<NodeId> Views; ///< From the variable to the use, in order.
  llvm::SmallVector<NodeId, 4> Waits; ///< The nodes for which the new
                                      ///< read waits.
};

/// Makes each of \p Uses read its variable again. If the user of use A is a
/// view of use B, \p Uses must list B before A.
void readAgain(Graph &G, llvm::ArrayRef<LateUse> Uses);

/// Returns true if \p Output was made from a graph whose reads were ordered.
bool hasOrderedReads(const Graph &Output);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_ORDEREDREADS_H
