//===- lib/rewrite/UnprovedWrites.h - writes that no rule relates ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Replicas write a value of which no type rule says how it relates to that of
// the single-device step. Either the aggregation of the variable says what to
// make of it, or the mean is taken of what is nearest to a gradient; of rows
// and their indices both are gathered:
//
//     d = Mul*(Where*(x), lr)            w/reduce = _Reduce*(Where*(x))
//     AssignSubVariableOp*(w, d)    →    d = Mul*(w/reduce, lr)
//                                        AssignSubVariableOp*(w, d)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_UNPROVEDWRITES_H
#define GRAFT_LIB_REWRITE_UNPROVEDWRITES_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// A mean over replicas that makes unproved writes equal on all of them.
struct Repair {
  Endpoint Source;
  NodeId User = NoNode; ///< NoNode: a reduction, for all users. Else a gather.
  unsigned Index = 0;
  bool Adds = true; ///< Rows are added to others: they are divided.
  NodeId Cause = NoNode;
  std::string Text; ///< The warning; empty if another repair has it.
};

/// What to insert for the unproved writes of \p M, in this order: with
/// \p OnlyNamed, for those only whose gradient the input names.
std::vector<Repair> findRepairs(const Module &M, const ProgramFacts &Facts,
                                bool OnlyNamed);

/// Reduces, or takes from replica 0, what unproved writes take whose variable
/// has an aggregation. Returns whether anything was inserted.
bool aggregateWrites(Graph &G, const ProgramFacts &Facts,
                     DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_UNPROVEDWRITES_H
