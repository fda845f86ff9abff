//===- lib/infer/sizes/SizeInference.cpp - rounds of size rules -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Numbers the outputs of a graph, and runs rounds of rules over its nodes.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/SizeContext.h"

#include "lib/graph/FileWalk.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/support/InternalError.h"

#include "llvm/ADT/Sequence.h"

using namespace llvm;

namespace graft {

/// Applies the rules of every node until nothing changes. Later rounds visit
/// only nodes whose rule compares sizes (trait::ComparesSizes), and nodes that
/// read or make a size about which more became known.
class SizeInference : public SizeContext {
public:
  SizeInference(DimAnalysis &A, ArrayRef<NodeId> Order, const LoopInfo *Loops);
  void run(const VariantDims &V);
  /// Adds to \p Found the dimensions that differ between iterations, contrary
  /// to the assumption. Returns false if there are no new ones.
  bool findVariant(VariantDims &Found) const;

private:
  void markUsers(NodeId Node);
  void markDue(ArrayRef<DimId> Changed, const std::vector<bool> &Moved);
  void visit(NodeId Node);
  void hintFromAttr();

  ArrayRef<NodeId> Order;
  /// The properties of an op.
  struct OpInfo {
    const OpRule &Rule;
    bool IsBackEdge;
    UpdateDef Update;
  };
  std::vector<OpInfo> Ops;
  llvm::DenseMap<NodeId, Endpoint> Like; ///< DimOptions::Like.
  llvm::DenseMap<NodeId, llvm::SmallVector<NodeId, 1>> LikeIt;
};

DimAnalysis::DimAnalysis(const Graph &G, ArrayRef<NodeId> Order,
                         DimOptions Options)
    : G(G), Options(std::move(Options)) {
  // The number of outputs of a node: that of the op if fixed, else that in the
  // attributes of the node, else the number of outputs in use.
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
  // The inference assumes that sizes are the same in every iteration of a loop,
  // and that fed integers are sizes. If an assumption is wrong, the inference
  // starts again without it, because conclusions cannot be retracted.
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  SizeContext::VariantDims Variant;
  // Each turn finds at least one more variant axis of a loop variable.
  TurnLimit Limit("sizes that change in a loop",
                  16 + 256 * uint64_t(totalOutputs()));
  for (;;) {
    ZeroConsts.assign(G.size(), false);
    Shapes.assign(totalOutputs(), {});
    Values.assign(totalOutputs(), {});
    SizeInference Rules(*this, Order, Loops.get());
    Rules.run(Variant);
    if (!Rules.findVariant(Variant))
      break;
    Limit.turn([&] { return G.name(Variant.begin()->first).str(); });
    Dims = DimTable();
    Origins = SizeOrigins();
    Pool.clear();
    Conflicts.clear();
    Shared.clear();
  }
  for (auto [N, Axis] : Variant)
    if (Axis == SizeContext::AnyAxis &&
        G.opName(N).starts_with(op::Placeholder))
      FedRows.push_back(N);
  finish();
}

SizeInference::SizeInference(DimAnalysis &A, ArrayRef<NodeId> Order,
                             const LoopInfo *Loops)
    : SizeContext(A, Loops), Order(Order) {
  Ops.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    StringRef Name = G.opNameOf(Op);
    Ops.push_back(
        {ruleOf(Name), isBackEdgeOp(Name), Def ? Def->update() : UpdateDef()});
  }
  for (auto [Node, Of] : options().Like) {
    Like[Node] = Of;
    LikeIt[Of.Node].push_back(Node);
  }
}

void SizeInference::run(const VariantDims &V) {
  Variant = &V;
  walkAttrs(G, Order, [&](NodeId Node) { visit(Node); });
  FirstRound = false;
  // Most graphs need one or two rounds. For each size, a round may find four
  // properties: its number, its symbol, an equal size, and that all replicas
  // have the same size. Only a round over all nodes finds the final conflicts.
  TurnLimit Limit("sizes", 16 + 4 * uint64_t(Table.size()));
  for (unsigned Round = 1;; ++Round) {
    bool Whole = Round > 4 || !A.Conflicts.empty();
    cancelFactors();
    std::vector<DimId> Changed = Table.takeChanged();
    std::vector<bool> Moved = Table.takeMoved();
    if (Changed.empty() && Moved.empty() && !(Loops && is_contained(Due, true)))
      break;
    Limit.turn([&] {
      markDue(Changed, Moved);
      auto It = find_if(Order, [&](NodeId Node) { return Due[Node]; });
      return It == Order.end() ? std::string() : G.name(*It).str();
    });
    // Dead nodes are not in Order, so they would stay due forever.
    if (Whole)
      for (NodeId Node : Order)
        Due[Node] = true;
    else
      markDue(Changed, Moved);
    A.Conflicts.clear();
    for (NodeId Node : Order)
      if (Due[Node]) {
        Due[Node] = false;
        visit(Node);
      }
  }
}

void SizeInference::markUsers(NodeId Node) {
  G.forEachUse(Node, [&](Use U) { Due[U.User] = true; });
  if (auto It = LikeIt.find(Node); It != LikeIt.end())
    for (NodeId Its : It->second)
      Due[Its] = true;
}

/// Marks the nodes whose rules may infer more because of a change of the sizes
/// \p Changed or of the rows \p Moved.
void SizeInference::markDue(ArrayRef<DimId> Changed,
                            const std::vector<bool> &Moved) {
  std::vector<bool> IsChanged(Table.size());
  for (DimId D : Changed)
    IsChanged[Table.find(D)] = true;
  std::vector<uint32_t> Before = A.countInPool([&](DimId D) {
    return IsChanged[Table.find(D)] || Table.counts(D, Moved);
  });
  auto Holds = [&](DimRun R) {
    return Before[R.First + R.Count] != Before[R.First];
  };
  for (NodeId Node : Order) {
    if (Ops[G.node(Node).Op].Rule.Is & trait::ComparesSizes)
      Due[Node] = true;
    for (uint32_t O = A.FirstOutput[Node]; O < A.FirstOutput[Node + 1]; ++O)
      if (Holds(A.Shapes[O]) || Holds(A.Values[O])) {
        Due[Node] = true;
        markUsers(Node);
        break;
      }
  }
}

void SizeInference::visit(NodeId Node) {
  N = Node;
  Inputs = G.dataInputs(N);
  Moved = false;
  Table.beginNode();
  if (FirstRound)
    FirstMade[N] = static_cast<DimId>(Table.size());
  const OpInfo &Op = Ops[G.node(N).Op];
  MeetingsOf = NoNode;
  Stated.clear();
  Denied =
      std::binary_search(options().Denied.begin(), options().Denied.end(), N);
  const UpdateDef &U = Op.Update;
  if (U.Kind != UpdateKind::None && U.Grad > 0 && U.Indices < 0 &&
      U.Kind != UpdateKind::StridedSliceAssign && numData() > unsigned(U.Grad))
    if (Dims Var = in(0), Value = in(U.Grad); Var && Value) {
      bool IsReference = isOp(op::Assign);
      if (U.Kind != UpdateKind::Assign ||
          G.boolAttr(N, "validate_shape").value_or(IsReference))
        sameShapes(*Var, *Value);
      else
        reshapeVariable(*Var, *Value, IsReference);
    }
  if (A.numOutputs(N) == 0) {
    if (Op.Rule.Sizes)
      Op.Rule.Sizes(*this);
    return;
  }
  if (auto It = Like.find(N); It != Like.end())
    passShape(0, A.shapeRun(It->second));
  else if (Op.Rule.Sizes)
    Op.Rule.Sizes(*this);
  if (Op.Rule.Values && numData() > 0)
    Op.Rule.Values(*this);
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
    if (!isKnown(Port)) {
      hintFromAttr();
      break;
    }
  if (Op.Rule.Rows)
    Op.Rule.Rows(*this);
  if (!Supposed.empty())
    if (auto It = Supposed.find(N); It != Supposed.end())
      for (auto [Port, Axis] : It->second)
        if (Dims X = A.shape({N, Port}); X && Axis < X->size())
          splitRows((*X)[Axis], 0x7000 + Port, {N, Port}, /*Own=*/false);
  // The first round visits all users later anyway, except those at a back edge.
  if (Moved && (!FirstRound || Op.IsBackEdge))
    markUsers(N);
}

/// Sets each shape that is still unknown to the shape in `_output_shapes`.
void SizeInference::hintFromAttr() {
  // For a handle, the attribute does not state the shape of the elements.
  if (Loops && Loops->handleOf({N, 0}) != NoNode)
    return;
  auto Hints = G.shapeListAttr(N, "_output_shapes");
  if (!Hints)
    return;
  for (unsigned Port = 0; Port < A.numOutputs(N) && Port < Hints->size();
       ++Port) {
    const ShapeValue &Hint = (*Hints)[Port];
    // The shape of a variant is not that of the tensors in it.
    if (Hint.UnknownRank || isKnown(Port) ||
        G.outputType({N, Port}) == DT_VARIANT)
      continue;
    DimList List;
    for (size_t I = 0; I < Hint.Dims.size(); ++I)
      List.push_back(Hint.Dims[I] < 0
                         ? slot(0x8000 + Port * 32 + I)
                         : number(0x8000 + Port * 32 + I, Hint.Dims[I]));
    setShape(Port, List);
  }
}

bool SizeInference::findVariant(VariantDims &Found) const {
  size_t Before = Found.size();
  // The user feeds the row count of the whole batch, not that of a replica.
  for (NodeId Node : Fed)
    if (DimId Size = A.value({Node, 0})->front();
        Table.hasSym(Size) && !Table.isSame(Size))
      Found.insert({Node, AnyAxis});
  for (NodeId Node : A.Shared)
    if (Table.hasSymAny(*A.value({Node, 0})))
      Found.insert({Node, AnyAxis});
  for (NodeId Merge : Loops ? Order : ArrayRef<NodeId>()) {
    auto Mine = Loops->isLoopMerge(Merge) ? A.shape({Merge, 0}) : std::nullopt;
    if (!Mine)
      continue;
    for (Endpoint E : G.dataInputs(Merge)) {
      auto Its = A.shape(E);
      if (!Its || Its->size() != Mine->size()) {
        Found.insert({Merge, AnyAxis});
        continue;
      }
      for (unsigned D = 0; D < Mine->size(); ++D)
        if (Table.find((*Mine)[D]) != Table.find((*Its)[D]) &&
            (Table.number((*Mine)[D]) == UnknownSize ||
             Table.number((*Mine)[D]) != Table.number((*Its)[D])))
          Found.insert({Merge, D});
    }
  }
  Found.insert(Mixed.begin(), Mixed.end());
  // Only dimensions that are new in this turn count.
  return Found.size() != Before;
}

} // namespace graft
