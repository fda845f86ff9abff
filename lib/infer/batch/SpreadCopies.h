//===- lib/infer/batch/SpreadCopies.h - who runs per replica ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_SPREADCOPIES_H
#define GRAFT_LIB_INFER_BATCH_SPREADCOPIES_H

#include "lib/infer/graph/Variables.h"

#include <vector>

namespace graft {

/// Marks the users of what is in \p Work, and theirs, as per-replica: a node
/// with a per-replica input is per-replica, and so are all nodes of its loop
/// and the arrays and stacks that it uses. Ops that may exist only once stop
/// it, and so do updates of a variable that exists once. Returns whether
/// anything was marked.
bool spreadCopies(Graph &G, const VariableIndex &Vars,
                  std::vector<NodeId> Work);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_SPREADCOPIES_H
