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
/// norm. The shape is the same for every way to compute the batch norm, except
/// for output 5, the third reserve space. tf.gradients makes zeros in the shape
/// of output 5. These zeros are accepted, because no node reads them.
bool readsShapeOnly(const Graph &G, NodeId User, uint32_t Port);

/// Returns true if a node reads the value of the variance of batch norm \p N.
bool isVarianceRead(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_INFER_RULES_BATCHNORMREADS_H
