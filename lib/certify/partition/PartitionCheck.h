//===- lib/certify/partition/PartitionCheck.h - certify partitions --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks that a graph is another graph with some variables partitioned. The
// check uses no decision of a pass. It takes the variables and their parts from
// the attribute `_graft_slice` of the parts (`w 10 4 0,5:0,4`), and checks that
// the parts make up the variable. It then writes every new node as a term over
// tensors of the whole graph: part i of a value, the rows that a lookup finds
// in part i, ... Every node of the whole graph must read the same tensors in
// the same order, or be replaced by terms that together compute its value.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_PARTITION_PARTITIONCHECK_H
#define GRAFT_LIB_CERTIFY_PARTITION_PARTITIONCHECK_H

#include "lib/graph/InputGraph.h"
#include "lib/support/Diagnostics.h"

#include <vector>

namespace graft {

/// Checks that \p Parts is \p Whole with partitioned variables, see above.
/// Errors name the nodes; at most a dozen are reported.
bool checkPartition(const InputGraph &Whole, const Graph &Parts,
                    DiagnosticEngine &Diags);

/// The partition of a variable in another graph.
struct NewPartition {
  NodeId Variable = NoNode;
  unsigned Axis = 0;
  std::vector<int64_t> Sizes;
};

/// Returns the variables of \p Whole that have new parts in \p Parts, according
/// to the attributes of the parts. \p Parts may have copies of a part.
std::vector<NewPartition> newPartitions(const Graph &Whole, const Graph &Parts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONCHECK_H
