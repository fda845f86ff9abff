//===- lib/infer/sizes/Dims.h - symbolic dimensions -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sizes are symbols, not numbers. Each dimension of each tensor, and each
// element of a small integer tensor, is a size variable. Ops state equalities
// between these variables. The class of equal variables that holds the batch
// axis of a split feed is the batch size. Example: in an export with a static
// batch size of 32, a layer of width 32 is not mistaken for the batch.
//
// A symbolic size is c * b^B * N^R. Here b is the number of rows of one replica
// and N the number of replicas, so that b * N is the global batch size. A
// replica may have no rows: b >= 0.
//
// Each split tensor has a separate b. Two feeds have equally many rows only if
// an op requires this. If an op requires two sizes to be equal, both b become
// multiples of a common b (DimTable::relate).
//
// The number of a size is always that of the single-device step, even if a
// constant was already changed to the size of one replica. So numbers of the
// step and of one replica are never compared.
//
// Data-dependent row counts (of Where with a condition on the batch, or of
// DynamicPartition) are called ragged. Each condition of a Where, and each part
// of a DynamicPartition, has a class of rows. In sizes of the class, b is the
// number of these rows on one replica. It may be 0.
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
  /// The id of the rows that b counts (DimTable::makeRows). Feeds that are
  /// known to have equally many rows share it.
  uint16_t Rows = 0;
  /// The class of ragged rows that b counts: 1 + the index of the output that
  /// determines the row count. 0: b counts rows of the batch.
  uint32_t Ragged = 0;
  bool isNumber() const { return B == 0 && R == 0; }
  /// Returns true if the size follows the rows of one replica.
  bool isLocal() const { return B != 0 && R == 0; }
  /// Returns k if the size in the single-device step is N^k times this size.
  int globalPower() const { return B - R; }
  /// Multiplies by \p O. Returns false if a Sym cannot express the product.
  bool multiply(const Sym &O);
  bool operator==(const Sym &O) const {
    return C == O.C && B == O.B && R == O.R && Ragged == O.Ragged &&
           (Rows == O.Rows || B == 0);
  }
};
static_assert(sizeof(Sym) == 16);

inline constexpr int64_t UnknownSize = INT64_MIN;

/// Union-find over sizes. Nearly all sizes are unknown or small numbers, so an
/// entry has only eight bytes. A side table holds all other sizes.
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

  /// Returns the number as it stands in the graph, or UnknownSize.
  int64_t number(DimId D) const { return numberOf(Entries[find(D)].Size); }
  /// Returns the symbolic size if one was found, else the number; nothing if
  /// neither is known.
  std::optional<Sym> sym(DimId D) const;
  /// Returns the number of values of Sym::Rows.
  size_t numRows() const { return RowsMade.size(); }
  /// Returns true if \p X and \p Y are known to be equal.
  bool isEqual(DimId X, DimId Y) const;
  /// Returns true if a symbolic size, and not just a number, is known.
  bool hasSym(DimId D) const { return hasSymOf(Entries[find(D)].Size); }
  bool hasSymAny(llvm::ArrayRef<DimId> List) const {
    return llvm::any_of(List, [this](DimId D) { return hasSym(D); });
  }
  /// Returns true if the size is a data-dependent row count.
  bool isRagged(DimId D) const {
    uint32_t Size = Entries[find(D)].Size;
    return hasSymOf(Size) && Others[Size & ~Aside].Value.Ragged != 0;
  }
  bool hasRagged() const { return AnyRagged; }
  bool isOne(DimId D) const { return number(D) == 1 && !hasSym(D); }
  bool isKnown(DimId D) const { return Entries[find(D)].Size < UnknownRows; }
  /// Returns true if the size is that of the single-device step on all
  /// replicas.
  bool isSame(DimId D) const;
  bool areSame(llvm::ArrayRef<DimId> Sizes) const {
    return llvm::all_of(Sizes, [&](DimId D) { return isSame(D); });
  }
  /// Makes isSame true for an unknown size.
  void markSame(DimId D);
  /// Returns true if the size is the row count of one replica times a factor.
  /// The factor may be unknown, but is equal on all replicas. So the size in
  /// the single-device step is N times as large.
  bool followsRows(DimId D) const;
  /// Makes followsRows true for an unknown size.
  void markRows(DimId D);
  /// Returns k if the size in the single-device step is N^k times the size on a
  /// replica. Returns nothing if k is unknown.
  std::optional<int> globalPower(DimId D) const;

  /// Makes a new b, for the rows of \p Of. A \p Claimed b counts the rows of no
  /// split tensor: only a constant claims that it is a row count.
  std::optional<uint16_t> makeRows(Endpoint Of, bool Claimed = false);
  /// Makes two sizes equal, which may relate the rows that they count. Returns
  /// false if the sizes differ, or if the relation cannot be expressed.
  bool relate(Sym X, Sym Y);
  /// Returns the tensor whose rows \p S counts.
  Endpoint rowsOf(const Sym &S) const { return RowsMade[S.Rows].Of; }
  /// Returns false if \p S counts rows that only a constant claims (makeRows).
  bool isOfSplit(const Sym &S) const {
    return S.B == 0 || S.Ragged != 0 || S.Rows >= RowsMade.size() ||
           !RowsMade[S.Rows].Claimed;
  }

  /// Joins the classes of the equal sizes \p A and \p B. Returns false and
  /// changes nothing if the two are known to differ.
  bool unify(DimId A, DimId B);
  /// Assigns the size \p S to the class of \p D. Returns false if the class is
  /// known to have another size.
  bool assign(DimId D, Sym S);
  /// Assigns a number to the class of \p D, unless the class has a number.
  void assignNumber(DimId D, int64_t Number);

  /// Returns the sizes about which more became known since the last call. The
  /// inference is at its fixpoint when there are none.
  std::vector<DimId> takeChanged() { return std::exchange(Changed, {}); }
  /// Schedules another visit of the nodes that read or make the size \p D.
  void touch(DimId D) { Changed.push_back(find(D)); }
  /// Returns a flag for each value of Sym::Rows. It is set if the rows were
  /// related to other rows since the last call.
  std::vector<bool> takeMoved();
  /// Returns true if the size counts rows whose flag in \p Of is set.
  bool counts(DimId D, const std::vector<bool> &Of) const {
    uint32_t Size = Entries[find(D)].Size;
    if (!hasSymOf(Size))
      return false;
    const Sym &S = Others[Size & ~Aside].Value;
    return S.B != 0 && S.Ragged == 0 && S.Rows < Of.size() && Of[S.Rows];
  }
  /// Begins the visit of a node. No other node has read the sizes that this
  /// visit makes, so takeChanged() does not report them.
  void beginNode() { Fresh = static_cast<DimId>(Entries.size()); }
  size_t size() const { return Entries.size(); }
  /// Links every size to its root, so that no later query changes the table.
  void flatten();

private:
  /// Encodings of Entry::Size. A small number is stored as Zero plus the
  /// number. Any other known size is stored as Aside plus the index in Others.
  /// UnknownSame: unknown, but equal on all replicas. UnknownRows: an unknown
  /// multiple of a replica's rows.
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
  /// Returns a decoded copy of an Entry::Size; set() writes it back.
  Wide get(uint32_t Size) const;
  void set(Entry &E, const Wide &W);
  /// Returns \p S in terms of the root of its rows (RowsEntry::Parent).
  std::optional<Sym> settled(Sym S) const;
  /// Shortens the path from \p Rows to its root.
  void shorten(uint16_t Rows);

  /// Rows of a split tensor: Factor times the rows with the id Parent.
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

/// A run of sizes: a shape, or the elements of an integer tensor. Tensors of
/// the same shape may share a run, which never changes.
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
  /// Tensors, each with an axis that is assumed to be split. The inference then
  /// shows which other tensors are split. The choice of feeds needs this.
  std::vector<std::pair<Endpoint, unsigned>> Suppose;
  /// N, if constants hold the numbers of one replica.
  unsigned Replicas = 1;
  /// Nodes of op Where that select among the rows of all replicas, and
  /// DynamicPartition nodes that send the rows of all replicas to parts.
  std::vector<NodeId> Whole;
  /// Nodes, in node order, whose integer output looks like a size but is not
  /// the global value on every replica.
  std::vector<NodeId> Differing;
  /// Pairs of a node and an earlier tensor with the sizes of the node's output.
  /// They replace the sizes that the rule of the op would infer.
  std::vector<std::pair<NodeId, Endpoint>> Like;
  /// Nodes, in node order, whose statements about sizes are ignored. Otherwise
  /// a node outside of their branch would rely on the statements although these
  /// nodes may not run (SizeUses).
  std::vector<NodeId> Denied;
};

/// Shapes and integer values of all tensors of a program. A variable's handle
/// has the shape of the variable.
class DimAnalysis {
public:
  DimAnalysis(const Graph &G, llvm::ArrayRef<NodeId> Order, DimOptions Options);

  const DimTable &table() const { return Dims; }
  const SizeOrigins &origins() const { return Origins; }
  unsigned replicas() const { return Options.Replicas; }

  /// Returns the sizes of the dimensions of \p E; nothing if its rank is not
  /// known.
  std::optional<llvm::ArrayRef<DimId>> shape(Endpoint E) const {
    return list(shapeRun(E));
  }
  /// Returns the elements of the integer scalar or vector \p E, or of a matrix
  /// of such vectors, row by row; nothing if they are not tracked.
  std::optional<llvm::ArrayRef<DimId>> value(Endpoint E) const {
    return list(valueRun(E));
  }

  /// Returns true if \p E has more than one axis.
  bool isMatrix(Endpoint E) const {
    DimRun Shape = shapeRun(E);
    return Shape.Known && Shape.Count > 1;
  }
  /// Returns the elements of a scalar or vector as numbers (axes, permutations,
  /// ...); nothing if one of them is not known as a number.
  std::optional<llvm::SmallVector<int64_t, 4>> numbers(Endpoint E) const;
  /// Returns true if an element of the tracked value follows the batch.
  bool isSymbolic(Endpoint E) const { return valueRun(E).Symbolic; }
  /// Returns true if an element of the tracked value follows the rows of one
  /// replica.
  bool isLocal(Endpoint E) const;
  /// Returns true if the Const node \p N holds only zeros.
  bool isZero(NodeId N) const { return ZeroConsts[N]; }
  /// Returns the first dimension whose size follows the rows of one replica, or
  /// -1.
  int batchAxis(Endpoint E) const;
  /// Returns the number of \p D on one replica, or UnknownSize.
  int64_t localNumber(DimId D) const;
  /// Returns the axes of \p E with size 1 in the single-device step; nothing if
  /// the size of an axis is unknown there.
  std::optional<llvm::SmallVector<int64_t, 4>> axesOfOne(Endpoint E) const;
  /// Returns true if \p D, a size of one replica, may be 1 there.
  bool mayBeOneRow(DimId D) const;
  /// Returns true if node \p Sum may add up all rows on a replica with a single
  /// row. BroadcastGradientArgs computes \p Axes from the sizes of one replica,
  /// and mistakes an axis with a single row for a broadcast axis.
  bool sumsByOneRow(const Graph &G, NodeId Sum, Endpoint Axes) const;
  /// Returns true if node \p N (BroadcastGradientArgs) lists more axes on a
  /// replica with a single row than on a replica with more rows. The sums along
  /// the listed axes are still right, because a sum along an axis of size 1
  /// changes nothing.
  bool hasAxesOfOneRow(const Graph &G, NodeId N) const;
  /// Returns true if replicas may have different row counts along axis \p Axis
  /// of the split tensor \p E.
  bool isUneven(Endpoint E, unsigned Axis) const;
  /// Returns true if no size or element of \p E follows the batch.
  bool isPlain(Endpoint E) const {
    return !shapeRun(E).Symbolic && !valueRun(E).Symbolic;
  }

  /// If \p Whole is the size of a concatenation of two tensors, returns the
  /// sizes of these tensors in order. Otherwise returns nothing.
  std::optional<std::pair<DimId, DimId>> partsOf(DimId Whole) const {
    auto It = Parts.find(Dims.find(Whole));
    return It == Parts.end() ? std::nullopt : std::optional(It->second);
  }

  /// A node that requires the sizes A and B to be equal, although they differ.
  struct Conflict {
    NodeId Node;
    DimId A;
    DimId B;
    /// The action of Node that the row count A of one replica makes impossible,
    /// or null. If Why is set, B equals A.
    const char *Why = nullptr;
  };
  llvm::ArrayRef<Conflict> conflicts() const { return Conflicts; }
  std::string describe(DimId D) const;
  /// Returns the nodes whose integer output is assumed to be a size of the
  /// single-device step. This is right if every replica has the global value.
  llvm::ArrayRef<NodeId> shared() const { return Shared; }
  /// Returns the feeds whose value, a single integer, proved to be a row count.
  /// The user feeds the row count of all replicas.
  llvm::ArrayRef<NodeId> fedRows() const { return FedRows; }
  /// Returns the nodes whose integer output is not the global value on every
  /// replica (DimOptions::Differing).
  llvm::ArrayRef<NodeId> differing() const { return Options.Differing; }
  /// Returns the node that determines the number of rows of class \p Ragged.
  NodeId counterOf(uint32_t Ragged) const;

  /// Returns true if \p N must select or partition the rows of all replicas.
  bool isOfAllRows(NodeId N) const {
    return llvm::is_contained(Options.Whole, N);
  }

  /// Sets the shape of each inserted node to that of its first input. A gather
  /// changes the shape, so the shape of a gather is unknown.
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
  /// Returns, for each index into Pool, the number of earlier sizes that \p Is
  /// accepts.
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
  /// The result of partsOf(). At most one of the two parts is a number.
  llvm::DenseMap<DimId, std::pair<DimId, DimId>> Parts;
  std::vector<Conflict> Conflicts;
  std::vector<NodeId> Shared;
  std::vector<NodeId> FedRows;
  bool OwnRows = false; ///< Set if replicas read batches of their own.
};

/// Returns the number of elements of \p E if the graph declares this number and
/// it is equal on all replicas.
std::optional<int64_t> staticElements(const DimAnalysis &Dims, Endpoint E);

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_DIMS_H
