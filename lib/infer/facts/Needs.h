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
// What is not in a set: arrays and stacks, which belong to one run; reads, as
// the variable that they read is; what was inserted, but for a proxy, which is
// its variable. What a tensor is made of that is split for the replicas is
// not either: it can be fed in its place. So where sets are equal, they are
// equal for whoever feeds it and whoever does not.
//
// The sets are exact. They are tries over the numbers of what is needed, in
// the order of the graph, and equal parts exist once: the sets of a forward
// pass, of which each has one more variable than the one before, and those of a
// backward pass, which are all the same, take little more than one of them.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_NEEDS_H
#define GRAFT_LIB_INFER_FACTS_NEEDS_H

#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/DenseMap.h"

namespace graft {

class Needs {
public:
  Needs(const Graph &G, const ProgramFacts &Facts);

  /// The set of \p N: a number that nodes with the same needs share.
  uint32_t of(NodeId N) const { return SetOf[N]; }

private:
  using Pair = std::pair<uint32_t, uint32_t>;
  /// Sets over 32 * 2^level numbers. On level 0 the first of the pair has a bit
  /// for each number; above, both are sets of the level below. 0 is empty.
  struct Level {
    std::vector<Pair> Sets{{0, 0}};
    llvm::DenseMap<Pair, uint32_t> Ids, Unions;
  };

  uint32_t intern(unsigned At, Pair Set);
  uint32_t single(unsigned At, uint32_t Number);
  uint32_t unite(unsigned At, uint32_t A, uint32_t B);

  std::vector<Level> Levels;
  std::vector<uint32_t> SetOf; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_NEEDS_H
