//===- lib/infer/types/TypeContext.h - one node to its rule -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What the type rule of an op sees and does: the node at hand, the types of its
// operands, what it asks for, and the types that it gives its results. A rule
// that cannot use an operand as it is asks for a reduction, a gather or a scale
// and goes on as if it had it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_TYPES_TYPECONTEXT_H
#define GRAFT_LIB_INFER_TYPES_TYPECONTEXT_H

#include "lib/graph/NodeView.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/types/Types.h"
#include "lib/ops/NoRows.h"
#include "lib/ops/OpRule.h"

#include "llvm/Support/Compiler.h"

#include <memory>

namespace graft {

namespace types {
/// Where there is no rule: true of true values, Varying of rows.
void none(TypeContext &C);
} // namespace types

class TypeContext : public NodeView {
public:
  /// \p Order is topologicalOrder() of the graph of \p T.
  TypeContext(TypeAnalysis &T, llvm::ArrayRef<NodeId> Order);

  const TypeAnalysis &Types;
  const DimAnalysis &D;
  uint8_t Assumes = 0; ///< What all its results rest on.
  /// What was asked for.
  std::vector<Demand> Asked;

  /// Turns to \p Node.
  void at(NodeId Node) {
    N = Node;
    Assumes = 0;
  }

  // The node.

  bool is(uint32_t Trait) const { return is(N, Trait); }
  bool is(NodeId Node, uint32_t Trait) const {
    return (Rules[G.node(Node).Op].Is & Trait) != 0;
  }
  bool isPerReplica() const { return node().Count == Copies::PerReplica; }
  unsigned numData() const { return node().NumData; }
  unsigned numResults() const { return D.numOutputs(N); }
  Endpoint input(unsigned I) const { return G.input(N, I); }
  Endpoint out(unsigned Port = 0) const { return {N, Port}; }

  // Operands.

  /// The type of an operand, with earlier demands in place.
  ReplicationType operand(unsigned I) const {
    return I == 0 && Supposed ? *Supposed : given(I);
  }
  /// Like operand, but local sizes count as numbers.
  ReplicationType number(unsigned I);
  /// Like number, for arithmetic: what is Partial is a sum.
  ReplicationType numeric(unsigned I);
  /// An operand of something non-linear: k = 0 and not Partial.
  ReplicationType plain(unsigned I);
  /// Asks for what makes operand \p I Replicated with k = 0.
  ReplicationType whole(unsigned I);
  /// Asks for what makes it not Partial.
  ReplicationType reduced(unsigned I);
  /// Asks for the rows of all replicas of operand \p I, which has type \p Is.
  ReplicationType gathered(unsigned I, ReplicationType Is);
  /// Asks for another scale.
  ReplicationType scaled(unsigned I, ReplicationType Is, int ToK);
  /// What \p Infer gives if operand 0 has type \p First.
  template <typename Fn> auto suppose(ReplicationType First, Fn Infer) {
    Supposed = First;
    auto Result = Infer(*this);
    Supposed.reset();
    return Result;
  }

  // Results.

  ReplicationType result(unsigned Port) const {
    return Types.natural(out(Port));
  }
  /// Gives a result its type; \p Mark is what it has of local indices.
  void set(unsigned Port, ReplicationType Type,
           LocalIndices Mark = LocalIndices::None) {
    if (Port >= numResults())
      return;
    Type = asResult(Type, Mark);
    if (!hasAxisOf(Port, Type))
      Type = asResult(varying("has its rows along an axis that it has not"),
                      LocalIndices::None);
    T.Types[D.outputIndex(out(Port))] = Type;
  }
  LLVM_ATTRIBUTE_ALWAYS_INLINE void
  setAll(ReplicationType Type, LocalIndices Mark = LocalIndices::None) {
    if (Type.isSharded() || Type.Axis != 0) {
      for (unsigned Port = 0; Port < numResults(); ++Port)
        set(Port, Type, Mark);
      return;
    }
    std::fill_n(T.Types.begin() + D.outputIndex(out()), numResults(),
                asResult(Type, Mark));
  }
  /// Varying from here on, and why.
  ReplicationType varying(const llvm::Twine &Why);
  /// Varying as \p From is.
  ReplicationType varyingLike(ReplicationType From) const;
  /// Says that the results rest on \p Assumption, which begins here.
  void assume(Assumption Assumption);
  /// Whether somebody asks for the whole of result 0.
  bool isReduced() const;

  // Sizes.

  int rank(Endpoint E) const;
  int rank(unsigned I) const { return rank(input(I)); }
  auto shape(unsigned I) const { return D.shape(input(I)); }
  auto numbers(unsigned I) const { return D.numbers(input(I)); }
  /// The size of an axis, unless nothing is known of it.
  std::optional<Sym> sizeOf(Endpoint E, unsigned Axis) const;
  /// Whether axis \p AxisOfX of \p X and axis \p AxisOfY of \p Y are one size,
  /// known or not.
  bool isSameSize(Endpoint X, unsigned AxisOfX, Endpoint Y,
                  unsigned AxisOfY) const;
  /// Axis of the result that axis \p Axis of operand \p I is, when shapes are
  /// aligned at the right; -1 when a shape is not known.
  int alignedAxis(unsigned I, int Axis) const;
  /// Whether operand \p I does not vary along axis \p OutAxis of the result.
  bool broadcastsAlong(unsigned I, int OutAxis) const;
  /// The axis whose size is a multiple of the rows of one replica; -1: all
  /// sizes are those of the single-device step; -2: not known.
  int localAxis(Endpoint E) const;
  /// Whether operand \p I is integers that are equal on all replicas where they
  /// are no sizes of a replica.
  bool isSize(unsigned I) const;
  /// The type of integers that are known to be \p Value.
  ReplicationType sizes(llvm::ArrayRef<DimId> Value) const;

  // Orders of rows.

  /// The number of the order of rows of these parts, for
  /// ReplicationType::Order.
  uint32_t orderOf(const TypeAnalysis::OrderedParts &Parts) {
    return T.Orders.insert(Parts);
  }
  llvm::ArrayRef<TypeAnalysis::OrderedPart>
  partsOf(ReplicationType Joined) const {
    return T.Orders[Joined.Order];
  }
  /// How many blocks of rows are those after axes of these sizes; none if that
  /// is not known, or they are very many.
  std::optional<int64_t> blocksOf(llvm::ArrayRef<DimId> Before) const;
  /// The order of rows, \p Each of a replica in order \p Order, that became one
  /// axis with axes of these sizes before them; none if that is not known.
  std::optional<uint32_t> orderBehind(llvm::ArrayRef<DimId> Before,
                                      const Sym &Each, uint32_t Order);
  /// The op that sends rows to parts and so counts the rows of \p E.
  NodeId partedBy(Endpoint E) const;

  // Control flow.

  /// The predicate that \p Node runs under and replicas may disagree on, if
  /// there is one. (One that is partial is reduced for the Switch.)
  std::optional<Endpoint> localPredicate(NodeId Node) const;
  /// Whether \p Node runs under such a predicate, or is a Switch: it is not
  /// known of the latter which side it takes.
  bool mayNotRun(NodeId Node) const {
    return When && (localPredicate(Node) || When->predicateOf(Node) != ~0u);
  }
  bool hasLoops() const { return Loops != nullptr; }
  /// Whether the node at hand is in a loop.
  bool isInLoop() const { return Loops && Loops->givesInside(N); }
  /// Whether \p Node has a type, or waits for one that comes round a loop.
  bool isDefined(NodeId Node) const { return Defined[Node]; }
  /// The tensor array or stack whose handle operand 0 is, or NoNode.
  NodeId handle() const;
  /// The TensorArrayV3 of the array, or of the one that it is the gradient of.
  NodeId maker() const;
  /// What the tensor array or stack \p Handle holds, unless nothing is known.
  std::optional<ReplicationType> element(NodeId Handle) const;
  /// Something of type \p Element is written to \p Handle.
  void hold(NodeId Handle, ReplicationType Element);
  /// Has \p Node visited again: it reads what is known of the node at hand and
  /// no edge tells. In the first round it is still to come.
  void wake(NodeId Node) {
    if (!FirstRound)
      Due[Node] = true;
  }
  /// The same of what uses the array or stack \p Handle.
  void wakeUsers(NodeId Handle) {
    for (NodeId User : Loops->usersOf(Handle))
      wake(User);
  }

protected:
  ReplicationType given(unsigned I) const {
    ReplicationType Type = T.type(input(I));
    if (node().Count == Copies::Once)
      return mergedOperand(input(I), Type);
    return Type.Whole ? ofWhole(input(I), Type) : Type;
  }
  /// Returns false if result \p Port is known to lack the axis along which
  /// \p Type has rows.
  bool hasAxisOf(unsigned Port, const ReplicationType &Type) const {
    if (!Type.isSharded() && Type.Axis == 0)
      return true;
    int Rank = rank(out(Port));
    return Type.isAxisKnown() && (Rank < 0 || Type.Axis < Rank);
  }
  /// A tensor that chooses for \p Predicate and that replicas may disagree on.
  std::optional<Endpoint> localTensor(uint32_t Predicate) const;
  void noteMany();
  ReplicationType ofWhole(Endpoint E, ReplicationType Type) const;
  ReplicationType mergedOperand(Endpoint E, ReplicationType Type) const;
  /// (Called for each result of each node.)
  LLVM_ATTRIBUTE_ALWAYS_INLINE ReplicationType asResult(ReplicationType Type,
                                                        LocalIndices Mark) {
    if (!Type.isPowerKnown())
      Type = varying("multiplies too many values that grow with the replicas");
    Type.Indices = Mark;
    Type.Assumes |= Assumes;
    Type.Zero &= is(trait::KeepsZeros);
    if (!Type.Zero && Rules[node().Op].ZerosOf != 0 && !Type.isVarying())
      Type.Zero = multipliesZeros();
    return Type;
  }
  /// Whether an operand that all results are linear in is all zeros.
  bool multipliesZeros() const;
  Endpoint hoist(Endpoint E) const;
  Endpoint whereJoined(Endpoint E) const;
  /// The node at hand would have to read operand \p I after an exchange in a
  /// loop: its results are Varying.
  void refuseInside(unsigned I, const llvm::Twine &Why) {
    varying(Why);
    Refused = I;
  }
  ReplicationType joined(ReplicationType X, ReplicationType Y) const;

  TypeAnalysis &T;
  struct OpInfo {
    const OpRule &Rule;
    uint32_t Is; ///< traitsOf() the op.
    uint16_t ZerosOf;
    NoRows OnNoRows;
    void type(TypeContext &C) const {
      (Rule.Type ? Rule.Type : types::none)(C);
    }
  };
  std::vector<OpInfo> Rules; ///< By op.
  std::optional<ReplicationType>
      Supposed; ///< The type that operand 0 shall have.
  /// Null in a graph without conditionals.
  std::unique_ptr<const Conditions> When;
  /// By node that runs under many predicates: one that replicas may disagree
  /// on.
  llvm::DenseMap<NodeId, Endpoint> LocalOfMany;
  std::vector<bool> Due; ///< By node: visited in this round or the next.
  bool FirstRound = true;

  // Loops, see Loops.cpp; nothing of this is used without.
  std::unique_ptr<const LoopInfo> Loops;
  std::vector<bool> Defined; ///< By node: it has a type.
  llvm::DenseMap<NodeId, ReplicationType>
      Elements; ///< By array or stack that has any.
  /// The operand of the node at hand that had to be exchanged inside a loop.
  std::optional<unsigned> Refused;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_TYPES_TYPECONTEXT_H
