//===- lib/analysis/Dims.h - symbolic dimensions ----------------*- C++ -*-===//
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
// of replicas (so b * N is the global batch). b >= 1, hence max(n, 1) = n.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_DIMS_H
#define GRAFT_LIB_ANALYSIS_DIMS_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// The size c * b^B * N^R.
struct Sym {
  int64_t C = 1;
  int8_t B = 0;
  int8_t R = 0;
  bool isNumber() const { return B == 0 && R == 0; }
  /// Whether the size follows the rows of one replica.
  bool isLocal() const { return B != 0 && R == 0; }
  /// The power of N by which the true (single-device) value exceeds this one.
  int globalPower() const { return B - R; }
  bool operator==(const Sym &O) const {
    return C == O.C && B == O.B && R == O.R;
  }
};

using DimId = uint32_t;
inline constexpr int64_t UnknownSize = INT64_MIN;

/// Union-find over sizes.
class DimTable {
public:
  DimId make(int64_t Number = UnknownSize);
  DimId make(Sym S);
  DimId find(DimId D) const;

  /// The number as it stands in the graph, or UnknownSize.
  int64_t number(DimId D) const { return Entries[find(D)].Number; }
  /// The symbolic size: what was found, else the number; nothing if unknown.
  std::optional<Sym> sym(DimId D) const;
  /// Whether the class was found to be more than a number.
  bool hasSym(DimId D) const { return Entries[find(D)].HasSym; }
  bool hasSymAny(llvm::ArrayRef<DimId> List) const {
    return llvm::any_of(List, [this](DimId D) { return hasSym(D); });
  }
  bool isOne(DimId D) const { return number(D) == 1 && !hasSym(D); }
  bool isKnown(DimId D) const {
    const Entry &E = Entries[find(D)];
    return E.HasSym || E.Number != UnknownSize;
  }

  /// Makes \p A and \p B one; false (and no change) if they contradict.
  bool unify(DimId A, DimId B);
  /// Gives the class of \p D the size \p S; false if it has another one.
  bool assign(DimId D, Sym S);
  /// Gives the class of \p D a number unless it has one.
  void assignNumber(DimId D, int64_t Number);

  /// Changes since the last call: the fixpoint is reached when there are none.
  bool takeChanged() {
    bool Result = Changed;
    Changed = false;
    return Result;
  }
  /// Sizes made from now on are nobody else's yet: learning about them is no
  /// change.
  void beginNode() { Fresh = static_cast<DimId>(Entries.size()); }
  size_t size() const { return Entries.size(); }

private:
  struct Entry {
    mutable DimId Parent;
    bool HasSym = false;
    int64_t Number = UnknownSize;
    Sym Value;
  };
  std::vector<Entry> Entries;
  DimId Fresh = 0;
  bool Changed = false;
};

/// A shape, or the elements of an integer tensor: a run of sizes.
struct DimRun {
  uint32_t First = 0;
  uint16_t Count = 0;
  bool Known = false;
};

/// What limits or steers the inference of dimensions.
struct DimOptions {
  /// The constants still hold global numbers (before `replicate` patches them).
  bool Unpatched = false;
  /// A tensor whose axis 0 is taken to be the rows of one replica, to see what
  /// else would be (a choice of feeds).
  Endpoint Suppose;
  /// N, to divide the numbers of what `_ToReplicas` splits.
  unsigned Replicas = 1;
};

/// Shapes and integer values of all tensors of a program. The shape of a
/// variable's handle is the shape of the variable.
class DimAnalysis {
public:
  DimAnalysis(const Graph &G, llvm::ArrayRef<NodeId> Order, DimOptions Options);

  const DimTable &table() const { return Dims; }

  /// Sizes of the dimensions of \p E; nothing if its rank is not known.
  std::optional<llvm::ArrayRef<DimId>> shape(Endpoint E) const;
  /// Elements of the integer scalar or vector \p E; nothing if not tracked.
  std::optional<llvm::ArrayRef<DimId>> value(Endpoint E) const;

  /// The elements as numbers, if all are (axes, permutations, ...).
  std::optional<llvm::SmallVector<int64_t, 4>> numbers(Endpoint E) const;
  /// Whether an element of the tracked value follows the batch.
  bool isSymbolic(Endpoint E) const;
  /// Whether an element of the tracked value follows the rows of one replica.
  bool isLocal(Endpoint E) const;
  /// Whether the Const node \p N holds nothing but zeros.
  bool isZero(NodeId N) const { return ZeroConsts[N]; }
  /// The first dimension whose size follows the rows of one replica, or -1.
  int batchAxis(Endpoint E) const;

  /// Nodes where two different symbolic sizes met: (node, what met).
  struct Conflict {
    NodeId Node;
    DimId A;
    DimId B;
  };
  llvm::ArrayRef<Conflict> conflicts() const { return Conflicts; }
  std::string describe(DimId D) const;

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
  friend class DimRules;
  const Graph &G;
  DimOptions Options;
  DimTable Dims;
  std::vector<uint32_t> FirstOutput;
  std::vector<DimRun> Shapes; ///< By output.
  std::vector<DimRun> Values; ///< By output.
  std::vector<DimId> Pool;
  std::vector<bool> ZeroConsts; ///< By node.
  std::vector<Conflict> Conflicts;
};

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_DIMS_H
