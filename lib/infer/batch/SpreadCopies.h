//===- lib/infer/batch/SpreadCopies.h - per-replica nodes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_SPREADCOPIES_H
#define GRAFT_LIB_INFER_BATCH_SPREADCOPIES_H

#include "lib/infer/graph/Variables.h"

#include <vector>

namespace graft {

/// Marks the direct and indirect users of the nodes in \p Work as per-replica.
/// A node with a per-replica input is per-replica, and so are all nodes of its
/// loop and the arrays and stacks that it uses. Ops that must be unreplicated
/// stop the walk, and so do updates of an unreplicated variable. Returns true
/// if a node was marked.
bool spreadCopies(Graph &G, const VariableIndex &Vars,
                  std::vector<NodeId> Work);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_SPREADCOPIES_H
