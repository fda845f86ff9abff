//===- lib/infer/rules/TypeRulesAxes.cpp - rules that mix axes --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The families whose rule depends on which axes an op mixes. An op that mixes
// the axis of the batch in a way that no rule describes is Varying.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

RType TypeRules::matMul(bool Batched) {
  RType X = numeric(0), Y = numeric(1);
  if (X.isVarying())
    return varyingLike(X);
  if (Y.isVarying())
    return varyingLike(Y);
  int RX = rank(G.input(N, 0)), RY = rank(G.input(N, 1)), Out = rank(out());
  if (X.isSharded() || Y.isSharded()) {
    if (RX < 2 || RY < 2 || Out < 2)
      return varying("has an operand of unknown rank");
    if (X.isPartial())
      X = reduced(0);
    if (Y.isPartial())
      Y = reduced(1);
    bool TX = G.boolAttr(N, Batched ? "adj_x" : "transpose_a").value_or(false);
    bool TY = G.boolAttr(N, Batched ? "adj_y" : "transpose_b").value_or(false);
    int ContractX = RX - (TX ? 2 : 1), ContractY = RY - (TY ? 1 : 2);
    bool InX = X.isSharded() && X.Axis == ContractX;
    bool InY = Y.isSharded() && Y.Axis == ContractY;
    int K = X.K + Y.K;
    if (InX && InY)
      return RType::partial(K);
    if (InX || InY)
      return varying("contracts the batch axis with a value that is not split");
    bool LeadX = X.isSharded() && X.Axis < RX - 2;
    bool LeadY = Y.isSharded() && Y.Axis < RY - 2;
    if (X.isSharded() && Y.isSharded()) {
      int AX = X.Axis + Out - RX, AY = Y.Axis + Out - RY;
      if (LeadX && LeadY && AX == AY)
        return RType::sharded(AX, K);
      return varying("multiplies every row of the batch with every other row");
    }
    if (X.isSharded())
      return LeadX ? (broadcastsAlong(1, X.Axis + Out - RX)
                          ? RType::sharded(X.Axis + Out - RX, K)
                          : varying("multiplies a per-replica shard with a "
                                    "replicated value along the batch axis"))
                   : RType::sharded(Out - 2, K);
    return LeadY ? (broadcastsAlong(0, Y.Axis + Out - RY)
                        ? RType::sharded(Y.Axis + Out - RY, K)
                        : varying("multiplies a per-replica shard with a "
                                  "replicated value along the batch axis"))
                 : RType::sharded(Out - 1, K);
  }
  return multiply(0, X, 1, Y, 1);
}

/// A convolution of the rows in operand \p Rows, forward or backward, with the
/// filter in operand 1.
RType TypeRules::convolve(unsigned Rows) {
  RType X = numeric(Rows), F = numeric(1);
  if (X.isSharded() && F.isPartial())
    F = reduced(1);
  if (X.isSharded() && !F.isVarying())
    return X.Axis == 0 && F.isReplicated()
               ? RType::sharded(0, X.K + F.K)
               : varying("convolves along the batch axis");
  return F.isSharded() ? varying("has filters that differ per example")
                       : multiply(Rows, X, 1, F, 1);
}

RType TypeRules::reduction(TypeRule Rule) {
  bool Sum = Rule == TypeRule::SumReduction,
       Mean = Rule == TypeRule::MeanReduction;
  // The mean of integers is rounded, which is not linear.
  bool Linear = Sum || (Mean && isFloating(G.outputType(N, 0)));
  RType X = Linear ? numeric(0) : plain(0);
  if (X.isVarying())
    return varyingLike(X);
  if (!isSize(1))
    return varying("reduces axes that differ per replica");
  if (!X.isSharded())
    return X;
  auto Axes = D.numbers(G.input(N, 1));
  int Rank = rank(G.input(N, 0));
  if (!Axes || Rank < 0)
    return varying("reduces unknown axes");
  bool Keep = G.boolAttr(N, "keep_dims").value_or(false);
  int Before = 0;
  for (int64_t A : *Axes) {
    int Axis = static_cast<int>(A < 0 ? A + Rank : A);
    if (Axis != X.Axis) {
      Before += Axis < X.Axis;
      continue;
    }
    switch (Rule) {
    case TypeRule::SumReduction:
      return RType::partial(X.K);
    case TypeRule::MeanReduction:
      // Parts of different lengths; one without rows has no mean.
      if (D.isUneven(G.input(N, 0), X.Axis))
        return gathered(0, X);
      // The mean of a part; parts have equally many rows.
      if (!isFloating(G.outputType(N, 0)))
        return varying("rounds the mean of each replica's rows");
      return RType::partial(X.K + 1);
    case TypeRule::MinReduction:
      return RType::partial(0, Combine::Min);
    case TypeRule::MaxReduction:
      return RType::partial(0, Combine::Max);
    case TypeRule::AndReduction:
      return RType::partial(0, Combine::And);
    case TypeRule::OrReduction:
      return RType::partial(0, Combine::Or);
    default:
      return varying("selects along the batch axis");
    }
  }
  X.Axis = static_cast<uint8_t>(X.Axis - (Keep ? 0 : Before));
  return X;
}

/// Whether axis \p Axis of \p Out is that of \p In and some axes after it in
/// one, of sizes that need not be known: the axes around them are the same.
bool TypeRules::mergesRows(ArrayRef<DimId> In, ArrayRef<DimId> Out,
                           unsigned Axis) const {
  if (In.size() < Out.size() || Axis >= Out.size() ||
      D.table().isSame(Out[Axis]))
    return false;
  auto IsSame = [&](auto Pair) {
    auto [X, Y] = Pair;
    auto S = D.table().sym(X);
    return D.table().find(X) == D.table().find(Y) ||
           (S && S == D.table().sym(Y));
  };
  size_t After = Out.size() - Axis - 1;
  return all_of(zip(In.take_front(Axis), Out.take_front(Axis)), IsSame) &&
         all_of(zip(In.take_back(After), Out.take_back(After)), IsSame);
}

/// Whether a Squeeze drops all axes of size 1, and axis \p Axis, which is
/// split, may be one of them.
bool TypeRules::dropsOnlyRow(unsigned Axis) const {
  if (!G.isOp(N, op::Squeeze) || D.replicas() == 1)
    return false;
  auto Axes = G.intListAttr(N, "squeeze_dims");
  if (Axes && !Axes->empty())
    return false;
  auto Shape = D.shape(G.input(N, 0));
  if (!Shape || Axis >= Shape->size())
    return true;
  return D.mayBeOneRow((*Shape)[Axis]);
}

/// Reshape, Transpose, Squeeze, ExpandDims: where the batch axis went. Rows
/// stay whole when the sizes before the axis are the same on both sides.
RType TypeRules::relayout() {
  RType X = operand(0);
  if (X.isVarying())
    return varyingLike(X);
  // Sizes are followed in scalars and vectors; elsewhere they are numbers.
  if (X.Symbolic && !D.value(out()))
    if (RType Number = T.number(G.input(N, 0)); !Number.isVarying())
      X = Number;
  if (numData() > 1 && !operand(1).isTrue()) {
    // Whatever it is made of, it has this shape now.
    if (X.isNothing())
      X.Order = RType::InOrder;
    // Sizes that follow the batch are for what is split.
    bool Fits = isSize(1) && G.isOp(N, op::Reshape);
    if (!Fits || (!X.isSharded() && localAxis(out()) != -1))
      return varying("takes a shape that differs per replica");
  }
  if (!X.isSharded())
    return X;
  auto In = D.shape(G.input(N, 0)), Out = D.shape(out());
  if (dropsOnlyRow(X.Axis))
    return varying("drops the batch axis where a replica has one row");
  if (!In || !Out)
    return varying("reshapes the batch axis in an unknown way");
  if (G.isOp(N, op::Transpose) || G.isOp(N, op::ConjugateTranspose)) {
    auto Perm = D.numbers(G.input(N, 1));
    if (!Perm)
      return varying("permutes axes in an unknown order");
    for (size_t I = 0; I < Perm->size(); ++I)
      if ((*Perm)[I] == X.Axis)
        return RType::sharded(static_cast<int>(I), X.K);
    return varying("permutes axes in an unknown order");
  }
  int Axis = D.batchAxis(out());
  auto Lead = [&](ArrayRef<DimId> Dims) -> std::optional<Sym> {
    Sym Product;
    for (DimId Dim : Dims) {
      auto S = D.table().sym(Dim);
      if (!S || !Product.multiply(*S))
        return std::nullopt;
    }
    return Product;
  };
  if (Axis >= 0) {
    auto Before = Lead(In->take_front(X.Axis)),
         After = Lead(Out->take_front(Axis));
    if (Before && After && *Before == *After)
      return RType::sharded(Axis, X.K);
  }
  if (G.isOp(N, op::Reshape) && mergesRows(*In, *Out, X.Axis))
    return RType::sharded(X.Axis, X.K);
  return varying(
      "reshapes so that the rows of a replica are no longer contiguous");
}

/// Whether a strided slice takes all of axis \p Axis of the whole tensor, in
/// order; its sizes alone would not tell a reversal.
bool TypeRules::stridesInOrder(int Axis, Endpoint Whole) const {
  auto Strides = D.numbers(G.input(N, 3));
  int Rank = rank(Whole);
  if (!Strides || Rank < 0)
    return false;
  auto Mask = [&](const char *Key, size_t I) {
    return G.intAttr(N, Key).value_or(0) >> I & 1;
  };
  int Explicit = 0;
  for (size_t I = 0; I < Strides->size(); ++I)
    Explicit += !Mask("new_axis_mask", I) && !Mask("ellipsis_mask", I);
  int At = 0;
  for (size_t I = 0; I < Strides->size(); ++I) {
    if (Mask("ellipsis_mask", I)) {
      At += Rank - Explicit;
    } else if (!Mask("new_axis_mask", I)) {
      if (At == Axis)
        return (*Strides)[I] == 1;
      ++At;
    }
  }
  return true;
}

/// Slice, Split, Pad and their like: the batch axis must be taken whole.
RType TypeRules::part(unsigned I) {
  // Padding with something but zeros is not linear.
  bool PadsValue = G.isOp(N, op::PadV2), Strided = G.isOp(N, op::StridedSlice),
       OfGrad = G.isOp(N, op::StridedSliceGrad);
  bool Linear = !PadsValue || operand(2).Zero;
  RType X = Linear ? numeric(I) : plain(I);
  X.Zero &= Linear;
  if (X.isVarying())
    return varyingLike(X);
  if (X.isJoined())
    if (RType Own = ownPart(I, X); !Own.isVarying())
      return Own;
  bool BySize = false;
  for (unsigned J = 0; J < numData(); ++J) {
    if (J == I || operand(J).isTrue())
      continue;
    // A size may be that of a replica, but not where a part begins, or the
    // steps, or the value that fills.
    bool Begins = (Strided || OfGrad || G.isOp(N, op::Slice)) && J == 1;
    bool Fills = PadsValue && J == 2;
    if (!(Fills ? plain(J).isReplicated() : isSize(J)) || Begins ||
        (J == 3 && (Strided || OfGrad)))
      return operand(J).isVarying()
                 ? varyingLike(operand(J))
                 : varying("takes a different slice on each replica");
    BySize |= !Fills;
  }
  if (!X.isSharded()) {
    for (unsigned Port = 0; BySize && Port < D.numOutputs(N); ++Port)
      if (localAxis(out(Port)) != -1)
        return varying("takes a slice of a per-replica size");
    return X;
  }
  RType Result = X;
  auto In = D.shape(G.input(N, I));
  for (unsigned Port = 0; Port < D.numOutputs(N); ++Port) {
    auto Out = D.shape(out(Port));
    int Axis = D.batchAxis(out(Port));
    if (!In || !Out || Axis < 0 ||
        D.table().find((*Out)[Axis]) != D.table().find((*In)[X.Axis]) ||
        (Strided && !stridesInOrder(X.Axis, G.input(N, I))) ||
        (OfGrad && !stridesInOrder(Axis, out())))
      return varying("takes a slice of the batch axis");
    if (BySize && localAxis(out(Port)) != Axis)
      return varying("takes a slice of a per-replica size");
    Result.Axis = static_cast<uint8_t>(Axis);
  }
  return Result;
}

/// Ops on each vector (\p Mixed = 1) or matrix (2) of their operands. What has
/// no more than one axis beside a split operand is a parameter.
RType TypeRules::leading(int Mixed) {
  int Axis = -1, Rank = -1;
  bool Whole = false;
  for (unsigned I = 0; I < numData(); ++I) {
    RType X = plain(I);
    if (X.isVarying())
      return varyingLike(X);
    int R = rank(G.input(N, I));
    if (!X.isSharded()) {
      Whole |= R < 0 || R > 1;
      continue;
    }
    if (R < 0 || X.Axis >= R - Mixed ||
        (Axis >= 0 && (Axis != X.Axis || Rank != R)))
      return varying("operates along the batch axis");
    Axis = X.Axis;
    Rank = R;
  }
  if (Axis < 0)
    return RType::replicated();
  return Whole ? varying("combines a per-replica shard with a replicated value "
                         "along the batch axis")
               : RType::sharded(Axis);
}

/// Cumsum, Reverse, Roll: along the axes in the last operand.
RType TypeRules::alongAxes(bool Linear) {
  RType X = Linear ? numeric(0) : plain(0);
  if (X.isVarying())
    return varyingLike(X);
  for (unsigned I = 1; I < numData(); ++I)
    if (!operand(I).isTrue())
      return varying(
          "operates along axes, or by shifts, that differ per replica");
  if (!X.isSharded())
    return X;
  auto Axes = D.numbers(G.input(N, numData() - 1));
  int Rank = rank(G.input(N, 0));
  if (!Axes || Rank < 0)
    return varying("operates along unknown axes");
  for (int64_t A : *Axes)
    if ((A < 0 ? A + Rank : A) == X.Axis)
      return varying("operates along the batch axis");
  return X;
}

RType TypeRules::reverseSequence() {
  RType X = numeric(0), Lengths = plain(1);
  if (X.isVarying() || Lengths.isVarying())
    return varyingLike(X.isVarying() ? X : Lengths);
  int64_t Batch = G.intAttr(N, "batch_dim").value_or(0),
          Along = G.intAttr(N, "seq_dim").value_or(-1);
  if (!X.isSharded() && !Lengths.isSharded())
    return X;
  bool ByRow = X.isSharded() && X.Axis == Batch && Lengths.isSharded();
  bool Beside = X.isSharded() && X.Axis != Batch && Lengths.isReplicated();
  return X.Axis != Along && Batch >= 0 && Along >= 0 && (ByRow || Beside)
             ? X
             : varying("reverses rows by the sequence lengths of other rows");
}

/// A sum of products: the batch is a letter that the result keeps or adds up.
RType TypeRules::einsum() {
  SmallVector<RType, 2> Types;
  bool AnySharded = false;
  for (unsigned I = 0; I < numData(); ++I) {
    Types.push_back(numeric(I));
    if (Types.back().isVarying())
      return varyingLike(Types.back());
    AnySharded |= Types.back().isSharded();
  }
  if (!AnySharded && Types.size() == 1)
    return Types[0];
  if (!AnySharded && Types.size() == 2)
    return multiply(0, Types[0], 1, Types[1], 1);
  auto Text = G.stringAttr(N, "equation");
  auto E = parseEquation(Text.value_or(""), numData());
  if (!E)
    return varying("has an unsupported einsum equation");
  char Batch = 0;
  int K = 0;
  for (unsigned I = 0; I < Types.size(); ++I) {
    RType &X = Types[I];
    if (X.isPartial())
      X = reduced(I);
    K += X.K;
    if (!X.isSharded())
      continue;
    if (X.Axis >= E->Inputs[I].size())
      return varying("has an operand of unknown rank");
    char Letter = E->Inputs[I][X.Axis];
    if (Batch && Batch != Letter)
      return varying("multiplies every row of the batch with every other row");
    Batch = Letter;
  }
  for (unsigned I = 0; Batch && I < Types.size(); ++I)
    if (!Types[I].isSharded() && E->Inputs[I].contains(Batch))
      return varying("contracts the batch axis with a value that is not split");
  if (!Batch)
    return RType::replicated(K);
  size_t Kept = E->Output.find(Batch);
  return Kept == StringRef::npos ? RType::partial(K)
                                 : RType::sharded(static_cast<int>(Kept), K);
}

/// Whether the batch is the channels of a batch norm, as in a layer norm that
/// is made of one: every row has statistics of its own.
bool TypeRules::rowsAreChannels(const RType &X, ArrayRef<RType> PerChannel) {
  int Rank = rank(G.input(N, G.opName(N).contains("Grad") ? 1 : 0));
  bool First = G.stringAttr(N, "data_format").value_or("NHWC") == "NCHW";
  return X.isSharded() && Rank > 1 && X.Axis == (First ? 1 : Rank - 1) &&
         all_of(PerChannel,
                [](const RType &C) { return C.isSharded() && C.Axis == 0; });
}

void TypeRules::batchNorm() {
  SmallVector<RType, 5> In;
  for (unsigned I = 0; I < numData(); ++I) {
    In.push_back(plain(I));
    if (In.back().isVarying()) {
      setAll(varyingLike(In.back()));
      return;
    }
  }
  const RType &X = In[0];
  auto IsReplicated = [](const RType &T) { return T.isReplicated(); };
  if (all_of(In, IsReplicated)) {
    setAll(RType::replicated());
    return;
  }
  // The running statistics (inputs 3, 4) are empty in training.
  bool Training = G.boolAttr(N, "is_training").value_or(true);
  if (rowsAreChannels(X, ArrayRef(In).slice(1, Training ? 2 : In.size() - 1))) {
    setAll(RType::sharded(0));
    set(0, X);
    return;
  }
  if (!X.isSharded() || X.Axis != 0 || !all_of(drop_begin(In), IsReplicated)) {
    setAll(varying("normalizes along the batch axis"));
    return;
  }
  if (!Training) {
    setAll(RType::replicated());
    set(0, RType::sharded(0));
    return;
  }
  if (D.isUneven(G.input(N, 0), 0)) {
    setAll(varying("normalizes a data-dependent number of rows"));
    return;
  }
  Assumes |= AssumesLocalBatchNorm;
  T.Sources.push_back({N, AssumesLocalBatchNorm});
  set(0, RType::sharded(0));
  set(1, RType::partial(1));
  set(2, RType::partial(1));
  for (unsigned Port = 3; Port < D.numOutputs(N); ++Port)
    set(Port, varying("holds statistics of one replica's rows"));
}

void TypeRules::batchNormGrad() {
  bool Training = G.boolAttr(N, "is_training").value_or(true);
  RType Dy = numeric(0), X = plain(1);
  SmallVector<RType, 3> PerChannel{plain(2)};
  // Those of the whole batch; in training they are what the forward op kept.
  for (unsigned I = 3; !Training && I < 5; ++I)
    PerChannel.push_back(plain(I));
  SmallVector<RType, 5> All{Dy, X};
  append_range(All, PerChannel);
  for (const RType &Type : All)
    if (Type.isVarying()) {
      setAll(varyingLike(Type));
      return;
    }
  auto IsReplicated = [](const RType &T) { return T.isReplicated(); };
  if (Dy.isPartial())
    All[0] = Dy = reduced(0);
  bool SameAxis = Dy.isSharded() && X.isSharded() && Dy.Axis == X.Axis;
  setAll(RType::replicated());
  if (SameAxis && rowsAreChannels(X, PerChannel)) {
    set(0, Dy);
    set(1, RType::sharded(0, Dy.K));
    set(2, RType::sharded(0, Dy.K));
  } else if (SameAxis && D.isUneven(G.input(N, 1), X.Axis)) {
    setAll(varying("normalizes a data-dependent number of rows"));
  } else if (SameAxis && X.Axis == 0 && all_of(PerChannel, IsReplicated)) {
    // The mean of the gradient is that of one replica's rows.
    if (Training && !(Assumes & AssumesLocalBatchNorm)) {
      Assumes |= AssumesLocalBatchNorm;
      T.Sources.push_back({N, AssumesLocalBatchNorm});
    }
    set(0, RType::sharded(0, Dy.K));
    set(1, RType::partial(Dy.K));
    set(2, RType::partial(Dy.K));
  } else {
    setAll(all_of(All, IsReplicated)
               ? RType::replicated(Dy.K)
               : varying("normalizes along the batch axis"));
  }
}

/// The program's own ops, by what they say they do.
RType TypeRules::crossing() {
  RType X = number(0);
  std::optional<int64_t> Assumed;
  // Only what combines can have one, and in an output all of that is merged.
  if (Inserted Kind = G.node(N).Kind; Kind == Inserted::Reduce ||
                                      Kind == Inserted::Gather ||
                                      Kind == Inserted::Merge)
    Assumed = G.intAttr(N, AssumedAttr);
  if (Assumed) {
    // Whatever is reduced: its sum has the assumed scale, and lowered, a
    // _Scale follows. So have the rows of all replicas.
    Assumes |= AssumesReduction;
    T.Sources.push_back({N, AssumesReduction});
    int K = static_cast<int>(*Assumed);
    bool Gathers = G.isOp(N, "_Gather") || G.isOp(N, op::CollectiveGather) ||
                   G.stringAttr(N, "combine") == StringRef("concat");
    X = Gathers ? RType::sharded(
                      static_cast<int>(G.intAttr(N, "axis").value_or(0)), K)
                : RType::partial(K);
  }
  if (X.isVarying())
    return varyingLike(X);
  auto Power = [&] {
    return static_cast<int>(G.intAttr(N, "power").value_or(0));
  };
  auto Axis = [&] {
    return static_cast<int>(G.intAttr(N, "axis").value_or(0));
  };
  StringRef Op = G.opName(N);
  if (Op == "_ToReplicas")
    return X.isReplicated() ? RType::sharded(Axis(), X.K)
                            : varying("splits a value that is already split");
  if (Op == "_Scale") {
    X.K = static_cast<int8_t>(X.K + Power());
    return X;
  }
  bool Collective = Op == op::CollectiveReduce;
  StringRef Combine;
  if (Collective) {
    StringRef Merge = G.stringAttr(N, "merge_op").value_or("");
    Combine = Merge == op::Add ? "sum" : Merge == op::Min ? "min" : "max";
    if (Combine == "max" && Merge != op::Max)
      return varying(
          "combines replicas by an operation other than sum, min or max");
  } else {
    Combine = G.stringAttr(N, "combine").value_or("sum");
  }
  if (Op == "_FromReplicas" && Combine == "pick")
    return X.isReplicated()
               ? X
               : varying(
                     "takes the value of one replica where replicas differ");
  if (Op == op::CollectiveGather && X.isSharded() &&
      D.isUneven(G.input(N, 0), X.Axis))
    return varying("gathers rows whose number differs per replica");
  if (Combine == "concat" || Op == "_Gather" || Op == op::CollectiveGather)
    return X.isSharded() && X.Axis == Axis()
               ? RType::replicated(X.K)
               : varying("gathers a value that is not split along its axis");
  auto Scale = [&] {
    if (!Collective)
      return Power();
    return G.stringAttr(N, "final_op") == StringRef(op::Div) ? -1 : 0;
  };
  static constexpr const char *Names[] = {"sum", "min", "max", "and", "or"};
  // N equal terms are a sum, too.
  if (X.isReplicated() && Combine == "sum")
    return RType::replicated(X.K + 1 + Scale());
  if (X.isPartial() && Combine == Names[static_cast<int>(X.Op)])
    return RType::replicated(X.K + Scale());
  return varying("reduces a value that is not partial by that operation");
}

} // namespace graft
