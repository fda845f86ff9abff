//===- lib/infer/batch/SampledRows.h - rows of the batch and others -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_SAMPLEDROWS_H
#define GRAFT_LIB_INFER_BATCH_SAMPLEDROWS_H

#include "lib/infer/graph/Variables.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Marks candidate samplers as unreplicated. Also marks lookups whose indices
/// are a concatenation of indices of the batch and other indices. Calls
/// \p Split with each tensor to split along axis 0.
void keepSampledOnce(Graph &G, const VariableIndex &Vars,
                     llvm::function_ref<void(Endpoint)> Split);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_SAMPLEDROWS_H
