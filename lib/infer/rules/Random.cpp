//===- lib/infer/rules/Random.cpp - random draws ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Random draws.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void sizesThenShape(SizeContext &C) {
  if (Dims V = C.val(0), X = C.in(1); V && X) {
    DimList List(V->begin(), V->end());
    List.append(X->begin(), X->end());
    C.setShape(0, List);
  }
}

static void rowsThenSize(SizeContext &C) {
  if (Dims X = C.in(0), V = C.val(1); X && !X->empty() && V && V->size() == 1)
    C.setShape(0, {(*X)[0], (*V)[0]});
}

} // namespace sizes

ArrayRef<OpRule> families::random() {
  static constexpr OpRule Rules[] = {
      // Random draws.
      {.Op = op::RandomUniform,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::RandomStandardNormal,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::TruncatedNormal,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::RandomUniformInt,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::ParameterizedTruncatedNormal,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::RandomGamma,
       .Sizes = sizes::sizesThenShape,
       .Type = TypeRule::Random},
      {.Op = op::RandomPoissonV2,
       .Sizes = sizes::sizesThenShape,
       .Type = TypeRule::Random},
      {.Op = op::Multinomial,
       .Sizes = sizes::rowsThenSize,
       .Type = TypeRule::Random},
      {.Op = op::StatelessMultinomial,
       .Sizes = sizes::rowsThenSize,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomUniformInt,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomUniformIntV2,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomUniformFullInt,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomUniformFullIntV2,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomUniform,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomUniformV2,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomNormal,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessRandomNormalV2,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessTruncatedNormal,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
      {.Op = op::StatelessTruncatedNormalV2,
       .Sizes = sizes::fromSizes<0>,
       .Type = TypeRule::Random},
  };
  return Rules;
}

} // namespace graft
