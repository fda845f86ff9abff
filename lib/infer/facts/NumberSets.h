//===- lib/infer/facts/NumberSets.h - many sets that share parts *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Interned sets of numbers: equal sets have one id. The sets are tries that
// share equal parts. In a forward pass, the set of a node typically has one
// number more than the set of its input. In a backward pass, all sets are
// equal. So all sets together take little more memory than one set.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_NUMBERSETS_H
#define GRAFT_LIB_INFER_FACTS_NUMBERSETS_H

#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace graft {

class NumberSets {
public:
  /// The empty set.
  static constexpr uint32_t None = 0;

  /// Creates sets of numbers less than \p Count.
  explicit NumberSets(uint64_t Count);

  uint32_t single(uint32_t Number) { return single(top(), Number); }
  uint32_t unite(uint32_t A, uint32_t B) { return unite(top(), A, B); }
  /// Returns true if \p B is a subset of \p A.
  bool contains(uint32_t A, uint32_t B) { return unite(A, B) == A; }
  /// Returns the least number of \p A that is not in \p B. \p B must not
  /// contain \p A.
  uint32_t firstOutside(uint32_t A, uint32_t B);

private:
  using Pair = std::pair<uint32_t, uint32_t>;
  /// Sets of numbers below 32 * 2^level. On level 0, the first element of a
  /// pair has a bit for each number. On higher levels, both elements are ids of
  /// sets of the level below. Id 0 is the empty set.
  struct Level {
    std::vector<Pair> Sets{{0, 0}};
    llvm::DenseMap<Pair, uint32_t> Ids, Unions;
  };

  unsigned top() const { return static_cast<unsigned>(Levels.size() - 1); }
  uint32_t intern(unsigned At, Pair Set);
  uint32_t single(unsigned At, uint32_t Number);
  uint32_t unite(unsigned At, uint32_t A, uint32_t B);

  std::vector<Level> Levels;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_NUMBERSETS_H
