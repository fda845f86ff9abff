//===- lib/certify/tpu/Stack.h - what replicas give each other --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A TPU adds and does nothing else across replicas. What is no sum is one of a
// replica's own row among zeros, which gives each the rows of all:
//
//     own = Select(Equal([0 .. N-1], [r]), Pack(x, .., x), ZerosLike(..))
//     all = CrossReplicaSum(own)
//
// with x as numbers of 32 bits, to which nothing is lost, or a sum of 0s and
// 1s, which tells whether there is a 1, or nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_TPU_STACK_H
#define GRAFT_LIB_CERTIFY_TPU_STACK_H

#include "lib/certify/tpu/TpuFile.h"

#include <optional>

namespace graft {

/// A member that each replica has of what all of them have.
struct TpuExchange {
  Endpoint Of;            ///< The tensor of each replica.
  llvm::StringRef Joined; ///< ConcatV2, or what is done to the stacked ones.
  int64_t Axis = 0;
};

/// What \p N of \p G, which the input does not have, is of the tensors of all
/// replicas, if it is no sum. Nothing if it is none, or not understood.
std::optional<TpuExchange> findExchange(const Graph &G, const TpuFile &File,
                                        NodeId N);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_TPU_STACK_H
