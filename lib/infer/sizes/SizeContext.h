//===- lib/infer/sizes/SizeContext.h - the context of size rules *- C++ -*-===//
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

/// One node, as the rules for the sizes (OpRule::Sizes) and the small integers
/// (OpRule::Values) of its outputs see it. Rules may run any number of times: a
/// size that a node makes is remembered by node and slot, so a later round
/// refines it instead of making another.
class SizeContext : public NodeView {
public:
  const DimAnalysis &Known; ///< The results so far.
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
  // Known sizes
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
  /// Like val, also for a matrix, row by row.
  Dims elements(unsigned I) const {
    return I < Inputs.size() ? A.value(Inputs[I]) : std::nullopt;
  }
  /// The elements as numbers; num returns the only one.
  std::optional<llvm::SmallVector<int64_t, 4>> nums(unsigned I) const {
    return I < Inputs.size() ? A.numbers(Inputs[I]) : std::nullopt;
  }
  std::optional<int64_t> num(unsigned I) const;
  Dims out(unsigned Port) const { return A.shape({N, Port}); }
  bool isKnown(unsigned Port) const { return out(Port).has_value(); }
  /// The product of \p List.
  std::optional<Sym> elementsOf(llvm::ArrayRef<DimId> List) const;
  /// Returns true if \p Size, on a replica, may be \p Number.
  bool fits(DimId Size, int64_t Number) const;
  /// Returns true if an axis of \p Size is never repeated along another,
  /// because it is not 1. It may be an unknown multiple of the batch, or a
  /// number plus unknown lengths.
  bool isNeverOne(DimId Size) const;
  /// Returns true if the definition of \p Size, and no fact, says what it is.
  bool isDefined(DimId Size) const { return !A.Origins.isOpen(Size); }
  /// Returns true if the definition of \p Size says its number.
  bool isFixed(DimId Size) const { return A.Origins.isFixed(Size); }
  /// The number that \p Size is, if it follows no batch; else UnknownSize.
  int64_t plainNumber(DimId Size) const {
    return Table.hasSym(Size) ? UnknownSize : Table.number(Size);
  }

  //===--------------------------------------------------------------------===//
  // Statements of the rule
  //===--------------------------------------------------------------------===//

  void setShape(unsigned Port, llvm::ArrayRef<DimId> List);
  /// Like setShape, for a shape that another tensor has.
  void passShape(unsigned Port, DimRun Run);
  void setValue(unsigned Port, llvm::ArrayRef<DimId> Elements);
  /// Says if the node, a constant, is all zeros.
  void setZero(bool IsZero) { A.ZeroConsts[N] = IsZero; }

  /// Says that two sizes are one; reports it if they contradict.
  void same(DimId X, DimId Y);
  /// Says that two sizes are one. Returns false if they contradict, without a
  /// report.
  bool unify(DimId X, DimId Y);
  /// Says that \p D is \p S, or has that number; assign returns false if \p D
  /// is another size. The rows of \p S are those of \p From, by default of an
  /// operand.
  bool assign(DimId D, Sym S, std::optional<DimId> From = std::nullopt);
  void assignNumber(DimId D, int64_t Number);
  /// Relates the rows of \p X and \p Y so that the two are equal.
  void relate(const Sym &X, const Sym &Y);
  void sameShapes(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);
  /// Says that an op requires equal numbers of rows. An unknown size shows
  /// nothing: it may be that of all replicas where the other is that of one.
  void sameRows(DimId X, DimId Y);
  /// The same for the first \p Count axes, as far as both have them.
  void sameRows(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y, size_t Count);
  /// Says that two sizes are equal that both count rows, or are both unknown
  /// and the same on all replicas. Other sizes are left alone.
  void sameCounts(DimId X, DimId Y);
  bool areCounts(DimId X, DimId Y) const;

  /// Reports that two sizes that must be equal are not.
  void report(DimId X, DimId Y) { A.Conflicts.push_back({N, X, Y}); }
  /// Unless \p Holds, reports that TensorFlow would not load the graph, since
  /// \p Size is that of one replica's rows.
  void require(bool Holds, DimId Size, const char *Why);

  //===--------------------------------------------------------------------===//
  // Sizes that the node makes
  //===--------------------------------------------------------------------===//

  /// Slots of results that are no monomial. They are apart from the slots of
  /// numbers, because an operand may turn out to be the batch in a later round.
  static constexpr unsigned OpaqueSlot = 0x4000;
  /// Slots of the number that a quotient leaves among its factors.
  static constexpr unsigned RestSlot = 0x2000;

  /// Slots of sizes of an element that a reader does not share with others.
  static constexpr unsigned ElementSlot = 0x1000;

  /// Slots of sizes of results that only facts say. Values begin at twice that.
  static constexpr unsigned DetachedSlot = 0x100000;

  /// The length of a value up to which its elements are kept.
  static constexpr unsigned MaxElements = 64;
  /// The size that this node makes in \p Slot.
  DimId slot(unsigned Slot);
  /// A size that follows from \p From, and is unknown otherwise.
  DimId slotFrom(unsigned Slot, llvm::ArrayRef<DimId> From);
  DimId number(unsigned Slot, int64_t Value);
  /// A size that is \p Was in the input and \p Now in the program, so that it
  /// follows the batch.
  DimId changedNumber(unsigned Slot, int64_t Was, int64_t Now);
  DimId product(unsigned Slot, DimId X, DimId Y);
  DimId quotient(unsigned Slot, DimId X, DimId Y);
  /// Says that size \p D is \p Rows, or 1 if there are no such rows. Without
  /// rows, the quotient by \p D is 0 on every replica, and no tensor of that
  /// size has elements.
  void isOrOne(DimId D, DimId Rows) { OrOne[Table.find(D)] = Rows; }
  /// Says that \p Sizes are lengths of axes: they are not negative.
  void areLengths(llvm::ArrayRef<DimId> Sizes) {
    for (DimId D : Sizes)
      if (!Table.isKnown(D))
        Lengths.insert(Table.find(D));
  }
  /// Returns \p List with unknown sizes replaced by the factors whose product
  /// they are.
  DimList factorsOf(llvm::ArrayRef<DimId> List) const;
  void unifyProducts(DimId D, llvm::ArrayRef<DimId> Of);
  void cancelFactors();
  /// Says that an axis of size \p D is \p Count blocks in sequence, each with
  /// rows of the batch. All axes of that size have the same order.
  void markBlocks(DimId D, int64_t Count);
  /// Returns the number of such blocks in \p D, or 0 if it is unknown.
  int64_t blocks(DimId D);
  /// The sum of \p Parts, not all of which are numbers.
  DimId total(unsigned Slot, llvm::ArrayRef<DimId> Parts);
  /// A size of an element-wise result.
  DimId broadcast(DimId X, DimId Y);
  /// Reads the sizes of the single-device step from attribute \p Key of the
  /// node, an input of the graph or its place in the program. Returns false if
  /// it has none.
  bool sizesFrom(llvm::StringRef Key, DimList &List);

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// Makes a symbol for a number of rows that the node defines.
  std::optional<Sym> rowsAt(unsigned Slot, Endpoint Of, bool Claimed = false);
  /// Says that \p Rows is the number of rows on one replica of \p Of, which is
  /// split, or which each replica reads as its \p Own.
  void splitRows(DimId Rows, unsigned Slot, Endpoint Of, bool Own);
  /// Says that replicas read batches of their own.
  void setOwnRows() { A.OwnRows = true; }
  bool hasOwnRows() const { return A.OwnRows; }
  /// Records that the user says that all \p Rows of \p Batch are equally many.
  void sayRows(int64_t Batch, DimId Rows);
  /// Returns true if an output is supposed to be split: it is no feed that is
  /// read whole.
  bool isSupposed() const { return Supposed.count(N) != 0; }
  /// Returns true if the node, which counts rows of shape \p X by their values,
  /// may do so on each replica.
  bool countsLocally(llvm::ArrayRef<DimId> X) const;
  /// The first node that counts rows as this one does by operand \p By.
  NodeId firstLike(unsigned By) { return Selected.firstLike(G, N, By); }
  /// Gives \p Rows the class of those that \p By counts.
  void countRows(DimId Rows, Endpoint By);
  /// Says that \p Whole is \p First, followed by \p Rest.
  void join(DimId Whole, DimId First, DimId Rest) {
    Joined[Table.find(Whole)] = {First, Rest};
  }
  /// Returns the rest of \p Whole after \p First, if that is its first part.
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
  /// Says that the node is a feed of an integer that may be a size, unless it
  /// was found to be a number of rows (isVariant).
  void setFed(DimId Value) {
    if (FirstRound)
      Fed.push_back(N);
    setValue(0, Value);
  }

  /// Says that the node computes an integer that may be a size of the
  /// single-device step, such as the greatest of lengths. The types show if all
  /// replicas have it (TypeAnalysis::differing).
  void setShared();

  /// The reason why elements of an array or a stack have one size: the array
  /// declares it; an iteration of a loop pops what it pushed itself; none.
  enum class Sharing : uint8_t { Declared, Turns, None };
  /// Says that an element of \p Handle, an array or stack, has the shape
  /// \p List. Other elements have it, too, if the array declares so or the
  /// definitions of their sizes do. Without either, an axis has another size
  /// for each reader.
  void setElement(NodeId Handle, llvm::ArrayRef<DimId> List, Sharing By);
  /// The shape of an element that the node reads from \p Handle.
  std::optional<DimList> element(NodeId Handle);
  /// The size of an array, or the integers that are pushed on a stack.
  Dims held(NodeId Handle) const { return A.list(HeldValues.lookup(Handle)); }
  /// Sets what \p Handle holds: the elements of operand \p I, or what another
  /// handle holds, or nothing.
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
  /// The node and the slot of a size. Sizes of the first visit to a node stand
  /// one after the other, those of later visits anywhere (Later).
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
  llvm::SmallVector<std::pair<DimId, DimId>, 4> Meetings; ///< For MeetingsOf.
  NodeId MeetingsOf = NoNode;
  /// The sizes that the node states to be equal.
  llvm::SmallVector<std::pair<DimId, DimId>, 4> Stated;
  llvm::DenseSet<DimId> Detached;
  /// Axes of elements, or of a variable, that have several sizes.
  VariantDims Mixed;
  const VariantDims *Variant = nullptr;
  /// By array or stack.
  llvm::DenseMap<NodeId, DimRun> HeldValues;

  /// By size of two joined parts, not both of which are numbers: the parts.
  llvm::DenseMap<DimId, std::pair<DimId, DimId>> Joined;
  /// By unknown size: the sizes whose product it is.
  llvm::DenseMap<DimId, DimList> Factors;
  llvm::DenseMap<DimId, DimId> OrOne; ///< See isOrOne.
  /// Products, by their factors in order, as far as these are known to be
  /// equal.
  struct Product {
    DimId Size;
    DimList Of; ///< The factors as they were found.
  };
  std::map<DimList, Product> Products;
  /// By unknown size: the sizes whose sum it is.
  llvm::DenseMap<DimId, DimList> Summands;
  /// By size: the number of its blocks of rows; -1 where two orders met.
  llvm::MapVector<DimId, int64_t> Blocks;
  std::vector<NodeId> Fed; ///< See setFed.
  /// Unknown sizes that are not negative.
  llvm::DenseSet<DimId> Lengths;
  RaggedRows Selected;
  /// By node: outputs, and axes, that are supposed to be rows of one replica.
  llvm::DenseMap<NodeId, llvm::SmallVector<std::pair<unsigned, unsigned>, 1>>
      Supposed;
  /// The rows that a node makes, by node and slot; the first rows with a known
  /// number that are split, or are each replica's own; and the rows that the
  /// user says are equally many.
  llvm::DenseMap<uint64_t, uint16_t> RowsMade;
  std::pair<int64_t, DimId> Numbered[2];
  std::map<int64_t, DimId> RowsBySaying;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_SIZECONTEXT_H
