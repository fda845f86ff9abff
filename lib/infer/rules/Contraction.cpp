//===- lib/infer/rules/Contraction.cpp - products of matrices ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices, with letters too, and sums over the rows.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void matMul(SizeContext &C, bool Batched) {
  Dims X = C.in(0), Y = C.in(1);
  if (!X || !Y || X->size() < 2 || Y->size() < 2)
    return;
  bool TX = C.flag(Batched ? "adj_x" : "transpose_a");
  bool TY = C.flag(Batched ? "adj_y" : "transpose_b");
  size_t RX = X->size(), RY = Y->size();
  C.same((*X)[RX - (TX ? 2 : 1)], (*Y)[RY - (TY ? 1 : 2)]);
  DimList List;
  size_t Lead = std::max(RX, RY) - 2;
  for (size_t I = 0; I < Lead; ++I) {
    size_t FromEnd = Lead - I + 2;
    bool InX = FromEnd <= RX, InY = FromEnd <= RY;
    List.push_back(InX && InY
                       ? C.broadcast((*X)[RX - FromEnd], (*Y)[RY - FromEnd])
                   : InX ? (*X)[RX - FromEnd]
                         : (*Y)[RY - FromEnd]);
  }
  List.push_back((*X)[RX - (TX ? 1 : 2)]);
  List.push_back((*Y)[RY - (TY ? 2 : 1)]);
  C.setShape(0, List);
}

static void matMul(SizeContext &C) { matMul(C, false); }

static void batchMatMul(SizeContext &C) { matMul(C, true); }

static void biasAddGrad(SizeContext &C) {
  if (Dims X = C.in(0); X && X->size() >= 2)
    C.setShape(0, (*X)[channelAxis(C, X->size())]);
}

/// Rows of the sparse operand, columns of the dense one.
static void sparseMatMul(SizeContext &C) {
  Dims B = C.in(3);
  if (!B || B->size() != 2)
    return;
  bool Turned = C.flag("adjoint_b");
  DimId Columns = (*B)[Turned ? 0 : 1];
  C.setShape(0, {C.slot(0), Columns});
}

static void einsum(SizeContext &C) {
  auto Text = C.stringAttr("equation");
  auto E = parseEquation(Text.value_or(""), C.numData());
  if (!E)
    return;
  // By letter; an axis that several operands have is one size.
  DenseMap<char, DimId> Sizes;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims X = C.in(I);
    if (!X)
      continue;
    if (X->size() != E->Inputs[I].size())
      return;
    for (size_t D = 0; D < X->size(); ++D) {
      auto [It, New] = Sizes.try_emplace(E->Inputs[I][D], (*C.in(I))[D]);
      if (!New)
        C.same(It->second, (*C.in(I))[D]);
    }
  }
  DimList List;
  for (char Letter : E->Output) {
    auto It = Sizes.find(Letter);
    if (It == Sizes.end())
      return;
    List.push_back(It->second);
  }
  C.setShape(0, List);
}

} // namespace sizes

ArrayRef<OpRule> families::contraction() {
  static constexpr OpRule Rules[] = {
      // Records and tables.
      {.Op = op::SparseTensorDenseMatMul,
       .Sizes = sizes::sparseMatMul,
       .Type = TypeRule::Whole},

      // Contractions.
      {.Op = op::MatMul, .Sizes = sizes::matMul, .Type = TypeRule::MatMul},
      {.Op = op::BatchMatMul,
       .Sizes = sizes::batchMatMul,
       .Type = TypeRule::BatchMatMul},
      {.Op = op::BatchMatMulV2,
       .Sizes = sizes::batchMatMul,
       .Type = TypeRule::BatchMatMul},
      {.Op = op::BatchMatMulV3,
       .Sizes = sizes::batchMatMul,
       .Type = TypeRule::BatchMatMul},
      {.Op = op::BiasAddGrad,
       .Sizes = sizes::biasAddGrad,
       .Type = TypeRule::BiasAddGrad},
      {.Op = op::Einsum, .Sizes = sizes::einsum, .Type = TypeRule::Einsum},
  };
  return Rules;
}

} // namespace graft
