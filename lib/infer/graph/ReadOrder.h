//===- lib/infer/graph/ReadOrder.h - reads before updates -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_READORDER_H
#define GRAFT_LIB_INFER_GRAPH_READORDER_H

#include "lib/program/OrderedReads.h"

namespace graft {

/// Finds reads of reference variables that nothing orders with an update in the
/// same step. `tf.gradients` makes such reads: unlike
/// `Optimizer.compute_gradients`, it has no barrier behind the gradients of an
/// op. There are two kinds of readers. The update of another variable depends
/// on a reader in a gradient. All inputs of this reader are also needed by the
/// update at hand, and some are computed from the variable. A reader in another
/// part of the step is in no branch, and all nodes that wait for the update
/// need the reader. The input does not order the read and the update. Checks
/// some thousand pairs at most, in a few sweeps over the graph.
std::vector<OpenRead> findOpenReads(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_READORDER_H
