//===- lib/certify/tpu/Stack.h - exchanges of replicas ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// CrossReplicaSum is the only exchange of a TPU. All others are built from it:
// each replica puts its row among zeros, and the sum has the rows of all:
//
//     own = Select(Equal([0 .. N-1], [r]), Pack(x, .., x), ZerosLike(..))
//     all = CrossReplicaSum(own)
//
// where x is converted to 32-bit numbers without loss. Any and All sum booleans
// as 0s and 1s instead: Any is sum > 0, and All is sum > N-1.
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

/// Returns the exchange that the inserted node \p N of \p G computes. Returns
/// nothing if \p N is a sum, or is not recognized as an exchange.
std::optional<TpuExchange> findExchange(const Graph &G, const TpuFile &File,
                                        NodeId N);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_TPU_STACK_H
