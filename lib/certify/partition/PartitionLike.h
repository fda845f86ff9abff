//===- lib/certify/partition/PartitionLike.h - repeat a partition ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_PARTITION_PARTITIONLIKE_H
#define GRAFT_LIB_CERTIFY_PARTITION_PARTITIONLIKE_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Partitions the variables of \p M as in \p Like, a graph made from \p M.
/// Checks that the partitioned graph computes the same as \p M. Does nothing if
/// \p Like has no new parts. Returns false after an error.
bool partitionLike(Module &M, const Graph &Like, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONLIKE_H
