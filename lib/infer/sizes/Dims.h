//===- lib/infer/sizes/Dims.h - symbolic dimensions -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sizes are symbols, not numbers. Each dimension of each tensor, and each
// element of a small integer tensor, is a variable; ops state equalities
// between them; the class that holds the batch axis of a split feed is the
// batch. A layer as wide as the batch is not taken for it, and the constants of
// an export with a static batch are told apart without comparing numbers.
//
// A symbolic size is c * b^B * N^R: b is the rows of one replica, N the number
// of replicas (so b * N is the global batch). There may be no rows: b >= 0.
//
// Each split tensor has a b of its own: only an op that requires it shows that
// two feeds have equally many rows. Where two sizes must be equal, their b are
// one, or multiples of one (DimTable::relate).
//
// Numbers are those of the single-device step, even if a constant holds the
// size of one replica by now. A number of that step and one of a replica are
// never compared.
//
// Rows that are counted by their values (Where of a condition on the batch, or
// DynamicPartition) are ragged. Each condition, and each part, has a class of
// rows, and each replica has another number of them, possibly none. In their
// sizes, b is that number.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_SIZES_DIMS_H
#define GRAFT_LIB_INFER_SIZES_DIMS_H

#include "lib/graph/Graph.h"
#include "lib/infer/sizes/SizeOrigins.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace graft {

/// The size c * b^B * N^R.
struct Sym {
  int64_t C = 1;
  int8_t B = 0;
  int8_t R = 0;
  /// The rows that b counts: those of feeds that are known to have equally many
  /// (DimTable::makeRows).
  uint16_t Rows = 0;
  /// The class of ragged rows that b counts: one more than the index of the
  /// output of the node that counts them; 0: the batch.
  uint32_t Ragged = 0;
  bool isNumber() const { return B == 0 && R == 0; }
  /// Returns true if the size follows the rows of one replica.
  bool isLocal() const { return B != 0 && R == 0; }
  /// The power of N by which the global value exceeds this one.
  int globalPower() const { return B - R; }
  /// Multiplies by \p O. Returns false if the product is no such size.
  bool multiply(const Sym &O);
  bool operator==(const Sym &O) const {
    return C == O.C && B == O.B && R == O.R && Ragged == O.Ragged &&
           (Rows == O.Rows || B == 0);
  }
};
static_assert(sizeof(Sym) == 16);

inline constexpr int64_t UnknownSize = INT64_MIN;

/// Union-find over sizes. Each has eight bytes: nearly all sizes are unknown or
/// small numbers; the others are in a table aside.
class DimTable {
public:
  DimId make() {
    auto D = static_cast<DimId>(Entries.size());
    Entries.push_back({D, Unknown});
    return D;
  }
  DimId make(int64_t Number) {
    DimId D = make();
    assignNumber(D, Number);
    return D;
  }
  DimId make(Sym S) {
    DimId D = make();
    assign(D, S);
    return D;
  }
  DimId find(DimId D) const {
    while (Entries[D].Parent != D) {
      DimId Above = Entries[Entries[D].Parent].Parent;
      Entries[D].Parent = Above;
      D = Above;
    }
    return D;
  }

  /// The number as it stands in the graph, or UnknownSize.
  int64_t number(DimId D) const { return numberOf(Entries[find(D)].Size); }
  /// The symbolic size if one was found, else the number; nothing if unknown.
  std::optional<Sym> sym(DimId D) const;
  /// The number of different rows (Sym::Rows).
  size_t numRows() const { return RowsMade.size(); }
  /// Returns true if \p X and \p Y are known to be one size.
  bool isEqual(DimId X, DimId Y) const;
  /// Returns true if the class was found to be more than a number.
  bool hasSym(DimId D) const { return hasSymOf(Entries[find(D)].Size); }
  bool hasSymAny(llvm::ArrayRef<DimId> List) const {
    return llvm::any_of(List, [this](DimId D) { return hasSym(D); });
  }
  /// Returns true if the size is one of rows that are counted by their values.
  bool isRagged(DimId D) const {
    uint32_t Size = Entries[find(D)].Size;
    return hasSymOf(Size) && Others[Size & ~Aside].Value.Ragged != 0;
  }
  bool hasRagged() const { return AnyRagged; }
  bool isOne(DimId D) const { return number(D) == 1 && !hasSym(D); }
  bool isKnown(DimId D) const { return Entries[find(D)].Size < UnknownRows; }
  /// Returns true if the size on every replica is that of the single-device
  /// step.
  bool isSame(DimId D) const;
  bool areSame(llvm::ArrayRef<DimId> Sizes) const {
    return llvm::all_of(Sizes, [&](DimId D) { return isSame(D); });
  }
  /// Makes isSame true for an unknown size.
  void markSame(DimId D);
  /// Returns true if the size is a multiple of the rows of one replica. The
  /// factor may be unknown, but is the same on all replicas: the single-device
  /// step has N times as many.
  bool followsRows(DimId D) const;
  /// Makes followsRows true for an unknown size.
  void markRows(DimId D);
  /// The power of N by which the size of the single-device step exceeds that of
  /// a replica; nothing if it is unknown.
  std::optional<int> globalPower(DimId D) const;

  /// Makes a new b, for the rows of \p Of. One that is \p Claimed belongs to no
  /// split tensor: a constant was changed as if it held such rows.
  std::optional<uint16_t> makeRows(Endpoint Of, bool Claimed = false);
  /// Makes two sizes equal, which may relate the rows that they count. Returns
  /// false if they differ, or if the relation cannot be expressed.
  bool relate(Sym X, Sym Y);
  /// The tensor whose rows \p S counts.
  Endpoint rowsOf(const Sym &S) const { return RowsMade[S.Rows].Of; }
  /// Returns true if \p S counts rows of a split tensor, by more than a claim.
  bool isOfSplit(const Sym &S) const {
    return S.B == 0 || S.Ragged != 0 || S.Rows >= RowsMade.size() ||
           !RowsMade[S.Rows].Claimed;
  }

  /// Makes \p A and \p B one. Returns false, and changes nothing, if they
  /// contradict.
  bool unify(DimId A, DimId B);
  /// Gives the class of \p D the size \p S. Returns false if it has another
  /// one.
  bool assign(DimId D, Sym S);
  /// Gives the class of \p D a number unless it has one.
  void assignNumber(DimId D, int64_t Number);

  /// Returns the sizes that became better known since the last call: the
  /// fixpoint is reached when there are none.
  std::vector<DimId> takeChanged() { return std::exchange(Changed, {}); }
  /// Has the nodes with the size \p D visited again.
  void touch(DimId D) { Changed.push_back(find(D)); }
  /// Returns which rows, by Sym::Rows, were found to be those of others since
  /// then.
  std::vector<bool> takeMoved();
  /// Returns true if the size counts rows that are in \p Of.
  bool counts(DimId D, const std::vector<bool> &Of) const {
    uint32_t Size = Entries[find(D)].Size;
    if (!hasSymOf(Size))
      return false;
    const Sym &S = Others[Size & ~Aside].Value;
    return S.B != 0 && S.Ragged == 0 && S.Rows < Of.size() && Of[S.Rows];
  }
  /// Begins a node. Only it has the sizes that are made from now on: learning
  /// about them is no change.
  void beginNode() { Fresh = static_cast<DimId>(Entries.size()); }
  size_t size() const { return Entries.size(); }
  /// Links every size to its root, so that no later query changes the table.
  void flatten();

private:
  /// The size of an entry: a number plus Zero; an unknown one (the same on all
  /// replicas, a multiple of a replica's rows, or neither); or Aside and an
  /// index.
  enum : uint32_t {
    Zero = uint32_t(1) << 30,
    Aside = uint32_t(1) << 31,
    Unknown = ~uint32_t(0),
    UnknownSame = Unknown - 1,
    UnknownRows = Unknown - 2,
  };
  struct Entry {
    mutable DimId Parent;
    uint32_t Size;
  };
  struct Wide {
    int64_t Number = UnknownSize;
    bool HasSym = false;
    Sym Value;
  };
  bool isWide(uint32_t Size) const {
    return Size & Aside && Size < UnknownRows;
  }
  int64_t numberOf(uint32_t Size) const {
    if (!(Size & Aside))
      return int64_t(Size) - Zero;
    return Size >= UnknownRows ? UnknownSize : Others[Size & ~Aside].Number;
  }
  bool hasSymOf(uint32_t Size) const {
    return isWide(Size) && Others[Size & ~Aside].HasSym;
  }
  /// Returns the content of an entry, to be changed.
  Wide get(uint32_t Size) const;
  void set(Entry &E, const Wide &W);
  /// Returns \p S in terms of the rows at the root of its own.
  std::optional<Sym> settled(Sym S) const;
  /// Shortens the path from \p Rows to its root.
  void shorten(uint16_t Rows);

  /// Rows of a split tensor: Factor times those of Parent.
  struct RowsEntry {
    uint16_t Parent;
    bool Claimed;
    int64_t Factor;
    Endpoint Of;
  };

  std::vector<Entry> Entries; ///< By size.
  std::vector<Wide> Others;
  std::vector<RowsEntry> RowsMade; ///< By Sym::Rows.
  std::vector<bool> Joined;        ///< Rows that were given a parent.
  bool AnyRagged = false;
  std::vector<DimId> Changed;
  DimId Fresh = 0;
};

/// A shape, or the elements of an integer tensor: a run of sizes. Tensors of
/// one shape share a run, which never changes.
struct DimRun {
  uint32_t First = 0;
  uint16_t Count = 0;
  bool Known = false;
  bool Symbolic = false; ///< Set if a size follows the batch (after inference).
  bool operator==(const DimRun &O) const {
    return First == O.First && Count == O.Count && Known == O.Known;
  }
};

/// Options of the inference of dimensions.
struct DimOptions {
  /// The constants still hold global numbers (before `replicate` patches them).
  bool Unpatched = false;
  /// Tensors and their axes that are supposed to hold the rows of one replica,
  /// to find which others would (a choice of feeds).
  std::vector<std::pair<Endpoint, unsigned>> Suppose;
  /// N, if constants hold the numbers of one replica.
  unsigned Replicas = 1;
  /// The Where nodes that select among the rows of all replicas, and the
  /// DynamicPartition nodes that send them to parts.
  std::vector<NodeId> Whole;
  /// Nodes in order whose integer might be a size, but is not the global value
  /// on every replica.
  std::vector<NodeId> Differing;
  /// Nodes whose tensor has the sizes of another, earlier one, whatever their
  /// op says.
  std::vector<std::pair<NodeId, Endpoint>> Like;
  /// Nodes in order whose statements about sizes are no facts: nodes that run
  /// where these do not would rely on them (SizeUses).
  std::vector<NodeId> Denied;
};

/// Shapes and integer values of all tensors of a program. The shape of a
/// variable's handle is the shape of the variable.
class DimAnalysis {
public:
  DimAnalysis(const Graph &G, llvm::ArrayRef<NodeId> Order, DimOptions Options);

  const DimTable &table() const { return Dims; }
  const SizeOrigins &origins() const { return Origins; }
  unsigned replicas() const { return Options.Replicas; }

  /// Sizes of the dimensions of \p E; nothing if its rank is not known.
  std::optional<llvm::ArrayRef<DimId>> shape(Endpoint E) const {
    return list(shapeRun(E));
  }
  /// Elements of the integer scalar or vector \p E, or of a matrix that is made
  /// of such vectors, row by row; nothing if not tracked.
  std::optional<llvm::ArrayRef<DimId>> value(Endpoint E) const {
    return list(valueRun(E));
  }

  /// Returns true if \p E has more than one axis.
  bool isMatrix(Endpoint E) const {
    DimRun Shape = shapeRun(E);
    return Shape.Known && Shape.Count > 1;
  }
  /// The elements of a scalar or vector as numbers, if all are (axes,
  /// permutations, ...).
  std::optional<llvm::SmallVector<int64_t, 4>> numbers(Endpoint E) const;
  /// Returns true if an element of the tracked value follows the batch.
  bool isSymbolic(Endpoint E) const { return valueRun(E).Symbolic; }
  /// Returns true if an element of the tracked value follows the rows of one
  /// replica.
  bool isLocal(Endpoint E) const;
  /// Returns true if the Const node \p N holds only zeros.
  bool isZero(NodeId N) const { return ZeroConsts[N]; }
  /// The first dimension whose size follows the rows of one replica, or -1.
  int batchAxis(Endpoint E) const;
  /// The number that \p D is on one replica, or UnknownSize.
  int64_t localNumber(DimId D) const;
  /// The axes of \p E along which the single-device step has one element;
  /// nothing if that is unknown for one of them.
  std::optional<llvm::SmallVector<int64_t, 4>> axesOfOne(Endpoint E) const;
  /// Returns true if \p D, a size of one replica, may be 1 there.
  bool mayBeOneRow(DimId D) const;
  /// Returns true if node \p Sum may add up all rows because a replica has one:
  /// \p Axes follow from the sizes of one replica (BroadcastGradientArgs), and
  /// one row there is an axis of one element like any other.
  bool sumsByOneRow(const Graph &G, NodeId Sum, Endpoint Axes) const;
  /// Returns true if node \p N (BroadcastGradientArgs) names more axes on a
  /// replica with one row than on one with more. A sum along an axis of one
  /// element changes nothing, so that sums are right with either; the axes
  /// differ.
  bool hasAxesOfOneRow(const Graph &G, NodeId N) const;
  /// Returns true if the replicas may have different numbers of rows along axis
  /// \p Axis of \p E, which is split.
  bool isUneven(Endpoint E, unsigned Axis) const;
  /// Returns true if no size or element of \p E follows the batch.
  bool isPlain(Endpoint E) const {
    return !shapeRun(E).Symbolic && !valueRun(E).Symbolic;
  }

  /// A node where two different symbolic sizes met, and these sizes.
  struct Conflict {
    NodeId Node;
    DimId A;
    DimId B;
    /// The action of the node that a replica's rows, A, do not allow; or null.
    const char *Why = nullptr;
  };
  llvm::ArrayRef<Conflict> conflicts() const { return Conflicts; }
  std::string describe(DimId D) const;
  /// Nodes whose integer is taken to be a size of the single-device step: that
  /// holds if all replicas have the global value.
  llvm::ArrayRef<NodeId> shared() const { return Shared; }
  /// Feeds of one integer that was found to be a number of rows: the fed value
  /// is that of all replicas.
  llvm::ArrayRef<NodeId> fedRows() const { return FedRows; }
  /// Nodes whose integer is not the global value everywhere
  /// (DimOptions::Differing).
  llvm::ArrayRef<NodeId> differing() const { return Options.Differing; }
  /// The node that counts the rows of class \p Ragged.
  NodeId counterOf(uint32_t Ragged) const;

  /// Returns true if \p N must find, or send, rows among those of all replicas.
  bool isOfAllRows(NodeId N) const {
    return llvm::is_contained(Options.Whole, N);
  }

  /// Gives new nodes the shape of their first input: inserted nodes keep
  /// shapes, except gathers, whose shape is unknown then.
  void extend();

  unsigned numOutputs(NodeId N) const {
    return FirstOutput[N + 1] - FirstOutput[N];
  }
  uint32_t outputIndex(Endpoint E) const {
    return FirstOutput[E.Node] + E.Port;
  }
  uint32_t totalOutputs() const { return FirstOutput.back(); }
  bool validPort(Endpoint E) const {
    return !E.isControl() && E.Port < numOutputs(E.Node);
  }

private:
  friend class SizeContext;
  friend class SizeInference;
  DimRun shapeRun(Endpoint E) const {
    return validPort(E) ? Shapes[outputIndex(E)] : DimRun();
  }
  DimRun valueRun(Endpoint E) const {
    return validPort(E) ? Values[outputIndex(E)] : DimRun();
  }
  std::optional<llvm::ArrayRef<DimId>> list(DimRun R) const {
    if (!R.Known)
      return std::nullopt;
    return llvm::ArrayRef<DimId>(Pool.data() + R.First, R.Count);
  }
  /// Returns for each place in the pool the number of sizes before it that
  /// \p Is accepts.
  template <typename Fn> std::vector<uint32_t> countInPool(Fn Is) const {
    std::vector<uint32_t> Before(Pool.size() + 1);
    for (size_t I = 0; I < Pool.size(); ++I)
      Before[I + 1] = Before[I] + Is(Pool[I]);
    return Before;
  }
  void finish();

  const Graph &G;
  DimOptions Options;
  DimTable Dims;
  SizeOrigins Origins; ///< The origins of the sizes in Dims.
  std::vector<uint32_t> FirstOutput;
  std::vector<DimRun> Shapes; ///< By output.
  std::vector<DimRun> Values; ///< By output.
  std::vector<DimId> Pool;
  std::vector<bool> ZeroConsts; ///< By node.
  std::vector<Conflict> Conflicts;
  std::vector<NodeId> Shared;
  std::vector<NodeId> FedRows;
  bool OwnRows = false; ///< Set if replicas read batches of their own.
};

/// Returns the number of elements of \p E if the graph declares it and all
/// replicas have as many.
std::optional<int64_t> staticElements(const DimAnalysis &Dims, Endpoint E);

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_DIMS_H
