//===- lib/certify/tpu/Spread.h - a computation on each replica -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What a TPU computation means, written out: an op of it is there once for each
// replica, a TPUReplicatedInput is the operand of the replica, output r of a
// TPUReplicatedOutput is its operand in replica r, and a CrossReplicaSum adds
// what all replicas have:
//
//     in = TPUReplicatedInput(s:0, s:1)
//     y = Neg(in)                         →   replica_0/y = Neg(s:0)
//     out = TPUReplicatedOutput(y)            replica_1/y = Neg(s:1)
//     z = AddN(out:0, out:1)                  z = AddN(replica_0/y, ...)
//
// It is a graph as expand-replicas writes it, which fold/ certifies.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_TPU_SPREAD_H
#define GRAFT_LIB_CERTIFY_TPU_SPREAD_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <memory>

namespace graft {

/// Whether \p G has a computation in TPU form.
bool isTpuForm(const Graph &G);

/// The graph that \p File, of TPU form, means; null after an error, which names
/// what is not understood. \p In is the graph that was read.
std::unique_ptr<Graph> spreadComputation(const Graph &File, const Graph &In,
                                         DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_TPU_SPREAD_H
