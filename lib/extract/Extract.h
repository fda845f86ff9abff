//===- lib/extract/Extract.h - a part of a graph ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Cuts some nodes out of a graph, as a graph that TensorFlow loads:
//
//     x, w → MatMul → Relu → Mean    keep Relu    →    MatMul: Placeholder
//                                                       Relu(MatMul)
//
// A tensor from outside becomes a placeholder of the same name and type, and of
// the same shape if `_output_shapes` has it. The source of an input is kept if
// the input cannot be fed (a handle of a resource, a variant, a reference), or
// if the source has no inputs, like a constant or a feed. Loops are kept whole.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_EXTRACT_EXTRACT_H
#define GRAFT_LIB_EXTRACT_EXTRACT_H

#include "lib/io/Module.h"

#include <vector>

namespace graft {

/// A flag for each node: set if the node is selected.
using NodeSet = std::vector<bool>;

/// Returns \p Ends and their ancestors, by data and control inputs.
NodeSet nodesBehind(const Graph &G, llvm::ArrayRef<NodeId> Ends);
/// Returns \p Middle and the nodes at most \p Hops edges away, in either
/// direction.
NodeSet nodesAround(const Graph &G, llvm::ArrayRef<NodeId> Middle,
                    unsigned Hops);

/// Adds to \p Kept the source of each input that no placeholder can replace,
/// and the missing nodes of each loop of which a node is kept.
void completeSelection(const Graph &G, NodeSet &Kept);

/// Reduces \p M to \p Kept, completed, and to the functions that these nodes
/// call. An entry of the MetaGraphDef stays if the graph has all its names.
void extract(Module &M, NodeSet Kept);

} // namespace graft

#endif // GRAFT_LIB_EXTRACT_EXTRACT_H
