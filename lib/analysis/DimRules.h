//===- lib/analysis/DimRules.h - rules for sizes (private) ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_DIMRULES_H
#define GRAFT_LIB_ANALYSIS_DIMRULES_H

#include "lib/analysis/Dims.h"
#include "lib/analysis/OpRules.h"

#include "llvm/ADT/DenseMap.h"

namespace graft {

using DimList = llvm::SmallVector<DimId, 6>;

/// Applies the rules of every node until nothing changes. Rules may be applied
/// any number of times: a size that a rule makes is remembered by node and
/// slot, so a later round refines it instead of making another.
class DimRules {
public:
  DimRules(DimAnalysis &A, llvm::ArrayRef<NodeId> Order);
  void run();

private:
  using Dims = std::optional<llvm::ArrayRef<DimId>>;

  // The node at hand.
  Dims in(unsigned I) const { return A.shape(G.input(N, I)); }
  Dims val(unsigned I) const { return A.value(G.input(N, I)); }
  unsigned numData() const { return G.node(N).NumData; }
  std::optional<llvm::SmallVector<int64_t, 4>> nums(unsigned I) const {
    return A.numbers(G.input(N, I));
  }
  std::optional<int64_t> num(unsigned I) const;

  void visit(NodeId Node);
  void shapeRule(ShapeRule Rule);
  /// How an op makes integers of integers.
  enum class ValueRule : uint8_t {
    None,
    Pack,
    Concat,
    Fill,
    Same,
    Cast,
    StridedSlice,
    Slice,
    Gather,
    Unpack,
    Prod,
    Like,
    InvertPermutation,
    Arithmetic,
  };
  static ValueRule valueRuleOf(llvm::StringRef Op);
  void valueRule(ValueRule Rule);
  void hintFromAttr();

  void setShape(unsigned Port, llvm::ArrayRef<DimId> Dims);
  void setValue(unsigned Port, llvm::ArrayRef<DimId> Elements);

  /// Slots of results that are no monomial. They are apart from the slots of
  /// numbers, because an operand may turn out to be the batch in a later round.
  static constexpr unsigned OpaqueSlot = 0x4000;

  /// The size number \p Slot that this node makes.
  DimId slot(unsigned Slot);
  DimId number(unsigned Slot, int64_t Value);
  DimId product(unsigned Slot, DimId X, DimId Y);
  DimId quotient(unsigned Slot, DimId X, DimId Y);
  DimId broadcastDim(DimId X, DimId Y);
  void same(DimId X, DimId Y);
  void sameShapes(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);

  // Shapes.
  void broadcast();
  void matMul(bool Batched);
  void conv2D();
  void pool();
  void reduction();
  void reshape();
  void matchGroups(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);
  void spread(llvm::ArrayRef<DimId> From, llvm::ArrayRef<DimId> To);
  void transpose();
  void tile();
  void pack();
  void concat();
  void split();
  void slice();
  void stridedSlice(bool OfValue);
  void pad();
  void gather();
  void crossing();

  // Values.
  void arithmetic(llvm::StringRef Op);
  DimId arithmeticElement(llvm::StringRef Op, unsigned Slot, DimId X, DimId Y);
  void broadcastGradientArgs();
  void rangeValue();
  void dynamicStitch();
  void concatOffset();

  DimAnalysis &A;
  const Graph &G;
  llvm::ArrayRef<NodeId> Order;
  std::vector<ShapeRule> Rules;      ///< By op.
  std::vector<ValueRule> ValueRules; ///< By op.
  std::vector<UpdateDef> Updates;    ///< By op.
  llvm::DenseMap<uint64_t, DimId> Slots;
  DimId One;
  NodeId N = NoNode;
};

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_DIMRULES_H
