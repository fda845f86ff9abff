//===- lib/infer/sizes/DimRules.h - rules for sizes (private) ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_SIZES_DIMRULES_H
#define GRAFT_LIB_INFER_SIZES_DIMRULES_H

#include "lib/infer/graph/Loops.h"
#include "lib/infer/rules/OpRules.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/infer/sizes/RaggedRows.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <set>

namespace graft {

using DimList = llvm::SmallVector<DimId, 6>;

/// Applies the rules of every node until nothing changes. Rules may be applied
/// any number of times: a size that a rule makes is remembered by node and
/// slot, so a later round refines it instead of making another.
///
/// After the first round only nodes are visited that read, or made, a size that
/// became better known, and those whose rule asks whether sizes are the same.
class DimRules {
public:
  DimRules(DimAnalysis &A, llvm::ArrayRef<NodeId> Order, const LoopInfo *Loops);
  void run();

  /// Dimensions that were taken to be the same in every iteration of a loop
  /// and are not: (Merge, axis), or AnyAxis if not even the rank is.
  using VariantDims = std::set<std::pair<NodeId, unsigned>>;
  static constexpr unsigned AnyAxis = ~0u;
  void setVariant(const VariantDims &V) { Variant = &V; }
  /// Adds what turned out to be so to \p Found; false if there is nothing.
  bool findVariant(VariantDims &Found) const;

private:
  using Dims = std::optional<llvm::ArrayRef<DimId>>;

  // The node at hand.
  DimRun inRun(unsigned I) const {
    return I < Inputs.size() ? A.shapeRun(Inputs[I]) : DimRun();
  }
  Dims in(unsigned I) const { return A.list(inRun(I)); }
  Dims val(unsigned I) const {
    return I < Inputs.size() ? A.value(Inputs[I]) : std::nullopt;
  }
  unsigned numData() const { return static_cast<unsigned>(Inputs.size()); }
  std::optional<llvm::SmallVector<int64_t, 4>> nums(unsigned I) const {
    return I < Inputs.size() ? A.numbers(Inputs[I]) : std::nullopt;
  }
  std::optional<int64_t> num(unsigned I) const;

  void markUsers(NodeId Node);
  void markDue(llvm::ArrayRef<DimId> Changed, const std::vector<bool> &Moved);
  void visit(NodeId Node);
  void shapeRule(ShapeRule Rule);
  void constant();
  size_t channelAxis(size_t Rank) const;
  void valueRule(ValueRule Rule);
  void hintFromAttr();

  void setShape(unsigned Port, llvm::ArrayRef<DimId> Dims);
  /// Like setShape, for a shape that another tensor has.
  void passShape(unsigned Port, DimRun Run);
  DimRun store(llvm::ArrayRef<DimId> List);
  void setValue(unsigned Port, llvm::ArrayRef<DimId> Elements);

  /// Slots of results that are no monomial. They are apart from the slots of
  /// numbers, because an operand may turn out to be the batch in a later round.
  static constexpr unsigned OpaqueSlot = 0x4000;

  /// The size number \p Slot that this node makes.
  DimId slot(unsigned Slot);
  /// Like slot, for a size that is a number.
  DimId bareSlot(unsigned Slot);
  DimId slotFrom(unsigned Slot, llvm::ArrayRef<DimId> From);
  DimId total(unsigned Slot, llvm::ArrayRef<DimId> Parts);
  /// A symbol of its own for what the node at hand says is a number of rows.
  std::optional<Sym> rowsAt(unsigned Slot, Endpoint Of, bool Claimed = false);
  void splitRows(DimId Rows, unsigned Slot, Endpoint Of, bool Own);
  DimId changedNumber(unsigned Slot, int64_t Was, int64_t Now);
  std::optional<Sym> elementsOf(llvm::ArrayRef<DimId> List) const;
  std::optional<DimId> sizeAfter(DimId Whole, DimId First) const;
  bool isSingle() const;
  DimId number(unsigned Slot, int64_t Value);
  DimId product(unsigned Slot, DimId X, DimId Y);
  DimId quotient(unsigned Slot, DimId X, DimId Y);
  DimId partOfRows(DimId Whole, DimId Count);
  DimId broadcastDim(DimId X, DimId Y);
  void conflict(DimId X, DimId Y);
  void require(bool Holds, DimId Size, const char *Why);
  bool fits(DimId Size, int64_t Number) const;
  bool sizesFrom(llvm::StringRef Key, DimList &List);
  void same(DimId X, DimId Y);
  void sameShapes(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);
  void sameRows(DimId X, DimId Y);
  void sameRows(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y, size_t Count);
  void sameRows(const OpRules &Rules);

  // Shapes.
  bool sameProduct(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y) const;
  void broadcast();
  void matMul(bool Batched);
  void convolution();
  void pool();
  void reduction();
  void reshape();
  void sameElements(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);
  void matchGroups(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);
  void spread(llvm::ArrayRef<DimId> From, llvm::ArrayRef<DimId> To);
  void transpose();
  void tile();
  void pack();
  void concat();
  void source();
  void decode();
  void parseExample();
  void sparseMatMul();
  void candidates();
  void split();
  void slice();
  void stridedSlice(bool OfValue);
  void pad();
  void gather();
  void gatherNd();
  void tensorScatter();
  void where();
  bool countsLocally(llvm::ArrayRef<DimId> X) const;
  void countRows(DimId Rows, Endpoint By);
  bool isWhole() const;
  void parts();
  void stitch();
  void einsum();
  void blocks();
  void diagonal();
  void cell(bool OverTime);
  void crossEntropy(bool Sparse);
  void crossing();
  void accumulated();
  void merge();

  // Values.
  void arithmetic(llvm::StringRef Op);
  DimId arithmeticElement(llvm::StringRef Op, unsigned Slot, DimId X, DimId Y);
  void broadcastGradientArgs();
  void rangeValue();
  void dynamicStitch();
  void concatOffset();

  // Loops.
  void loopMerge();
  void localHandle();
  void setElement(NodeId Handle, llvm::ArrayRef<DimId> Dims);

  DimAnalysis &A;
  const Graph &G;
  llvm::ArrayRef<NodeId> Order;
  /// What is known of an op.
  struct OpRule {
    OpRules Rules;
    bool IsBackEdge;
    UpdateDef Update;
  };
  std::vector<OpRule> Ops;

  /// Who made a size: in a node's first visit one after the other, in later
  /// visits wherever (Later).
  struct Maker {
    NodeId Node;
    uint32_t Slot;
  };
  std::vector<Maker> Makers;    ///< By size.
  std::vector<DimId> FirstMade; ///< By node.
  llvm::DenseMap<uint64_t, DimId> Later;
  std::vector<bool> Due; ///< By node: visited in this round or the next.
  bool FirstRound = true;
  const LoopInfo *Loops; ///< Null without loops and arrays.
  const VariantDims *Variant = nullptr;
  /// By array: its size. By stack: the integers that are pushed.
  llvm::DenseMap<NodeId, DimRun> HeldValues;

  /// By size of two joined parts, of which not both are numbers: theirs.
  llvm::DenseMap<DimId, std::pair<DimId, DimId>> Joined;
  RaggedRows Selected;
  /// By node: outputs, and axes, that are supposed to be rows of one replica.
  llvm::DenseMap<NodeId, llvm::SmallVector<std::pair<unsigned, unsigned>, 1>>
      Supposed;
  bool HasMesh = false;
  /// The rows that a node makes, by node and slot; the first that are split, or
  /// each replica's own, of which there is a number; and those that the user
  /// says are equally many.
  llvm::DenseMap<uint64_t, uint16_t> RowsMade;
  std::pair<int64_t, Sym> Numbered[2];
  std::map<int64_t, Sym> RowsBySaying;

  DimId One = 0;
  NodeId N = NoNode;
  llvm::ArrayRef<Endpoint> Inputs; ///< Its data inputs.
  bool Moved = false;              ///< It has a shape or a value that is new.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_DIMRULES_H
