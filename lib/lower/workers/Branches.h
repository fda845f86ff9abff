//===- lib/lower/workers/Branches.h - values of conditionals ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The branches of conditionals of version 1, and how a worker sends a value in
// a branch to another worker. A branch that is not taken sends nothing, so the
// value leaves the conditional first and enters it again behind the queue:
//
//     v                    m = Merge(v, Const ^(side of p that is not taken))
//     u = Neg(v)     →     m goes through a queue
//                          u = Neg(Switch(m, p):1)
//
// A loop computes a value in each iteration: no value leaves a loop.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_BRANCHES_H
#define GRAFT_LIB_LOWER_WORKERS_BRANCHES_H

#include "lib/graph/AttrRun.h"
#include "lib/graph/Graph.h"

#include "llvm/ADT/DenseMap.h"

#include <array>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

namespace graft {

class Branches {
public:
  /// Adds a node that \p Worker has.
  using AddFn = std::function<NodeId(
      llvm::StringRef Name, llvm::StringRef Op, llvm::ArrayRef<Endpoint> Inputs,
      NodeId After, const AttrRun &, int Worker)>;

  Branches(Graph &G, AddFn Add);

  /// Finds the branch of the new node \p N, which is that of its inputs.
  void add(NodeId N);
  /// Returns true if \p E is in a branch or a loop: a run may compute it never
  /// or several times. For a node that was added later, call add() first.
  bool contain(Endpoint E) const { return at(E) != Root; }
  /// Returns true if \p E is in no loop, and the predicates of all conditionals
  /// around it are known.
  bool canLeave(Endpoint E) const;
  /// Returns a tensor on \p Worker that every run computes. It has the value of
  /// \p E if the branch is taken. For a control edge it is a boolean.
  Endpoint leave(Endpoint E, int Worker);
  /// Returns \p Value, which leave() returned for \p E, in the branch of \p E
  /// on \p Worker.
  Endpoint enter(Endpoint E, Endpoint Value, int Worker);

private:
  /// One side of a conditional, or a loop.
  struct Branch {
    unsigned Parent = 0, Depth = 0;
    Endpoint Predicate; ///< NoNode: a loop.
    unsigned Side = 0;
  };
  /// Nodes on one worker that run if a branch is taken, or if it is not.
  struct Pivots {
    NodeId Taken = NoNode, Left = NoNode;
  };
  static constexpr unsigned Root = 0, Unknown = 1, MaxDepth = 64;

  unsigned at(Endpoint E) const;
  unsigned side(NodeId Switch, unsigned Port) const;
  unsigned child(unsigned Parent, Endpoint Predicate, unsigned Side);
  bool isSame(unsigned A, unsigned B) const;
  bool unite(unsigned A, unsigned B);
  unsigned join(unsigned A, unsigned B);
  unsigned merge(unsigned A, unsigned B);
  unsigned loopAround(unsigned B) const;
  void place(NodeId N);
  bool isLoop(unsigned B) const {
    return B > Unknown && All[B].Predicate.Node == NoNode;
  }
  Endpoint source(Endpoint Predicate) const;
  Endpoint first(Endpoint Predicate) const;
  Pivots pivots(unsigned B, int Worker, NodeId After);

  Graph &G;
  AddFn Add;
  std::vector<Branch> All;
  std::vector<unsigned> Of; ///< By node: its branch.
  llvm::DenseMap<NodeId, std::array<unsigned, 2>> Sides; ///< By Switch.
  std::map<std::tuple<unsigned, NodeId, unsigned, unsigned>, unsigned> Ids;
  std::map<std::pair<NodeId, unsigned>, Endpoint> Equal; ///< See first().
  std::map<std::pair<unsigned, int>, Pivots> PivotsOf;
  std::map<std::tuple<NodeId, unsigned, int>, Endpoint> Left, Entered;
};

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_BRANCHES_H
