//===- lib/certify/partition/PartitionLike.h - parts as another graph has -===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_PARTITION_PARTITIONLIKE_H
#define GRAFT_LIB_CERTIFY_PARTITION_PARTITIONLIKE_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Partitions the variables of \p M as they are in \p Like, a graph that was
/// made from it, and checks that the result is the same graph. Does nothing if
/// \p Like has no new parts. False after an error.
bool partitionLike(Module &M, const Graph &Like, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONLIKE_H
