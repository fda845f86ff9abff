//===- lib/infer/batch/FeedRanks.cpp - feeds of unknown rank ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/FeedRanks.h"

#include "lib/graph/Graph.h"
#include "lib/graph/Walk.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

static bool isScalarConst(const Graph &G, Endpoint E) {
  E = through(G, E, op::Cast, op::Identity);
  return G.isOp(E.Node, op::Const) && constScalar(G, E.Node);
}

/// Returns true if the graph shows that \p E is a scalar: a number, a size, or
/// a feed that is declared as a scalar.
static bool isScalar(const Graph &G, Endpoint E) {
  if (isScalarConst(G, E) || G.isOp(E.Node, op::Size))
    return true;
  if (G.isOp(E.Node, op::StridedSlice))
    return G.isOp(G.input(E.Node, 0).Node, op::Shape) &&
           G.intAttr(E.Node, "shrink_axis_mask").value_or(0) == 1;
  auto Shape = G.isOp(E.Node, op::Placeholder) ? G.shapeAttr(E.Node, "shape")
                                               : std::nullopt;
  return Shape && !Shape->UnknownRank && Shape->Dims.empty();
}

/// Returns true if the op that reads \p U requires a scalar as that input.
static bool needsScalar(const Graph &G, Use U) {
  if (G.isOp(U.User, op::Pack)) // All inputs have one shape.
    return any_of(G.dataInputs(U.User),
                  [&](Endpoint E) { return isScalar(G, E); });
  const OpDef *Def = G.opDef(U.User);
  UpdateDef Update = Def ? Def->update() : UpdateDef();
  if (Update.Kind == UpdateKind::Apply) // a rate, a momentum, ...
    return U.Index >= Update.NumVars && int(U.Index) != Update.Grad &&
           int(U.Index) != Update.Indices;
  StringRef Op = G.opName(U.User);
  return ((Op == op::Switch || Op == op::RefSwitch || Op == op::Fill ||
           Op == op::ScalarSummary) &&
          U.Index == 1) ||
         Op == op::LoopCond || Op == op::Range;
}

/// Returns true if \p E is a random sample, possibly scaled or shifted.
static bool isDraw(const Graph &G, Endpoint E) {
  for (unsigned Depth = 0; Depth < 8; ++Depth) {
    StringRef Op = G.opName(E.Node);
    if (isRandomOp(Op))
      return true;
    if (Op != op::Add && Op != op::AddV2 && Op != op::Mul && Op != op::Identity)
      return false;
    E = G.input(E.Node, 0);
  }
  return false;
}

bool isScalarFeed(const Graph &G, Endpoint Feed) {
  SmallVector<Endpoint, 8> Work{Feed};
  // A value computed from the feed and another tensor has at least the rank of
  // the feed. If that value is a scalar, so is the feed.
  SmallVector<Endpoint, 8> Larger;
  bool IsRate = false, IsOther = false;
  auto ForEachUse = [&](Endpoint E, function_ref<void(Use)> Fn) {
    SmallVector<Use, 8> Uses;
    G.forEachUse(E.Node, [&](Use U) {
      if (U.Index < G.node(U.User).NumData && G.input(U.User, U.Index) == E)
        Uses.push_back(U);
    });
    for_each(Uses, Fn);
  };
  auto MovesIt = [](StringRef Op) {
    return Op == op::Identity || Op == op::Cast || Op == op::LogicalNot ||
           Op == op::Floor || Op == op::Neg || Op == op::Exp || Op == op::Enter;
  };
  auto Broadcasts = [](StringRef Op) {
    return Op == op::Add || Op == op::AddV2 || Op == op::Sub || Op == op::Mul ||
           Op == op::RealDiv || Op == op::Div || Op == op::Pow ||
           Op == op::Maximum || Op == op::Minimum;
  };
  for (size_t I = 0; I < Work.size() && I < 64; ++I) {
    bool Needs = false;
    ForEachUse(Work[I], [&](Use U) {
      StringRef Op = G.opName(U.User);
      Needs |= needsScalar(G, U);
      bool Compares = Op.starts_with(op::Greater) || Op.starts_with(op::Less);
      bool Adds = Op == op::Add || Op == op::AddV2 || Op == op::Sub;
      bool Scales = Op == op::Mul || Op == op::RealDiv || Op == op::Div;
      if (MovesIt(Op)) {
        Work.push_back({U.User, 0});
        return;
      }
      if (Op == op::Switch || Op == op::Merge) { // of a cond, or of a loop
        for (uint32_t Port = 0; Port < (Op == op::Switch ? 2 : 1); ++Port)
          if (!is_contained(Work, Endpoint{U.User, Port}))
            Work.push_back({U.User, Port});
        return;
      }
      if (!Compares && !Broadcasts(Op)) {
        // A stack only keeps the rate as a factor for the gradient.
        IsOther |= Op != op::Shape && Op != op::StackPushV2;
        return;
      }
      Endpoint Other = G.input(U.User, 1 - U.Index);
      if (isScalarConst(G, Other) || is_contained(Work, Other)) {
        Work.push_back({U.User, 0});
        return;
      }
      Larger.push_back({U.User, 0});
      if ((Compares || Adds) && isDraw(G, Other))
        IsRate = true;
      else
        IsOther |= !Scales;
    });
    if (Needs)
      return true;
  }
  for (size_t I = 0; I < Larger.size() && I < 64; ++I) {
    bool Needs = false;
    ForEachUse(Larger[I], [&](Use U) {
      Needs |= needsScalar(G, U);
      StringRef Op = G.opName(U.User);
      if (MovesIt(Op) || Broadcasts(Op))
        Larger.push_back({U.User, 0});
    });
    if (Needs)
      return true;
  }
  return IsRate && !IsOther;
}

/// Returns the rank that the op of the use \p U requires of its input, or 0 for
/// any rank.
static unsigned axesWanted(const Graph &G, Use U) {
  StringRef Op = G.opName(U.User);
  if (Op == op::SparseTensorDenseMatMul) // indices, values, shape, matrix
    return U.Index == 1 || U.Index == 2 ? 1 : 2;
  if (U.Index > 1)
    return 0;
  if (U.Index == 1)
    return StringSwitch<unsigned>(Op)
        .Case(op::MatMul, 2)
        .Case(op::SparseSoftmaxCrossEntropyWithLogits, 1)
        .Default(0);
  return StringSwitch<unsigned>(Op)
      .Cases(op::MatMul, op::SparseSoftmaxCrossEntropyWithLogits, 2)
      .Cases(op::Conv2D, op::Conv2DBackpropFilter, op::DepthwiseConv2dNative,
             op::MaxPool, op::AvgPool, op::LRN, 4)
      .Cases(op::ResizeNearestNeighbor, op::ResizeBilinear, op::ResizeBicubic,
             op::ResizeArea, op::DepthToSpace, op::SpaceToDepth, 4)
      .Cases(op::Conv3D, op::MaxPool3D, op::AvgPool3D, 5)
      .StartsWith(op::FusedBatchNorm, Op.contains("Grad") ? 0 : 4)
      .Default(0);
}

/// Returns the rank of the input \p U if a constant operand has one element for
/// each axis, such as a permutation. Returns 0 if there is none.
static unsigned axesCounted(const Graph &G, Use U) {
  StringRef Op = G.opName(U.User);
  bool Counts = Op == op::Transpose || Op == op::Tile || Op == op::Slice ||
                Op == op::Pad || Op == op::PadV2 || Op == op::MirrorPad;
  if (!Counts || U.Index != 0 || !G.isOp(G.input(U.User, 1).Node, op::Const))
    return 0;
  auto Value = constValue(G, G.input(U.User, 1).Node);
  return Value && !Value->Shape.UnknownRank && !Value->Shape.Dims.empty() &&
                 Value->Shape.Dims[0] > 0
             ? static_cast<unsigned>(Value->Shape.Dims[0])
             : 0;
}

/// Returns the number of leading axes that a StridedSlice indexes, or 0.
static unsigned axesSliced(const Graph &G, Use U) {
  if (G.opName(U.User) != op::StridedSlice || U.Index != 0 ||
      G.intAttr(U.User, "ellipsis_mask").value_or(0) != 0)
    return 0;
  Endpoint Begin = G.input(U.User, 1);
  auto Value =
      G.isOp(Begin.Node, op::Const) ? constValue(G, Begin.Node) : std::nullopt;
  if (!Value || Value->Shape.Dims.size() != 1)
    return 0;
  int64_t New = G.intAttr(U.User, "new_axis_mask").value_or(0), Axes = 0;
  for (int64_t I = 0; I < Value->Shape.Dims[0] && I < 32; ++I)
    Axes += !(New >> I & 1);
  return static_cast<unsigned>(Axes);
}

bool takesElement(const Graph &G, Use U) {
  return axesSliced(G, U) == 1 &&
         G.intAttr(U.User, "shrink_axis_mask").value_or(0) == 1;
}

/// Returns true if \p U reads an element of a vector that is then used as a
/// scalar.
static bool takesScalar(const Graph &G, Use U) {
  return takesElement(G, U) && isScalarFeed(G, {U.User, 0});
}

static bool isReduction(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases(op::Sum, op::Mean, op::Max, op::Min, op::Prod, op::All, true)
      .Case(op::Any, true)
      .Default(false);
}

/// Returns the rank of the input \p U minus the rank of the first output of its
/// op. Returns nothing if the op does not show the difference.
static std::optional<int> axesLost(const Graph &G, Use U, RankOf Known) {
  StringRef Op = G.opName(U.User);
  unsigned Last = G.node(U.User).NumData - 1;
  if (Op == op::Identity || Op == op::Cast || Op == op::StopGradient ||
      (Op == op::ConcatV2 && U.Index < Last))
    return 0;
  if (traitsOf(Op) & trait::Elementwise &&
      (Last == 0 ||
       (Last == 1 && isScalarConst(G, G.input(U.User, 1 - U.Index)))))
    return 0;
  if (U.Index == 0 &&
      (Op == op::ExpandDims || Op == op::OneHot || Op == op::Pack))
    return -1;
  if (isReduction(Op) && U.Index == 0) {
    if (G.boolAttr(U.User, "keep_dims") == true)
      return 0;
    auto Axes = constValue(G, G.input(U.User, 1).Node);
    return Axes && Axes->HasInts
               ? std::optional(static_cast<int>(Axes->Ints.size()))
               : std::nullopt;
  }
  // Products of matrices broadcast all axes before the last two.
  if (Op.starts_with(op::BatchMatMul) &&
      Known(G.input(U.User, 1 - U.Index)) == 2)
    return 0;
  bool LooksUp =
      Op == op::Gather || Op == op::GatherV2 || Op == op::ResourceGather;
  if (LooksUp && U.Index == 1 &&
      G.intAttr(U.User, "batch_dims").value_or(0) == 0)
    if (auto Rank = Known(G.input(U.User, 0)))
      return 1 - static_cast<int>(*Rank);
  return std::nullopt;
}

std::optional<unsigned> rankOfFeed(const Graph &G, Endpoint Feed,
                                   RankOf Known) {
  // Tensors computed from the feed. The number is the rank of the feed minus
  // the rank of the tensor.
  SmallVector<std::pair<Endpoint, int>, 8> Work{{Feed, 0}};
  int Wanted = 0, Sliced = 0;
  bool Agree = true;
  for (size_t I = 0; I < Work.size() && I < 64; ++I) {
    auto [E, More] = Work[I];
    SmallVector<Use, 8> Uses;
    G.forEachUse(E.Node, [&, E = E](Use U) {
      if (U.Index < G.node(U.User).NumData && G.input(U.User, U.Index) == E)
        Uses.push_back(U);
    });
    for (Use U : Uses) {
      unsigned OfList = takesScalar(G, U) ? 1 : 0;
      for (unsigned Axes : {axesWanted(G, U), axesCounted(G, U), OfList}) {
        if (Axes == 0)
          continue;
        int Rank = static_cast<int>(Axes) + More;
        Agree &= Rank > 0 && (Wanted == 0 || Wanted == Rank);
        Wanted = std::max(Wanted, Rank);
      }
      // A slice of axis 0 alone does not show the rank.
      if (unsigned Axes = axesSliced(G, U); Axes > 1)
        Sliced = std::max(Sliced, static_cast<int>(Axes) + More);
      if (auto Lost = axesLost(G, U, Known))
        Work.push_back({{U.User, 0}, More + *Lost});
    }
  }
  if (!Agree || (Wanted != 0 && Sliced > Wanted))
    return std::nullopt;
  int Rank = Wanted != 0 ? Wanted : Sliced;
  return Rank > 0 ? std::optional(static_cast<unsigned>(Rank)) : std::nullopt;
}

/// Returns true if \p N is `max(x, 0) - Product`, where \p Product is a product
/// of \p X: the start of the sigmoid cross-entropy of TensorFlow.
static bool isSigmoidError(const Graph &G, NodeId N, Endpoint Product,
                           Endpoint X) {
  if (!G.isOp(N, op::Sub) || G.input(N, 1) != Product)
    return false;
  NodeId Positive = G.input(N, 0).Node;
  if ((!G.isOp(Positive, op::Select) && !G.isOp(Positive, op::SelectV2)) ||
      G.input(Positive, 1) != X)
    return false;
  NodeId Is = G.input(Positive, 0).Node;
  return G.isOp(Is, op::GreaterEqual) && G.input(Is, 0) == X &&
         G.isOp(G.input(Is, 1).Node, op::ZerosLike);
}

/// Returns the logits of the loss that reads \p Feed as labels, and the number
/// of axes that the logits have and the labels lack. A loss of TensorFlow
/// requires that labels, or the vectors made from them, have the shape of the
/// logits.
static std::optional<std::pair<Endpoint, unsigned>> logitsOf(const Graph &G,
                                                             Endpoint Feed) {
  SmallVector<std::pair<Endpoint, unsigned>, 8> Work{{Feed, 0}};
  std::optional<std::pair<Endpoint, unsigned>> Logits;
  for (size_t I = 0; I < Work.size() && I < 16 && !Logits; ++I) {
    auto [E, More] = Work[I];
    G.forEachUse(E.Node, [&](Use U) {
      if (U.Index >= G.node(U.User).NumData || G.input(U) != E)
        return;
      NodeId N = U.User;
      if (G.isOp(N, op::Identity) || G.isOp(N, op::Cast) ||
          G.isOp(N, op::StopGradient))
        Work.push_back({{N, 0}, More});
      if (G.isOp(N, op::OneHot) && U.Index == 0)
        Work.push_back({{N, 0}, More + 1});
      if (G.isOp(N, op::Mul)) {
        Endpoint X = G.input(N, 1 - U.Index);
        if (G.anyUse(N, [&](Use Of) {
              return isSigmoidError(G, Of.User, {N, 0}, X);
            }))
          Logits = {X, More};
      }
      if (G.isOp(N, op::Reshape) && U.Index == 0)
        G.forEachUse(N, [&](Use Of) {
          NodeId X = G.input(Of.User, 0).Node;
          if (G.isOp(Of.User, op::SoftmaxCrossEntropyWithLogits) &&
              Of.Index == 1 && G.isOp(X, op::Reshape))
            Logits = {G.input(X, 0), More};
        });
    });
  }
  return Logits;
}

/// Returns the rank of \p E. Assumes that a Squeeze without axes does not
/// remove the batch axis, which has more than one element.
static std::optional<unsigned> rankOf(const Graph &G, const DimAnalysis &Dims,
                                      Endpoint E) {
  if (auto Shape = Dims.shape(E))
    return Shape->size();
  auto Axes = G.isOp(E.Node, op::Squeeze)
                  ? G.intListAttr(E.Node, "squeeze_dims")
                  : std::nullopt;
  if (!G.isOp(E.Node, op::Squeeze) || (Axes && !Axes->empty()))
    return std::nullopt;
  auto Shape = Dims.shape(G.input(E.Node, 0));
  if (!Shape)
    return std::nullopt;
  return count_if(*Shape, [&](DimId D) { return Dims.table().number(D) != 1; });
}

void declareRanks(Graph &G, DiagnosticEngine &Diags) {
  uint32_t Op = 0;
  while (Op < G.numOps() && G.opNameOf(Op) != op::Placeholder)
    ++Op;
  std::vector<NodeId> Order;
  std::optional<DimAnalysis> Dims; // Few graphs need it.
  auto Rank = [&](Endpoint E) {
    if (!Dims) {
      DimOptions Options;
      Options.Unpatched = true;
      Order = topologicalOrder(G);
      Dims.emplace(G, Order, Options);
    }
    return rankOf(G, *Dims, E);
  };
  for (NodeId N = 0; N < G.size(); ++N) {
    if (G.node(N).Op != Op || !G.isLive(N) || !G.hasUses(N))
      continue;
    auto Shape = G.shapeAttr(N, "shape");
    if (!Shape || !Shape->UnknownRank || isScalarFeed(G, {N, 0}))
      continue;
    auto Axes = rankOfFeed(G, {N, 0}, Rank);
    if (auto Logits = Axes ? std::nullopt : logitsOf(G, {N, 0})) {
      Axes = Rank(Logits->first);
      if (Axes)
        Axes = *Axes - std::min(*Axes, Logits->second);
    }
    if (!Axes || *Axes == 0)
      continue;
    ShapeValue Declared;
    Declared.Dims.assign(*Axes, -1);
    G.setAttr(N, "shape", encodeShapeAttr(Declared));
    if (Diags.wantsRemarks())
      Diags.remark("feed", G.name(N),
                   formatv("is declared with rank {0}, as its readers require; "
                           "TensorFlow refuses a feed of another rank",
                           *Axes));
  }
}

} // namespace graft
