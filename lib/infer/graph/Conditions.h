//===- lib/infer/graph/Conditions.h - when a node runs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In a conditional of version 1 a node runs if no input of it, data or control,
// is dead: its execution is a conjunction of choices, each made by a predicate
// and passed on by every edge. A Merge of both sides of one predicate ends it.
//
//     t = Switch(x, p):1    choices {p:1}
//     u = Neg(t)            {p:1}
//     m = Merge(f, u)       {}
//
// What runs under more choices than MaxChoices is said to run under one
// predicate, Many, and so is what it passes this on to, Merge nodes too: else
// time and memory would be the square of a graph.
//
// Where a predicate is not equal on all replicas, what runs under it runs on
// some of them only: no value has a relation to the single-device one there.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_CONDITIONS_H
#define GRAFT_LIB_INFER_GRAPH_CONDITIONS_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <vector>

namespace graft {

class Conditions {
public:
  /// Whether a graph has what this is about: nothing is to be built if not.
  static bool any(const Graph &G);

  /// \p Order is topologicalOrder(G). The predicates of loops are none of
  /// these. \p SameAs are nodes with the values of others: a predicate that is
  /// one of them is the other.
  Conditions(
      const Graph &G, llvm::ArrayRef<NodeId> Order,
      llvm::DenseMap<NodeId, NodeId> SameAs = llvm::DenseMap<NodeId, NodeId>());

  /// A predicate that stands for more of them than are told apart.
  static constexpr uint32_t Many = 0;
  static constexpr size_t MaxChoices = 256;

  /// The predicates that \p N runs under, as numbers.
  llvm::ArrayRef<uint32_t> of(NodeId N) const { return Under[SetOf[N]]; }
  /// The tensors that Switch nodes take for predicate \p P, of those that are
  /// one by definition the first; none for Many.
  llvm::ArrayRef<Endpoint> tensors(uint32_t P) const { return Tensors[P]; }
  /// The choices under which \p E is there: twice the number of a predicate,
  /// plus the side.
  llvm::ArrayRef<uint32_t> choices(Endpoint E) { return Sets[setAt(E)]; }
  /// The tensor that \p E, which a Switch takes, passes on.
  Endpoint source(Endpoint E) const;
  bool isMany(NodeId N) const { return SetOf[N] == ManySet; }
  /// The nodes that run under predicate \p P.
  llvm::ArrayRef<NodeId> members(uint32_t P) const { return Members[P]; }
  /// The predicate of the Switch \p N; ~0 if it is none.
  uint32_t predicateOf(NodeId N) const {
    auto It = Switches.find(N);
    return It == Switches.end() ? ~0u : It->second;
  }

private:
  /// A choice: twice the number of the predicate, plus the side.
  using Set = std::vector<uint32_t>;
  uint32_t intern(Set S);
  uint32_t unite(uint32_t A, uint32_t B);
  uint32_t merge(llvm::ArrayRef<uint32_t> Sides);
  uint32_t setAt(Endpoint E);
  uint32_t addSwitch(NodeId N);
  uint32_t addPredicate();

  static constexpr uint32_t ManySet = 1; ///< The set of Many.
  const Graph &G;
  llvm::DenseMap<NodeId, NodeId> SameAs;
  std::map<Set, uint32_t> Ids;
  std::vector<Set> Sets;                    ///< By id; 0 is empty.
  std::vector<std::vector<uint32_t>> Under; ///< By id of a set: predicates.
  std::vector<uint32_t> SetOf;              ///< By node: id of its set.
  std::map<std::pair<NodeId, uint32_t>, uint32_t> Predicates;
  llvm::DenseMap<NodeId, uint32_t> Switches;
  std::vector<std::vector<Endpoint>> Tensors; ///< By predicate.
  std::vector<std::vector<NodeId>> Members;   ///< By predicate.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_CONDITIONS_H
