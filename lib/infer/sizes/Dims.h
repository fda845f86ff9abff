//===- lib/infer/sizes/Dims.h - symbolic dimensions -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sizes are symbols, not numbers. Each dimension of each tensor, and each
// element of a small integer tensor, is a variable; ops give equalities between
// them; the class that holds the batch axis of a split feed is the batch. A
// layer as wide as the batch stays what it is, and the constants of an export
// with a static batch are told apart without comparing numbers.
//
// A symbolic size is c * b^B * N^R: b is the rows of one replica, N the number
// of replicas (so b * N is the global batch). There may be no rows: b >= 0.
//
// Each tensor that is split has a b of its own: nothing says that two feeds
// have equally many rows but an op that wants them so. Where two sizes must be
// equal, their b are one, or multiples of one (DimTable::relate).
//
// Numbers are those of the single-device step, also where a constant holds the
// size of one replica by now: a number of that step and one of a replica are
// never compared.
//
// Rows that are counted by their values (Where of a condition on the batch, or
// DynamicPartition) are ragged: of each condition, and of each part, a class of
// its own, of which every replica has another number, possibly none. In a size
// of theirs, b stands for that number.
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
  /// Which rows b counts: of the feeds that are known to have equally many
  /// (DimTable::makeRows).
  uint16_t Rows = 0;
  /// The class of rows that b counts, one more than the index of the output of
  /// the node that counts them; 0: the batch.
  uint32_t Ragged = 0;
  bool isNumber() const { return B == 0 && R == 0; }
  /// Whether the size follows the rows of one replica.
  bool isLocal() const { return B != 0 && R == 0; }
  /// The power of N by which the true (single-device) value exceeds this one.
  int globalPower() const { return B - R; }
  /// Multiplies by \p O; false if that is no such size.
  bool multiply(const Sym &O);
  bool operator==(const Sym &O) const {
    return C == O.C && B == O.B && R == O.R && Ragged == O.Ragged &&
           (Rows == O.Rows || B == 0);
  }
};
static_assert(sizeof(Sym) == 16);

inline constexpr int64_t UnknownSize = INT64_MIN;

/// Union-find over sizes. Eight bytes each: nearly all sizes are unknown or
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
  /// The symbolic size: what was found, else the number; nothing if unknown.
  std::optional<Sym> sym(DimId D) const;
  /// How many different rows (Sym::Rows) there are.
  size_t numRows() const { return RowsMade.size(); }
  /// Whether \p X and \p Y are one size, as far as that is known.
  bool isEqual(DimId X, DimId Y) const;
  /// Whether the class was found to be more than a number.
  bool hasSym(DimId D) const { return hasSymOf(Entries[find(D)].Size); }
  bool hasSymAny(llvm::ArrayRef<DimId> List) const {
    return llvm::any_of(List, [this](DimId D) { return hasSym(D); });
  }
  /// Whether the size is of rows that are counted by their values.
  bool isRagged(DimId D) const {
    uint32_t Size = Entries[find(D)].Size;
    return hasSymOf(Size) && Others[Size & ~Aside].Value.Ragged != 0;
  }
  bool hasRagged() const { return AnyRagged; }
  bool isOne(DimId D) const { return number(D) == 1 && !hasSym(D); }
  bool isKnown(DimId D) const { return Entries[find(D)].Size < UnknownRows; }
  /// Whether the size is that of the single-device step on every replica.
  bool isSame(DimId D) const;
  bool areSame(llvm::ArrayRef<DimId> Sizes) const {
    return llvm::all_of(Sizes, [&](DimId D) { return isSame(D); });
  }
  /// Says so of a size that is not known.
  void markSame(DimId D);
  /// Whether the size is so many times the rows of one replica, or that is not
  /// known, but it is the same for all replicas how many times: then the
  /// single-device step has N times as many.
  bool followsRows(DimId D) const;
  /// Says so of a size that is not known.
  void markRows(DimId D);
  /// By which power of N the size of the single-device step exceeds the one of
  /// a replica; nothing if that is not known.
  std::optional<int> globalPower(DimId D) const;

  /// A b of its own, that of \p Of. One that is \p Claimed is nothing that is
  /// split: a constant was changed as if it held it.
  std::optional<uint16_t> makeRows(Endpoint Of, bool Claimed = false);
  /// Says that two sizes are equal, which may say how the rows that they count
  /// are related; false if they are not, or that cannot be said.
  bool relate(Sym X, Sym Y);
  /// The tensor whose rows \p S counts.
  Endpoint rowsOf(const Sym &S) const { return RowsMade[S.Rows].Of; }
  /// Whether it is more than a claim that \p S counts rows of what is split.
  bool isOfSplit(const Sym &S) const {
    return S.B == 0 || S.Ragged != 0 || S.Rows >= RowsMade.size() ||
           !RowsMade[S.Rows].Claimed;
  }

  /// Makes \p A and \p B one; false (and no change) if they contradict.
  bool unify(DimId A, DimId B);
  /// Gives the class of \p D the size \p S; false if it has another one.
  bool assign(DimId D, Sym S);
  /// Gives the class of \p D a number unless it has one.
  void assignNumber(DimId D, int64_t Number);

  /// The sizes that became better known since the last call: the fixpoint is
  /// reached when there are none.
  std::vector<DimId> takeChanged() { return std::exchange(Changed, {}); }
  /// Has those read again that have the size \p D.
  void touch(DimId D) { Changed.push_back(find(D)); }
  /// Likewise which rows, by Sym::Rows, were found to be those of others.
  std::vector<bool> takeMoved();
  /// Whether the size counts rows that are in \p Of.
  bool counts(DimId D, const std::vector<bool> &Of) const {
    uint32_t Size = Entries[find(D)].Size;
    if (!hasSymOf(Size))
      return false;
    const Sym &S = Others[Size & ~Aside].Value;
    return S.B != 0 && S.Ragged == 0 && S.Rows < Of.size() && Of[S.Rows];
  }
  /// Sizes made from now on are nobody else's yet: learning about them is no
  /// change.
  void beginNode() { Fresh = static_cast<DimId>(Entries.size()); }
  size_t size() const { return Entries.size(); }
  /// Gives every size its class, so that no later question changes anything.
  void flatten();

private:
  /// Size of an entry: a number plus Zero, an unknown one (which all replicas
  /// have, or a multiple of a replica's rows, or not), or Aside and an index.
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
  /// What an entry says, for a change.
  Wide get(uint32_t Size) const;
  void set(Entry &E, const Wide &W);
  /// \p S with the rows that those of it were found to be.
  std::optional<Sym> settled(Sym S) const;
  /// Makes the way from \p Rows to its root short.
  void shorten(uint16_t Rows);

  /// Rows of what is split: Factor times those of Parent.
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
  bool Symbolic = false; ///< A size follows the batch (when all is inferred).
  bool operator==(const DimRun &O) const {
    return First == O.First && Count == O.Count && Known == O.Known;
  }
};

/// What limits or steers the inference of dimensions.
struct DimOptions {
  /// The constants still hold global numbers (before `replicate` patches them).
  bool Unpatched = false;
  /// Tensors whose axis is taken to be the rows of one replica, to see what
  /// else would be (a choice of feeds).
  std::vector<std::pair<Endpoint, unsigned>> Suppose;
  /// N, where constants hold the numbers of one replica.
  unsigned Replicas = 1;
  /// Where nodes that select among the rows of all replicas, and
  /// DynamicPartition nodes that send them to parts.
  std::vector<NodeId> Whole;
  /// Nodes in order whose integer, which might be a size, is not that of the
  /// single-device step on every replica.
  std::vector<NodeId> Differing;
  /// Nodes whose tensor has the sizes of another, which comes before, whatever
  /// their op says.
  std::vector<std::pair<NodeId, Endpoint>> Like;
  /// Nodes in order whose statements about sizes are no facts: somebody would
  /// rely on them who runs where they do not (SizeUses).
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

  /// Whether \p E has more than one axis.
  bool isMatrix(Endpoint E) const {
    DimRun Shape = shapeRun(E);
    return Shape.Known && Shape.Count > 1;
  }
  /// The elements of a scalar or vector as numbers, if all are (axes,
  /// permutations, ...).
  std::optional<llvm::SmallVector<int64_t, 4>> numbers(Endpoint E) const;
  /// Whether an element of the tracked value follows the batch.
  bool isSymbolic(Endpoint E) const { return valueRun(E).Symbolic; }
  /// Whether an element of the tracked value follows the rows of one replica.
  bool isLocal(Endpoint E) const;
  /// Whether the Const node \p N holds nothing but zeros.
  bool isZero(NodeId N) const { return ZeroConsts[N]; }
  /// The first dimension whose size follows the rows of one replica, or -1.
  int batchAxis(Endpoint E) const;
  /// The number that \p D is on one replica, or UnknownSize.
  int64_t localNumber(DimId D) const;
  /// The axes of \p E along which the single-device step has one element;
  /// nothing if that is not known of each of them.
  std::optional<llvm::SmallVector<int64_t, 4>> axesOfOne(Endpoint E) const;
  /// Whether \p D, a size of one replica, may be 1 there.
  bool mayBeOneRow(DimId D) const;
  /// Whether node \p Sum adds up all rows along axes \p Axes that the sizes of
  /// one replica tell (BroadcastGradientArgs): one row there is an axis of one
  /// element like any other, which is added up.
  bool sumsByOneRow(const Graph &G, NodeId Sum, Endpoint Axes) const;
  /// Whether node \p N (BroadcastGradientArgs) names more axes where a replica
  /// has one row than where there are more. To add up along an axis of one
  /// element changes nothing, so a sum is that of more rows; the axes are not.
  bool hasAxesOfOneRow(const Graph &G, NodeId N) const;
  /// Whether the replicas may have different numbers of the rows along axis
  /// \p Axis of \p E, which is split.
  bool isUneven(Endpoint E, unsigned Axis) const;
  /// Whether no size or element of \p E follows the batch.
  bool isPlain(Endpoint E) const {
    return !shapeRun(E).Symbolic && !valueRun(E).Symbolic;
  }

  /// Nodes where two different symbolic sizes met: (node, what met).
  struct Conflict {
    NodeId Node;
    DimId A;
    DimId B;
    /// What the node does that a replica's rows, A, do not allow; or null.
    const char *Why = nullptr;
  };
  llvm::ArrayRef<Conflict> conflicts() const { return Conflicts; }
  std::string describe(DimId D) const;
  /// Nodes whose integer is taken to be a size of the single-device step: that
  /// holds if all replicas have the true value.
  llvm::ArrayRef<NodeId> shared() const { return Shared; }
  /// Feeds of one integer that was found to be a number of rows: what is fed
  /// is that of all replicas.
  llvm::ArrayRef<NodeId> fedRows() const { return FedRows; }
  /// Nodes that were found not to have it (DimOptions::Differing).
  llvm::ArrayRef<NodeId> differing() const { return Options.Differing; }
  /// The node that counts the rows of class \p Ragged.
  NodeId counterOf(uint32_t Ragged) const;

  /// Whether \p N must find, or send, rows among those of all replicas.
  bool isOfAllRows(NodeId N) const {
    return llvm::is_contained(Options.Whole, N);
  }

  /// Gives nodes that are new the shape of their first input: what is inserted
  /// keeps shapes, except gathers, whose shape is not known then.
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
  /// For each place in the pool, how many sizes before it are such that \p Is.
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
  SizeOrigins Origins; ///< Of the sizes in Dims.
  std::vector<uint32_t> FirstOutput;
  std::vector<DimRun> Shapes; ///< By output.
  std::vector<DimRun> Values; ///< By output.
  std::vector<DimId> Pool;
  std::vector<bool> ZeroConsts; ///< By node.
  std::vector<Conflict> Conflicts;
  std::vector<NodeId> Shared;
  std::vector<NodeId> FedRows;
  bool OwnRows = false; ///< Replicas take batches of their own.
};

/// The number of elements of \p E if all replicas have as many, and the graph
/// says how many.
std::optional<int64_t> staticElements(const DimAnalysis &Dims, Endpoint E);

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_DIMS_H
