//===- lib/lower/workers/Branches.h - values of conditionals ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What is in a branch of a conditional of version 1, and how a value of it goes
// to another worker. What is not taken sends nothing, so it leaves the
// conditional first and enters it again behind the queue:
//
//     v                    m = Merge(v, Const ^(side of p that is not taken))
//     u = Neg(v)     →     m goes through a queue
//                          u = Neg(Switch(m, p):1)
//
// A loop gives a value for each iteration: nothing goes from there.
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

  /// Has a node that was added count, which is where its inputs are.
  void add(NodeId N);
  /// Whether \p E is there in some runs only, or several times in one. What
  /// was added later and not told is not.
  bool contain(Endpoint E) const { return at(E) != Root; }
  /// Whether \p E is in conditionals alone, all of which are understood.
  bool canLeave(Endpoint E) const;
  /// A tensor that is always there, on \p Worker: \p E, if that is taken. Of a
  /// control edge a truth value.
  Endpoint leave(Endpoint E, int Worker);
  /// \p Value, which leave() gives for \p E, where \p E is: on \p Worker.
  Endpoint enter(Endpoint E, Endpoint Value, int Worker);

private:
  /// One side of a conditional, or a loop.
  struct Branch {
    unsigned Parent = 0, Depth = 0;
    Endpoint Predicate; ///< NoNode: a loop.
    unsigned Side = 0;
  };
  /// Nodes that run, or do not, with a branch, on one worker.
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
  std::vector<unsigned> Of; ///< By node: where it runs.
  llvm::DenseMap<NodeId, std::array<unsigned, 2>> Sides; ///< By Switch.
  std::map<std::tuple<unsigned, NodeId, unsigned, unsigned>, unsigned> Ids;
  std::map<std::pair<NodeId, unsigned>, Endpoint> Equal; ///< See first().
  std::map<std::pair<unsigned, int>, Pivots> PivotsOf;
  std::map<std::tuple<NodeId, unsigned, int>, Endpoint> Left, Entered;
};

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_BRANCHES_H
