//===- lib/rewrite/RowVariables.cpp - variables with rows of the batch ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/RowVariables.h"

#include "lib/infer/graph/Loops.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/rewrite/Merges.h"

using namespace llvm;

namespace graft {

/// Returns the uses of \p Var if it is read and written only as a whole,
/// outside of loops.
std::optional<RowVariables::Found>
RowVariables::find(NodeId Var, const LoopInfo *Loops) const {
  Found Is{Var, Dims.batchAxis({Var, 0}), {}, {}};
  bool Other = false;
  Vars.forEachUse(G, Var, [&](Use U) {
    UpdateDef Update = Vars.update(G, U.User);
    if (Loops && Loops->isInLoop(U.User)) {
      Other = true;
    } else if (Update.Kind != UpdateKind::None) {
      Other |=
          Update.Indices >= 0 || Update.Kind == UpdateKind::StridedSliceAssign;
      Is.Updates.insert(U.User);
    } else if (G.isOp(U.User, op::ReadVariableOp) ||
               (G.isOp(U.User, op::Identity) &&
                !G.isOp(Var, op::VarHandleOp))) {
      Is.Reads.push_back(U.User);
    } else {
      // A saver or an initialization test needs no split.
      Other |= !Vars.isOnce(G, U.User) &&
               !(ruleOf(G.opName(U.User)).Is & trait::AsksVariable) &&
               Vars.variableOf({U.User, 0}) != Var;
    }
  });
  if (Other || Is.Reads.empty())
    return std::nullopt;
  return Is;
}

/// Returns true if \p N slices columns. Such a slice copies the elements, so it
/// does not pass on the memory of the variable.
bool RowVariables::takesColumns(NodeId N) const {
  if (!G.isOp(N, op::Slice))
    return false;
  auto In = Dims.shape(G.input(N, 0)), Out = Dims.shape({N, 0});
  if (!In || !Out || In->size() != Out->size())
    return false;
  for (size_t I = 1; I < In->size(); ++I) {
    int64_t Mine = Dims.table().number((*Out)[I]);
    if (Mine >= 0 && Mine < Dims.table().number((*In)[I]))
      return true;
  }
  return false;
}

/// Redirects \p Uses of \p E to its per-replica shard.
void RowVariables::share(Endpoint E, int Axis, ArrayRef<Use> Uses) {
  NodeId N = insertSplit(G, G.name(E.Node) + "/split", E, Axis);
  for (Use U : Uses)
    G.setInput(U.User, U.Index, {N, 0});
  Splits.push_back(N);
}

/// Makes \p N unreplicated, because it reads \p Var after a write and needs the
/// rows of all replicas. Replicas read their shards of its results. Colocates
/// \p N with the memory of the variable.
void RowVariables::keepOnce(NodeId N, NodeId Var) {
  if (!Kept.insert(N))
    return;
  G.setBoolAttr(N, OnceAttr, true);
  if (G.device(N).empty() && !G.hasAttr(N, "_class")) {
    std::string Where = ("loc:@" + G.name(Var)).str();
    G.setAttr(N, "_class", encodeStringListAttr(StringRef(Where)));
  }
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    Endpoint E = G.input(N, I);
    // N may read a split that share() added for another variable.
    int Axis = G.isOp(E.Node, ToReplicasOp)
                   ? static_cast<int>(G.intAttr(E.Node, "axis").value_or(-1))
                   : Dims.batchAxis(E);
    if (Axis >= 0)
      Wholes.push_back({{N, I}, Axis});
  }
}

void RowVariables::splitRead(NodeId Read, const Found &Is) {
  bool IsEarly = !Late.isLate(Read);
  SmallVector<Use, 4> Uses;
  G.forEachUse(Read, [&](Use U) {
    if (!G.isData(U) || Vars.isOnce(G, U.User))
      return;
    if (IsEarly && Late.isLate(U.User) &&
        !(ruleOf(G.opName(U.User)).Is & trait::ReadsSizes))
      keepOnce(U.User, Is.Var);
    else
      Uses.push_back(U);
  });
  if (!Uses.empty())
    share({Read, 0}, Is.Axis, Uses);
}

std::vector<NodeId> RowVariables::split() {
  std::vector<Found> Variables;
  std::unique_ptr<LoopInfo> Loops;
  for (NodeId Var : Vars.variables()) {
    if (Dims.batchAxis({Var, 0}) < 0)
      continue;
    if (Variables.empty())
      Loops = LoopInfo::find(G);
    if (auto Is = find(Var, Loops.get()))
      Variables.push_back(std::move(*Is));
  }
  for (const Found &Is : Variables)
    Late.add(Is.Var);
  erase_if(Variables, [&](const Found &Is) {
    return any_of(Is.Reads, [&](NodeId Read) {
      auto Copies = [&](NodeId N) { return takesColumns(N); };
      return !Late.isLate(Read) && Late.lateView(Read, Copies) != NoNode;
    });
  });
  for (const Found &Is : Variables) {
    for (NodeId Read : Is.Reads)
      splitRead(Read, Is);
    for (NodeId Update : Is.Updates)
      if (int Value = Vars.update(G, Update).Grad; Value >= 0)
        Wholes.push_back({{Update, unsigned(Value)}, Is.Axis});
  }
  for (NodeId N : Kept)
    for (unsigned Port = 0; Port < Dims.numOutputs(N); ++Port) {
      int Axis = Dims.batchAxis({N, Port});
      SmallVector<Use, 4> Uses;
      G.forEachUse(N, [&](Use U) {
        if (G.isData(U) && G.input(U) == Endpoint{N, Port} &&
            !Vars.isOnce(G, U.User) && !Vars.isUpdate(G, U.User))
          Uses.push_back(U);
      });
      if (Axis >= 0 && !Uses.empty())
        share({N, Port}, Axis, Uses);
    }
  return Splits;
}

void RowVariables::merge() {
  for (auto [U, Axis] : Wholes)
    if (Endpoint Value = G.input(U); G.isPerReplica(Value.Node))
      G.setInput(U.User, U.Index,
                 insertMerge(G, Value, ReplicationType::sharded(Axis),
                             G.name(Value.Node), /*Picked=*/false));
}

} // namespace graft
