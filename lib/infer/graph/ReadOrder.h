//===- lib/infer/graph/ReadOrder.h - reads before updates -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_READORDER_H
#define GRAFT_LIB_INFER_GRAPH_READORDER_H

#include "lib/program/OrderedReads.h"

namespace graft {

/// Finds reads of reference variables that no edge orders with an update in the
/// same step. `tf.gradients` makes such reads: unlike
/// `Optimizer.compute_gradients`, it adds no barrier after the gradients of an
/// op. There are two kinds of readers. A reader in a gradient computes the
/// gradient of another variable. The update at hand also needs all inputs of
/// this reader, and some of these are computed from the variable. A reader in
/// another part of the step is in no branch, and all nodes that wait for the
/// update need the reader. Checks some thousand pairs at most, in a few sweeps
/// over the graph.
std::vector<OpenRead> findOpenReads(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_READORDER_H
