//===- lib/infer/facts/Needs.h - needs of a node ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A run of a node runs all nodes that it depends on. The *needs* of the node
// are the inputs and effects of that run that a caller can observe: feeds,
// variables, random samples, batches of queues, effects. If two nodes have the
// same needs, a run of one of them may also run the other. The run then
// requires no further feed or initialized variable, and samples, dequeues and
// writes nothing more:
//
//     x ──┬── h ──── dw     needs {x, w, y}
//     w ──┘    └──── db     needs {x, w, y}       may be in one bucket
//     y ───────┘
//     z ──────────── du     needs {z}             may not
//
// If a branch reads a variable, the variable must have a value only if the
// branch is taken. So the value in a branch is a separate need. All readers of
// the variable have this need. Readers outside of branches also need the
// variable itself.
//
// Arrays and stacks are no needs, because their state lasts one run. A variable
// is no need of a node that only assigns it or tests whether it has a value.
// Inserted nodes are no needs, except reads. A read of a proxy counts as a read
// of its variable. A caller can feed a tensor that is split for the replicas,
// so its readers need that tensor and not its inputs. Therefore equal sets stay
// equal after a feed of that tensor.
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

/// Returns true if \p Op is a source of data or has an effect, so that a run of
/// it is a need. Returns false for reads of variables, which needsValue()
/// handles. \p Def is the definition of the op.
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
  /// runs, for any choice of branches.
  bool hasVariable(NodeId N, NodeId Var) {
    return Sets.contains(SetOf[N], Sets.single(NumberOf.lookup({Var, 0})));
  }

private:
  using Numbers = llvm::DenseMap<std::pair<NodeId, uint32_t>, uint32_t>;

  /// The number of each need, by tensor. For a node that is a need, the tensor
  /// is output 0. Output 1 of a variable is the need of its value in a branch.
  Numbers NumberOf;
  NumberSets Sets{0};
  std::vector<uint32_t> SetOf; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_NEEDS_H
