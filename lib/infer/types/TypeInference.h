//===- lib/infer/types/TypeInference.h - the fixpoint (private) -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_TYPES_TYPEINFERENCE_H
#define GRAFT_LIB_INFER_TYPES_TYPEINFERENCE_H

#include "lib/infer/types/TypeContext.h"

namespace graft {

/// Applies the rules of ops, in rounds over the nodes. It knows ops only by
/// their OpRule.
class TypeInference : private TypeContext {
public:
  TypeInference(TypeAnalysis &T, llvm::ArrayRef<NodeId> Order);
  /// Visits all nodes. Later rounds visit only nodes whose operands changed.
  /// Returns false if there are none.
  bool round();
  void visit(NodeId Node);
  /// Marks \p Node, or its users, for another visit.
  void mark(NodeId Node) { Due[Node] = true; }
  void markUsers(NodeId Node);
  void wakeMany();
  /// Discards the types of loops. They are inferred again, since the types of
  /// initial values changed.
  void restartLoops();
  /// Marks all nodes as defined.
  void settle() { Defined.assign(Defined.size(), true); }

  /// At a fixpoint: makes unreplicated each node whose value no rule relates to
  /// the global value, and the operands that it needs. Returns false if there
  /// is no such node (KeptNodes.cpp).
  bool keepUnrelated(const KeepOptions &Options);
  TypeAnalysis::KeptNodes takeKept();

  /// Returns the reductions that the last round demanded, sorted by source and
  /// then by the demanding node.
  std::vector<Demand> takeReductions();
  /// Returns the demands that were not taken.
  llvm::ArrayRef<Demand> asked() const { return Asked; }
  /// Finds the nodes with FindsRows or SendsRows whose local row indices some
  /// user cannot use.
  void findUnusable(std::vector<NodeId> &Found);

private:
  bool sweep();
  bool settleLoops();
  std::string takeReason(NodeId Node);
  bool isReady() const;
  bool fillUnwritten();
  bool readsPlain() const;
  void inferAndAsk();
  void infer();
  void inferLocally(Endpoint Predicate);
  bool inferSizes();
  void mergeLoop();
  bool mixesRows() const;
  void doubtNoRows(llvm::ArrayRef<Demand> Met);
  void inferOrdered();
  void askForRows();
  bool usesState();
  TypeAnalysis::VariableState *stateOf(Endpoint E);
  void update(const UpdateDef &U);
  void writeState(const TypeAnalysis::VariableState &S, const UpdateDef &U);
  void diverge(NodeId Var, TypeAnalysis::VariableState &S);
  bool isKept(NodeId Node) const { return !Kept.empty() && Kept[Node]; }
  bool letsVary(NodeId Update, NodeId Var) const;
  void findSpared(bool LocalBatchNorm);
  bool isUnrelated();
  bool readsUnrelated();
  bool keepMore(const KeepOptions &Options);
  bool isOfReplicas(Endpoint E) const;
  const char *whyNotKept(NodeId Node) const;
  bool keep(NodeId Node);
  bool claimsRows(NodeId Node) const;
  bool keepCause();
  bool keepOperand(unsigned I);
  bool isJoinedInLoop(NodeId Result) const;
  bool keepMerged();
  bool holdsSizes(unsigned Port) const;
  void inferKept();

  /// The maximum number of times that a type can rise: five steps from no type
  /// to Varying, three bits of assumptions, the order, and the symbolic parts.
  static constexpr uint64_t TypeHeight = 12;

  llvm::ArrayRef<NodeId> Order;
  std::vector<bool> Visited; ///< By node: visited in this sweep.
  bool ManyDue = false;      ///< See wakeMany.
  bool ManyAgain = false;
  bool HasStates;           ///< Set if a variable has a VariableState.
  std::vector<bool> Kept;   ///< By node: unreplicated. Empty: no node.
  std::vector<bool> Spared; ///< By node: the user accepts its value.
  /// By node: only updates of sync-on-read variables use its value.
  std::vector<bool> OfMetrics;
  /// By array or stack: an unrelated value is written to it. No loop iterates
  /// over this map.
  llvm::DenseMap<NodeId, bool> TakesUnrelated;
  TypeAnalysis::KeptNodes Found;
  bool GivesRows = false; ///< Set if a kept node has claimsRows().
  uint64_t SweepLimit = 0;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_TYPES_TYPEINFERENCE_H
