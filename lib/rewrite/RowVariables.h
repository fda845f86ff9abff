//===- lib/rewrite/RowVariables.h - variables with rows of the batch ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A variable may have a row for each example of the batch: the state with which
// a recurrence continues in the next step, or a vector that is learned for each
// position in the batch. It stays unreplicated. Its reads are split like a
// feed, and the shards of replicas are concatenated before a write:
//
//     read = Identity(v)              read = Identity(v)
//     h = Cell(x, read)               read/split = _ToReplicas(read)
//     Assign(v, h)               →    h = Cell*(x, read/split)
//                                     h/merged = _FromReplicas(h) concat
//                                     Assign(v, h/merged)
//
// A node that reads a reference after an update must see the written value, but
// the split of an earlier read has the old value. So such a node is computed
// once, from all rows.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_ROWVARIABLES_H
#define GRAFT_LIB_REWRITE_ROWVARIABLES_H

#include "lib/infer/graph/References.h"
#include "lib/infer/sizes/Dims.h"

#include "llvm/ADT/SetVector.h"

namespace graft {

class RowVariables {
public:
  RowVariables(Graph &G, const VariableIndex &Vars, const DimAnalysis &Dims)
      : G(G), Vars(Vars), Dims(Dims), Late(G, Vars) {}

  /// Splits the reads of variables that have a batch axis in \p Dims, unless
  /// they have other uses. Returns the splits.
  std::vector<NodeId> split();
  /// Concatenates the values that replicas write to these variables. Must run
  /// when the copies of nodes are known.
  void merge();

private:
  /// A variable that is only read and written as a whole.
  struct Found {
    NodeId Var;
    int Axis;
    llvm::SmallVector<NodeId, 2> Reads;
    llvm::SmallSetVector<NodeId, 2> Updates;
  };
  std::optional<Found> find(NodeId Var, const class LoopInfo *Loops) const;
  bool takesColumns(NodeId N) const;
  void share(Endpoint E, int Axis, llvm::ArrayRef<Use> Uses);
  void splitRead(NodeId Read, const Found &Is);
  void keepOnce(NodeId N, NodeId Var);

  Graph &G;
  const VariableIndex &Vars;
  const DimAnalysis &Dims; ///< The sizes before split().
  LateReads Late;
  std::vector<NodeId> Splits;
  llvm::SetVector<NodeId> Kept;
  /// Operands that need the rows of all replicas, with their batch axis.
  std::vector<std::pair<Use, int>> Wholes;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_ROWVARIABLES_H
