//===- lib/infer/facts/SizeUses.h - uses of facts of sizes ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An op that requires two sizes to be equal states a fact (SizeOrigins). A node
// uses the fact if sizes of both origins meet in its operands and results. The
// use is valid if the op runs whenever the node does:
//
// - every fetch that runs the node runs the op, too;
// - the node runs under every predicate that the op runs under;
// - if the op is in the body of a loop, the loop runs an iteration whenever the
//   node runs: the node is in that body, or pops a stack to which the body
//   pushes.
//
//     p ── Switch ── x + y             states rows(x) = rows(y)   {p}
//             └───── gather(y, Range(0, rows(x)))   may not use it {not p}
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_SIZEUSES_H
#define GRAFT_LIB_INFER_FACTS_SIZEUSES_H

#include "lib/infer/types/Types.h"

#include <vector>

namespace graft {

/// The use of a fact by the node User. Each node of Says states the fact. They
/// are all in one branch and one loop, and at least one runs whenever User
/// does.
struct SizeUse {
  NodeId User;
  llvm::ArrayRef<NodeId> Says;
};

struct SizeUses {
  std::vector<SizeUse> Founded;
  /// The lists of nodes that Founded points to.
  std::vector<std::vector<NodeId>> Statements;
  /// The nodes, in order, that state a fact which may not hold at some node
  /// that uses it.
  std::vector<NodeId> Unfounded;
};

SizeUses findSizeUses(const Graph &G, llvm::ArrayRef<NodeId> Order,
                      const DimAnalysis &Dims, const TypeAnalysis &Types);

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_SIZEUSES_H
