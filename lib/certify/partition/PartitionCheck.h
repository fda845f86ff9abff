//===- lib/certify/partition/PartitionCheck.h - is it the same graph? -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks that a graph is another one with some of its variables partitioned. It
// reads no decision of a pass. It takes the variables and their parts from the
// attribute `_graft_slice` of the parts (`w 10 4 0,5:0,4`), after checking that
// the parts make up the variable. Every new node is then written out as a term
// over tensors of the whole graph: part i of a value, the rows of a lookup that
// part i has, ... Every node of the whole graph must read the same tensors in
// the same order, or be replaced by terms that together are what it computes.
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

/// Returns the variables of \p Whole with parts that \p Parts has and \p Whole
/// does not, by the attributes of the parts. \p Parts may have copies of them.
std::vector<NewPartition> newPartitions(const Graph &Whole, const Graph &Parts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONCHECK_H
