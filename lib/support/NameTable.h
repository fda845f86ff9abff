//===- lib/support/NameTable.h - from names to indices ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An open-addressing table of (hash, index) slots over names that the caller
// stores: 13 to 26 bytes a name, and one cache line for a lookup. A hash can be
// computed long before it is used, so that the misses of many lookups overlap.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_NAMETABLE_H
#define GRAFT_LIB_SUPPORT_NAMETABLE_H

#include "lib/support/Bytes.h"

#include <vector>

namespace graft {

class NameTable {
public:
  static constexpr uint32_t None = ~uint32_t(0);

  NameTable() { reserve(0); }

  /// Empties the table and makes room for \p Count names.
  void reserve(size_t Count) {
    size_t Size = 64;
    while (isFull(Count + 1, Size))
      Size *= 2;
    Slots.assign(Size, Slot());
    Used = 0;
  }

  /// Returns the index with \p NameOf(index) equal to \p Name, or None.
  template <typename Fn>
  uint32_t find(llvm::StringRef Name, uint32_t Hash, Fn NameOf) const {
    size_t Mask = Slots.size() - 1;
    for (size_t I = Hash & Mask; Slots[I].Index != None; I = (I + 1) & Mask)
      if (Slots[I].Hash == Hash && Slots[I].Index != Removed &&
          equalBytes(NameOf(Slots[I].Index), Name))
        return Slots[I].Index;
    return None;
  }

  /// Returns the index that has the name \p Name. If there is none, adds
  /// \p Index with this name.
  template <typename Fn>
  uint32_t insert(uint32_t Index, llvm::StringRef Name, uint32_t Hash,
                  Fn NameOf) {
    size_t Mask = Slots.size() - 1, I = Hash & Mask;
    for (; Slots[I].Index != None; I = (I + 1) & Mask)
      if (Slots[I].Hash == Hash && Slots[I].Index != Removed &&
          equalBytes(NameOf(Slots[I].Index), Name))
        return Slots[I].Index;
    Slots[I] = {Hash, Index};
    if (isFull(++Used, Slots.size()))
      grow();
    return Index;
  }

  void erase(uint32_t Index, uint32_t Hash) {
    size_t Mask = Slots.size() - 1;
    for (size_t I = Hash & Mask; Slots[I].Index != None; I = (I + 1) & Mask)
      if (Slots[I].Index == Index) {
        Slots[I].Index = Removed;
        return;
      }
  }

  /// Prepares for a lookup of \p Hash.
  void prefetch(uint32_t Hash) const {
    __builtin_prefetch(&Slots[Hash & (Slots.size() - 1)]);
  }
  /// Returns the index in the first slot of \p Hash, most often the result of
  /// the lookup; None if there is none.
  uint32_t guess(uint32_t Hash) const {
    uint32_t Index = Slots[Hash & (Slots.size() - 1)].Index;
    return Index == Removed ? None : Index;
  }

private:
  /// Marks a slot that lookups skip.
  static constexpr uint32_t Removed = ~uint32_t(1);

  static bool isFull(size_t Used, size_t Size) { return Used > Size / 8 * 5; }

  struct Slot {
    uint32_t Hash = 0;
    uint32_t Index = None;
  };

  void grow() {
    std::vector<Slot> Old = std::move(Slots);
    size_t Live = 0;
    for (const Slot &S : Old)
      Live += S.Index < Removed;
    reserve(Live * 2);
    Used = Live;
    size_t Mask = Slots.size() - 1;
    for (const Slot &S : Old) {
      if (S.Index >= Removed)
        continue;
      size_t I = S.Hash & Mask;
      while (Slots[I].Index != None)
        I = (I + 1) & Mask;
      Slots[I] = S;
    }
  }

  std::vector<Slot> Slots;
  size_t Used = 0; ///< Slots that are not empty, removed ones included.
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_NAMETABLE_H
