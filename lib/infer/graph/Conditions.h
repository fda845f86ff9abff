//===- lib/infer/graph/Conditions.h - when a node runs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In a conditional of version 1, a node runs if no data or control input is
// dead. So a node runs under a conjunction of choices. The Switch of a
// predicate adds a choice, and every edge passes the choice on. A Merge of both
// sides of one predicate removes the choice.
//
//     t = Switch(x, p):1    choices {p:1}
//     u = Neg(t)            {p:1}
//     m = Merge(f, u)       {}
//
// A node with more than MaxChoices choices has the single predicate Many
// instead. Each node that depends on that node has Many as well, even a Merge.
// Without this limit, time and memory would grow with the square of the size of
// the graph.
//
// If a predicate differs between replicas, the nodes under it run on some
// replicas only. Their local values have no relation to a global value.
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
  /// Returns true if the graph has conditionals. Otherwise no Conditions are
  /// needed.
  static bool any(const Graph &G);

  /// \p Order is topologicalOrder(G). Predicates of loops (LoopCond) are
  /// ignored. \p SameAs maps a node to a node with the same value, which
  /// replaces it as a predicate.
  Conditions(
      const Graph &G, llvm::ArrayRef<NodeId> Order,
      llvm::DenseMap<NodeId, NodeId> SameAs = llvm::DenseMap<NodeId, NodeId>());

  /// The predicate that replaces more than MaxChoices choices.
  static constexpr uint32_t Many = 0;
  static constexpr size_t MaxChoices = 256;

  /// Returns the numbers of the predicates that \p N runs under.
  llvm::ArrayRef<uint32_t> of(NodeId N) const { return Under[SetOf[N]]; }
  /// Returns the tensors that Switch nodes read as predicate \p P. Skips each
  /// Identity that runs whenever its input does. Returns nothing for Many.
  llvm::ArrayRef<Endpoint> tensors(uint32_t P) const { return Tensors[P]; }
  /// Returns the choices under which \p E has a value. A choice is twice the
  /// number of a predicate, plus the side.
  llvm::ArrayRef<uint32_t> choices(Endpoint E) { return Sets[setAt(E)]; }
  /// Returns the tensor whose value \p E, the predicate of a Switch, passes on.
  Endpoint source(Endpoint E) const;
  bool isMany(NodeId N) const { return SetOf[N] == ManySet; }
  /// Returns the nodes that run under predicate \p P.
  llvm::ArrayRef<NodeId> members(uint32_t P) const { return Members[P]; }
  /// Returns the predicate of the Switch \p N, or ~0 if it has none.
  uint32_t predicateOf(NodeId N) const {
    auto It = Switches.find(N);
    return It == Switches.end() ? ~0u : It->second;
  }

private:
  /// Choices: twice the number of the predicate, plus the side.
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
