//===- lib/infer/graph/ReadOrder.h - what comes first -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_READORDER_H
#define GRAFT_LIB_INFER_GRAPH_READORDER_H

#include "lib/program/OrderedReads.h"

namespace graft {

/// Reads of reference variables for a step that nothing orders with an update
/// in the same step: what `tf.gradients` makes, which unlike
/// `Optimizer.compute_gradients` has no barrier behind the gradients of an op.
/// Such a reader leads to the update of another variable, needs nothing to run
/// that this update does not need, and takes what was made of the variable; or
/// it is of another part of the step, in no branch, and needed by all that
/// waits for the update. Which of the two comes first is open in the input. At
/// most some thousand are looked at, in a few sweeps over the graph.
std::vector<OpenRead> findOpenReads(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_READORDER_H
