//===- lib/infer/graph/References.cpp - the memory of variables -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/References.h"

#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

/// Whether the Transpose \p N leaves the axes as they are.
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

void LateReads::add(NodeId Var) {
  if (G.isOp(Var, op::VarHandleOp))
    return;
  After.resize(G.size());
  SmallVector<NodeId, 32> Found;
  Vars.forEachUse(G, Var, [&](Use U) {
    if (Vars.isUpdate(G, U.User))
      Found.push_back(U.User);
  });
  while (!Found.empty())
    G.forEachUse(Found.pop_back_val(), [&](Use U) {
      if (After[U.User])
        return;
      After.set(U.User);
      Found.push_back(U.User);
    });
}

NodeId LateReads::lateView(NodeId Read,
                           function_ref<bool(NodeId)> Copies) const {
  SmallVector<NodeId, 8> Views{Read};
  DenseSet<NodeId> Seen;
  while (!Views.empty()) {
    NodeId View = Views.pop_back_val();
    bool Late = G.anyUse(View, [&](Use U) {
      return G.isData(U) && isLate(U.User) &&
             (View != Read || G.isOp(U.User, op::Merge));
    });
    if (Late)
      return View;
    G.forEachUse(View, [&](Use U) {
      if (G.isData(U) && !isLate(U.User) && passesMemoryOn(G, U.User) &&
          Seen.insert(U.User).second && !(Copies && Copies(U.User)))
        Views.push_back(U.User);
    });
  }
  return NoNode;
}

} // namespace graft
