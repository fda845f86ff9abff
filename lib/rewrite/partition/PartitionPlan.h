//===- lib/rewrite/partition/PartitionPlan.h - plans parts ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_PARTITION_PARTITIONPLAN_H
#define GRAFT_LIB_REWRITE_PARTITION_PARTITIONPLAN_H

#include "lib/infer/graph/References.h"
#include "lib/strategy/Record.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

namespace graft {

/// A variable that is partitioned.
struct PartitionedVariable {
  NodeId Var = NoNode;
  std::string Name;
  NodeId Leader = NoNode; ///< The variable itself or, for a slot, its variable.
  Partition Cut;
  unsigned Type = DT_INVALID;
  llvm::SmallVector<int64_t, 4> Shape;
  llvm::SmallVector<int64_t, 8> Offsets; ///< The first index of each part.

  unsigned parts() const { return static_cast<unsigned>(Cut.Sizes.size()); }
  unsigned rank() const { return static_cast<unsigned>(Shape.size()); }
  /// Returns the axis counted from the end, -1 for the last axis. Tensors with
  /// more leading axes have the same number.
  int64_t axisFromEnd() const {
    return static_cast<int64_t>(Cut.Axis) - static_cast<int64_t>(rank());
  }
};

/// The uses of a variable that differ in how they are partitioned.
enum class PartitionedUse : uint8_t {
  Alias,       ///< Passes the handle or reference on.
  Update,      ///< Changes every element, or rows.
  Read,        ///< Returns the value.
  Lookup,      ///< Returns rows: ResourceGather.
  DenseLookup, ///< Looks up rows in the whole value of a handle.
  Shape,       ///< VariableShape.
  Initialized, ///< Tests for initialization.
  Effect,      ///< Acts on each part: DestroyResourceOp.
  Value,       ///< Uses a reference as a value.
  Unknown,
};

/// Returns the kind of \p U, a use of a variable's handle or reference.
PartitionedUse classifyUse(const Graph &G, const VariableIndex &Vars, Use U);

/// The partitioned variables: the added variables, and slots of the same shape
/// that an op updates together with one of them. Before any edit, the plan
/// reports every use that has no partitioned form.
class PartitionPlan {
public:
  PartitionPlan(const Graph &G, const VariableIndex &Vars,
                DiagnosticEngine &Diags)
      : G(G), Vars(Vars), Diags(Diags), Late(G, Vars) {}

  /// Adds \p Var. Returns false after an error.
  bool add(NodeId Var, const Partition &Cut) { return add(Var, Cut, Var); }
  /// Adds slots and checks all users. Returns false after an error.
  bool complete();

  llvm::ArrayRef<PartitionedVariable> variables() const { return Cuts; }
  /// Returns the partitioned variable whose handle or reference \p E is, or
  /// null.
  const PartitionedVariable *find(Endpoint E) const {
    NodeId Var = Vars.variableOf(E);
    auto It = Var == NoNode ? Index.end() : Index.find(Var);
    return It == Index.end() ? nullptr : &Cuts[It->second];
  }
  /// Returns true if \p N runs after an update of a partitioned reference. If
  /// \p N reads the reference through an Identity, it gets the value at the
  /// time when \p N runs, not when the Identity runs.
  bool isAfterUpdate(NodeId N) const { return Late.isLate(N); }
  /// Returns the partitioned variable \p Var, or null.
  const PartitionedVariable *findVariable(NodeId Var) const {
    auto It = Index.find(Var);
    return It == Index.end() ? nullptr : &Cuts[It->second];
  }

private:
  bool add(NodeId Var, const Partition &Cut, NodeId Leader);
  bool addSlots(NodeId Var);
  bool addSlotsOf(NodeId Update, const PartitionedVariable &Of);
  bool check(const PartitionedVariable &Of);
  void checkViews(NodeId Read, const PartitionedVariable &Of);
  bool fail(NodeId N, const llvm::Twine &Why);

  const Graph &G;
  const VariableIndex &Vars;
  DiagnosticEngine &Diags;
  std::vector<PartitionedVariable> Cuts;
  llvm::DenseMap<NodeId, unsigned> Index;
  LateReads Late;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_PARTITION_PARTITIONPLAN_H
