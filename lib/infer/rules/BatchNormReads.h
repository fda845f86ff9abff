//===- lib/infer/rules/BatchNormReads.h - readers of statistics -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_RULES_BATCHNORMREADS_H
#define GRAFT_LIB_INFER_RULES_BATCHNORMREADS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Returns true if \p User reads only the shape of output \p Port of a batch
/// norm, which is the same however the op is written. (The shape of the third
/// reserve space is not; tf.gradients makes zeros of it that no node reads.)
bool readsShapeOnly(const Graph &G, NodeId User, uint32_t Port);

/// Returns true if a node reads the value of the variance of batch norm \p N.
bool isVarianceRead(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_INFER_RULES_BATCHNORMREADS_H
