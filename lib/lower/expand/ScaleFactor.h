//===- lib/lower/expand/ScaleFactor.h - the factor of a _Scale --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_EXPAND_SCALEFACTOR_H
#define GRAFT_LIB_LOWER_EXPAND_SCALEFACTOR_H

#include "lib/graph/Graph.h"

#include <string>

namespace graft {

/// The written form of a `_Scale`: \p Op of its operand and a constant.
struct ScaleFactor {
  llvm::StringRef Op; ///< Mul, or FloorDiv of integers.
  unsigned Type;      ///< The type of the operand and of the constant.
  std::string Tensor; ///< The constant, as an encoded TensorProto.
};

/// Returns the factor of the `_Scale` node \p Scale: \p Count to the power that
/// the node states. A node that scales a vector of sizes states a power for
/// each element. Integers have no reciprocal, so a negative power divides them.
ScaleFactor scaleFactor(const Graph &G, NodeId Scale, unsigned Count);
/// Returns \p Count to the power of \p Power as a factor of \p Type.
ScaleFactor scaleFactor(unsigned Type, int64_t Power, unsigned Count);

} // namespace graft

#endif // GRAFT_LIB_LOWER_EXPAND_SCALEFACTOR_H
