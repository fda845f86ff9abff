//===- lib/infer/sizes/SizeOrigins.h - where sizes come from ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The table of sizes joins two sizes if an op requires them to be equal. Such
// an equality is a fact only where that op runs:
//
//     z = x + y             in a branch: says that x and y have equally many
//                           rows if the branch is taken, and only then
//     g = Gather(y, Range(0, rows of x))
//                           outside of it: may not rely on that
//
// From this record SizeUses (lib/infer/facts) finds the nodes that rely on a
// fact without running the op that states it. A size is what its node defines
// it to be: the sizes that one definition joins have one origin. Each equality
// of two origins is a fact, recorded with the node that states it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_SIZES_SIZEORIGINS_H
#define GRAFT_LIB_INFER_SIZES_SIZEORIGINS_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace graft {

struct Sym;
using DimId = uint32_t;

class SizeOrigins {
public:
  /// A size without a known number or known rows; a number of split rows; rows
  /// that are counted by their values; a number.
  enum class Kind : uint8_t { Open, Rows, Counted, Number };
  struct Origin {
    Kind Is = Kind::Open;
    int64_t Value = 0; ///< The size, the rows, the class of rows, the number.
    bool operator==(const Origin &O) const = default;
    bool operator<(const Origin &O) const {
      return Is != O.Is ? Is < O.Is : Value < O.Value;
    }
  };
  /// Node \p Says states that two origins are one size.
  struct Fact {
    Origin X, Y;
    NodeId Says;
    bool operator==(const Fact &O) const = default;
  };
  /// Two products are one size because their factors are.
  struct Derived {
    Origin X, Y;
    llvm::SmallVector<std::pair<Origin, Origin>, 2> From;
  };

  /// The next size of the table is node \p By's.
  void make(NodeId By) {
    Sizes.push_back({static_cast<DimId>(Sizes.size()), By, {}, false});
  }
  DimId root(DimId D) const {
    while (Sizes[D].Parent != D) {
      DimId Above = Sizes[Sizes[D].Parent].Parent;
      Sizes[D].Parent = Above;
      D = Above;
    }
    return D;
  }
  Origin of(DimId D) const;
  /// The node that defines \p D.
  NodeId owner(DimId D) const { return Sizes[root(D)].Owner; }
  bool isOpen(DimId D) const { return Sizes[root(D)].Is.Is == Kind::Open; }
  /// Returns true if the definition of \p D says its number.
  bool isFixed(DimId D) const { return Sizes[root(D)].Fixed; }

  /// The definition of \p D says that it is \p S, or \p Number.
  void define(DimId D, const Sym &S);
  void defineNumber(DimId D, int64_t Number);
  /// Joins \p X and \p Y, which one definition makes one size.
  void join(DimId X, DimId Y);
  /// Joins the rows of two origins, if both are rows: one definition relates
  /// them. Facts about these rows do not count.
  void joinRows(Origin X, Origin Y);
  void state(Origin X, Origin Y, NodeId Says);
  void derive(DimId X, DimId Y,
              llvm::ArrayRef<std::pair<DimId, DimId>> Factors);
  /// A reader of the array or stack \p Handle may get an element with the size
  /// \p D as well.
  void alsoHolds(NodeId Handle, DimId D) { Held[Handle].push_back(D); }

  static Origin originOf(const Sym &S);
  /// The origin of \p D, whatever is defined of it later.
  static Origin ofSize(DimId D) { return {Kind::Open, D}; }
  static Origin number(int64_t Value) { return {Kind::Number, Value}; }
  /// Returns \p O as it is now: sizes and rows may have been joined.
  Origin settled(Origin O) const;

  llvm::ArrayRef<Fact> facts() const { return Facts; }
  llvm::ArrayRef<Derived> derived() const { return DerivedFacts; }
  llvm::ArrayRef<DimId> heldBy(NodeId Handle) const {
    auto It = Held.find(Handle);
    return It == Held.end() ? llvm::ArrayRef<DimId>() : It->second;
  }

private:
  struct Entry {
    mutable DimId Parent;
    NodeId Owner;
    Origin Is;
    bool Fixed;
  };
  uint16_t rowsRoot(uint16_t Rows) const;

  std::vector<Entry> Sizes;
  mutable std::vector<uint16_t> RowsParent;
  std::vector<Fact> Facts;
  std::vector<Derived> DerivedFacts;
  llvm::DenseMap<NodeId, llvm::SmallVector<DimId, 2>> Held;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_SIZES_SIZEORIGINS_H
