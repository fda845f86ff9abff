//===- lib/ops/ProgramOps.h - the ops of a program --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The ops that TensorFlow does not have, and the values of their attribute
// `combine` (docs/ProgramFormat.md). No output has such an op.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_OPS_PROGRAMOPS_H
#define GRAFT_LIB_OPS_PROGRAMOPS_H

#include "llvm/ADT/StringRef.h"

namespace graft {

inline constexpr llvm::StringLiteral ToReplicasOp = "_ToReplicas";
inline constexpr llvm::StringLiteral FromReplicasOp = "_FromReplicas";
inline constexpr llvm::StringLiteral ReduceOp = "_Reduce";
inline constexpr llvm::StringLiteral GatherOp = "_Gather";
inline constexpr llvm::StringLiteral ScaleOp = "_Scale";
/// Lists the devices of the replicas.
inline constexpr llvm::StringLiteral MeshOp = "_GraftMesh";

/// Returns true if \p Op is an op of graft's replicated program.
inline bool isProgramOp(llvm::StringRef Op) {
  return Op == ToReplicasOp || Op == FromReplicasOp || Op == ReduceOp ||
         Op == GatherOp || Op == ScaleOp || Op == MeshOp;
}

/// How values of replicas are combined: one of the words below.
inline constexpr llvm::StringRef CombineAttr = "combine";
/// The power of the number of replicas by which a value is multiplied.
inline constexpr llvm::StringRef PowerAttr = "power";
/// The powers for the elements of a vector of sizes.
inline constexpr llvm::StringRef PowersAttr = "powers";
/// On a `_Scale`: the power of n/N by which the value is also multiplied. N is
/// the number of replicas, and n of them have different shards
/// (lib/program/forms/RowRepeat.h).
inline constexpr llvm::StringRef ShareAttr = "share";

namespace combine {
inline constexpr llvm::StringLiteral Sum = "sum";
inline constexpr llvm::StringLiteral Min = "min";
inline constexpr llvm::StringLiteral Max = "max";
inline constexpr llvm::StringLiteral And = "and";
inline constexpr llvm::StringLiteral Or = "or";
inline constexpr llvm::StringLiteral Concat = "concat";
inline constexpr llvm::StringLiteral Pick = "pick"; ///< Any of equal values.
} // namespace combine

} // namespace graft

#endif // GRAFT_LIB_OPS_PROGRAMOPS_H
