//===- lib/rewrite/LocalConstants.cpp - constants that hold the batch -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/LocalConstants.h"

#include "lib/graph/Axis.h"
#include "lib/graph/PerOp.h"
#include "lib/graph/Walk.h"
#include "lib/infer/batch/LocalSizes.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

/// Returns true if \p E is a number above 1, or a vector with such a number.
static bool holdsNumber(const Graph &G, Endpoint E, unsigned Depth = 0) {
  constexpr unsigned MaxDepth = 4;
  StringRef Op = G.opName(E.Node);
  if (Op == op::Const) {
    auto Sizes = constValue(G, E.Node);
    return Sizes && any_of(Sizes->Ints, [](int64_t I) { return I > 1; });
  }
  bool Joins = Op == op::Pack || Op == op::Concat || Op == op::ConcatV2 ||
               Op == op::ExpandDims || Op == op::Identity || Op == op::Cast;
  return Joins && Depth < MaxDepth &&
         any_of(
             G.dataInputs(E.Node),
             [&](Endpoint Part) { return holdsNumber(G, Part, Depth + 1); });
}

/// Returns true if the value of \p N only initializes a variable.
static bool isInitial(const Graph &G, NodeId N) {
  constexpr unsigned MaxSteps = 8;
  for (unsigned Step = 0; Step < MaxSteps; ++Step) {
    NodeId Next = NoNode;
    bool Several = G.anyUse(N, [&](Use U) {
      return !G.isData(U) || std::exchange(Next, U.User) != NoNode;
    });
    if (Several || Next == NoNode)
      return false;
    const OpDef *Def = G.opDefOf(G.node(Next).Op);
    if (Def && Def->update().Kind == UpdateKind::Assign)
      return true;
    N = Next;
  }
  return false;
}

/// Returns true if the operand of one of \p Splits may have a static row count.
static bool isAnyStatic(const Graph &G, ArrayRef<NodeId> Splits) {
  return any_of(Splits, [&](NodeId Split) {
    Endpoint Source = through(G, G.input(Split, 0), op::Identity);
    auto Shape = sourceShape(G, Source);
    if (!Shape)
      return true;
    auto Axis = Shape->UnknownRank
                    ? std::nullopt
                    : axisIn(G.intAttr(Split, "axis").value_or(0),
                             int64_t(Shape->Dims.size()));
    return Axis && Shape->Dims[*Axis] >= 0;
  });
}

bool mayHoldRows(const Graph &G, ArrayRef<NodeId> Splits) {
  if (isAnyStatic(G, Splits))
    return true;
  enum : uint8_t {
    Plain,
    Reshapes,
    Contracts,
    States,
    MakesOf0,
    MakesOf1,
    MakesOf2
  };
  PerOp Roles(G, [](StringRef Op, const OpDef *) {
    return Op == op::Reshape ? Reshapes
           : Op == op::MatMul || Op.starts_with(op::BatchMatMul) ||
                   Op == op::Einsum
               ? Contracts
           : Op == op::Fill || ruleOf(Op).Is & trait::DrawsRows ? MakesOf0
           : Op == op::BroadcastTo || Op == op::Tile || Op == op::Range
               ? MakesOf1
           : Op == op::Slice || Op == op::ScatterNd ? MakesOf2
           : statedShape(Op) == "shape" && !Op.starts_with(op::Placeholder)
               ? States
               : Plain;
  });
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.isDead() || Roles[This] == Plain)
      continue;
    if (Roles[This] >= MakesOf0) {
      unsigned Sizes = Roles[This] - MakesOf0;
      if (Sizes < This.NumData && holdsNumber(G, G.input(N, Sizes)) &&
          !isInitial(G, N))
        return true;
      continue;
    }
    if (Roles[This] == States) {
      auto Shape = G.shapeAttr(N, "shape");
      if (Shape && any_of(Shape->Dims, [](int64_t Size) { return Size > 1; }))
        return true;
      continue;
    }
    if (This.NumData < 2)
      continue;
    if (Roles[This] == Contracts) {
      if (any_of(G.dataInputs(N),
                 [&](Endpoint E) { return G.isOp(E.Node, op::Const); }))
        return true;
      continue;
    }
    NodeId Shape = G.input(N, 1).Node;
    auto Sizes = G.isOp(Shape, op::Const) ? constValue(G, Shape) : std::nullopt;
    if (Sizes && any_of(Sizes->Ints, [](int64_t Size) { return Size > 1; }) &&
        !is_contained(Sizes->Ints, -1))
      return true;
  }
  return false;
}

/// Returns a hint that \p Feed may have another batch axis, if one of its axes
/// has an unknown size.
std::string LocalConstants::otherAxis(Endpoint Feed) const {
  auto Shape = Dims.shape(Feed);
  for (size_t I = 0; Shape && I < Shape->size(); ++I)
    if (Dims.table().number((*Shape)[I]) == UnknownSize)
      return formatv("; if its axis {0} is the batch, give "
                     "--feed={1}=split({0})",
                     I, feedName(G, Feed));
  return "";
}

/// Returns true if the batch sizes allow a split of the batch.
bool LocalConstants::checkSizes(ArrayRef<NodeId> Splits) {
  SmallVector<std::pair<NodeId, int64_t>, 4> Known;
  for (NodeId N : Splits)
    if (auto Shape = Dims.shape({N, 0}))
      if (int64_t Rows = Dims.table().number((*Shape)[*G.intAttr(N, "axis")]);
          Rows != UnknownSize)
        Known.push_back({N, Rows});
  Static |= !Known.empty();
  for (auto [N, Rows] : Known)
    if (Rows % Replicas != 0)
      return fail(G.input(N, 0).Node,
                  formatv("a batch of {0} rows is not divisible by {1} "
                          "replicas{2}",
                          Rows, Replicas, otherAxis(G.input(N, 0)))
                      .str());
  if (!Static || Dims.conflicts().empty())
    return true;
  const DimAnalysis::Conflict &C = Dims.conflicts().front();
  return fail(C.Node,
              "two sizes that must be equal here scale differently with the "
              "batch (" +
                  Dims.describe(C.A) + " and " + Dims.describe(C.B) +
                  "): it is not clear which of them is the batch size; name "
                  "the feeds with --feed");
}

/// Splits the constant \p N, which has a row for each example along \p Axis.
bool LocalConstants::localizeRows(NodeId N, int Axis) {
  if (!Loops || !Loops->isInLoop(N)) {
    Split(N, Axis);
    return true;
  }
  Local.push_back(N);
  if (shrinkSplat(G, N, Dims, Replicas))
    return true;
  Diags
      .error(G.name(N), "this constant has a row for each example of the batch "
                        "and is in a loop, where rows cannot be split; create "
                        "it outside of the loop")
      .Id = "unproved";
  return false;
}

/// Divides the elements of the constant \p N that are batch sizes.
bool LocalConstants::localizeSizes(NodeId N) {
  auto Sizes = Dims.value({N, 0});
  if (!Sizes || !Dims.isSymbolic({N, 0}))
    return true;
  auto Tensor = constValue(G, N);
  if (!Tensor)
    return true;
  bool HoldsBatch = false;
  for (size_t I = 0; I < Sizes->size(); ++I) {
    auto S = Dims.table().sym((*Sizes)[I]);
    for (int P = 0; S && P < S->globalPower(); ++P) {
      if (Tensor->Ints[I] % Replicas != 0)
        return fail(N, formatv("{0} is a multiple of the batch size, and it is "
                               "not divisible by {1} replicas",
                               Tensor->Ints[I], Replicas)
                           .str());
      Tensor->Ints[I] /= Replicas;
      HoldsBatch = true;
    }
  }
  if (!HoldsBatch)
    return true;
  Static = true;
  G.setAttr(N, OriginalAttr, *G.attr(N, "value"));
  SmallVector<int64_t, 1> Shape(Tensor->Shape.Dims.begin(),
                                Tensor->Shape.Dims.end());
  G.setAttr(N, "value", encodeIntTensor(Tensor->Type, Shape, Tensor->Ints));
  G.node(N).Count = Copies::PerReplica;
  Local.push_back(N);
  if (Diags.wantsRemarks())
    Diags.remark("constant", G.name(N),
                 "holds the batch size, which is now that of one replica");
  return true;
}

bool LocalConstants::run(ArrayRef<NodeId> Order, ArrayRef<NodeId> Splits) {
  auto HasRows = [&](NodeId N) {
    return isVariableOp(G.opName(N)) && Dims.batchAxis({N, 0}) >= 0;
  };
  // If only a variable has a static row count, the nodes that combine the
  // variable with the batch are computed once.
  if (!isAnyStatic(G, Splits) && any_of(Order, HasRows)) {
    Static = true;
    return true;
  }
  if (!checkSizes(Splits))
    return false;
  Loops = LoopInfo::find(G, Order);
  PerOp States(
      G, [](StringRef Op, const OpDef *) { return !statedShape(Op).empty(); });
  for (NodeId N : Order) {
    if (HasRows(N))
      return fail(N, "the variable has a row for each example of the batch and "
                     "cannot be split");
    if (States[G.node(N)])
      Static |= localiseShape(G, N, Dims, Replicas);
    if (!G.isOp(N, op::Const))
      continue;
    int Axis = Dims.batchAxis({N, 0});
    if (!(Axis >= 0 ? localizeRows(N, Axis) : localizeSizes(N)))
      return false;
  }
  return true;
}

} // namespace graft
