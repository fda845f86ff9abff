//===- lib/infer/rules/Normalization.cpp - normalization and losses ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization, softmax and cross entropy. A loss is a number for each
// row.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void batchNorm(SizeContext &C) {
  Dims X = C.in(0), S = C.in(1);
  if (X)
    C.setShape(0, *X);
  for (unsigned Port = 1; S && Port < std::min(C.numOutputs(), 5u); ++Port)
    C.setShape(Port, *S);
}

static void batchNormGrad(SizeContext &C) {
  Dims G0 = C.in(0), X = C.in(1), S = C.in(2);
  if (G0 && X)
    C.sameShapes(*G0, *X);
  if (X)
    C.setShape(0, *X);
  for (unsigned Port = 1; S && Port < 3; ++Port)
    C.setShape(Port, *S);
}

/// Logits and labels are broadcast where labels are rows too.
template <bool Sparse> static void crossEntropy(SizeContext &C) {
  Dims X = C.in(0), L = C.in(1);
  if (!X || X->size() != 2)
    return;
  DimList List(X->begin(), X->end());
  if (L && Sparse && L->size() == 1)
    C.same(List[0], (*L)[0]);
  for (size_t I = 0; L && !Sparse && L->size() == 2 && I < 2; ++I)
    List[I] = C.broadcast(List[I], (*L)[I]);
  C.setShape(0, List[0]);
  C.setShape(1, List);
}

} // namespace sizes

ArrayRef<OpRule> families::normalization() {
  static constexpr OpRule Rules[] = {
      // Pooling, normalisation, losses.
      {.Op = op::FusedBatchNorm,
       .Sizes = sizes::batchNorm,
       .Type = TypeRule::BatchNorm},
      {.Op = op::FusedBatchNormV2,
       .Sizes = sizes::batchNorm,
       .Type = TypeRule::BatchNorm},
      {.Op = op::FusedBatchNormV3,
       .Sizes = sizes::batchNorm,
       .Type = TypeRule::BatchNorm},
      {.Op = op::FusedBatchNormGrad,
       .Sizes = sizes::batchNormGrad,
       .Type = TypeRule::BatchNormGrad},
      {.Op = op::FusedBatchNormGradV2,
       .Sizes = sizes::batchNormGrad,
       .Type = TypeRule::BatchNormGrad},
      {.Op = op::FusedBatchNormGradV3,
       .Sizes = sizes::batchNormGrad,
       .Type = TypeRule::BatchNormGrad},
      {.Op = op::Softmax, .Sizes = sizes::same, .Type = TypeRule::LastAxis},
      {.Op = op::LogSoftmax, .Sizes = sizes::same, .Type = TypeRule::LastAxis},
      {.Op = op::SoftmaxCrossEntropyWithLogits,
       .Sizes = sizes::crossEntropy<false>,
       .Type = TypeRule::Xent},
      {.Op = op::SparseSoftmaxCrossEntropyWithLogits,
       .Sizes = sizes::crossEntropy<true>,
       .Type = TypeRule::Xent},
  };
  return Rules;
}

} // namespace graft
