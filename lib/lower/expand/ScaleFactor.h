//===- lib/lower/expand/ScaleFactor.h - what scales multiply by -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_EXPAND_SCALEFACTOR_H
#define GRAFT_LIB_LOWER_EXPAND_SCALEFACTOR_H

#include "lib/graph/Graph.h"

#include <string>

namespace graft {

/// How a `_Scale` of a program is written: \p Op of its operand and a constant.
struct ScaleFactor {
  llvm::StringRef Op; ///< Mul, or FloorDiv of integers.
  unsigned Type;      ///< That of the operand and the constant.
  std::string Tensor; ///< The constant, as an encoded TensorProto.
};

/// That of \p Count replicas to the power that \p Scale has: one number, or one
/// for each element of a vector of sizes. Integers, which have no reciprocal,
/// are divided.
ScaleFactor scaleFactor(const Graph &G, NodeId Scale, unsigned Count);
/// The same of a number of \p Type and one \p Power.
ScaleFactor scaleFactor(unsigned Type, int64_t Power, unsigned Count);

} // namespace graft

#endif // GRAFT_LIB_LOWER_EXPAND_SCALEFACTOR_H
