//===- lib/analysis/Topology.h - topological order --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_TOPOLOGY_H
#define GRAFT_LIB_ANALYSIS_TOPOLOGY_H

#include "lib/graph/Graph.h"

#include <vector>

namespace graft {

/// The live nodes of \p G, each after all of its inputs, data and control. The
/// back edges of loops (from NextIteration) do not count. Nodes of a cycle
/// without NextIteration, which the verifier refuses, are left out.
std::vector<NodeId> topologicalOrder(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_TOPOLOGY_H
