//===- lib/infer/rules/Convolution.cpp - windows over images ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, pools, patches, and other sizes of images.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Output length of a window (tensorflow GetWindowedOutputSize).
static int64_t windowed(int64_t Input, int64_t Window, int64_t Dilation,
                        int64_t Stride, StringRef Padding, int64_t Extra) {
  if (Input == UnknownSize || Window == UnknownSize || Stride <= 0)
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
    if (Explicit && Explicit->size() == 2 * Rank)
      Extra = (*Explicit)[2 * At] + (*Explicit)[2 * At + 1];
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

static void sizesOfRows(SizeContext &C) {
  if (Dims V = C.val(0))
    C.setShape(0, *V);
  if (Dims V = C.val(0), Dy = C.in(C.numData() - 1);
      V && !V->empty() && Dy && !Dy->empty())
    C.sameRows((*V)[0], (*Dy)[0]);
}

} // namespace sizes

ArrayRef<OpRule> families::convolution() {
  static constexpr OpRule Rules[] = {
      // Contractions.
      {.Op = op::Conv2D, .Sizes = sizes::convolution, .Type = TypeRule::Conv},
      {.Op = op::Conv2DBackpropInput,
       .Sizes = sizes::sizesOfRows,
       .Type = TypeRule::ConvBackpropInput},
      {.Op = op::Conv2DBackpropFilter,
       .Sizes = sizes::fromSizes<1>,
       .Type = TypeRule::ConvBackpropFilter},
      {.Op = op::Conv3D, .Sizes = sizes::convolution, .Type = TypeRule::Conv},
      {.Op = op::Conv3DBackpropInputV2,
       .Sizes = sizes::sizesOfRows,
       .Type = TypeRule::ConvBackpropInput},
      {.Op = op::Conv3DBackpropFilterV2,
       .Sizes = sizes::fromSizes<1>,
       .Type = TypeRule::ConvBackpropFilter},
      {.Op = op::DepthwiseConv2dNative,
       .Sizes = sizes::convolution,
       .Type = TypeRule::Conv},
      {.Op = op::DepthwiseConv2dNativeBackpropInput,
       .Sizes = sizes::sizesOfRows,
       .Type = TypeRule::ConvBackpropInput},
      {.Op = op::DepthwiseConv2dNativeBackpropFilter,
       .Sizes = sizes::fromSizes<1>,
       .Type = TypeRule::ConvBackpropFilter},

      // Pooling, normalisation, losses.
      {.Op = op::MaxPool,
       .Sizes = sizes::pool,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::AvgPool,
       .Sizes = sizes::pool,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::MaxPool3D,
       .Sizes = sizes::pool,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::AvgPool3D,
       .Sizes = sizes::pool,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::MaxPoolV2,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::AvgPool3DGrad,
       .Sizes = sizes::sizesOfRows,
       .Type = TypeRule::GradSecond},
      {.Op = op::AvgPoolGrad,
       .Sizes = sizes::sizesOfRows,
       .Type = TypeRule::GradSecond},
      {.Op = op::LRN,
       .Sizes = sizes::same,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::SpaceToDepth,
       .Rows = sizes::sameRows,
       .Type = TypeRule::LinearRows},
      {.Op = op::DepthToSpace,
       .Rows = sizes::sameRows,
       .Type = TypeRule::LinearRows},
      {.Op = op::ExtractImagePatches,
       .Rows = sizes::sameRows,
       .Type = TypeRule::LinearRows},
      {.Op = op::ResizeArea,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::ResizeBicubic,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::ResizeNearestNeighborGrad,
       .Rows = sizes::sameRows,
       .Type = TypeRule::LinearRows},
      {.Op = op::ResizeBilinear,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::ResizeNearestNeighbor,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
  };
  return Rules;
}

} // namespace graft
