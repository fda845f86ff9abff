//===- lib/infer/rules/WholeBatch.cpp - the rows of all replicas ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What needs the rows of all replicas: they are gathered.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace {

constexpr OpRule Whole = {.Type = types::whole,
                          .LocalIndices = types::wholeIndices,
                          .SizeOperands = AnyInteger,
                          .ComparedOperands = AllOperands};

/// Linear in operand 0.
constexpr OpRule Linear = {.Type = types::whole,
                           .LocalIndices = types::wholeIndices,
                           .ZerosOf = operands(0),
                           .SizeOperands = AnyInteger,
                           .ComparedOperands = AllOperands};

} // namespace

ArrayRef<OpRule> families::wholeBatch() {
  static const OpRule Rules[] = {
      entry(op::Bincount, Whole),
      entry(op::BroadcastArgs, Whole),
      entry(op::DenseBincount, Whole),
      entry(op::CropAndResize, Whole),
      entry(op::CropAndResizeGradBoxes, Linear),
      entry(op::CropAndResizeGradImage, Linear),
      entry(op::DenseToDenseSetOperation, Whole),
      entry(op::HistogramFixedWidth, Whole),
      entry(op::LinSpace, Whole),
      entry(op::ListDiff, Whole),
      entry(op::NonMaxSuppression, Whole),
      entry(op::NonMaxSuppressionV2, Whole),
      entry(op::NonMaxSuppressionV3, Whole),
      entry(op::NonMaxSuppressionV4, Whole),
      entry(op::SegmentMax, Whole),
      entry(op::SegmentMaxV2, Whole),
      entry(op::SegmentMean, Linear),
      entry(op::SegmentMin, Whole),
      entry(op::SegmentMinV2, Whole),
      entry(op::SegmentProd, Whole),
      entry(op::SegmentProdV2, Whole),
      entry(op::SegmentSum, Linear),
      entry(op::SegmentSumV2, Linear),
      entry(op::SparseSegmentMean, Linear),
      entry(op::SparseSegmentMeanWithNumSegments, Linear),
      entry(op::SparseSegmentMeanGrad, Linear),
      entry(op::SparseSegmentSqrtN, Linear),
      entry(op::SparseSegmentSqrtNWithNumSegments, Linear),
      entry(op::SparseSegmentSqrtNGrad, Linear),
      entry(op::SparseSegmentSum, Linear),
      entry(op::SparseSegmentSumWithNumSegments, Linear),
      entry(op::SparseSegmentSumGrad, Linear),
      entry(op::SparseToDense, Whole,
            {.Sizes = sizes::fromSizes<1>, .Looks = indexes(0, -1)}),
      entry(op::StatelessRandomGetKeyCounter, Whole),
      entry(op::UniqueV2, Whole),
      entry(op::UniqueWithCounts, Whole),
      entry(op::UniqueWithCountsV2, Whole),
      entry(op::UnsortedSegmentProd, Whole, {.Sizes = sizes::unsortedSegment}),
  };
  return Rules;
}

} // namespace graft
