//===- lib/rewrite/partition/PartitionPlan.cpp - what to partition --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/partition/PartitionPlan.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace llvm;

namespace graft {

PartitionedUse classifyUse(const Graph &G, const VariableIndex &Vars, Use U) {
  StringRef Op = G.opName(U.User);
  bool IsHandle = G.isOp(Vars.variableOf(G.input(U)), op::VarHandleOp);
  if (Vars.isUpdate(G, U.User) && U.Index < Vars.update(G, U.User).NumVars)
    return PartitionedUse::Update;
  if (Vars.variableOf({U.User, 0}) != NoNode && U.Index == 0)
    return StringSwitch<PartitionedUse>(Op)
        .Cases(op::Identity, op::RefIdentity, op::Switch, op::RefSwitch,
               PartitionedUse::Alias)
        .Cases(op::Enter, op::RefEnter, PartitionedUse::Alias)
        .Default(PartitionedUse::Unknown);
  if (Op == op::IsVariableInitialized || Op == op::VarIsInitializedOp)
    return PartitionedUse::Initialized;
  if (Op == op::DestroyResourceOp || Op == op::DisableCopyOnRead)
    return PartitionedUse::Effect;
  if (IsHandle)
    return StringSwitch<PartitionedUse>(Op)
        .Case(op::ReadVariableOp, PartitionedUse::Read)
        .Case(op::ResourceGather,
              G.intAttr(U.User, "batch_dims").value_or(0) == 0
                  ? PartitionedUse::Lookup
                  : PartitionedUse::DenseLookup)
        .Case(op::ResourceGatherNd, PartitionedUse::DenseLookup)
        .Case(op::VariableShape, PartitionedUse::Shape)
        .Default(PartitionedUse::Unknown);
  // Other ops that use a reference in place are unknown. A Merge does not wait
  // for all of its inputs.
  if (!G.opDef(U.User) || G.isRefInput(U.User, U.Index) || Op == op::Merge)
    return PartitionedUse::Unknown;
  return Op == op::Identity ? PartitionedUse::Read : PartitionedUse::Value;
}

bool PartitionPlan::fail(NodeId N, const Twine &Why) {
  Diags.error(G.name(N), Why.str());
  return false;
}

bool PartitionPlan::add(NodeId Var, const Partition &Cut, NodeId Leader) {
  if (const PartitionedVariable *Old = findVariable(Var)) {
    if (Old->Cut == Cut)
      return true;
    return fail(Var, "has two partitions, " + printPartition(Old->Cut) +
                         (Leader == Var ? Twine("")
                                        : " and, as a slot of '" +
                                              G.name(Leader) + "', ") +
                         (Leader == Var ? " and " : "") + printPartition(Cut) +
                         "; give a variable and its slots the same partition");
  }
  auto Shape = G.shapeAttr(Var, "shape");
  if (!Shape || Shape->UnknownRank || is_contained(Shape->Dims, -1))
    return fail(Var, "has no static shape, so it cannot be partitioned; leave "
                     "it unpartitioned");
  if (Cut.Axis >= Shape->Dims.size())
    return fail(Var,
                formatv("cannot be partitioned along axis {0}: its rank is {1}",
                        Cut.Axis, Shape->Dims.size())
                    .str());
  int64_t Sum = std::accumulate(Cut.Sizes.begin(), Cut.Sizes.end(), int64_t(0));
  if (Sum != Shape->Dims[Cut.Axis])
    return fail(
        Var,
        formatv(
            "the sizes of its parts add up to {0}, but axis {1} has size {2}",
            Sum, Cut.Axis, Shape->Dims[Cut.Axis])
            .str());
  if (is_contained(Shape->Dims, 0))
    return fail(Var, "has no elements; leave it unpartitioned");
  PartitionedVariable &New = Cuts.emplace_back();
  New.Var = Var;
  New.Name = G.name(Var).str();
  New.Leader = Leader;
  New.Cut = Cut;
  New.Type = G.typeAttr(Var, "dtype").value_or(DT_INVALID);
  New.Shape.assign(Shape->Dims.begin(), Shape->Dims.end());
  int64_t Offset = 0;
  for (int64_t Size : Cut.Sizes) {
    New.Offsets.push_back(Offset);
    Offset += Size;
  }
  Index[Var] = static_cast<unsigned>(Cuts.size() - 1);
  return true;
}

/// Partitions the other variables of \p Update like \p Of.
bool PartitionPlan::addSlotsOf(NodeId Update, const PartitionedVariable &Of) {
  // add() may reallocate Of.
  Partition Cut = Of.Cut;
  SmallVector<int64_t, 4> Shape = Of.Shape;
  NodeId Var = Of.Var, Leader = Of.Leader;
  for (unsigned I = 0; I < Vars.update(G, Update).NumVars; ++I) {
    NodeId Slot = Vars.variableOf(G.input(Update, I));
    if (Slot == Var)
      continue;
    auto Its = Slot == NoNode ? std::nullopt : G.shapeAttr(Slot, "shape");
    if (!Its || ArrayRef<int64_t>(Its->Dims) != ArrayRef<int64_t>(Shape))
      return fail(Update, "updates the partitioned variable '" + G.name(Var) +
                              "' together with a variable that is not known to "
                              "have the same shape; leave '" +
                              G.name(Var) + "' unpartitioned");
    if (!add(Slot, Cut, Leader))
      return false;
  }
  return true;
}

bool PartitionPlan::addSlots(NodeId Var) {
  bool Good = true;
  SmallVector<NodeId, 8> Updates;
  Vars.forEachUse(G, Var, [&](Use U) {
    if (classifyUse(G, Vars, U) == PartitionedUse::Update &&
        Vars.update(G, U.User).NumVars > 1)
      Updates.push_back(U.User);
  });
  for (NodeId Update : Updates)
    Good = Good && addSlotsOf(Update, *findVariable(Var));
  return Good;
}

/// Returns true if \p E is reshaped to \p Shape, as savers with `reshape` do.
static bool hasShape(const Graph &G, Endpoint E, ArrayRef<int64_t> Shape) {
  if (!G.isOp(E.Node, op::Reshape))
    return false;
  auto To = constValue(G, G.input(E.Node, 1).Node);
  return To && To->HasInts && ArrayRef<int64_t>(To->Ints) == Shape;
}

/// Reports users of \p Of that have no partitioned form.
bool PartitionPlan::check(const PartitionedVariable &Of) {
  bool Good = true;
  auto Refuse = [&](NodeId N, const Twine &Why) {
    Good = fail(N, Why + "; leave variable '" + G.name(Of.Var) +
                       "' unpartitioned, or remove this op from the graph");
  };
  Vars.forEachUse(G, Of.Var, [&](Use U) {
    if (!Good)
      return;
    StringRef Op = G.opName(U.User);
    PartitionedUse Kind = classifyUse(G, Vars, U);
    if (Kind == PartitionedUse::Unknown)
      return Refuse(
          U.User,
          Op + " uses a variable in a way that cannot be split into parts");
    auto HasIndices = [&](unsigned At) {
      Endpoint Ids = G.input(U.User, At);
      unsigned Type = G.outputType(Ids);
      return Type == DT_INT32 || Type == DT_INT64;
    };
    const char *NoIndices = "its indices are not known to be integers";
    if (Kind == PartitionedUse::Lookup) {
      if (!HasIndices(1))
        Refuse(U.User, NoIndices);
      return;
    }
    if (Kind != PartitionedUse::Update)
      return;
    UpdateDef Def = Vars.update(G, U.User);
    if (Def.Kind == UpdateKind::Count ||
        Def.Kind == UpdateKind::StridedSliceAssign ||
        Op.contains(op::ScatterNd))
      return Refuse(U.User, Op + " cannot be split into updates of parts");
    if (Def.Indices >= 0 && Of.Cut.Axis == 0 && !HasIndices(Def.Indices))
      return Refuse(U.User, NoIndices);
    if (Op == op::Assign &&
        !G.boolAttr(U.User, "validate_shape").value_or(true) &&
        !hasShape(G, G.input(U.User, 1), Of.Shape))
      return Refuse(U.User, "it may change the shape of the variable");
  });
  return Good;
}

/// Warns if \p Read passes the memory of \p Of to an op that runs after an
/// update.
void PartitionPlan::checkViews(NodeId Read, const PartitionedVariable &Of) {
  NodeId View = Late.lateView(Read);
  if (View != NoNode)
    Diags.unproved(
        "late-read", G.name(View),
        formatv("passes a reference to '{0}' to an op that runs after an "
                "update, but the parts of the variable are read before the "
                "update; read the variable where its value is needed",
                Of.Name));
}

bool PartitionPlan::complete() {
  // Slots are appended, and slots may have slots.
  for (size_t I = 0; I < Cuts.size();)
    if (!addSlots(Cuts[I++].Var))
      return false;
  if (!all_of(Cuts, [&](const PartitionedVariable &Of) { return check(Of); }))
    return false;
  for (const PartitionedVariable &Of : Cuts)
    Late.add(Of.Var);
  for (const PartitionedVariable &Of : Cuts)
    if (!G.isOp(Of.Var, op::VarHandleOp))
      Vars.forEachUse(G, Of.Var, [&](Use U) {
        if (classifyUse(G, Vars, U) == PartitionedUse::Read)
          checkViews(U.User, Of);
      });
  return true;
}

} // namespace graft
