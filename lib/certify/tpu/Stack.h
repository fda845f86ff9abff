//===- lib/certify/tpu/Stack.h - exchanges of replicas ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A TPU only adds across replicas. Any other exchange is a sum to which each
// replica adds its own row among zeros, so that each has the rows of all:
//
//     own = Select(Equal([0 .. N-1], [r]), Pack(x, .., x), ZerosLike(..))
//     all = CrossReplicaSum(own)
//
// where x is converted to 32-bit numbers without loss. Any and All of booleans
// are a sum of 0s and 1s instead, compared with 0 or N-1.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_TPU_STACK_H
#define GRAFT_LIB_CERTIFY_TPU_STACK_H

#include "lib/certify/tpu/TpuFile.h"

#include <optional>

namespace graft {

/// A value that each replica computes from a tensor of all replicas.
struct TpuExchange {
  Endpoint Of;            ///< The tensor of each replica.
  llvm::StringRef Joined; ///< ConcatV2, or the op on the stacked tensors.
  int64_t Axis = 0;
};

/// Returns the exchange that \p N of \p G, an inserted node, computes; nothing
/// if \p N is a sum or no exchange, or is not understood.
std::optional<TpuExchange> findExchange(const Graph &G, const TpuFile &File,
                                        NodeId N);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_TPU_STACK_H
