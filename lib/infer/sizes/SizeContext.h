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
/// known. The reference is valid until a shape or a value is set.
using Dims = std::optional<llvm::ArrayRef<DimId>>;

/// The interface between a node and the rules of sizes (OpRule::Sizes) and
/// small integers (OpRule::Values). A rule may run any number of times. A size
/// that a node makes has a slot number, so that a later round finds and refines
/// the same size.
class SizeContext : public NodeView {
public:
  const DimAnalysis &Known; ///< The results so far.
  DimTable &Table;
  const LoopInfo *Loops; ///< Null without loops and arrays.
  DimId One;
  llvm::ArrayRef<Endpoint> Inputs; ///< Data inputs of the node.

  const DimOptions &options() const { return A.Options; }
  /// Returns N; 0 before the constants of the program are changed to the sizes
  /// of one replica.
  unsigned replicas() const {
    return options().Unpatched ? 0 : options().Replicas;
  }
  unsigned numOutputs() const { return A.numOutputs(N); }
  unsigned numData() const { return static_cast<unsigned>(Inputs.size()); }

  //===--------------------------------------------------------------------===//
  // Known sizes
  //===--------------------------------------------------------------------===//

  /// Returns the sizes of operand \p I.
  Dims in(unsigned I) const { return A.list(inRun(I)); }
  DimRun inRun(unsigned I) const {
    return I < Inputs.size() ? A.shapeRun(Inputs[I]) : DimRun();
  }
  /// Returns the elements of operand \p I, a scalar or a vector.
  Dims val(unsigned I) const {
    return I < Inputs.size() && !A.isMatrix(Inputs[I]) ? A.value(Inputs[I])
                                                       : std::nullopt;
  }
  /// Like val(), but also returns the elements of a matrix, row by row.
  Dims elements(unsigned I) const {
    return I < Inputs.size() ? A.value(Inputs[I]) : std::nullopt;
  }
  /// Returns the elements of operand \p I as numbers. num() returns the only
  /// one.
  std::optional<llvm::SmallVector<int64_t, 4>> nums(unsigned I) const {
    return I < Inputs.size() ? A.numbers(Inputs[I]) : std::nullopt;
  }
  std::optional<int64_t> num(unsigned I) const;
  Dims out(unsigned Port) const { return A.shape({N, Port}); }
  bool isKnown(unsigned Port) const { return out(Port).has_value(); }
  /// Returns the product of \p List.
  std::optional<Sym> elementsOf(llvm::ArrayRef<DimId> List) const;
  /// Returns true if \p Size may be \p Number on a replica.
  bool fits(DimId Size, int64_t Number) const;
  /// Returns true if an axis of \p Size is never broadcast, because \p Size is
  /// not 1. This may hold for an unknown size: a multiple of a replica's rows,
  /// or the sum of a number above 1 and lengths.
  bool isNeverOne(DimId Size) const;
  /// Returns true if the definition of \p Size, without any fact, determines
  /// its number or its rows.
  bool isDefined(DimId Size) const { return !A.Origins.isOpen(Size); }
  /// Returns true if the definition of \p Size determines its number.
  bool isFixed(DimId Size) const { return A.Origins.isFixed(Size); }
  /// Returns the number of \p Size if it has no symbolic size; else
  /// UnknownSize.
  int64_t plainNumber(DimId Size) const {
    return Table.hasSym(Size) ? UnknownSize : Table.number(Size);
  }

  //===--------------------------------------------------------------------===//
  // Statements of the rule
  //===--------------------------------------------------------------------===//

  void setShape(unsigned Port, llvm::ArrayRef<DimId> List);
  /// Like setShape(), but shares the run of another tensor.
  void passShape(unsigned Port, DimRun Run);
  void setValue(unsigned Port, llvm::ArrayRef<DimId> Elements);
  /// Records whether the node, a constant, holds only zeros.
  void setZero(bool IsZero) { A.ZeroConsts[N] = IsZero; }

  /// States that \p X and \p Y are equal. Reports a conflict if they differ.
  void same(DimId X, DimId Y);
  /// Returns true if \p X and \p Y have one definition or one number by
  /// definition, so that they are equal without any fact.
  bool areEqualByDefinition(DimId X, DimId Y) const;
  /// Joins \p X and \p Y, which the table knows to be equal. This is a
  /// statement of the node only if the node defines one of them.
  void alias(DimId X, DimId Y);
  /// Like same(), for an equality that follows from the numbers of the sizes
  /// \p Of. If facts imply such a number, the equality is derived from the
  /// facts.
  void sameByNumber(DimId X, DimId Y, llvm::ArrayRef<DimId> Of);
  /// States that \p X and \p Y are equal. Returns false, without a report, if
  /// they differ.
  bool unify(DimId X, DimId Y);
  /// States that \p D is the size \p S. Returns false if \p D is known to be
  /// another size. \p From is the size whose rows \p S counts, by default a
  /// size of an operand. assignNumber() states that \p D is a number.
  bool assign(DimId D, Sym S, std::optional<DimId> From = std::nullopt);
  void assignNumber(DimId D, int64_t Number);
  /// Makes \p X and \p Y equal by relating the rows that they count.
  void relate(const Sym &X, const Sym &Y);
  void sameShapes(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y);
  /// States that the op requires the row counts \p X and \p Y to be equal. Does
  /// nothing if one is unknown, since it may count the rows of all replicas
  /// while the other counts the rows of one replica.
  void sameRows(DimId X, DimId Y);
  /// Calls sameRows() for those of the first \p Count axes that both shapes
  /// have.
  void sameRows(llvm::ArrayRef<DimId> X, llvm::ArrayRef<DimId> Y, size_t Count);
  /// States that \p X and \p Y are equal if areCounts(): both count rows, or
  /// both are unknown and the same on all replicas.
  void sameCounts(DimId X, DimId Y);
  bool areCounts(DimId X, DimId Y) const;

  /// Reports that \p X and \p Y must be equal but differ.
  void report(DimId X, DimId Y) { A.Conflicts.push_back({N, X, Y}); }
  /// If \p Holds is false, reports that TensorFlow would not load the graph,
  /// because \p Size follows the rows of one replica.
  void require(bool Holds, DimId Size, const char *Why);

  //===--------------------------------------------------------------------===//
  // Sizes that the node makes
  //===--------------------------------------------------------------------===//

  /// The first slot of results that no Sym can express. These need other slots
  /// than numbers: a later round may find that an operand is a batch size, so
  /// that the result is no number.
  static constexpr unsigned OpaqueSlot = 0x4000;
  /// The first slot of numbers that are left after common factors cancel.
  static constexpr unsigned RestSlot = 0x2000;

  /// The first slot of sizes, of a variable or of an array's element, that
  /// differ between readers.
  static constexpr unsigned ElementSlot = 0x1000;

  /// The first slot of sizes that detached() makes for shapes. The slots of
  /// those for values begin at twice this number.
  static constexpr unsigned DetachedSlot = 0x100000;

  /// The greatest length of a value whose elements are tracked.
  static constexpr unsigned MaxElements = 64;
  /// Returns the size that this node makes in \p Slot.
  DimId slot(unsigned Slot);
  /// Returns a new unknown size. Marks it as equal on all replicas if all sizes
  /// in \p From are.
  DimId slotFrom(unsigned Slot, llvm::ArrayRef<DimId> From);
  DimId number(unsigned Slot, int64_t Value);
  /// Returns a size that is \p Was in the input graph and \p Now in the
  /// program. The size follows the batch if \p Was is N times \p Now.
  DimId changedNumber(unsigned Slot, int64_t Was, int64_t Now);
  DimId product(unsigned Slot, DimId X, DimId Y);
  DimId quotient(unsigned Slot, DimId X, DimId Y);
  /// Records that size \p D is the greater of \p Rows and 1. A quotient by \p D
  /// is then treated as a quotient by \p Rows. On a replica without rows the
  /// quotient is 0, and a tensor of that size has no elements.
  void isOrOne(DimId D, DimId Rows) { OrOne[Table.find(D)] = Rows; }
  /// Records that \p Sizes are lengths of axes, and so not negative.
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
  /// Records that an axis of size \p D is a sequence of \p Count blocks of rows
  /// of the batch. All axes of that size have the same order.
  void markBlocks(DimId D, int64_t Count);
  /// Returns the number of these blocks in \p D, or 0 if it is unknown.
  int64_t blocks(DimId D);
  /// Returns the sum of \p Parts, not all of which are numbers.
  DimId total(unsigned Slot, llvm::ArrayRef<DimId> Parts);
  /// Returns the size of an element-wise result of operands with the sizes
  /// \p X and \p Y.
  DimId broadcast(DimId X, DimId Y);
  /// Reads the sizes of the single-device step from the shape in attribute
  /// \p Key of the node. Returns false if there is no such attribute or its
  /// rank is unknown.
  bool sizesFrom(llvm::StringRef Key, DimList &List);

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// Makes a symbol for a number of rows that the node defines.
  std::optional<Sym> rowsAt(unsigned Slot, Endpoint Of, bool Claimed = false);
  /// Claims that \p D counts the rows of a replica, unless \p D has a symbolic
  /// size.
  void claimRows(unsigned Slot, DimId D);
  /// States that \p Rows is the number of rows of \p Of on one replica. With
  /// \p Own, each replica reads a separate batch. Otherwise \p Of is split.
  void splitRows(DimId Rows, unsigned Slot, Endpoint Of, bool Own);
  /// Records that each replica reads a separate batch.
  void setOwnRows() { A.OwnRows = true; }
  bool hasOwnRows() const { return A.OwnRows; }
  /// The user declares that feeds in the group \p Batch have equally many rows.
  /// Unifies \p Rows with the rows of earlier feeds of the group.
  void sayRows(int64_t Batch, DimId Rows);
  /// Returns true if an output of the node is assumed to be split
  /// (DimOptions::Suppose). Then each replica reads a shard of the feed, not
  /// the whole feed.
  bool isSupposed() const { return Supposed.count(N) != 0; }
  /// Returns true if each replica may count local rows at the node, which has a
  /// data-dependent row count and an operand of shape \p X.
  bool countsLocally(llvm::ArrayRef<DimId> X) const;
  /// Returns the first node with the same data-dependent row count
  /// (RaggedRows::firstLike).
  NodeId firstLike(unsigned By) { return Selected.firstLike(G, N, By); }
  /// Assigns to \p Rows the class of ragged rows that output \p By counts.
  void countRows(DimId Rows, Endpoint By);
  /// Records that \p Whole is the sum of \p First and \p Rest, in this order.
  void join(DimId Whole, DimId First, DimId Rest) {
    A.Parts[Table.find(Whole)] = {First, Rest};
  }
  /// Returns the size of \p Whole without its first part \p First, if join()
  /// recorded this part.
  std::optional<DimId> sizeAfter(DimId Whole, DimId First) const;

  //===--------------------------------------------------------------------===//
  // Loops
  //===--------------------------------------------------------------------===//

  /// Dimensions that differ between the iterations of a loop: (Merge, axis).
  /// The axis is AnyAxis if the rank differs. The inference first assumes that
  /// there are none.
  using VariantDims = std::set<std::pair<NodeId, unsigned>>;
  static constexpr unsigned AnyAxis = ~0u;
  /// In VariantDims: stands for the number of elements of a list, not an axis.
  static constexpr unsigned Elements = ~0u - 1;
  bool isVariant(unsigned Axis) const { return isVariant(N, Axis); }
  bool isVariant(NodeId Of, unsigned Axis) const {
    return Variant->count({Of, Axis}) != 0;
  }
  /// Records that the node is a fed integer that may be a size, with the value
  /// \p Value. A rule does not call this for an integer that proved to be a row
  /// count (isVariant).
  void setFed(DimId Value) {
    if (FirstRound)
      Fed.push_back(N);
    setValue(0, Value);
  }

  /// Assumes that the integer output of the node is a size of the single-device
  /// step, such as a greatest length. The types show later if all replicas have
  /// that size (TypeAnalysis::differing).
  void setShared();

  /// The reason why a reader of an array or a stack may use the size of a
  /// writer. Declared: the array declares the size of its elements. Turns: an
  /// iteration of a loop pops the element that it pushed. None: no reason.
  enum class Sharing : uint8_t { Declared, Turns, None };
  /// States that an element of the array or stack \p Handle has the shape \p
  /// List. Other elements have the same size along an axis if the array
  /// declares it, or if the sizes have the same definition. For any other axis,
  /// each reader gets a fresh size variable.
  void setElement(NodeId Handle, llvm::ArrayRef<DimId> List, Sharing By);
  /// Returns the node that stands for the array, the stack or the class of
  /// lists of operand 0 (LoopInfo::handleOf), or NoNode.
  NodeId handle() const {
    return Loops && numData() > 0 ? Loops->handleOf(Inputs[0]) : NoNode;
  }
  /// Like handle(), but for output 0.
  NodeId handleMade() const { return Loops ? Loops->handleOf({N, 0}) : NoNode; }
  /// Returns the shape of an element that the node reads from \p Handle.
  std::optional<DimList> element(NodeId Handle);
  /// Returns the size of an array, or the integers that one op pushes onto a
  /// stack.
  Dims held(NodeId Handle) const { return A.list(HeldValues.lookup(Handle)); }
  /// Sets the integers that held() returns for \p Handle: the elements of
  /// operand \p I, the integers of another handle, or \p Run.
  void hold(NodeId Handle, unsigned I) {
    hold(Handle, A.isMatrix(Inputs[I]) ? DimRun() : A.valueRun(Inputs[I]));
  }
  void holdLike(NodeId Handle, NodeId Of) {
    hold(Handle, HeldValues.lookup(Of));
  }
  void hold(NodeId Handle, DimRun Run);
  /// Records that operand 1 is pushed onto \p Handle.
  void push(NodeId Handle);
  /// States that a list of the class of \p List has \p Length elements. The
  /// number of elements of a stack is not tracked.
  void setLength(NodeId List, DimId Length);
  /// Returns the number of elements of all lists of the class of \p List.
  std::optional<DimId> length(NodeId List) const;

protected:
  SizeContext(DimAnalysis &A, const LoopInfo *Loops);
  /// Like slot(), but never marks the size as the same on all replicas.
  DimId bareSlot(unsigned Slot);
  bool isSingle() const;
  bool mayMeet();
  llvm::ArrayRef<std::pair<DimId, DimId>> meetings();
  DimList detached(unsigned Slot, llvm::ArrayRef<DimId> List);
  bool defines(DimId D) const;
  std::optional<DimId> originalOf(const Sym &S) const;
  using Reasons =
      llvm::SmallVector<std::pair<SizeOrigins::Origin, SizeOrigins::Origin>, 2>;
  void addReasons(DimId D, Reasons &Because) const;
  Reasons reasonsOfNumbers() const;
  Reasons reasonsOf(llvm::ArrayRef<DimId> Sizes) const;
  void defineRelated(DimId X, const Sym &Times, DimId Y, const Sym &S);
  bool isOfOneTurn(DimId D) const;
  void reshapeVariable(llvm::ArrayRef<DimId> Var, llvm::ArrayRef<DimId> Value,
                       bool IsReference);
  void conflict(DimId X, DimId Y);
  std::optional<DimList> factorsLeft(unsigned Slot, DimId X, DimId Y);
  DimRun store(llvm::ArrayRef<DimId> List);

  DimAnalysis &A;
  /// The node and the slot of a size. Sizes from the first visit of a node have
  /// consecutive ids. Later has the sizes from later visits.
  struct Maker {
    NodeId Node;
    uint32_t Slot;
  };
  std::vector<Maker> Makers;    ///< By size.
  std::vector<DimId> FirstMade; ///< By node.
  llvm::DenseMap<uint64_t, DimId> Later;
  std::vector<bool> Due; ///< By node: visited in this round or the next.
  bool FirstRound = true;
  bool Moved = false;  ///< This visit gave an output a new shape or value.
  bool Denied = false; ///< The node is one of DimOptions::Denied.
  /// The result of meetings() for the node MeetingsOf.
  llvm::SmallVector<std::pair<DimId, DimId>, 4> Meetings;
  NodeId MeetingsOf = NoNode;
  /// The sizes that the node states to be equal.
  llvm::SmallVector<std::pair<DimId, DimId>, 4> Stated;
  llvm::DenseSet<DimId> Detached;
  /// Axes of elements, or of a variable, that have several sizes.
  VariantDims Mixed;
  const VariantDims *Variant = nullptr;
  /// The result of held(), by array or stack.
  llvm::DenseMap<NodeId, DimRun> HeldValues;
  /// The first length of setLength(), by class of lists.
  llvm::DenseMap<NodeId, DimId> ListLengths;

  /// By unknown size: the sizes whose product it is.
  llvm::DenseMap<DimId, DimList> Factors;
  llvm::DenseMap<DimId, DimId> OrOne; ///< See isOrOne.
  /// A product. Its key in Products is the sorted list of factors, in which
  /// equal sizes have the same id.
  struct Product {
    DimId Size;
    DimList Of; ///< The factors as they were found.
  };
  std::map<DimList, Product> Products;
  /// For each size whose number follows from facts: these facts.
  llvm::DenseMap<DimId, Reasons> NumberReasons;
  /// Pairs of sizes that are equal by their numbers (sameByNumber).
  llvm::DenseSet<std::pair<DimId, DimId>> ByNumber;
  /// By unknown size: the sizes whose sum it is.
  llvm::DenseMap<DimId, DimList> Summands;
  /// By size: the number of its blocks of rows (markBlocks); -1 if two
  /// different numbers were recorded.
  llvm::MapVector<DimId, int64_t> Blocks;
  std::vector<NodeId> Fed; ///< See setFed.
  /// Unknown sizes that are not negative.
  llvm::DenseSet<DimId> Lengths;
  RaggedRows Selected;
  /// By node: pairs of an output and its axis that is supposed to be split.
  llvm::DenseMap<NodeId, llvm::SmallVector<std::pair<unsigned, unsigned>, 1>>
      Supposed;
  /// By node and slot: the rows that the node makes.
  llvm::DenseMap<uint64_t, uint16_t> RowsMade;
  /// The first row count with a known number, as (number, size): [0] of split
  /// tensors, [1] of tensors that each replica reads separately.
  std::pair<int64_t, DimId> Numbered[2];
  /// By the group number of sayRows(): the first rows of the group.
  std::map<int64_t, DimId> RowsBySaying;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_SIZECONTEXT_H
