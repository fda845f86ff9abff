//===- lib/infer/rules/ShapeRulesContraction.cpp - products, windows ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices, with letters too, diagonals, convolutions and pools.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/OpRules.h"
#include "lib/infer/sizes/DimRules.h"

#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace graft {

void DimRules::matMul(bool Batched) {
  Dims X = in(0), Y = in(1);
  if (!X || !Y || X->size() < 2 || Y->size() < 2)
    return;
  bool TX = G.boolAttr(N, Batched ? "adj_x" : "transpose_a").value_or(false);
  bool TY = G.boolAttr(N, Batched ? "adj_y" : "transpose_b").value_or(false);
  size_t RX = X->size(), RY = Y->size();
  same((*X)[RX - (TX ? 2 : 1)], (*Y)[RY - (TY ? 1 : 2)]);
  DimList List;
  size_t Lead = std::max(RX, RY) - 2;
  for (size_t I = 0; I < Lead; ++I) {
    size_t FromEnd = Lead - I + 2;
    bool InX = FromEnd <= RX, InY = FromEnd <= RY;
    List.push_back(InX && InY
                       ? broadcastDim((*X)[RX - FromEnd], (*Y)[RY - FromEnd])
                   : InX ? (*X)[RX - FromEnd]
                         : (*Y)[RY - FromEnd]);
  }
  List.push_back((*X)[RX - (TX ? 1 : 2)]);
  List.push_back((*Y)[RY - (TY ? 2 : 1)]);
  setShape(0, List);
}

/// Rows of the sparse operand, columns of the dense one.
void DimRules::sparseMatMul() {
  Dims B = in(3);
  if (!B || B->size() != 2)
    return;
  bool Turned = G.boolAttr(N, "adjoint_b").value_or(false);
  DimId Columns = (*B)[Turned ? 0 : 1];
  setShape(0, {slot(0), Columns});
}

void DimRules::einsum() {
  auto Text = G.stringAttr(N, "equation");
  auto E = parseEquation(Text.value_or(""), numData());
  if (!E)
    return;
  // By letter; an axis that several operands have is one size.
  DenseMap<char, DimId> Sizes;
  for (unsigned I = 0; I < numData(); ++I) {
    Dims X = in(I);
    if (!X)
      continue;
    if (X->size() != E->Inputs[I].size())
      return;
    for (size_t D = 0; D < X->size(); ++D) {
      auto [It, New] = Sizes.try_emplace(E->Inputs[I][D], (*in(I))[D]);
      if (!New)
        same(It->second, (*in(I))[D]);
    }
  }
  DimList List;
  for (char Letter : E->Output) {
    auto It = Sizes.find(Letter);
    if (It == Sizes.end())
      return;
    List.push_back(It->second);
  }
  setShape(0, List);
}

/// MatrixDiag: matrices, which are square if nothing else is said.
void DimRules::diagonal() {
  Dims X = in(0);
  if (!X || X->empty() || mixedAxes(G, N) != 1)
    return;
  auto Says = [&](unsigned I, int64_t Number) {
    return I >= numData() || num(I) == Number;
  };
  DimList List(X->begin(), X->end());
  bool Square = Says(1, 0) && Says(2, -1) && Says(3, -1);
  if (!Square)
    List.back() = slot(0);
  List.push_back(Square ? List.back() : slot(1));
  setShape(0, List);
}

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

void DimRules::convolution() {
  Dims X = in(0), F = in(1);
  if (!X || !F || X->size() < 4 || X->size() > 5 || F->size() != X->size())
    return;
  size_t Rank = X->size(), Spatial = Rank - 2;
  bool ChannelsFirst =
      G.stringAttr(N, "data_format").value_or("").starts_with("NC");
  auto Strides = G.intListAttr(N, "strides");
  auto Dilations = G.intListAttr(N, "dilations");
  auto Explicit = G.intListAttr(N, "explicit_paddings");
  StringRef Padding = G.stringAttr(N, "padding").value_or("");
  size_t First = ChannelsFirst ? 2 : 1, C = ChannelsFirst ? 1 : Rank - 1;
  if (!Strides || Strides->size() != Rank)
    return;
  DimList List(X->begin(), X->end());
  for (size_t I = 0; I < Spatial; ++I) {
    size_t At = First + I;
    int64_t Extra = 0;
    if (Explicit && Explicit->size() == 2 * Rank)
      Extra = (*Explicit)[2 * At] + (*Explicit)[2 * At + 1];
    int64_t Size = windowed(
        A.Dims.hasSym((*X)[At]) ? UnknownSize : A.Dims.number((*X)[At]),
        A.Dims.number((*F)[I]),
        Dilations && Dilations->size() == Rank ? (*Dilations)[At] : 1,
        (*Strides)[At], Padding, Extra);
    List[At] = Size == UnknownSize ? slotFrom(At, {(*X)[At], (*F)[I]})
                                   : number(At, Size);
  }
  bool Depthwise = G.opName(N).starts_with("Depthwise");
  List[C] = Depthwise ? product(C, (*F)[Spatial], (*F)[Spatial + 1])
                      : (*F)[Spatial + 1];
  setShape(0, List);
}

void DimRules::pool() {
  Dims X = in(0);
  auto Window = G.intListAttr(N, "ksize");
  auto Strides = G.intListAttr(N, "strides");
  if (!X || !Window || Window->size() != X->size() || !Strides ||
      Strides->size() != X->size())
    return;
  StringRef Padding = G.stringAttr(N, "padding").value_or("");
  DimList List(X->begin(), X->end());
  for (unsigned I = 0; I < List.size(); ++I) {
    if ((*Window)[I] == 1 && (*Strides)[I] == 1)
      continue;
    int64_t Size = Padding == "EXPLICIT" || A.Dims.hasSym(List[I])
                       ? UnknownSize
                       : windowed(A.Dims.number(List[I]), (*Window)[I], 1,
                                  (*Strides)[I], Padding, 0);
    List[I] = Size == UnknownSize ? slotFrom(I, List[I]) : number(I, Size);
  }
  setShape(0, List);
}

} // namespace graft
