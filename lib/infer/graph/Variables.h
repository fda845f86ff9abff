//===- lib/infer/graph/Variables.h - variables and their users --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_VARIABLES_H
#define GRAFT_LIB_INFER_GRAPH_VARIABLES_H

#include "lib/graph/Graph.h"
#include "lib/ops/OpRule.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <vector>

namespace graft {

/// Marks a node of the input graph that is unreplicated although its op may be
/// per-replica.
inline constexpr llvm::StringRef OnceAttr = "_graft_once";

/// Returns true if \p N is marked with OnceAttr.
inline bool isMarkedOnce(const Graph &G, NodeId N) {
  return G.node(N).Flags & NF_MayHaveGraft && G.hasAttr(N, OnceAttr);
}

/// Marks nodes with OnceAttr that are unreplicated only because a caller feeds
/// the rows of all replicas, such as the initial zeros of a recurrence.
inline constexpr llvm::StringRef FedAttr = "_graft_fed";
/// Returns true if \p N is unreplicated because no rule relates its local
/// values.
inline bool isKeptOnce(const Graph &G, NodeId N) {
  return G.node(N).Count == Copies::Once && isMarkedOnce(G, N) &&
         !G.hasAttr(N, FedAttr);
}

/// The way to combine the copies of a sync-on-read variable. For any other
/// variable: the way to combine values of replicas that no rule relates.
enum class Aggregation : uint8_t { None, Sum, Mean, OnlyFirst };

/// In a program, the aggregation of a variable. A rule of the user or the input
/// graph states it. The attribute stays in written files for sync-on-read
/// variables.
inline constexpr llvm::StringRef AggregationAttr = "_graft_aggregation";

/// Returns "none", "sum", "mean" or "only-first-replica".
llvm::StringRef aggregationName(Aggregation How);
std::optional<Aggregation> parseAggregation(llvm::StringRef Name);
/// Returns the aggregation of \p Var if a rule names the variable.
std::optional<Aggregation> aggregationOf(const Graph &G, NodeId Var);

/// Finds the tensors that are variables. Follows each handle or reference
/// through the nodes that pass it on: an Identity, a Switch, the Enter of a
/// handle, or an update op with a reference output. Identifies variables by ops
/// and kinds of arguments, never by names.
class VariableIndex {
public:
  explicit VariableIndex(const Graph &G);

  /// The variables (VarHandleOp, VariableV2, ...), by node id.
  llvm::ArrayRef<NodeId> variables() const { return Vars; }

  /// The variable whose handle or reference \p E is, or NoNode.
  NodeId variableOf(Endpoint E) const {
    return E.Node >= VarOf.size() ||
                   (E.Port != 0 && (E.Port != 1 || !Switches.contains(E.Node)))
               ? NoNode
               : VarOf[E.Node];
  }
  /// Returns true if a conditional passes a variable on.
  bool anySwitched() const { return !Switches.empty(); }
  /// Returns true if input \p Index of \p N is the handle of a variable, or the
  /// reference of a variable that the op takes as a reference.
  bool usesInPlace(const Graph &G, NodeId N, unsigned Index) const;

  /// Returns true if \p N changes a variable.
  bool isUpdate(const Graph &G, NodeId N) const {
    return update(G, N).Kind != UpdateKind::None;
  }
  UpdateDef update(const Graph &G, NodeId N) const {
    uint32_t Op = G.node(N).Op;
    return Op < UpdateOps.size() ? UpdateOps[Op] : updateOf(G, Op);
  }

  /// Returns true if \p N must be unreplicated because of its op (isOnceOp) or
  /// its mark (OnceAttr).
  bool isOnce(const Graph &G, NodeId N) const {
    uint32_t Op = G.node(N).Op;
    return (Op < OnceOps.size() ? OnceOps[Op] : isOnceOp(G.opNameOf(Op))) ||
           isMarkedOnce(G, N);
  }

  /// Calls \p F(Use) for each use of the handle or reference of \p Var.
  template <typename Fn>
  void forEachUse(const Graph &G, NodeId Var, Fn F) const;

  /// Returns the assignment of the initial value of \p Var: the only assignment
  /// of a value that does not come from a restore. Returns NoNode if there are
  /// none or several.
  NodeId initialAssign(const Graph &G, NodeId Var) const;

  /// Makes room for new nodes, none of which is a variable.
  void extend(const Graph &G) { VarOf.resize(G.size(), NoNode); }

private:
  static UpdateDef updateOf(const Graph &G, uint32_t Op);

  std::vector<NodeId> Vars;
  std::vector<NodeId> VarOf;       ///< By node: the variable that output 0 is.
  llvm::DenseSet<NodeId> Switches; ///< Output 1 passes on the same variable.
  // By op. Ops that a rewrite adds later are looked up.
  std::vector<UpdateDef> UpdateOps;
  std::vector<bool> OnceOps;
};

template <typename Fn>
void VariableIndex::forEachUse(const Graph &G, NodeId Var, Fn F) const {
  llvm::SmallVector<NodeId, 4> Aliases{Var};
  while (!Aliases.empty()) {
    NodeId A = Aliases.pop_back_val();
    G.forEachUse(A, [&](Use U) {
      if (U.Index >= G.node(U.User).NumData ||
          variableOf(G.input(U.User, U.Index)) != Var)
        return;
      F(U);
      if (variableOf({U.User, 0}) == Var)
        Aliases.push_back(U.User);
    });
  }
}

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_VARIABLES_H
