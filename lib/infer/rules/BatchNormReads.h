//===- lib/infer/rules/BatchNormReads.h - who reads batch statistics ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_RULES_BATCHNORMREADS_H
#define GRAFT_LIB_INFER_RULES_BATCHNORMREADS_H

#include "lib/graph/Graph.h"

namespace graft {

/// Whether \p User takes nothing but the shape of output \p Port of a batch
/// norm, which does not depend on how the op is written. (That of the third
/// reserve space does; tf.gradients makes zeros of it that nothing reads.)
bool readsShapeOnly(const Graph &G, NodeId User, uint32_t Port);

/// Whether somebody takes the value of the variance of batch norm \p N.
bool isVarianceRead(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_INFER_RULES_BATCHNORMREADS_H
