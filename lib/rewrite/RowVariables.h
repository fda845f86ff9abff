//===- lib/rewrite/RowVariables.h - variables with rows of the batch ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A variable may have a row for each example of the batch: the state that a
// recurrence goes on with in the next step, or a vector that is learned for
// each place in the batch. It stays once. What is read of it is split like a
// feed, and what the replicas have for it is put together before it is written:
//
//     read = Identity(v)              read = Identity(v)
//     h = Cell(x, read)               read/split = _ToReplicas(read)
//     Assign(v, h)               →    h = Cell*(x, read/split)
//                                     h/merged = _FromReplicas(h) concat
//                                     Assign(v, h/merged)
//
// What takes a reference after an update sees what was written, which a share
// that was taken before is not: it is computed once, of all rows.
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

  /// Splits what is read of the variables that have the rows of the batch, as
  /// the sizes say, unless they are used in another way; returns what was
  /// inserted.
  std::vector<NodeId> split();
  /// Puts together what replicas write to them, when it is known who runs per
  /// replica.
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
  const DimAnalysis &Dims; ///< Of the graph before.
  LateReads Late;
  std::vector<NodeId> Splits;
  llvm::SetVector<NodeId> Kept;
  /// Inputs that must be those of all replicas, with the axis of their rows.
  std::vector<std::pair<Use, int>> Wholes;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_ROWVARIABLES_H
