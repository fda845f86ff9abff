//===- lib/certify/tpu/Spread.h - a computation on each replica -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes out a TPU computation for each replica. An op of the computation gets
// one copy per replica. A copy reads the replica's operand in place of a
// TPUReplicatedInput. Output r of a TPUReplicatedOutput becomes the operand of
// that node on replica r. A CrossReplicaSum becomes a sum over all replicas:
//
//     in = TPUReplicatedInput(s:0, s:1)
//     y = Neg(in)                         →   replica_0/y = Neg(s:0)
//     out = TPUReplicatedOutput(y)            replica_1/y = Neg(s:1)
//     z = AddN(out:0, out:1)                  z = AddN(replica_0/y, ...)
//
// The result is a graph as expand-replicas writes it, which fold/ certifies.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_TPU_SPREAD_H
#define GRAFT_LIB_CERTIFY_TPU_SPREAD_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <memory>

namespace graft {

/// Returns true if \p G has a computation in TPU form.
bool isTpuForm(const Graph &G);

/// Returns the graph of all replicas for \p File, which has TPU form. \p In is
/// the input graph. Returns null after an error, which names the node that is
/// not understood.
std::unique_ptr<Graph> spreadComputation(const Graph &File, const Graph &In,
                                         DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_TPU_SPREAD_H
