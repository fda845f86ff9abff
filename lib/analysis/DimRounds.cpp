//===- lib/analysis/DimRounds.cpp - when rules are applied ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The outputs of a graph, and the rounds of rules over its nodes.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/DimRules.h"

#include "lib/analysis/Topology.h"
#include "lib/graph/FileWalk.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

DimAnalysis::DimAnalysis(const Graph &G, ArrayRef<NodeId> Order,
                         DimOptions Options)
    : G(G), Options(std::move(Options)) {
  // Outputs: by the op where it has a fixed number, else by the node, else as
  // many as are used.
  std::vector<int> Fixed(G.numOps(), -1);
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    if (const OpDef *Def = G.opDefOf(Op);
        Def && all_of(Def->outputs(), [](const ArgDef &A) {
          return !*A.NumberAttr && !*A.TypeListAttr;
        }))
      Fixed[Op] = Def->NumOutputs;
  FirstOutput.assign(G.size() + 1, 0);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    unsigned Count = 0;
    if (Fixed[G.node(N).Op] >= 0) {
      Count = Fixed[G.node(N).Op];
    } else if (auto Declared = G.numOutputs(N)) {
      Count = *Declared;
    } else {
      Count = 1;
      G.forEachUse(N, [&](Use U) {
        Endpoint E = G.input(U.User, U.Index);
        if (!E.isControl())
          Count = std::max(Count, E.Port + 1);
      });
    }
    FirstOutput[N + 1] = Count;
  }
  for (NodeId N = 0; N < G.size(); ++N)
    FirstOutput[N + 1] += FirstOutput[N];
  // Sizes are taken to be the same in every iteration of a loop. Where that
  // turns out to be wrong, all starts again without it: what was concluded
  // cannot be taken back.
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  for (DimRules::VariantDims Variant;;) {
    ZeroConsts.assign(G.size(), false);
    Shapes.assign(totalOutputs(), {});
    Values.assign(totalOutputs(), {});
    DimRules Rules(*this, Order, Loops.get());
    Rules.setVariant(Variant);
    Rules.run();
    if (!Loops || !Rules.findVariant(Variant))
      break;
    Dims = DimTable();
    Pool.clear();
    Conflicts.clear();
  }
  finish();
}

/// Whether the rules of \p Op ask if two sizes are the same one. Others look
/// only at what is known of a size.
static bool comparesSizes(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases("StridedSlice", "StridedSliceGrad", "Reshape", true)
      .Cases("Split", "SplitV", true)
      .Cases("BroadcastGradientArgs", "Maximum", "Minimum", true)
      .Cases("FloorDiv", "TruncateDiv", "Merge", true)
      .Default(false);
}

DimRules::DimRules(DimAnalysis &A, ArrayRef<NodeId> Order,
                   const LoopInfo *Loops)
    : A(A), G(A.G), Order(Order), Loops(Loops) {
  Ops.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    StringRef Name = G.opNameOf(Op);
    Ops.push_back({rulesOf(Name).Shape, valueRuleOf(Name), comparesSizes(Name),
                   isBackEdgeOp(Name), Def ? Def->update() : UpdateDef()});
  }
  FirstMade.resize(G.size());
  Due.resize(G.size());
  Makers.push_back({NoNode, 0});
  One = A.Dims.make(1);
}

void DimRules::run() {
  walkAttrs(G, Order, [&](NodeId Node) { visit(Node); });
  FirstRound = false;
  // One or two rounds settle ordinary graphs; the bound is for safety only.
  // Conflicts are those of a whole round.
  for (unsigned Round = 1; Round < 16; ++Round) {
    bool Whole = Round > 4 || !A.Conflicts.empty();
    std::vector<DimId> Changed = A.Dims.takeChanged();
    if (Changed.empty() && !(Loops && is_contained(Due, true)))
      break;
    if (Whole)
      Due.assign(G.size(), true);
    else
      markDue(Changed);
    A.Conflicts.clear();
    for (NodeId Node : Order)
      if (Due[Node]) {
        Due[Node] = false;
        visit(Node);
      }
  }
}

void DimRules::markUsers(NodeId Node) {
  G.forEachUse(Node, [&](Use U) { Due[U.User] = true; });
}

/// Marks the nodes that a change of \p Changed may tell something.
void DimRules::markDue(ArrayRef<DimId> Changed) {
  std::vector<bool> IsChanged(A.Dims.size());
  for (DimId D : Changed)
    IsChanged[A.Dims.find(D)] = true;
  std::vector<uint32_t> Before =
      A.countInPool([&](DimId D) { return IsChanged[A.Dims.find(D)]; });
  auto Holds = [&](DimRun R) {
    return Before[R.First + R.Count] != Before[R.First];
  };
  for (NodeId Node : Order) {
    if (Ops[G.node(Node).Op].ComparesSizes)
      Due[Node] = true;
    for (uint32_t O = A.FirstOutput[Node]; O < A.FirstOutput[Node + 1]; ++O)
      if (Holds(A.Shapes[O]) || Holds(A.Values[O])) {
        Due[Node] = true;
        markUsers(Node);
        break;
      }
  }
}

void DimRules::visit(NodeId Node) {
  N = Node;
  Inputs = G.dataInputs(N);
  Moved = false;
  A.Dims.beginNode();
  if (FirstRound)
    FirstMade[N] = static_cast<DimId>(A.Dims.size());
  const OpRule &Op = Ops[G.node(N).Op];
  const UpdateDef &U = Op.Update;
  if (U.Kind != UpdateKind::None && U.Grad > 0 && U.Indices < 0 &&
      U.Kind != UpdateKind::StridedSliceAssign && numData() > unsigned(U.Grad))
    if (Dims Var = in(0), Value = in(U.Grad); Var && Value)
      sameShapes(*Var, *Value);
  if (A.numOutputs(N) == 0)
    return;
  if (Loops && Loops->isLoopMerge(N))
    loopMerge();
  else
    shapeRule(Op.Shape);
  valueRule(Op.Value);
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
    if (!A.Shapes[A.outputIndex({N, Port})].Known) {
      hintFromAttr();
      break;
    }
  // In the first round the users are still to come, but for those in a loop.
  if (Moved && (!FirstRound || Op.IsBackEdge))
    markUsers(N);
}

} // namespace graft
