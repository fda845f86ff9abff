//===- lib/infer/sizes/SizeContext.h - what a rule of sizes sees -*- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_SIZES_SIZECONTEXT_H
#define GRAFT_LIB_INFER_SIZES_SIZECONTEXT_H

#include "lib/graph/NodeView.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/infer/sizes/RaggedRows.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

namespace graft {

using DimList = llvm::SmallVector<DimId, 6>;

/// Sizes of a tensor, or elements of an integer vector; none if they are not
/// known. They stay valid until a size or value is set.
using Dims = std::optional<llvm::ArrayRef<DimId>>;

/// One node, as the functions see it that say what the sizes (OpRule::Sizes)
/// and the small integers (OpRule::Values) of its outputs follow from. They may
/// be called any number of times: a size that a node makes is remembered by
/// node and slot, so a later round refines it instead of making another.
class SizeContext : public NodeView {
public:
  const DimAnalysis &Known; ///< What was found so far.
  DimTable &Table;
  const LoopInfo *Loops; ///< Null without loops and arrays.
  DimId One;
  llvm::ArrayRef<Endpoint> Inputs; ///< Data inputs of the node.

  const DimOptions &options() const { return A.Options; }
  /// 0 while sizes are those of the input.
  unsigned replicas() const {
    return options().Unpatched ? 0 : options().Replicas;
  }
  unsigned numOutputs() const { return A.numOutputs(N); }
  unsigned numData() const { return static_cast<unsigned>(Inputs.size()); }

  //===--------------------------------------------------------------------===//
  // What is known
  //===--------------------------------------------------------------------===//

  /// The sizes of operand \p I.
  Dims in(unsigned I) const { return A.list(inRun(I)); }
  DimRun inRun(unsigned I) const {
    return I < Inputs.size() ? A.shapeRun(Inputs[I]) : DimRun();
  }
  /// The elements of operand \p I, a scalar or a vector.
  Dims val(unsigned I) const {
    return I < Inputs.size() && !A.isMatrix(Inputs[I]) ? A.value(Inputs[I])
                                                       : std::nullopt;
  }
  /// Those of a matrix as well, row by row.
  Dims elements(unsigned I) const {
    return I < Inputs.size() ? A.value(Inputs[I]) : std::nullopt;
  }
  /// The same as numbers, and the only one.
  std::optional<llvm::SmallVector<int64_t, 4>> nums(unsigned I) const {
    return I < Inputs.size() ? A.numbers(Inputs[I]) : std::nullopt;
  }
  std::optional<int64_t> num(unsigned I) const;
  Dims out(unsigned Port) const { return A.shape({N, Port}); }
  bool isKnown(unsigned Port) const { return out(Port).has_value(); }
  /// The product of \p List.
  std::optional<Sym> elementsOf(llvm::ArrayRef<DimId> List) const;
  /// Whether \p Size, on a replica, may be \p Number.
  bool fits(DimId Size, int64_t Number) const;
  /// Whether an axis of \p Size is never repeated along another: it is not 1,
  /// also where it is not known how many times the batch it is, or how much
  /// more than a number.
  bool isNeverOne(DimId Size) const;
  /// Returns true if the definition of \p Size, and no fact, says what it is.
  bool isDefined(DimId Size) const { return !A.Origins.isOpen(Size); }
  /// Likewise, which number it is.
  bool isFixed(DimId Size) const { return A.Origins.isFixed(Size); }
  /// The number that \p Size is, if it follows no batch; else UnknownSize.
  int64_t plainNumber(DimId Size) const {
    return Table.hasSym(Size) ? UnknownSize : Table.number(Size);
  }

  //===--------------------------------------------------------------------===//
  // What the rule says
  //===--------------------------------------------------------------------===//

  void setShape(unsigned Port, llvm::ArrayRef<DimId> List);
  /// Like setShape, for a shape that another tensor has.
  void passShape(unsigned Port, DimRun Run);
  void setValue(unsigned Port, llvm::ArrayRef<DimId> Elements);
  /// The node, a constant, is all zeros, or not.
  void setZero(bool IsZero) { A.ZeroConsts[N] = IsZero; }

  /// Sizes that are one.
  void same(DimId X, DimId Y);
  /// Likewise; returns false if they contradict, which is not reported.
  bool unify(DimId X, DimId Y);
  /// Says that \p D is \p S, or has that number; assign returns false if it is
  /// another size. Its rows are those of \p From, by default of an operand.
  bool assign(DimId D, Sym S, std::optional<DimId> From = std::nullopt);
  void assignNumber(DimId D, int64_t Number);
  /// Says that the rows of \p X and \p Y are related so that they are equal.
  void relate(const Sym &X, const Sym &Y);
  void sameShapes(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);
  /// Numbers of rows that an op wants to be equal. A size that is not known
  /// says nothing: it may be that of all replicas where the other is that of
  /// one.
  void sameRows(DimId X, DimId Y);
  /// The same of the first \p Count axes, as far as both have them.
  void sameRows(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y, size_t Count);
  /// Sizes that are equal without being numbers: of rows, or such as are the
  /// same on all replicas. Of others nothing is said.
  void sameCounts(DimId X, DimId Y);
  bool areCounts(DimId X, DimId Y) const;

  /// Two sizes that must be equal are not.
  void report(DimId X, DimId Y) { A.Conflicts.push_back({N, X, Y}); }
  /// Says that TensorFlow would not load the graph, since \p Size is that of
  /// one replica's rows, unless something \p Holds.
  void require(bool Holds, DimId Size, const char *Why);

  //===--------------------------------------------------------------------===//
  // Sizes that the node makes
  //===--------------------------------------------------------------------===//

  /// Slots of results that are no monomial. They are apart from the slots of
  /// numbers, because an operand may turn out to be the batch in a later round.
  static constexpr unsigned OpaqueSlot = 0x4000;
  /// Of the number among the factors that a quotient leaves.
  static constexpr unsigned RestSlot = 0x2000;

  /// Of sizes of an element that a reader does not share with others.
  static constexpr unsigned ElementSlot = 0x1000;

  /// Of sizes of results that only facts say. Values have twice that.
  static constexpr unsigned DetachedSlot = 0x100000;

  /// Of values that are longer no elements are kept.
  static constexpr unsigned MaxElements = 64;
  /// The size number \p Slot that this node makes.
  DimId slot(unsigned Slot);
  /// A size of which nothing is known but that it comes of \p From.
  DimId slotFrom(unsigned Slot, llvm::ArrayRef<DimId> From);
  DimId number(unsigned Slot, int64_t Value);
  /// A size that is \p Was in the input and \p Now in the program, which says
  /// that it follows the batch.
  DimId changedNumber(unsigned Slot, int64_t Was, int64_t Now);
  DimId product(unsigned Slot, DimId X, DimId Y);
  DimId quotient(unsigned Slot, DimId X, DimId Y);
  /// Says that size \p D is \p Rows, or 1 where these are none. Of no rows the
  /// quotient by it is 0 on every replica, and nobody has any of its size.
  void isOrOne(DimId D, DimId Rows) { OrOne[Table.find(D)] = Rows; }
  /// Says that \p Sizes are lengths of axes: they are not negative.
  void areLengths(llvm::ArrayRef<DimId> Sizes) {
    for (DimId D : Sizes)
      if (!Table.isKnown(D))
        Lengths.insert(Table.find(D));
  }
  /// \p List with what sizes that are not known are products of in their place.
  DimList factorsOf(llvm::ArrayRef<DimId> List) const;
  void unifyProducts(DimId D, llvm::ArrayRef<DimId> Of);
  void cancelFactors();
  /// Says that size \p D is of \p Count blocks one after the other, each with
  /// rows of the batch. All that is so large is ordered alike.
  void markBlocks(DimId D, int64_t Count);
  /// How many such blocks they are; 0 if that is not known.
  int64_t blocks(DimId D);
  /// The sum of \p Parts, of which not all are numbers.
  DimId total(unsigned Slot, llvm::ArrayRef<DimId> Parts);
  /// A size of an element-wise result.
  DimId broadcast(DimId X, DimId Y);
  /// What the node, an input or its place in the program, says of sizes in
  /// attribute \p Key: those of the single-device step. False if nothing.
  bool sizesFrom(llvm::StringRef Key, DimList &List);

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// A symbol of its own for what the node says is a number of rows.
  std::optional<Sym> rowsAt(unsigned Slot, Endpoint Of, bool Claimed = false);
  /// Says that \p Rows is that of one replica, of \p Of, which is split, or
  /// which is its \p Own.
  void splitRows(DimId Rows, unsigned Slot, Endpoint Of, bool Own);
  /// Replicas take batches of their own.
  void setOwnRows() { A.OwnRows = true; }
  bool hasOwnRows() const { return A.OwnRows; }
  /// The user says that all \p Rows of \p Batch are equally many.
  void sayRows(int64_t Batch, DimId Rows);
  /// Whether an output is supposed to be split: it is no feed that is read
  /// whole.
  bool isSupposed() const { return Supposed.count(N) != 0; }
  /// Whether the node, which counts rows of shape \p X by their values, may do
  /// so on each replica.
  bool countsLocally(llvm::ArrayRef<DimId> X) const;
  /// The first node that counts rows as this one does by operand \p By.
  NodeId firstLike(unsigned By) { return Selected.firstLike(G, N, By); }
  /// Gives \p Rows the class of those that \p By counts.
  void countRows(DimId Rows, Endpoint By);
  /// \p Whole is \p First and then \p Rest.
  void join(DimId Whole, DimId First, DimId Rest) {
    Joined[Table.find(Whole)] = {First, Rest};
  }
  /// What is left of \p Whole after \p First, if that is the first part of it.
  std::optional<DimId> sizeAfter(DimId Whole, DimId First) const;

  //===--------------------------------------------------------------------===//
  // Loops
  //===--------------------------------------------------------------------===//

  /// Dimensions that were taken to be the same in every iteration of a loop
  /// and are not: (Merge, axis), or AnyAxis if not even the rank is.
  using VariantDims = std::set<std::pair<NodeId, unsigned>>;
  static constexpr unsigned AnyAxis = ~0u;
  bool isVariant(unsigned Axis) const { return isVariant(N, Axis); }
  bool isVariant(NodeId Of, unsigned Axis) const {
    return Variant->count({Of, Axis}) != 0;
  }
  /// The node is a feed of an integer that may be a size, unless that was
  /// found to be a number of rows (isVariant).
  void setFed(DimId Value) {
    if (FirstRound)
      Fed.push_back(N);
    setValue(0, Value);
  }

  /// The node gives an integer that may be a size of the single-device step,
  /// such as the greatest of lengths: the types say whether all replicas have
  /// it (TypeAnalysis::differing).
  void setShared();

  /// Why elements of an array or a stack have one size: the array declares it;
  /// a turn of a loop pops what the same turn pushed; nothing.
  enum class Sharing : uint8_t { Declared, Turns, None };
  /// An element of \p Handle, an array or stack, has the shape \p List. Others
  /// have that, too, if the array declares so or the definitions of their sizes
  /// do; an axis of which neither holds has another size for each reader.
  void setElement(NodeId Handle, llvm::ArrayRef<DimId> List, Sharing By);
  /// The shape of an element that the node reads from \p Handle.
  std::optional<DimList> element(NodeId Handle);
  /// Of an array: its size. Of a stack: the integers that are pushed.
  Dims held(NodeId Handle) const { return A.list(HeldValues.lookup(Handle)); }
  /// Says so: elements of operand \p I, or what another one holds, or nothing.
  void hold(NodeId Handle, unsigned I) {
    hold(Handle, A.isMatrix(Inputs[I]) ? DimRun() : A.valueRun(Inputs[I]));
  }
  void holdLike(NodeId Handle, NodeId Of) {
    hold(Handle, HeldValues.lookup(Of));
  }
  void hold(NodeId Handle, DimRun Run);

protected:
  SizeContext(DimAnalysis &A, const LoopInfo *Loops);
  /// Like slot, for a size that is a number.
  DimId bareSlot(unsigned Slot);
  bool isSingle() const;
  llvm::ArrayRef<std::pair<DimId, DimId>> meetings();
  DimList detached(unsigned Slot, llvm::ArrayRef<DimId> List);
  bool defines(DimId D) const;
  std::optional<DimId> originalOf(const Sym &S) const;
  void defineRelated(DimId X, const Sym &Times, DimId Y, const Sym &S);
  bool isOfOneTurn(DimId D) const;
  void reshapeVariable(llvm::ArrayRef<DimId> Var, llvm::ArrayRef<DimId> Value,
                       bool IsReference);
  void conflict(DimId X, DimId Y);
  std::optional<DimList> factorsLeft(unsigned Slot, DimId X, DimId Y);
  DimRun store(llvm::ArrayRef<DimId> List);

  DimAnalysis &A;
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
  bool Moved = false;  ///< The node has a shape or a value that is new.
  bool Denied = false; ///< The node is one of DimOptions::Denied.
  llvm::SmallVector<std::pair<DimId, DimId>, 4> Meetings; ///< Of MeetingsOf.
  NodeId MeetingsOf = NoNode;
  /// The sizes that the node states to be equal.
  llvm::SmallVector<std::pair<DimId, DimId>, 4> Stated;
  llvm::DenseSet<DimId> Detached;
  /// Axes of elements, or of a variable, that have several sizes.
  VariantDims Mixed;
  const VariantDims *Variant = nullptr;
  /// By array or stack.
  llvm::DenseMap<NodeId, DimRun> HeldValues;

  /// By size of two joined parts, of which not both are numbers: theirs.
  llvm::DenseMap<DimId, std::pair<DimId, DimId>> Joined;
  /// By size that is not known: the sizes that it is the product of.
  llvm::DenseMap<DimId, DimList> Factors;
  llvm::DenseMap<DimId, DimId> OrOne; ///< See isOrOne.
  /// By their factors, in order, as far as they are known to be equal.
  struct Product {
    DimId Size;
    DimList Of; ///< The factors as they were found.
  };
  std::map<DimList, Product> Products;
  /// Likewise that it is the sum of.
  llvm::DenseMap<DimId, DimList> Summands;
  /// By size: of how many blocks of rows it is; -1 where two orders met.
  llvm::MapVector<DimId, int64_t> Blocks;
  std::vector<NodeId> Fed; ///< See setFed.
  /// Sizes that are not known, but not negative.
  llvm::DenseSet<DimId> Lengths;
  RaggedRows Selected;
  /// By node: outputs, and axes, that are supposed to be rows of one replica.
  llvm::DenseMap<NodeId, llvm::SmallVector<std::pair<unsigned, unsigned>, 1>>
      Supposed;
  /// The rows that a node makes, by node and slot; the first that are split, or
  /// each replica's own, of which there is a number; and those that the user
  /// says are equally many.
  llvm::DenseMap<uint64_t, uint16_t> RowsMade;
  std::pair<int64_t, DimId> Numbered[2];
  std::map<int64_t, DimId> RowsBySaying;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_SIZECONTEXT_H
