//===- lib/infer/facts/Needs.h - what running a node takes ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Who runs a node runs all that it is made of. What that takes and does which
// somebody can tell is the set of its *needs*: feeds, variables, random draws,
// batches of queues, effects. Two nodes with the same needs may be run together
// where the input runs one of them: no other feed is asked for, no other
// variable must have a value, nothing else is drawn, taken or written.
//
//     x ──┬── h ──── dw     needs {x, w, y}
//     w ──┘    └──── db     needs {x, w, y}       may be in one bucket
//     y ───────┘
//     z ──────────── du     needs {z}             may not
//
// A variable that is read in a branch must have a value only if the branch is
// taken: that is a need of its own, which who reads it anyway has as well.
//
// What is not in a set: arrays and stacks, which belong to one run; a variable
// that is only assigned or asked for a value, as it need not have one; what was
// inserted, but for reads, and that of a proxy is one of its variable. What a
// tensor is made of that is split for the replicas is not either: it can be fed
// in its place, and all that read it have that. So where sets are equal, they
// are equal for whoever feeds it and whoever does not.
//
// The sets are exact (lib/infer/facts/NumberSets.h).
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_NEEDS_H
#define GRAFT_LIB_INFER_FACTS_NEEDS_H

#include "lib/infer/facts/NumberSets.h"
#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/DenseMap.h"

namespace graft {

/// Whether running \p Op by itself takes or does something that is a need:
/// reads of variables do not count (needsValue). \p Def is its definition.
bool isNeed(llvm::StringRef Op, const OpDef *Def);

/// Whether \p Var must have a value when \p N, of which it is input \p Index,
/// runs.
bool needsValue(const Graph &G, const VariableIndex &Vars, NodeId N,
                unsigned Index, NodeId Var);

class Needs {
public:
  Needs(const Graph &G, const ProgramFacts &Facts);

  /// The set of \p N: a number that nodes with the same needs share.
  uint32_t of(NodeId N) const { return SetOf[N]; }
  /// Whether to run \p N the variable \p Var of the input must have a value,
  /// whatever branches are taken.
  bool hasVariable(NodeId N, NodeId Var) {
    return Sets.contains(SetOf[N], Sets.single(NumberOf.lookup({Var, 0})));
  }

private:
  using Numbers = llvm::DenseMap<std::pair<NodeId, uint32_t>, uint32_t>;

  /// By tensor, or output 0 of what a run takes or does; output 1 of a variable
  /// is its value where a branch is taken.
  Numbers NumberOf;
  NumberSets Sets{0};
  std::vector<uint32_t> SetOf; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_NEEDS_H
