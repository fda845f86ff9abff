//===- lib/infer/rules/Reduction.cpp - along axes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reductions, and what mixes the elements along given axes.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void reduction(SizeContext &C) {
  Dims X = C.in(0);
  auto Axes = C.nums(1);
  if (!X)
    return;
  bool Keep = C.flag("keep_dims");
  if (!Axes) {
    // The rank is known even where the axes are not.
    DimList List;
    for (size_t I = 0; Keep && I < X->size(); ++I)
      List.push_back(C.slot(I));
    if (Keep)
      C.setShape(0, List);
    return;
  }
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    bool Reduced = is_contained(*Axes, int64_t(I)) ||
                   is_contained(*Axes, int64_t(I) - int64_t(X->size()));
    if (!Reduced)
      List.push_back((*X)[I]);
    else if (Keep)
      List.push_back(C.One);
  }
  C.setShape(0, List);
}

static void argReduction(SizeContext &C) {
  Dims X = C.in(0);
  auto Axis = C.num(1);
  if (!X || !Axis || X->empty())
    return;
  DimList List(X->begin(), X->end());
  int64_t I = *Axis < 0 ? *Axis + int64_t(List.size()) : *Axis;
  if (I < 0 || I >= int64_t(List.size()))
    return;
  List.erase(List.begin() + I);
  C.setShape(0, List);
}

static void reverseSequence(SizeContext &C) {
  C.passShape(0, C.inRun(0));
  Dims X = C.in(0), Lengths = C.in(1);
  auto Batch = static_cast<size_t>(C.intAttr("batch_dim").value_or(0));
  if (X && Lengths && Lengths->size() == 1 && Batch < X->size())
    C.sameRows((*X)[Batch], Lengths->front());
}

} // namespace sizes

namespace values {

static void prod(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  DimId Product = C.One;
  for (size_t I = 0; I < X->size(); ++I)
    Product = C.product(32 + I, Product, (*C.val(0))[I]);
  Dims S = C.out(0);
  if (S && S->size() <= 1)
    C.setValue(0, Product);
}

} // namespace values

ArrayRef<OpRule> families::reduction() {
  static constexpr OpRule Rules[] = {
      // Reductions.
      {.Op = op::Sum,
       .Sizes = sizes::reduction,
       .Type = TypeRule::SumReduction},
      {.Op = op::Mean,
       .Sizes = sizes::reduction,
       .Type = TypeRule::MeanReduction},
      {.Op = op::Max,
       .Sizes = sizes::reduction,
       .Type = TypeRule::MaxReduction},
      {.Op = op::Min,
       .Sizes = sizes::reduction,
       .Type = TypeRule::MinReduction},
      {.Op = op::All,
       .Sizes = sizes::reduction,
       .Type = TypeRule::AndReduction},
      {.Op = op::Any, .Sizes = sizes::reduction, .Type = TypeRule::OrReduction},
      {.Op = op::Prod,
       .Sizes = sizes::reduction,
       .Values = values::prod,
       .Type = TypeRule::ArgReduction},
      {.Op = op::EuclideanNorm,
       .Sizes = sizes::reduction,
       .Type = TypeRule::ArgReduction},
      {.Op = op::ArgMax,
       .Sizes = sizes::argReduction,
       .Type = TypeRule::ArgReduction},
      {.Op = op::ArgMin,
       .Sizes = sizes::argReduction,
       .Type = TypeRule::ArgReduction},
      {.Op = op::L2Loss, .Sizes = sizes::scalar, .Type = TypeRule::L2Loss},

      // Layout.
      {.Op = op::ReverseV2, .Sizes = sizes::same, .Type = TypeRule::AlongAxes},
      {.Op = op::Roll, .Sizes = sizes::same, .Type = TypeRule::AlongAxes},
      {.Op = op::Cumsum, .Sizes = sizes::same, .Type = TypeRule::AlongAxes},
      {.Op = op::Cumprod,
       .Sizes = sizes::same,
       .Type = TypeRule::AlongAxesNonLinear},
      {.Op = op::CumulativeLogsumexp,
       .Sizes = sizes::same,
       .Type = TypeRule::AlongAxesNonLinear},
      {.Op = op::ReverseSequence,
       .Sizes = sizes::reverseSequence,
       .Type = TypeRule::ReverseSequence},
  };
  return Rules;
}

} // namespace graft
