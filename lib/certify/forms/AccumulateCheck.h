//===- lib/certify/forms/AccumulateCheck.h - sums in accumulators -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// A sum over the replicas that is made by a conditional accumulator (all of
// kind `accumulate`):
//
//     acc = ConditionalAccumulator() reduction_type="SUM"
//     ready = NoOp(^g)                     waits for all replicas
//     put = AccumulatorApplyGradient*(acc, 2^63-1, g, ^ready)
//     take = AccumulatorTakeGradient(acc, N, ^put)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_ACCUMULATECHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_ACCUMULATECHECK_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace graft {

/// Checks \p N, of kind accumulate: what is taken is the sum of what the
/// \p Replicas replicas put in the same step.
void checkAccumulate(
    const Graph &G, NodeId N, unsigned Replicas,
    llvm::function_ref<void(NodeId, const llvm::Twine &)> Error);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_ACCUMULATECHECK_H
