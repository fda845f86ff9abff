//===- lib/infer/graph/References.cpp - the memory of variables -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/References.h"

#include "lib/graph/Axis.h"
#include "lib/graph/Walk.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <optional>

using namespace llvm;

namespace graft {

/// Returns true if the Transpose \p N leaves the axes as they are.
static bool movesNoAxis(const Graph &G, NodeId N) {
  auto Axes = constValue(G, G.input(N, 1).Node);
  return Axes && Axes->HasInts && all_of(enumerate(Axes->Ints), [](auto Axis) {
           return Axis.value() == static_cast<int64_t>(Axis.index());
         });
}

bool passesMemoryOn(const Graph &G, NodeId N) {
  if (G.isOp(N, op::Transpose))
    return movesNoAxis(G, N);
  static constexpr StringLiteral Ops[] = {
      op::Identity,      op::IdentityN,     op::Switch,
      op::Merge,         op::Enter,         op::Exit,
      op::NextIteration, op::Reshape,       op::Squeeze,
      op::ExpandDims,    op::StopGradient,  op::PreventGradient,
      op::Bitcast,       op::CheckNumerics, op::EnsureShape,
      op::Slice,         op::StridedSlice,  op::Split,
      op::SplitV,        op::Unpack,        op::PlaceholderWithDefault};
  return is_contained(Ops, G.opName(N));
}

/// Returns the shape of the variable that \p E is read from. \p E may have only
/// some of the rows, so its first axis may be shorter.
static std::optional<ShapeValue>
columns(const Graph &G, const VariableIndex &Vars, Endpoint E) {
  for (unsigned Steps = 0; Steps < 16; ++Steps) {
    if (NodeId Var = Vars.variableOf(E); Var != NoNode)
      return G.shapeAttr(Var, "shape");
    if (G.isOp(E.Node, op::Identity))
      E = G.input(E.Node, 0);
    else if (G.isOp(E.Node, op::Split) &&
             constScalar(G, G.input(E.Node, 0).Node) == 0.0)
      E = G.input(E.Node, 1);
    else
      break;
  }
  return std::nullopt;
}

/// Returns true if \p N returns a part of each row, which is a copy. Whole rows
/// may share the memory of their source.
static bool takesColumns(const Graph &G, const VariableIndex &Vars, NodeId N) {
  StringRef Op = G.opName(N);
  bool IsSlice = Op == op::Slice, IsSplit = Op == op::Split;
  if (!IsSlice && !IsSplit && Op != op::SplitV && Op != op::Unpack &&
      Op != op::StridedSlice)
    return false;
  auto Shape = columns(G, Vars, G.input(N, IsSplit ? 1 : 0));
  auto Rank = Shape && !Shape->UnknownRank
                  ? static_cast<int64_t>(Shape->Dims.size())
                  : 0;
  if (!IsSlice && Op != op::StridedSlice) {
    std::optional<int64_t> Axis = G.intAttr(N, "axis");
    if (Op != op::Unpack)
      if (auto Value = constValue(G, G.input(N, IsSplit ? 0 : 2).Node);
          Value && Value->Ints.size() == 1)
        Axis = Value->Ints[0];
    int64_t Parts =
        G.intAttr(N, Op == op::Unpack ? "num" : "num_split").value_or(0);
    // If the rank is unknown, a negative axis may be axis 0.
    return Axis && Parts > 1 && (*Axis > 0 || axisIn(*Axis, Rank).value_or(0));
  }
  auto Ints = [&](unsigned Input) {
    auto Value = constValue(G, G.input(N, Input).Node);
    return Value && Value->HasInts ? Value->Ints : SmallVector<int64_t, 4>();
  };
  auto Mask = [&](StringRef Key, size_t Axis) {
    return !IsSlice && Axis < 63 && G.intAttr(N, Key).value_or(0) >> Axis & 1;
  };
  if (!IsSlice && (G.intAttr(N, "ellipsis_mask").value_or(0) != 0 ||
                   G.intAttr(N, "new_axis_mask").value_or(0) != 0))
    return false;
  SmallVector<int64_t, 4> Begin = Ints(1), End = Ints(2);
  for (size_t Axis = 1; Axis < std::min(Begin.size(), End.size()); ++Axis) {
    if (Begin[Axis] != 0 && !Mask("begin_mask", Axis))
      return true;
    if (static_cast<int64_t>(Axis) < Rank && End[Axis] >= 0 &&
        !Mask("end_mask", Axis) && End[Axis] < Shape->Dims[Axis])
      return true;
  }
  return false;
}

bool passesMemoryOn(const Graph &G, const VariableIndex &Vars, Use U) {
  StringRef Op = G.opName(U.User);
  if (!passesMemoryOn(G, U.User) || takesColumns(G, Vars, U.User))
    return false;
  if (Op == op::Split)
    return U.Index == 1;
  return U.Index == 0 || Op == op::Merge || Op == op::IdentityN;
}

/// Returns true if \p N is a sum of a variable and a number.
static bool countsOn(const Graph &G, const VariableIndex &Vars, NodeId N) {
  if ((!G.isOp(N, op::Add) && !G.isOp(N, op::AddV2)) ||
      !G.isOp(G.input(N, 1).Node, op::Const))
    return false;
  return Vars.variableOf(through(G, G.input(N, 0), op::Identity)) != NoNode;
}

bool isCounter(const Graph &G, const VariableIndex &Vars, NodeId N) {
  return Vars.isUpdate(G, N) && G.node(N).NumData > 1 &&
         all_of(G.dataInputs(N).drop_front(), [&](Endpoint E) {
           return G.isOp(E.Node, op::Const) || countsOn(G, Vars, E.Node);
         });
}

void LateReads::add(NodeId Var) {
  if (G.isOp(Var, op::VarHandleOp))
    return;
  After.resize(G.size());
  std::vector<NodeId> Users;
  Vars.forEachUse(G, Var, [&](Use U) {
    if (Vars.isUpdate(G, U.User))
      G.forEachUse(U.User, [&](Use Of) { Users.push_back(Of.User); });
  });
  walkUsers(G, std::move(Users), Along::All, After);
}

NodeId LateReads::lateView(NodeId Read,
                           function_ref<bool(NodeId)> Copies) const {
  NodeId Found = NoNode;
  DenseSet<NodeId> Seen;
  walkFrom({Read}, Seen, [&](NodeId View, std::vector<NodeId> &Next) {
    if (Found != NoNode)
      return;
    if (G.anyUse(View, [&](Use U) {
          return G.isData(U) && isLate(U.User) &&
                 (View != Read || G.isOp(U.User, op::Merge));
        }))
      Found = View;
    G.forEachUse(View, [&](Use U) {
      if (G.isData(U) && !isLate(U.User) && passesMemoryOn(G, U.User) &&
          !(Copies && Copies(U.User)))
        Next.push_back(U.User);
    });
  });
  return Found;
}

} // namespace graft
