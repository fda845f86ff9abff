//===- lib/infer/rules/TypeRulesTable.cpp - the families --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Which function gives the types of which family of OpRules.def, and the rules
// that are short.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Whether operand \p I is one row that is broadcast.
bool TypeRules::isOneRow(unsigned I) const {
  auto Shape = D.shape(G.input(N, I));
  return Shape && Shape->size() == 2 && D.table().isOne(Shape->front());
}

/// Whether a BiasAdd adds to channels before other axes, where operands are not
/// aligned at the right, and those are split.
bool TypeRules::addsChannels() const {
  int Rank = rank(out());
  return G.isOp(N, op::BiasAdd) && Rank != 2 &&
         G.stringAttr(N, "data_format") == StringRef("NCHW") &&
         (operand(1).isSharded() ||
          (operand(0).isSharded() && (Rank < 0 || operand(0).Axis != 0)));
}

/// \p Rows, those that operand 0 gives the sizes of: it must be the sizes of
/// the rows of one replica, or of true values.
RType TypeRules::ofSizes(RType Rows) {
  if (Rows.isVarying())
    return Rows;
  Endpoint Sizes = G.input(N, 0);
  // What has no shape that is known may have rows.
  bool AreLocal =
      D.batchAxis(out()) == 0 || (G.isOp(Sizes.Node, op::Shape) &&
                                  T.type(G.input(Sizes.Node, 0)).isSharded());
  bool Fits = Rows.isSharded() ? AreLocal
                               : operand(0).isTrue() || localAxis(out()) == -1;
  return isSize(0) && Fits ? Rows : varying("depends on a per-replica size");
}

void TypeRules::apply(TypeRule Rule) {
  auto Rows = [&](std::initializer_list<RType> Operands) {
    // Axis 0 is the batch of all that are split; 1: split, 0: none, -1: bad.
    int Result = 0;
    for (const RType &X : Operands) {
      if (X.isVarying() || (X.isSharded() && X.Axis != 0))
        return -1;
      Result |= X.isSharded();
    }
    return Result;
  };
  switch (Rule) {
  case TypeRule::None: {
    bool AllSame = !Ops[G.node(N).Op].Opaque || G.node(N).Count == Copies::Once;
    for (unsigned I = 0; I < numData(); ++I) {
      RType X = number(I);
      if (X.isVarying()) {
        setAll(varyingLike(X));
        return;
      }
      AllSame &= !X.isSharded();
    }
    // A function of true values is a true value.
    for (unsigned I = 0; AllSame && I < numData(); ++I)
      plain(I);
    setAll(AllSame ? RType::replicated()
                   : varying("no rule for op " + G.opName(N)));
    return;
  }
  case TypeRule::Pass:
    for (unsigned I = 0; I < numData(); ++I)
      set(I, operand(I));
    return;
  case TypeRule::Linear:
    setAll(numeric(0));
    return;
  case TypeRule::LinearFirst:
  case TypeRule::LinearSecond: {
    unsigned Lin = Rule == TypeRule::LinearFirst ? 0 : 1, Other = 1 - Lin;
    RType X = numeric(Lin), Y = plain(Other);
    // The derivative at zero is not zero.
    Y.Zero = false;
    setAll(multiply(Lin, X, Other, Y, 1));
    return;
  }
  case TypeRule::NonLinear: {
    SmallVector<unsigned, 3> All;
    for (unsigned I = 0; I < numData(); ++I)
      All.push_back(I);
    setAll(elementwise(All));
    return;
  }
  case TypeRule::Add: {
    SmallVector<unsigned, 8> All;
    for (unsigned I = 0; I < numData(); ++I)
      All.push_back(I);
    setAll(addsChannels() ? varying("adds a bias along the batch axis")
                          : add(All));
    return;
  }
  case TypeRule::Mul:
    setAll(multiply(0, numeric(0), 1, numeric(1), 1));
    return;
  case TypeRule::Div:
    // Integers are rounded, which is not linear.
    if (unsigned Type = G.outputType(N, 0);
        Type != DT_INVALID && !isFloating(Type)) {
      setAll(elementwise({0, 1}));
      return;
    }
    setAll(multiply(0, numeric(0), 1, numeric(1), -1));
    return;
  case TypeRule::Select: {
    RType C = plain(0);
    RType Value = add({1, 2});
    // A vector says which rows, in the older op.
    bool ByRows = G.isOp(N, op::Select) && rank(G.input(N, 0)) == 1;
    if (C.isReplicated() && Value.isSharded() &&
        (ByRows ? Value.Axis == 0 : !broadcastsAlong(0, Value.Axis))) {
      setAll(varying("selects from a per-replica shard by a replicated "
                     "condition along the batch axis"));
      return;
    }
    // Where the condition differs by rows, both sides do.
    if (C.isSharded() && Value.isReplicated() && !C.isVarying()) {
      int Axis = ByRows ? 0 : alignedAxis(0, C.Axis);
      bool Fits =
          Axis >= 0 && broadcastsAlong(1, Axis) && broadcastsAlong(2, Axis);
      setAll(Fits ? RType::sharded(Axis, Value.K)
                  : varying("selects by a per-replica condition between "
                            "replicated values along the batch axis"));
      return;
    }
    if (C.isSharded() && Value.isSharded()) {
      int Axis = ByRows ? 0 : alignedAxis(0, C.Axis);
      setAll(Axis == Value.Axis ? Value
                                : varying("selects by a condition that is "
                                          "split along a different axis"));
      return;
    }
    setAll(C.isVarying()       ? varyingLike(C)
           : Value.isVarying() ? varyingLike(Value)
           : C.isSharded()     ? varying("selects rows of a partial sum")
                               : Value);
    return;
  }
  case TypeRule::Zeros:
  case TypeRule::Ones:
    setAll(alike(/*Zero=*/Rule == TypeRule::Zeros));
    return;
  case TypeRule::Cast: {
    unsigned From = G.typeAttr(N, "SrcT").value_or(DT_INVALID);
    unsigned To = G.typeAttr(N, "DstT").value_or(DT_INVALID);
    bool Exact = isFloating(To) || (!isFloating(From) && To != DT_BOOL);
    setAll(Exact ? numeric(0) : elementwise({0}));
    return;
  }
  case TypeRule::Source:
    source();
    return;
  case TypeRule::ParseExample:
    parseExample();
    return;
  case TypeRule::Lookup:
    setAll(lookup());
    return;
  case TypeRule::ReadVariable:
    // Shapes and values of variables are equal on all replicas; what is looked
    // up by row goes through the rule of Gather.
    setAll(RType::replicated());
    return;
  case TypeRule::ToReplicas:
  case TypeRule::FromReplicas:
  case TypeRule::Reduce:
  case TypeRule::CollectiveReduce:
  case TypeRule::GatherReplicas:
  case TypeRule::Scale:
    setAll(crossing());
    return;
  case TypeRule::AccumulatorPut:
    return;
  case TypeRule::AccumulatorTake:
    setAll(accumulated());
    return;
  case TypeRule::MatMul:
    setAll(matMul(false));
    return;
  case TypeRule::BatchMatMul:
    setAll(matMul(true));
    return;
  case TypeRule::BiasAddGrad: {
    RType X = numeric(0);
    if (X.isSharded()) {
      int Rank = rank(G.input(N, 0));
      bool First =
          Rank != 2 && G.stringAttr(N, "data_format") == StringRef("NCHW");
      int Channel = First ? 1 : Rank - 1;
      X = Channel <= 0        ? varying("has an operand of unknown rank")
          : X.Axis == Channel ? RType::sharded(0, X.K)
                              : RType::partial(X.K);
    }
    setAll(X);
    return;
  }
  case TypeRule::Conv:
    setAll(convolve(/*Rows=*/0));
    return;
  case TypeRule::ConvBackpropInput:
    setAll(ofSizes(convolve(/*Rows=*/2)));
    return;
  case TypeRule::ConvBackpropFilter: {
    RType X = numeric(0), Dy = numeric(2);
    if (!operand(1).isTrue())
      X = varying("depends on a per-replica size");
    if (X.isVarying() || Dy.isVarying())
      setAll(varyingLike(X.isVarying() ? X : Dy));
    else if (X.isSharded() && Dy.isSharded())
      setAll(X.Axis == 0 && Dy.Axis == 0
                 ? RType::partial(X.K + Dy.K)
                 : varying("convolves along the batch axis"));
    else
      setAll(
          X.isSharded() || Dy.isSharded()
              ? varying(
                    "contracts the batch axis with a value that is not split")
              : multiply(0, X, 2, Dy, 1));
    return;
  }
  case TypeRule::PerExample: {
    bool Split = false;
    for (unsigned I = 0; I < numData(); ++I) {
      RType X = plain(I);
      int Is = Rows({X});
      if (Is > 0 && I > 0)
        Is = -1;
      if (Is < 0) {
        setAll(X.isVarying() ? varyingLike(X)
                             : varying("operates along the batch axis"));
        return;
      }
      Split |= Is;
    }
    setAll(Split ? RType::sharded(0) : RType::replicated());
    return;
  }
  case TypeRule::LinearRows:
  case TypeRule::GradSecond: {
    unsigned Lin = Rule == TypeRule::GradSecond ? 1 : 0;
    RType Dy = numeric(Lin);
    // What else there is are sizes: of a tensor or of windows.
    for (unsigned I = 0; I < numData(); ++I)
      if (I != Lin && !(Lin == 0 ? operand(I).isTrue() : isSize(I)))
        Dy = varying("depends on a per-replica size");
    if (Rule == TypeRule::GradSecond)
      Dy = ofSizes(Dy);
    setAll(Rows({Dy}) < 0
               ? (Dy.isVarying() ? varyingLike(Dy)
                                 : varying("operates along the batch axis"))
               : Dy);
    return;
  }
  case TypeRule::BatchNorm:
    batchNorm();
    return;
  case TypeRule::BatchNormGrad:
    batchNormGrad();
    return;
  case TypeRule::LastAxis: {
    RType X = plain(0);
    if (X.isSharded() && (rank(out()) < 0 || X.Axis + 1 == rank(out())))
      X = varying("normalizes along the batch axis");
    setAll(X);
    return;
  }
  case TypeRule::PerVector:
    setAll(leading(static_cast<int>(mixedAxes(G, N))));
    return;
  case TypeRule::PerMatrix:
    setAll(leading(2));
    return;
  case TypeRule::PerVolume:
    setAll(leading(3));
    return;
  case TypeRule::Rows:
    rows();
    return;
  case TypeRule::ToBlocks:
    setAll(toBlocks());
    return;
  case TypeRule::FromBlocks:
    setAll(fromBlocks());
    return;
  case TypeRule::Whole:
    setAll(whole());
    return;
  case TypeRule::AlongAxes:
    setAll(alongAxes(/*Linear=*/true));
    return;
  case TypeRule::AlongAxesNonLinear:
    setAll(alongAxes(/*Linear=*/false));
    return;
  case TypeRule::ReverseSequence:
    setAll(reverseSequence());
    return;
  case TypeRule::EnsureShape: {
    RType X = operand(0);
    auto Shape = G.shapeAttr(N, "shape");
    auto Is = D.shape(out());
    if (X.isSharded() && Shape && X.Axis < Shape->Dims.size() &&
        Shape->Dims[X.Axis] >= 0 &&
        !(Is && D.localNumber((*Is)[X.Axis]) == Shape->Dims[X.Axis]))
      X = varying("checks the size of the whole batch");
    setAll(X);
    return;
  }
  case TypeRule::Einsum:
    setAll(einsum());
    return;
  case TypeRule::Xent: {
    RType X = plain(0), L = plain(1);
    int Is = Rows({X, L});
    if (Is < 0)
      setAll(X.isVarying()   ? varyingLike(X)
             : L.isVarying() ? varyingLike(L)
                             : varying("operates along the batch axis"));
    else if (X.isSharded() != L.isSharded() && !isOneRow(X.isSharded() ? 1 : 0))
      setAll(varying("combines a per-replica shard with a replicated value "
                     "along the batch axis"));
    else
      setAll(Is ? RType::sharded(0) : RType::replicated());
    return;
  }
  case TypeRule::SumReduction:
  case TypeRule::MeanReduction:
  case TypeRule::MinReduction:
  case TypeRule::MaxReduction:
  case TypeRule::AndReduction:
  case TypeRule::OrReduction:
  case TypeRule::ArgReduction:
    setAll(reduction(Rule));
    return;
  case TypeRule::L2Loss: {
    RType X = reduced(0);
    if (X.isSharded())
      X = RType::partial(2 * X.K);
    else
      X.K = static_cast<int8_t>(2 * X.K);
    setAll(X);
    return;
  }
  case TypeRule::ShapeOf: {
    for (unsigned Port = 0; Port < D.numOutputs(N); ++Port)
      set(Port, sizes(Port));
    return;
  }
  case TypeRule::Range: // see infer()
    apply(TypeRule::None);
    return;
  case TypeRule::Relayout:
    setAll(relayout());
    return;
  case TypeRule::Fill:
    setAll(fill());
    return;
  case TypeRule::Tile:
    setAll(tile());
    return;
  case TypeRule::Random:
    setAll(draw());
    return;
  case TypeRule::Join:
    setAll(join());
    return;
  case TypeRule::Part:
    setAll(part(G.isOp(N, op::Split)              ? 1
                : G.isOp(N, op::StridedSliceGrad) ? 4
                                                  : 0));
    return;
  case TypeRule::Gather:
    setAll(G.node(N).Kind == Inserted::Gather ? gatherByLengths() : gather());
    return;
  case TypeRule::GatherNd:
    setAll(gatherNd());
    return;
  case TypeRule::ScatterNd:
    setAll(scatterNd());
    return;
  case TypeRule::TensorScatter:
    setAll(tensorScatter());
    return;
  case TypeRule::Where:
    where();
    return;
  case TypeRule::Unique: {
    RType X = plain(0);
    if (X.isSharded())
      X = gathered(0, X);
    setAll(X.isVarying() ? varyingLike(X) : RType::replicated());
    return;
  }
  case TypeRule::UnsortedSegmentSum:
  case TypeRule::UnsortedSegmentMax:
  case TypeRule::UnsortedSegmentMin:
    setAll(unsortedSegment(Rule));
    return;
  case TypeRule::OneHot: {
    RType X = plain(0);
    // The new axis is the last one, and its size no batch.
    for (unsigned I = 1; I < numData(); ++I)
      if (RType Y = plain(I); !Y.isReplicated() || operand(I).Symbolic)
        X = Y.isVarying() ? varyingLike(Y)
                          : varying("counts rows of one replica");
    if (X.isSharded() && G.intAttr(N, "axis").value_or(-1) != -1)
      X = varying("inserts its axis before the batch axis");
    setAll(X);
    return;
  }
  case TypeRule::TopK: {
    RType X = plain(0);
    int Rank = rank(G.input(N, 0));
    if (X.isSharded() && (Rank < 0 || X.Axis + 1 == Rank))
      X = varying("selects along the batch axis");
    if (numData() > 1 && !operand(1).isTrue())
      X = varying("selects a per-replica number of elements");
    setAll(X);
    return;
  }
  case TypeRule::Partition:
    partition();
    return;
  case TypeRule::Stitch: // of row numbers see byRowNumbers()
    setAll(whole());
    return;
  case TypeRule::Hits:
    hits();
    return;
  case TypeRule::Switch:
    switches();
    return;
  case TypeRule::Merge:
    merges();
    return;
  case TypeRule::LocalHandle: // see infer()
    return;
  case TypeRule::Optional:
    boxes();
    return;
  case TypeRule::OptionalNone:
    return;
  }
}

} // namespace graft
