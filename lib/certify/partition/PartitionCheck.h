//===- lib/certify/partition/PartitionCheck.h - is it the same graph? -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks that a graph is another one with some of its variables in parts. It
// reads no decision of a pass: which variables are in parts, and how, it takes
// from the attribute `_graft_slice` of the parts (`w 10 4 0,5:0,4`), and only
// after it saw that the parts make up the variable. Every new node is then
// written out as a term over tensors of the whole graph: part i of a value, the
// rows of a lookup that part i has, ... Every node of the whole graph must be
// there and read the same tensors in the same order, or be such terms that
// together are what it computes.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_PARTITION_PARTITIONCHECK_H
#define GRAFT_LIB_CERTIFY_PARTITION_PARTITIONCHECK_H

#include "lib/graph/InputGraph.h"
#include "lib/support/Diagnostics.h"

#include <vector>

namespace graft {

/// Checks that \p Parts is \p Whole with variables in parts, see above. Errors
/// name the nodes; at most a dozen are reported.
bool checkPartition(const InputGraph &Whole, const Graph &Parts,
                    DiagnosticEngine &Diags);

/// How a variable of a graph is cut in another one.
struct NewPartition {
  NodeId Variable = NoNode;
  unsigned Axis = 0;
  std::vector<int64_t> Sizes;
};

/// The variables of \p Whole of which \p Parts, which may have copies of them,
/// has parts that \p Whole does not have; by what the parts say.
std::vector<NewPartition> newPartitions(const Graph &Whole, const Graph &Parts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONCHECK_H
