//===- lib/infer/types/TypeRules.h - rules for types (private) --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_TYPES_TYPERULES_H
#define GRAFT_LIB_INFER_TYPES_TYPERULES_H

#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/OpRule.h"
#include "lib/infer/types/Types.h"

#include <memory>

namespace graft {

/// The rules, in rounds over the nodes. A rule that cannot use an operand as it
/// is asks for a reduction, a gather or a scale and goes on as if it had it.
class TypeRules {
public:
  TypeRules(TypeAnalysis &T, llvm::ArrayRef<NodeId> Order);
  /// Visits all nodes, the next times only those that read something new. False
  /// when there was none.
  bool round();
  void visit(NodeId Node);
  /// Has \p Node, or its users, visited again.
  void mark(NodeId Node) { Due[Node] = true; }
  void markUsers(NodeId Node);
  /// Has the types of loops inferred anew: what they begin with is another now.
  void restartLoops();
  /// Says that all types that nodes can read are there.
  void settle() { Defined.assign(Defined.size(), true); }

  /// The reductions that the last round asked for, by source; of those for one
  /// source the one that the first node asked for comes first.
  std::vector<Demand> takeReductions();
  void findUnusable(std::vector<NodeId> &Found);
  /// What was asked for and not taken.
  std::vector<Demand> Asked;

private:
  bool sweep();
  bool settleLoops();
  std::string takeReason(NodeId Node);
  bool readsPlain() const;
  void infer();
  void apply(TypeRule Rule);
  void applyOrdered(TypeRule Rule);
  void update(const UpdateDef &U);
  TypeAnalysis::VariableState *stateOf(Endpoint E);
  bool usesState();
  void writeState(const TypeAnalysis::VariableState &S, const UpdateDef &U);
  void diverge(NodeId Var, TypeAnalysis::VariableState &S);

  unsigned numData() const { return G.node(N).NumData; }
  /// The type of an operand, with earlier demands in place.
  RType operand(unsigned I) const;
  RType mergedOperand(Endpoint E, RType Type) const;
  void askForRows();
  /// Like operand, but local sizes count as numbers.
  RType number(unsigned I);
  /// Like number, for arithmetic: what is Partial is a sum.
  RType numeric(unsigned I);
  /// An operand of something non-linear: k = 0 and not Partial.
  RType plain(unsigned I);
  /// Asks for what makes operand \p I Replicated with k = 0.
  RType whole(unsigned I);
  RType reduced(unsigned I);
  RType gathered(unsigned I, RType Is);
  RType scaled(unsigned I, RType Is, int ToK);

  RType asResult(RType Type) const;
  void set(unsigned Port, RType Type);
  void setAll(RType Type);
  RType varying(const llvm::Twine &Why);
  RType varyingLike(RType From);

  /// Axis of the result that axis \p Axis of operand \p I is, when shapes are
  /// aligned at the right; -1 when a shape is not known.
  int alignedAxis(unsigned I, int Axis) const;
  /// Whether operand \p I does not vary along axis \p OutAxis of the result.
  bool broadcastsAlong(unsigned I, int OutAxis) const;
  int rank(Endpoint E) const;
  Endpoint out(unsigned Port = 0) const { return {N, Port}; }

  RType add(llvm::ArrayRef<unsigned> Operands);
  RType multiply(unsigned I, RType X, unsigned J, RType Y, int Sign);
  RType elementwise(llvm::ArrayRef<unsigned> Operands);
  int localAxis(Endpoint E) const;
  bool isSize(unsigned I) const;
  bool hasLocalSize(llvm::ArrayRef<DimId> Value) const;
  RType sizes(unsigned Port);
  RType alike(bool Zero);
  RType fill();
  RType tile();
  bool stridesInOrder(int Axis, Endpoint Whole) const;
  RType matMul(bool Batched);
  RType convolve(unsigned Rows);
  RType reduction(TypeRule Rule);
  bool mergesRows(llvm::ArrayRef<DimId> In, llvm::ArrayRef<DimId> Out,
                  unsigned Axis) const;
  bool isOneRow(unsigned I) const;
  bool addsChannels() const;
  RType ofSizes(RType Rows);
  bool dropsOnlyRow(unsigned Axis) const;
  RType relayout();
  RType join();
  RType joinRows(llvm::ArrayRef<unsigned> Operands, int Axis, RType Type);
  uint8_t orderOf(llvm::ArrayRef<TypeAnalysis::OrderedPart> Parts);
  RType ownPart(unsigned I, RType X);
  Endpoint whereJoined(Endpoint E) const;
  RType part(unsigned I);
  RType leading(int Mixed);
  RType alongAxes(bool Linear);
  RType reverseSequence();
  RType einsum();
  void rows();
  bool range();
  bool byRowNumbers(TypeRule Rule);
  bool isParted() const;
  NodeId partedBy(Endpoint E) const;
  void partition();
  std::optional<RType> stitch();
  void hits();
  bool byHits(TypeRule Rule);
  bool hasRowsOf(Endpoint E, Endpoint Rows) const;
  RType rowIndices(const RType &Numbers);
  int indexedAxis(unsigned I) const;
  bool hasRows(Endpoint E, unsigned Axis, const RType &Numbers) const;
  bool numbersOthers(Endpoint E, unsigned Axis, const RType &Numbers);
  RType numbersOf(Endpoint E, unsigned Axis, NodeId Cause);
  void where();
  bool mixesRows(TypeRule Rule) const;
  RType toBlocks();
  RType fromBlocks();
  RType gather();
  RType gatherByLengths();
  RType gatherNd();
  RType scatterNd();
  RType tensorScatter();
  RType whole();
  RType unsortedSegment(TypeRule Rule);
  bool rowsAreChannels(const RType &X, llvm::ArrayRef<RType> PerChannel);
  void source();
  void parseExample();
  RType lookup();
  void batchNorm();
  void batchNormGrad();
  RType draw();
  RType crossing();
  RType accumulated();
  std::optional<Endpoint> localPredicate(NodeId Node) const;
  void infersLocally(Endpoint Predicate);
  void switches();
  void merges();
  bool isReady() const;
  bool fillUnwritten();
  void refuseInside(unsigned I, const llvm::Twine &Why);
  RType joined(RType X, RType Y);
  void loopMerge();
  void localHandle();
  void hold(NodeId Handle, RType Element);
  void boxes();
  Endpoint hoist(Endpoint E) const;

  TypeAnalysis &T;
  const Graph &G;
  const DimAnalysis &D;
  llvm::ArrayRef<NodeId> Order;

  /// What is known of an op.
  struct OpRule {
    TypeRule Rule = TypeRule::None;
    bool IsConst = false;
    bool Draws = false;   ///< Random numbers.
    bool Opaque = false;  ///< Equal inputs prove nothing.
    bool Special = false; ///< True inputs do not settle it.
    bool Slow = false;    ///< Nor may they: Special, or variables have states.
    bool KeepsZeros = false; ///< A result may have the mark of zeros.
  };
  std::vector<OpRule> Ops; ///< By op.
  /// Null in a graph without conditionals.
  std::unique_ptr<const Conditions> When;
  std::vector<bool> Due;     ///< By node: visited in this round or the next.
  std::vector<bool> Visited; ///< By node: in this round, and before.
  bool FirstRound = true;
  bool HasStates; ///< A variable has a policy of its own.

  // Loops, see TypeRulesLoops.cpp; nothing of this is used without.
  /// How often a type can rise: from none to Varying, in five steps; what it
  /// assumes, three bits; its order, and what of it is symbolic.
  static constexpr uint64_t TypeHeight = 12;
  uint64_t SweepLimit = 0;
  std::unique_ptr<LoopInfo> Loops;
  std::vector<bool> Defined;              ///< By node: it has a type.
  llvm::DenseMap<NodeId, RType> Elements; ///< By array or stack that has any.
  /// The operand of the node at hand that had to be exchanged inside a loop.
  std::optional<unsigned> Refused;

  uint8_t Assumes = 0;      ///< Of the node at hand.
  bool SetsNumbers = false; ///< The node at hand gives row numbers.
  NodeId N = NoNode;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_TYPES_TYPERULES_H
