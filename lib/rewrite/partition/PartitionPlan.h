//===- lib/rewrite/partition/PartitionPlan.h - which are cut, how -*- C++ -*-=//
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

/// One variable that is cut into parts.
struct PartitionedVariable {
  NodeId Var = NoNode;
  std::string Name;
  NodeId Leader = NoNode; ///< The variable that was asked for: slots follow it.
  Partition Cut;
  unsigned Type = DT_INVALID;
  llvm::SmallVector<int64_t, 4> Shape;
  llvm::SmallVector<int64_t, 8> Offsets; ///< Where each part begins.

  unsigned parts() const { return static_cast<unsigned>(Cut.Sizes.size()); }
  unsigned rank() const { return static_cast<unsigned>(Shape.size()); }
  /// The axis counted from the last one, -1: the same in what has more axes in
  /// front.
  int64_t axisFromEnd() const {
    return static_cast<int64_t>(Cut.Axis) - static_cast<int64_t>(rank());
  }
};

/// What an op does with a variable, as far as parts are concerned.
enum class PartitionedUse : uint8_t {
  Alias,       ///< Passes the handle or reference on.
  Update,      ///< Changes every element, or rows.
  Read,        ///< Gives the value.
  Lookup,      ///< Gives rows: ResourceGather.
  DenseLookup, ///< Reads a handle in a way that takes the whole value.
  Shape,       ///< VariableShape.
  Initialized, ///< Whether there is a value.
  Effect,      ///< Is done to each part: DestroyResourceOp.
  Value,       ///< Takes a reference for its value.
  Unknown,
};

/// What \p U does with the handle or reference of a variable.
PartitionedUse classifyUse(const Graph &G, const VariableIndex &Vars, Use U);

/// The variables that are cut: those that were asked for, and the slots of
/// their shape that some op updates together with one of them. Everything that
/// cannot be cut is refused here, before any edit.
class PartitionPlan {
public:
  PartitionPlan(const Graph &G, const VariableIndex &Vars,
                DiagnosticEngine &Diags)
      : G(G), Vars(Vars), Diags(Diags), Late(G, Vars) {}

  /// Asks for parts of \p Var. False after an error.
  bool add(NodeId Var, const Partition &Cut) { return add(Var, Cut, Var); }
  /// Adds slots and looks at all users. False after an error.
  bool complete();

  llvm::ArrayRef<PartitionedVariable> variables() const { return Cuts; }
  /// The variable that \p E is the handle or reference of, if it is cut.
  const PartitionedVariable *find(Endpoint E) const {
    NodeId Var = Vars.variableOf(E);
    auto It = Var == NoNode ? Index.end() : Index.find(Var);
    return It == Index.end() ? nullptr : &Cuts[It->second];
  }
  /// Whether \p N runs after an update of a reference that is cut. What it
  /// reads through an Identity of the reference is then the value of that time,
  /// not of the time at which the Identity ran.
  bool isAfterUpdate(NodeId N) const { return Late.isLate(N); }
  /// The variable \p Var, if it is cut.
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
