//===- lib/infer/graph/Topology.h - topological order -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_TOPOLOGY_H
#define GRAFT_LIB_INFER_GRAPH_TOPOLOGY_H

#include "lib/graph/Graph.h"

#include <vector>

namespace graft {

/// Returns the live nodes of \p G, each after all of its inputs, data and
/// control. The back edges of loops (from NextIteration) do not count. In any
/// other cycle, which the verifier refuses, the closing edge does not count.
/// The order is as close to that of the file as possible.
std::vector<NodeId> topologicalOrder(const Graph &G);

/// Returns true if the outputs of \p Op go back to the start of a loop.
bool isBackEdgeOp(llvm::StringRef Op);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_TOPOLOGY_H
