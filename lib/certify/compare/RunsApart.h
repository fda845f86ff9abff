//===- lib/certify/compare/RunsApart.h - needs of partial runs --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A caller may run any single name. The run executes all nodes on which the
// node of that name depends, by data or control edges. The observable part of
// the run is its *needs* (lib/infer/facts/Needs.h): feeds, variables that must
// have a value, random draws, reads of queues, iterators and tables, and
// effects. Each need is a node of the input: copies of a node count as the
// node, and a read of a proxy counts as a read of its variable. The claim for
// every name of input and output is
//
//     needs of the name in the output  ⊆  needs of the name in the input
//
// So a run of the name requires no additional feed or initialized variable, and
// no additional draw, read or write. The effect of an inserted node is a need
// that no name of the input has, so no such name may run the node. Some kinds
// of inserted nodes are exempt (InsertedForm::IsUnseen), because no other run
// can observe their effects or because they are inserted for their effects.
// These are collectives, accumulators, assertions that compare copies,
// residuals, and refreshes of proxies, which wait for their update
// (ProxyCheck).
//
// The run is assumed to feed every tensor that it can. So a placeholder with a
// default, or a tensor that is split for the replicas, is a need of its
// readers. The needs of the tensor itself are compared at its node.
//
// An edge that the input also has cannot break the claim. The check computes
// sets only if the program has other edges. Such an edge comes from an inserted
// node that depends on several nodes, or on a node that its user does not read
// in the input.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H
#define GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H

#include "lib/certify/forms/Comparison.h"

namespace graft {

/// Checks that each need of a name in the output is a need of that name in the
/// input.
void checkRunsApart(Comparison &C, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H
