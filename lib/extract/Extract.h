//===- lib/extract/Extract.h - a part of a graph ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes a graph of some nodes of a graph, which TensorFlow loads:
//
//     x, w → MatMul → Relu → Mean    keep Relu    →    MatMul: Placeholder
//                                                       Relu(MatMul)
//
// A tensor from outside is a placeholder, under the name that it had, of the
// type and, where `_output_shapes` says it, of the shape that it had. What
// nobody can feed is kept with what reads it: handles of resources and
// references, what makes them, and loops, which are whole or not there. So is
// what reads nothing, such as constants and feeds.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_EXTRACT_EXTRACT_H
#define GRAFT_LIB_EXTRACT_EXTRACT_H

#include "lib/io/Module.h"

#include <vector>

namespace graft {

/// By node: whether it is meant.
using NodeSet = std::vector<bool>;

/// \p Ends and all that they are made of and wait for.
NodeSet nodesBehind(const Graph &G, llvm::ArrayRef<NodeId> Ends);
/// \p Middle and what is at most \p Hops edges from it, either way.
NodeSet nodesAround(const Graph &G, llvm::ArrayRef<NodeId> Middle,
                    unsigned Hops);

/// Adds to \p Kept what the nodes in it cannot do without.
void completeSelection(const Graph &G, NodeSet &Kept);

/// Reduces \p M to \p Kept, completed: to its nodes, the functions that they
/// call, and the entries around the graph all of whose names are left.
void extract(Module &M, NodeSet Kept);

} // namespace graft

#endif // GRAFT_LIB_EXTRACT_EXTRACT_H
