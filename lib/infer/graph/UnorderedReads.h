//===- lib/infer/graph/UnorderedReads.h - in either order -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads of variables that no edge orders with an update of the same step:
//
//     update = ApplyGradientDescent(w, lr, dw)
//     d = Sub(average, w/read)              d may take either value of w
//     follow = AssignSub(average, d)
//     train = NoOp(^update, ^follow)
//
// A step is a run of an update other than a counter or an initial assignment.
// It runs a node without users and all nodes on which that node depends. The
// same run may also fetch values that need no further feed: summaries, named
// tensors, and values computed from variables alone, such as a penalty.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_UNORDEREDREADS_H
#define GRAFT_LIB_INFER_GRAPH_UNORDEREDREADS_H

#include "lib/program/OrderedReads.h"

namespace graft {

/// The first unordered read, and the number of them.
struct UnorderedReads {
  OpenRead First = {NoNode, NoNode};
  NodeId Var = NoNode;
  /// Set if the first reader is fetched and may return the memory of the
  /// variable.
  bool IsMemory = false;
  size_t Count = 0;
};

/// Finds unordered reads. Checks some thousand updates at most, in a few sweeps
/// over the graph. \p Named are fetched nodes.
UnorderedReads findUnorderedReads(const Graph &G, llvm::ArrayRef<NodeId> Named);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_UNORDEREDREADS_H
