//===- lib/infer/sizes/SizeOrigins.h - where sizes come from ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// DimTable joins two sizes if an op requires them to be equal. This equality is
// a fact, and holds only if the op runs:
//
//     z = x + y             in a branch: proves that x and y have equally many
//                           rows if the branch is taken, and only then
//     g = Gather(y, Range(0, rows of x))
//                           outside of the branch: must not rely on the fact
//
// SizeOrigins records the facts. SizeUses (lib/infer/facts) then finds each
// node that relies on a fact, but may run without the op that states it. The
// origin of a size is its definition by the node that makes it. Sizes that a
// definition joins have the same origin. Each equality of two origins is a
// fact, recorded with the node that states it.
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
  /// The definition of a size. Open: neither number nor rows are known; Rows:
  /// rows of a split tensor; Counted: a data-dependent row count; Number: a
  /// number.
  enum class Kind : uint8_t { Open, Rows, Counted, Number };
  struct Origin {
    Kind Is = Kind::Open;
    int64_t Value = 0; ///< By Kind: DimId, Sym::Rows, Sym::Ragged, or number.
    bool operator==(const Origin &O) const = default;
    bool operator<(const Origin &O) const {
      return Is != O.Is ? Is < O.Is : Value < O.Value;
    }
  };
  /// A fact: node Says states that sizes of the origins X and Y are equal.
  struct Fact {
    Origin X, Y;
    NodeId Says;
    bool operator==(const Fact &O) const = default;
  };
  /// A derived fact: sizes of the origins X and Y are equal because the two
  /// origins of each pair in From are. Example: products with equal factors.
  struct Derived {
    Origin X, Y;
    llvm::SmallVector<std::pair<Origin, Origin>, 2> From;
  };

  /// Adds the next size of the table, which node \p By makes.
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
  /// Returns the node that defines \p D.
  NodeId owner(DimId D) const { return Sizes[root(D)].Owner; }
  bool isOpen(DimId D) const { return Sizes[root(D)].Is.Is == Kind::Open; }
  /// Returns true if the definition of \p D determines its number.
  bool isFixed(DimId D) const { return Sizes[root(D)].Fixed; }

  /// Records that \p D is \p S, or \p Number, by its definition.
  void define(DimId D, const Sym &S);
  void defineNumber(DimId D, int64_t Number);
  /// Joins \p X and \p Y, which are equal by definition.
  void join(DimId X, DimId Y);
  /// Joins the rows of two origins of kind Rows, because a definition relates
  /// them. Equalities of these rows are no facts.
  void joinRows(Origin X, Origin Y);
  void state(Origin X, Origin Y, NodeId Says);
  void derive(DimId X, DimId Y,
              llvm::ArrayRef<std::pair<DimId, DimId>> Factors);
  void derive(Origin X, Origin Y,
              llvm::ArrayRef<std::pair<Origin, Origin>> From);
  /// Records that the array or stack \p Handle may also hold an element with
  /// the size \p D.
  void alsoHolds(NodeId Handle, DimId D) { Held[Handle].push_back(D); }

  static Origin originOf(const Sym &S);
  /// Returns an origin that stays the origin of \p D if \p D is defined or
  /// joined later.
  static Origin ofSize(DimId D) { return {Kind::Open, D}; }
  static Origin number(int64_t Value) { return {Kind::Number, Value}; }
  /// Returns the present origin of the size or rows that \p O names. They may
  /// have been defined or joined with others after \p O was made.
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
