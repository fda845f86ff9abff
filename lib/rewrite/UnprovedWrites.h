//===- lib/rewrite/UnprovedWrites.h - writes that no rule relates ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Repairs writes of values that no type rule relates to the single-device step.
// If the variable has an aggregation, the repair applies it. Otherwise a repair
// gathers the rows and indices of a write of rows. For any other write, it uses
// the mean of the tensor nearest to a gradient:
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

/// A mean or gather that makes unproved writes equal on all replicas.
struct Repair {
  Endpoint Source;
  NodeId User = NoNode; ///< NoNode: a reduction, for all users. Else a gather.
  unsigned Index = 0;
  bool Adds = true; ///< Set if the write adds rows. A gather divides them by N.
  NodeId Cause = NoNode;
  std::string Text; ///< The warning; empty if another repair has it.
};

/// Returns the repairs for the unproved writes of \p M in the order of
/// insertion. With \p OnlyNamed, returns only repairs of gradients that the
/// input graph names.
std::vector<Repair> findRepairs(const Module &M, const ProgramFacts &Facts,
                                bool OnlyNamed);

/// For each variable that has an aggregation, applies it to the unproved values
/// that replicas write to the variable. Returns true if it inserted nodes.
bool aggregateWrites(Graph &G, const ProgramFacts &Facts,
                     DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_UNPROVEDWRITES_H
