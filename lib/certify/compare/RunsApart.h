//===- lib/certify/compare/RunsApart.h - needs of partial runs --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A run of a name runs all that its value is made of and all that it waits for.
// The observable part of this is its *needs* (lib/infer/facts/Needs.h): feeds,
// variables that must have a value, draws, reads of queues, iterators and
// tables, effects. Each need is a node of the input: copies of a node count as
// the node, and a read of a proxy counts as one of its variable. The claim for
// every name of input and output is
//
//     needs of it in the output  ⊆  needs of it in the input
//
// so a run of it asks for no other feed and no other value, draws and takes
// nothing else, and does nothing else. An inserted node with an effect of its
// own is in no set of the input, so no name of the input may run it. Exempt are
// kinds whose effects no other run can observe, or that are inserted for their
// effect (InsertedForm::IsUnseen): collectives, accumulators, assertions that
// compare copies, residuals, and refreshes of proxies, which wait for their
// update (ProxyCheck).
//
// Needs are those of a run that feeds all it can. A placeholder with a default,
// or a tensor that is split for the replicas, is itself a need of its readers;
// its own needs are compared where it is.
//
// An edge that the input has, too, cannot break the claim. So sets are only
// computed if there are other edges: where an inserted node depends on more
// than the one node that its user reads in the input as well.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H
#define GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H

#include "lib/certify/forms/Comparison.h"

namespace graft {

/// Checks that a run of a name of the input has no needs that it does not have
/// in the input.
void checkRunsApart(Comparison &C, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H
