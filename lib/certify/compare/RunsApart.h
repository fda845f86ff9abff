//===- lib/certify/compare/RunsApart.h - what is run alone ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Who runs a name runs all that it is made of and all that it waits for. What
// of this somebody can tell is its *needs* (lib/infer/facts/Needs.h): feeds,
// variables that must have a value, draws, reads of queues, iterators and
// tables, effects. Each is a node of the input: copies of a node stand for it,
// a read of a proxy for one of its variable. The claim of every name that input
// and output have is
//
//     needs of it in the output  ⊆  needs of it in the input
//
// so a run of it asks for no other feed and no other value, draws and takes
// nothing else, and does nothing else. What was inserted and has an effect of
// its own is in no set of the input, so no name of the input may run it.
// Exempt is what no run but its own can tell, or what is inserted for
// (InsertedForm::IsUnseen): collectives, accumulators, assertions that compare
// copies, residuals, and refreshes of proxies, which wait for the update that
// they follow (ProxyCheck).
//
// Needs are those of a run that feeds what it can: a placeholder with a
// default, or a tensor that is split for the replicas, is a need itself for
// whoever reads it, and what is behind it is compared where it is.
//
// An edge that the input has too cannot break the claim. So the sets are only
// computed if there are others: where an inserted node leads to more than the
// one node of the input that its user has there as well.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H
#define GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H

#include "lib/certify/forms/Comparison.h"

namespace graft {

/// Checks that to run a name of the input takes and does nothing that it does
/// not in the input.
void checkRunsApart(Comparison &C, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_RUNSAPART_H
