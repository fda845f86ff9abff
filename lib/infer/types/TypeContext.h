//===- lib/infer/types/TypeContext.h - one node to its rule -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The interface between a type rule and its node: the node, the types of its
// operands, its demands, and the types of its results. A rule that cannot use
// an operand as it is demands a reduction, a gather or a scale. The rule then
// infers the results as if the demand were met.
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
/// The default rule, for ops without an entry. If no operand is Sharded or
/// Varying, it demands global operands and the results are global values.
/// Otherwise the results are Varying.
void none(TypeContext &C);
} // namespace types

class TypeContext : public NodeView {
public:
  /// \p Order is topologicalOrder() of the graph of \p T.
  TypeContext(TypeAnalysis &T, llvm::ArrayRef<NodeId> Order);

  const TypeAnalysis &Types;
  const DimAnalysis &D;
  uint8_t Assumes = 0; ///< The assumptions that all results rest on.
  /// The demands of all rules so far.
  std::vector<Demand> Asked;

  /// Makes \p Node the node at hand.
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

  /// Returns the type of an operand, as if earlier demands were met.
  ReplicationType operand(unsigned I) const {
    return I == 0 && Supposed ? *Supposed : given(I);
  }
  /// Like operand(), but for a rule that computes with the elements of local
  /// sizes (TypeAnalysis::number). The type of a variant is that of its
  /// elements, here and in numeric().
  ReplicationType number(unsigned I);
  /// Like number(), but asks for a reduction of a Partial other than a sum.
  ReplicationType numeric(unsigned I);
  /// Asks for operand \p I with k = 0 and not Partial, as non-linear ops need.
  ReplicationType plain(unsigned I);
  /// Asks for operand \p I as Replicated with k = 0.
  ReplicationType whole(unsigned I);
  /// Asks for a reduction of operand \p I if it is Partial.
  ReplicationType reduced(unsigned I);
  /// Asks for a gather of operand \p I, which has type \p Is.
  ReplicationType gathered(unsigned I, ReplicationType Is);
  /// Asks for a scale of operand \p I, of type \p Is, to the exponent \p ToK.
  ReplicationType scaled(unsigned I, ReplicationType Is, int ToK);
  /// Calls \p Infer as if operand 0 had type \p First, and returns its result.
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
  /// Sets the type of output \p Port. \p Mark is the kind of its local indices.
  void set(unsigned Port, ReplicationType Type,
           LocalIndices Mark = LocalIndices::None) {
    if (Port >= numResults())
      return;
    Type = asResult(Type, Mark);
    if (!hasAxisOf(Port, Type))
      Type = asResult(
          varying(
              "would be sharded along an axis that its output does not have"),
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
  /// Returns Varying with the node at hand as origin and \p Why as reason.
  ReplicationType varying(const llvm::Twine &Why);
  /// Returns Varying with the origin of \p From.
  ReplicationType varyingLike(ReplicationType From) const;
  /// Records that the results rest on \p Assumption, made at the node at hand.
  void assume(Assumption Assumption);
  /// Returns true if a reduction of result 0 is demanded.
  bool isReduced() const;

  // Sizes.

  int rank(Endpoint E) const;
  int rank(unsigned I) const { return rank(input(I)); }
  auto shape(unsigned I) const { return D.shape(input(I)); }
  auto numbers(unsigned I) const { return D.numbers(input(I)); }
  /// Returns the symbolic size of an axis, or nothing if it is unknown.
  std::optional<Sym> sizeOf(Endpoint E, unsigned Axis) const;
  /// Returns true if axis \p AxisOfX of \p X and axis \p AxisOfY of \p Y are
  /// proved to have equal sizes, even if the size is unknown.
  bool isSameSize(Endpoint X, unsigned AxisOfX, Endpoint Y,
                  unsigned AxisOfY) const;
  /// Returns the axis of the result for axis \p Axis of operand \p I if shapes
  /// are aligned at the right; -1 if a shape is not known.
  int alignedAxis(unsigned I, int Axis) const;
  /// Returns true if operand \p I does not vary along axis \p OutAxis of the
  /// result.
  bool broadcastsAlong(unsigned I, int OutAxis) const;
  /// Returns the axis whose size is a multiple of the rows of one replica. -1:
  /// all sizes are those of the single-device step. -2: the axis is unknown, or
  /// there are several.
  int localAxis(Endpoint E) const;
  /// Returns true if operand \p I holds integers that are equal on all replicas
  /// or are per-replica sizes.
  bool isSize(unsigned I) const;
  /// Returns the type of a tensor whose elements are the sizes \p Value.
  ReplicationType sizes(llvm::ArrayRef<DimId> Value) const;

  // Orders of rows.

  /// Returns the id of the concatenation order \p Parts, for
  /// ReplicationType::Order.
  uint32_t orderOf(const TypeAnalysis::OrderedParts &Parts) {
    return T.Orders.insert(Parts);
  }
  llvm::ArrayRef<TypeAnalysis::OrderedPart>
  partsOf(ReplicationType Joined) const {
    return T.Orders[Joined.Order];
  }
  /// Returns the product of the sizes \p Before, which is the number of blocks
  /// of rows. Returns nothing if it is unknown or very large.
  std::optional<int64_t> blocksOf(llvm::ArrayRef<DimId> Before) const;
  /// Returns the row order after a reshape that merges the batch axis with the
  /// axes before it, which have the sizes \p Before. Example: [steps, rows] to
  /// [steps * rows]. Before the reshape, a replica has \p Each rows in order \p
  /// Order. Returns nothing if the new order is unknown.
  std::optional<uint32_t> orderBehind(llvm::ArrayRef<DimId> Before,
                                      const Sym &Each, uint32_t Order);
  /// Returns the op that sends rows to parts and determines the row count of
  /// \p E.
  NodeId partedBy(Endpoint E) const;

  // Control flow.

  /// Returns a predicate of \p Node, if any, on which replicas may disagree. (A
  /// Partial predicate is reduced for the Switch.)
  std::optional<Endpoint> localPredicate(NodeId Node) const;
  /// Returns true if \p Node is a Switch, or runs under a predicate on which
  /// replicas may disagree.
  bool mayNotRun(NodeId Node) const {
    return When && (localPredicate(Node) || When->predicateOf(Node) != ~0u);
  }
  bool hasLoops() const { return Loops != nullptr; }
  /// Returns true if the node at hand is in a loop.
  bool isInLoop() const { return Loops && Loops->givesInside(N); }
  /// Returns true if \p Node has a type. Otherwise it waits for the type of a
  /// loop variable or array.
  bool isDefined(NodeId Node) const { return Defined[Node]; }
  /// Returns the node that stands for the array, the stack or the class of
  /// lists of operand 0 (LoopInfo::handleOf), or NoNode.
  NodeId handle() const;
  /// Like handle(), but for output 0.
  NodeId handleMade() const;
  /// Returns the TensorArrayV3 that made the array, or for a gradient array the
  /// TensorArrayV3 of the original array.
  NodeId maker() const;
  /// Returns the type of the elements of the tensor array or stack \p Handle,
  /// or nothing while it is unknown.
  std::optional<ReplicationType> element(NodeId Handle) const;
  /// Records that a value of type \p Element is written to \p Handle.
  void hold(NodeId Handle, ReplicationType Element);
  /// Returns the least upper bound of the types \p X and \p Y (LoopTypes.cpp).
  /// Returns Varying without a cause if there is no other upper bound.
  ReplicationType joined(ReplicationType X, ReplicationType Y) const;
  /// Marks \p Node for another visit, because it depends on the node at hand
  /// although no edge connects them. The first round visits \p Node anyway.
  void wake(NodeId Node) {
    if (!FirstRound)
      Due[Node] = true;
  }
  /// Marks the users of the array or stack \p Handle for another visit.
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
  /// Returns false if the rank of result \p Port is known to be too small for
  /// the axis of \p Type, or if no tensor can have this axis.
  bool hasAxisOf(unsigned Port, const ReplicationType &Type) const {
    if (!Type.isSharded() && Type.Axis == 0)
      return true;
    int Rank = rank(out(Port));
    return Type.isAxisKnown() && (Rank < 0 || Type.Axis < Rank);
  }
  /// Returns a tensor of \p Predicate on which replicas may disagree, if any.
  std::optional<Endpoint> localTensor(uint32_t Predicate) const;
  void noteMany();
  ReplicationType ofWhole(Endpoint E, ReplicationType Type) const;
  ReplicationType mergedOperand(Endpoint E, ReplicationType Type) const;
  /// (Called for each result of each node.)
  LLVM_ATTRIBUTE_ALWAYS_INLINE ReplicationType asResult(ReplicationType Type,
                                                        LocalIndices Mark) {
    if (!Type.isPowerKnown())
      Type = varying(
          "multiplies too many values that scale with the number of replicas");
    Type.Indices = Mark;
    Type.Assumes |= Assumes;
    Type.Zero &= is(trait::KeepsZeros);
    if (!Type.Zero && Rules[node().Op].ZerosOf != 0 && !Type.isVarying())
      Type.Zero = multipliesZeros();
    return Type;
  }
  /// Returns true if all results are linear in an operand that is all zeros.
  bool multipliesZeros() const;
  Endpoint hoist(Endpoint E) const;
  Endpoint whereJoined(Endpoint E) const;
  /// Makes the results of the node at hand Varying, because its operand \p I
  /// needs a collective and is inside a loop.
  void refuseInside(unsigned I, const llvm::Twine &Why) {
    varying(Why);
    Refused = I;
  }

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
      Supposed; ///< The assumed type of operand 0 (suppose).
  /// Null in a graph without conditionals.
  std::unique_ptr<const Conditions> When;
  /// By node that runs under many predicates: a predicate on which replicas may
  /// disagree.
  llvm::DenseMap<NodeId, Endpoint> LocalOfMany;
  std::vector<bool> Due; ///< By node: visited in this round or the next.
  bool FirstRound = true;

  // Loops, see LoopTypes.cpp. Graphs without loops use none of this.
  std::unique_ptr<const LoopInfo> Loops;
  std::vector<bool> Defined; ///< By node: it has a type.
  llvm::DenseMap<NodeId, ReplicationType>
      Elements; ///< By array or stack with known elements.
  /// The operand of the node at hand that needs a collective inside a loop.
  std::optional<unsigned> Refused;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_TYPES_TYPECONTEXT_H
