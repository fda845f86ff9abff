//===- lib/infer/facts/Needs.h - needs of a node ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Running a node runs all nodes that it depends on. Its *needs* are the inputs
// and effects of that run that a caller can observe: feeds, variables, random
// draws, batches of queues, effects. Two nodes with the same needs may be run
// together where the input runs one of them. No other feed is required, no
// other variable must have a value, nothing else is drawn, dequeued or written:
//
//     x ──┬── h ──── dw     needs {x, w, y}
//     w ──┘    └──── db     needs {x, w, y}       may be in one bucket
//     y ───────┘
//     z ──────────── du     needs {z}             may not
//
// A variable that is read in a branch must have a value only if the branch is
// taken. That is a separate need, which all readers of the variable have.
//
// A set does not contain arrays and stacks, which belong to one run, nor a
// variable that is only assigned, or asked if it has a value. It contains no
// inserted nodes except reads; a read of a proxy is one of its variable. If a
// tensor is split for the replicas, it can be fed itself, so its readers need
// that tensor and not its inputs. Therefore equal sets are equal whether or not
// it is fed.
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

/// Returns true if running \p Op by itself is a need: it takes an input or has
/// an effect. Reads of variables do not count (needsValue). \p Def is its
/// definition.
bool isNeed(llvm::StringRef Op, const OpDef *Def);

/// Returns true if \p Var, which is input \p Index of \p N, must have a value
/// when \p N runs.
bool needsValue(const Graph &G, const VariableIndex &Vars, NodeId N,
                unsigned Index, NodeId Var);

class Needs {
public:
  Needs(const Graph &G, const ProgramFacts &Facts);

  /// Returns the set of \p N: a number that nodes with the same needs share.
  uint32_t of(NodeId N) const { return SetOf[N]; }
  /// Returns true if variable \p Var of the input must have a value when \p N
  /// runs, whatever branches are taken.
  bool hasVariable(NodeId N, NodeId Var) {
    return Sets.contains(SetOf[N], Sets.single(NumberOf.lookup({Var, 0})));
  }

private:
  using Numbers = llvm::DenseMap<std::pair<NodeId, uint32_t>, uint32_t>;

  /// The number of each need, by tensor. Output 0 stands for a node that is a
  /// need; output 1 of a variable stands for its value if a branch is taken.
  Numbers NumberOf;
  NumberSets Sets{0};
  std::vector<uint32_t> SetOf; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_NEEDS_H
