//===- lib/infer/rules/Convolution.cpp - windows over images ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, pools, patches, and ops that resize images.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Returns the output length of a window (tensorflow GetWindowedOutputSize).
static int64_t windowed(int64_t Input, int64_t Window, int64_t Dilation,
                        int64_t Stride, StringRef Padding, int64_t Extra) {
  // TensorFlow's kernels accept only numbers below 2^31.
  auto IsSane = [](int64_t Number) { return isUInt<31>(Number); };
  if (!all_of(ArrayRef{Input, Window, Dilation, Stride, Extra}, IsSane) ||
      Stride == 0)
    return UnknownSize;
  int64_t Effective = (Window - 1) * Dilation + 1;
  if (Padding == "SAME")
    return (Input + Stride - 1) / Stride;
  return (Input + Extra - Effective + Stride) / Stride;
}

static void convolution(SizeContext &C) {
  Dims X = C.in(0), F = C.in(1);
  if (!X || !F || X->size() < 4 || X->size() > 5 || F->size() != X->size())
    return;
  size_t Rank = X->size(), Spatial = Rank - 2;
  bool ChannelsFirst =
      C.stringAttr("data_format").value_or("").starts_with("NC");
  auto Strides = C.intListAttr("strides");
  auto Dilations = C.intListAttr("dilations");
  auto Explicit = C.intListAttr("explicit_paddings");
  StringRef Padding = C.stringAttr("padding").value_or("");
  size_t First = ChannelsFirst ? 2 : 1, Channel = ChannelsFirst ? 1 : Rank - 1;
  if (!Strides || Strides->size() != Rank)
    return;
  DimList List(X->begin(), X->end());
  for (size_t I = 0; I < Spatial; ++I) {
    size_t At = First + I;
    int64_t Extra = 0;
    if (Explicit && Explicit->size() == 2 * Rank &&
        AddOverflow((*Explicit)[2 * At], (*Explicit)[2 * At + 1], Extra))
      return;
    int64_t Size =
        windowed(C.plainNumber((*X)[At]), C.Table.number((*F)[I]),
                 Dilations && Dilations->size() == Rank ? (*Dilations)[At] : 1,
                 (*Strides)[At], Padding, Extra);
    List[At] = Size == UnknownSize ? C.slotFrom(At, {(*X)[At], (*F)[I]})
                                   : C.number(At, Size);
  }
  bool Depthwise = C.opName().starts_with("Depthwise");
  List[Channel] = Depthwise
                      ? C.product(Channel, (*F)[Spatial], (*F)[Spatial + 1])
                      : (*F)[Spatial + 1];
  C.setShape(0, List);
}

void pool(SizeContext &C) {
  Dims X = C.in(0);
  auto Window = C.intListAttr("ksize");
  auto Strides = C.intListAttr("strides");
  if (!X || !Window || Window->size() != X->size() || !Strides ||
      Strides->size() != X->size())
    return;
  StringRef Padding = C.stringAttr("padding").value_or("");
  DimList List(X->begin(), X->end());
  for (unsigned I = 0; I < List.size(); ++I) {
    if ((*Window)[I] == 1 && (*Strides)[I] == 1)
      continue;
    int64_t Size = Padding == "EXPLICIT" || C.Table.hasSym(List[I])
                       ? UnknownSize
                       : windowed(C.Table.number(List[I]), (*Window)[I], 1,
                                  (*Strides)[I], Padding, 0);
    List[I] = Size == UnknownSize ? C.slotFrom(I, List[I]) : C.number(I, Size);
  }
  C.setShape(0, List);
}

/// Infers the shape of resized images. Operand 1 has the new height and width.
static void resize(SizeContext &C) {
  Dims X = C.in(0);
  if (!X || X->size() != 4)
    return;
  DimId Height = C.slot(1), Width = C.slot(2);
  if (Dims Size = C.val(1); Size && Size->size() == 2) {
    Height = (*Size)[0];
    Width = (*Size)[1];
  }
  X = C.in(0);
  C.setShape(0, {(*X)[0], Height, Width, (*X)[3]});
}

/// Infers the shape of DepthToSpace, or of the reverse, SpaceToDepth.
static void blocks(SizeContext &C) {
  Dims X = C.in(0);
  int64_t Block = C.intAttr("block_size").value_or(0);
  if (!X || X->size() != 4 || Block < 1 || Block > INT16_MAX ||
      C.stringAttr("data_format").value_or("NHWC") != "NHWC")
    return;
  bool ToSpace = C.isOp(op::DepthToSpace);
  DimId List[4] = {(*X)[0], (*X)[1], (*X)[2], (*X)[3]};
  for (unsigned I = 1; I < 4; ++I) {
    DimId By = C.number(4 + I, I == 3 ? Block * Block : Block);
    List[I] = ToSpace == (I < 3) ? C.product(I, List[I], By)
                                 : C.quotient(I, List[I], By);
  }
  C.setShape(0, List);
}

static void sizesOfRows(SizeContext &C) {
  if (Dims V = C.val(0))
    C.setShape(0, *V);
  if (Dims V = C.val(0), Dy = C.in(C.numData() - 1);
      V && !V->empty() && Dy && !Dy->empty())
    C.sameRows((*V)[0], (*Dy)[0]);
}

} // namespace sizes

namespace {

/// Infers the type of a convolution of the rows in operand \p Rows, forward or
/// backward, with the filter in operand 1.
ReplicationType convolve(TypeContext &C, unsigned Rows) {
  ReplicationType X = C.numeric(Rows), F = C.numeric(1);
  if (X.isSharded() && F.isPartial())
    F = C.reduced(1);
  if (X.isSharded() && !F.isVarying())
    return X.Axis == 0 && F.isReplicated()
               ? ReplicationType::sharded(0, X.K + F.K)
               : C.varying("convolves along the batch axis");
  return F.isSharded() ? C.varying("has filters that differ per example")
                       : types::productOf(C, Rows, X, 1, F, 1);
}

ReplicationType filterGradType(TypeContext &C) {
  ReplicationType X = C.numeric(0), Dy = C.numeric(2);
  if (!C.operand(1).isTrue())
    X = C.varying("depends on a per-replica size");
  if (X.isVarying() || Dy.isVarying())
    return C.varyingLike(X.isVarying() ? X : Dy);
  if (X.isSharded() && Dy.isSharded())
    return X.Axis == 0 && Dy.Axis == 0
               ? ReplicationType::partial(X.K + Dy.K)
               : C.varying("convolves along the batch axis");
  return X.isSharded() || Dy.isSharded()
             ? C.varying(
                   "contracts the batch axis with a value that is not split")
             : types::productOf(C, 0, X, 2, Dy);
}

} // namespace

namespace types {

ReplicationType ofSizes(TypeContext &C, ReplicationType Rows) {
  if (Rows.isVarying())
    return Rows;
  Endpoint Sizes = C.input(0);
  // Even if the shape of the output is not known, the op Shape returns local
  // sizes for a sharded tensor.
  bool AreLocal = C.D.batchAxis(C.out()) == 0 ||
                  (C.G.isOp(Sizes.Node, op::Shape) &&
                   C.Types.type(C.G.input(Sizes.Node, 0)).isSharded());
  bool Fits = Rows.isSharded()
                  ? AreLocal
                  : C.operand(0).isTrue() || C.localAxis(C.out()) == -1;
  return C.isSize(0) && Fits ? Rows
                             : C.varying("depends on a per-replica size");
}

static void conv(TypeContext &C) { C.setAll(convolve(C, /*Rows=*/0)); }

static void convBackpropInput(TypeContext &C) {
  C.setAll(ofSizes(C, convolve(C, /*Rows=*/2)));
}

/// Types a general convolution row by row if it has batch axes (`batch_dims`).
/// Without batch axes, the op needs the rows of all replicas.
static void generalConv(TypeContext &C) {
  C.intAttr("batch_dims").value_or(1) > 0 ? perExample(C) : whole(C);
}

static void convBackpropFilter(TypeContext &C) { C.setAll(filterGradType(C)); }

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Conv = {.Sizes = sizes::convolution,
                         .Type = types::conv,
                         .ZerosOf = operands(0, 1),
                         .ComparedOperands = AllOperands};
constexpr OpRule ConvBackpropInput = {.Sizes = sizes::sizesOfRows,
                                      .Type = types::convBackpropInput,
                                      .Is = SizesOfRows | ComparesWithSizes,
                                      .ZerosOf = operands(1, 2),
                                      .SizeOperands = operands(0),
                                      .ComparedOperands = AllOperands};
constexpr OpRule ConvBackpropFilter = {.Sizes = sizes::fromSizes<1>,
                                       .Type = types::convBackpropFilter,
                                       .ZerosOf = operands(0, 2),
                                       .SizeOperands = operands(1),
                                       .ComparedOperands = AllOperands};
constexpr OpRule PerExample = {.Rows = sizes::sameRows,
                               .Type = types::perExample,
                               .ComparedOperands = AllOperands};
constexpr OpRule Resize = {.Sizes = sizes::resize,
                           .Rows = sizes::sameRows,
                           .Type = types::perExample,
                           .ZerosOf = operands(0),
                           .SizeOperands = operands(1),
                           .ComparedOperands = AllOperands};
constexpr OpRule GradSecond = {.Sizes = sizes::sizesOfRows,
                               .Type = types::gradSecond,
                               .Is =
                                   KeepsZeros | SizesOfRows | ComparesWithSizes,
                               .SizeOperands = operands(0),
                               .ComparedOperands = AllOperands};
constexpr OpRule LinearRows = {
    .Rows = sizes::sameRows, .Type = types::linearRows, .Is = KeepsZeros};

} // namespace

ArrayRef<OpRule> families::convolution() {
  static const OpRule Rules[] = {
      // Contractions.
      entry(op::Conv2D, Conv),
      entry(op::Conv2DBackpropInput, ConvBackpropInput),
      entry(op::Conv2DBackpropFilter, ConvBackpropFilter),
      entry(op::Conv3D, Conv),
      entry(op::Conv3DBackpropInputV2, ConvBackpropInput),
      entry(op::Conv3DBackpropFilterV2, ConvBackpropFilter),
      entry(op::DepthwiseConv2dNative, Conv),
      entry(op::DepthwiseConv2dNativeBackpropInput, ConvBackpropInput),
      entry(op::DepthwiseConv2dNativeBackpropFilter, ConvBackpropFilter),
      {.Op = op::Conv,
       .Type = types::generalConv,
       .ComparedOperands = AllOperands},

      // Fused with other ops, such as a bias and an activation.
      entry("_FusedConv2D", PerExample),
      entry("_FusedConv3D", PerExample),
      entry("_FusedDepthwiseConv2dNative", PerExample),

      // Pooling, normalisation, losses.
      entry(op::MaxPool, PerExample, {.Sizes = sizes::pool}),
      entry(op::AvgPool, PerExample,
            {.Sizes = sizes::pool, .ZerosOf = operands(0)}),
      entry(op::MaxPool3D, PerExample, {.Sizes = sizes::pool}),
      entry(op::AvgPool3D, PerExample,
            {.Sizes = sizes::pool, .ZerosOf = operands(0)}),
      entry(op::MaxPoolV2, PerExample),
      entry(op::AvgPool3DGrad, GradSecond),
      entry(op::AvgPoolGrad, GradSecond),
      entry(op::BatchNormWithGlobalNormalization, PerExample,
            {.Sizes = sizes::same}),
      entry(op::LRN, PerExample, {.Sizes = sizes::same}),
      entry(op::DataFormatDimMap, PerExample, {.Sizes = sizes::same}),
      entry(op::SpaceToDepth, LinearRows, {.Sizes = sizes::blocks}),
      entry(op::DepthToSpace, LinearRows, {.Sizes = sizes::blocks}),
      entry(op::ExtractImagePatches, LinearRows),
      entry(op::ResizeArea, Resize),
      entry(op::ResizeBicubic, Resize),
      entry(op::ResizeNearestNeighborGrad, LinearRows,
            {.Sizes = sizes::resize, .SizeOperands = operands(1)}),
      entry(op::ResizeBilinear, Resize),
      entry(op::ResizeNearestNeighbor, Resize),
  };
  return Rules;
}

} // namespace graft
