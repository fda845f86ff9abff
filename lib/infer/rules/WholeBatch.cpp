//===- lib/infer/rules/WholeBatch.cpp - the rows of all replicas ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What needs the rows of all replicas: they are gathered.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

ArrayRef<OpRule> families::wholeBatch() {
  static constexpr OpRule Rules[] = {
      // What needs the rows of all replicas: they are gathered.
      {.Op = op::Bincount, .Type = TypeRule::Whole},
      {.Op = op::BroadcastArgs, .Type = TypeRule::Whole},
      {.Op = op::DenseBincount, .Type = TypeRule::Whole},
      {.Op = op::CropAndResize, .Type = TypeRule::Whole},
      {.Op = op::CropAndResizeGradBoxes, .Type = TypeRule::Whole},
      {.Op = op::CropAndResizeGradImage, .Type = TypeRule::Whole},
      {.Op = op::DenseToDenseSetOperation, .Type = TypeRule::Whole},
      {.Op = op::HistogramFixedWidth, .Type = TypeRule::Whole},
      {.Op = op::LinSpace, .Type = TypeRule::Whole},
      {.Op = op::ListDiff, .Type = TypeRule::Whole},
      {.Op = op::NonMaxSuppression, .Type = TypeRule::Whole},
      {.Op = op::NonMaxSuppressionV2, .Type = TypeRule::Whole},
      {.Op = op::NonMaxSuppressionV3, .Type = TypeRule::Whole},
      {.Op = op::NonMaxSuppressionV4, .Type = TypeRule::Whole},
      {.Op = op::SegmentMax, .Type = TypeRule::Whole},
      {.Op = op::SegmentMaxV2, .Type = TypeRule::Whole},
      {.Op = op::SegmentMean, .Type = TypeRule::Whole},
      {.Op = op::SegmentMin, .Type = TypeRule::Whole},
      {.Op = op::SegmentMinV2, .Type = TypeRule::Whole},
      {.Op = op::SegmentProd, .Type = TypeRule::Whole},
      {.Op = op::SegmentProdV2, .Type = TypeRule::Whole},
      {.Op = op::SegmentSum, .Type = TypeRule::Whole},
      {.Op = op::SegmentSumV2, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentMean, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentMeanWithNumSegments, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentMeanGrad, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentSqrtN, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentSqrtNWithNumSegments, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentSqrtNGrad, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentSum, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentSumWithNumSegments, .Type = TypeRule::Whole},
      {.Op = op::SparseSegmentSumGrad, .Type = TypeRule::Whole},
      {.Op = op::SparseToDense,
       .Sizes = sizes::fromSizes<1>,
       .Type = TypeRule::Whole},
      {.Op = op::StatelessRandomGetKeyCounter, .Type = TypeRule::Whole},
      {.Op = op::UniqueV2, .Type = TypeRule::Whole},
      {.Op = op::UniqueWithCounts, .Type = TypeRule::Whole},
      {.Op = op::UniqueWithCountsV2, .Type = TypeRule::Whole},
      {.Op = op::UnsortedSegmentProd,
       .Sizes = sizes::unsortedSegment,
       .Type = TypeRule::Whole},
  };
  return Rules;
}

} // namespace graft
