//===- lib/infer/graph/SparseRows.cpp - sparse tensors by rows --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/SparseRows.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

/// The maximum number of ops that a search follows.
static constexpr unsigned MaxDepth = 32;

bool areMadeOfRows(const Graph &G, Endpoint E) {
  for (unsigned Depth = 0; Depth < MaxDepth; ++Depth) {
    StringRef Op = G.opName(E.Node);
    if (Op == op::Where || Op == op::Range || Op.starts_with(op::SparseCross))
      return E.Port == 0;
    bool Moves = StringSwitch<bool>(Op)
                     .Cases(op::Identity, op::Cast, op::Reshape, true)
                     .Cases(op::ExpandDims, op::Tile, op::Transpose, true)
                     .Cases(op::Pack, op::ConcatV2, op::GatherV2, true)
                     .Cases(op::Gather, op::StridedSlice, true)
                     .Cases(op::SparseReshape, op::SparseFillEmptyRows, true)
                     .Default(false);
    if (!Moves || E.Port != 0 || G.node(E.Node).NumData == 0)
      return false;
    E = G.input(E.Node, 0);
  }
  return false;
}

std::optional<int64_t> columnTaken(const Graph &G, NodeId N) {
  auto Numbers = [&](unsigned I) {
    NodeId Const = G.input(N, I).Node;
    auto Value = G.isOp(Const, op::Const) ? constValue(G, Const) : std::nullopt;
    return Value && Value->HasInts && Value->Ints.size() == 2
               ? std::optional(std::pair(Value->Ints[0], Value->Ints[1]))
               : std::nullopt;
  };
  auto Mask = [&](const char *Key) { return G.intAttr(N, Key).value_or(0); };
  auto Begin = Numbers(1), Stride = Numbers(3);
  // Matches x[:, i]: all rows, and one element of the second axis.
  bool Takes = Begin && Stride && Stride->first == 1 && Begin->second >= 0 &&
               Mask("shrink_axis_mask") == 2 && Mask("ellipsis_mask") == 0 &&
               Mask("new_axis_mask") == 0 && (Mask("begin_mask") & 3) == 1 &&
               (Mask("end_mask") & 1) != 0;
  return Takes ? std::optional(Begin->second) : std::nullopt;
}

NodeId filledBy(const Graph &G, Endpoint E) {
  bool IsColumn = false;
  for (unsigned Depth = 0; Depth < MaxDepth; ++Depth) {
    StringRef Op = G.opName(E.Node);
    if (E.Port != 0 || G.node(E.Node).NumData == 0)
      return NoNode;
    if (Op == op::SparseFillEmptyRows)
      return IsColumn ? E.Node : NoNode;
    if (Op == op::StridedSlice && !IsColumn && columnTaken(G, E.Node) == 0)
      IsColumn = true;
    else if (Op != op::Identity && Op != op::Cast)
      return NoNode;
    E = G.input(E.Node, 0);
  }
  return NoNode;
}

bool isLookedUp(const Graph &G, NodeId Unique) {
  bool Any = false;
  G.forEachUse(Unique, [&](Use U) {
    if (U.Index == 1 && G.input(U.User, 1) == Endpoint{Unique, 1})
      Any |= StringSwitch<bool>(G.opName(U.User))
                 .Cases(op::Gather, op::GatherV2, true)
                 .Cases(op::SparseSegmentSum, op::SparseSegmentMean,
                        op::SparseSegmentSqrtN, true)
                 .Default(false);
  });
  return Any;
}

} // namespace graft
