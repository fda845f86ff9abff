//===- lib/graph/Axis.h - the numbers of axes -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An axis in a graph may be any integer. A negative axis counts from the end,
// and TensorFlow refuses an axis that is out of range. All code that reads such
// a number converts it here.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_AXIS_H
#define GRAFT_LIB_GRAPH_AXIS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

#include <cstdint>
#include <optional>

namespace graft {

/// TensorShape::MaxDimensions of tensorflow/core/framework/tensor_shape.h.
inline constexpr unsigned MaxRank = 254;

/// Returns the axis that \p Number names in a tensor of \p Rank axes, or
/// nothing if there is none. A negative rank means unknown.
inline std::optional<unsigned> axisIn(int64_t Number, int64_t Rank) {
  if (Rank < 0 || Number < -Rank || Number >= Rank)
    return std::nullopt;
  return static_cast<unsigned>(Number < 0 ? Number + Rank : Number);
}

/// Returns the axes that \p Numbers name, a bit for each of \p Rank, or nothing
/// if one of them is no axis.
inline std::optional<llvm::SmallBitVector>
axesIn(llvm::ArrayRef<int64_t> Numbers, int64_t Rank) {
  if (Rank < 0)
    return std::nullopt;
  llvm::SmallBitVector Axes(static_cast<unsigned>(Rank));
  for (int64_t Number : Numbers) {
    auto Axis = axisIn(Number, Rank);
    if (!Axis)
      return std::nullopt;
    Axes.set(*Axis);
  }
  return Axes;
}

/// Returns true if \p Numbers are the axes of a tensor of \p Rank axes, each
/// once. (TensorFlow allows no negative axis in a permutation.)
inline bool isPermutation(llvm::ArrayRef<int64_t> Numbers, size_t Rank) {
  auto Axes = axesIn(Numbers, static_cast<int64_t>(Rank));
  return Numbers.size() == Rank && Axes && Axes->all() &&
         llvm::all_of(Numbers, [](int64_t Number) { return Number >= 0; });
}

} // namespace graft

#endif // GRAFT_LIB_GRAPH_AXIS_H
