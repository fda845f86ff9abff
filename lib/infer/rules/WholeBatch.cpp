//===- lib/infer/rules/WholeBatch.cpp - the rows of all replicas ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that need the rows of all replicas, which are gathered.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Returns the elements of \p E, a column that ExpandDims made of a vector.
static std::optional<ArrayRef<DimId>> column(const SizeContext &C, Endpoint E) {
  if (!C.G.isOp(E.Node, op::ExpandDims) || C.G.node(E.Node).NumData == 0)
    return std::nullopt;
  E = C.G.input(E.Node, 0);
  return C.Known.isMatrix(E) ? std::nullopt : C.Known.value(E);
}

/// Unifies the sizes of weights and values. For each axis, tf.losses asserts
/// that the set difference {size of the weights} - {size of the values, 1} is
/// empty. So the two sizes are equal if neither can be 1.
static void lessSizes(SizeContext &C) {
  NodeId Two = C.numData() == 2 ? C.Inputs[1].Node : NoNode;
  if (Two == NoNode || C.stringAttr("set_operation") != "a-b" ||
      !C.G.isOp(Two, op::ConcatV2) || C.G.node(Two).NumData != 3)
    return;
  auto Weights = column(C, C.Inputs[0]), Values = column(C, C.G.input(Two, 0));
  if (!Weights || !Values || Weights->size() != Values->size())
    return;
  for (auto [X, Y] : zip(*Weights, *Values))
    if (C.isNeverOne(X) && C.isNeverOne(Y))
      C.same(X, Y);
}

} // namespace sizes

namespace {

/// Ops that are linear in operand 0.
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
      entry(op::CropAndResize, Whole, {.Looks = indexes(2, 0)}),
      entry(op::CropAndResizeGradBoxes, Linear, {.Looks = indexes(3, 1)}),
      entry(op::CropAndResizeGradImage, Linear, {.Looks = indexes(2, -1)}),
      entry(op::DenseToDenseSetOperation, Whole,
            {.Rows = sizes::lessSizes, .Is = trait::ComparesSizes}),
      entry(op::HistogramFixedWidth, Whole),
      entry(op::LinSpace, Whole),
      entry(op::ListDiff, Whole),
      entry(op::NonMaxSuppression, Whole),
      entry(op::NonMaxSuppressionV2, Whole),
      entry(op::NonMaxSuppressionV3, Whole),
      entry(op::NonMaxSuppressionV4, Whole),
      entry(op::SegmentMax, Whole),
      entry(op::SegmentMaxV2, Whole),
      entry(op::SegmentMin, Whole),
      entry(op::SegmentMinV2, Whole),
      entry(op::SegmentProd, Whole),
      entry(op::SegmentProdV2, Whole),
      entry(op::SegmentSumV2, Linear),
      entry(op::SparseSegmentMeanWithNumSegments, Linear),
      entry(op::SparseSegmentSqrtNWithNumSegments, Linear),
      entry(op::SparseSegmentSumWithNumSegments, Linear),
      entry(op::SparseToDense, Whole,
            {.Sizes = sizes::fromSizes<1>, .Looks = indexes(0, -1)}),
      entry(op::StatelessRandomGetKeyCounter, Whole),
      entry(op::UniqueV2, Whole),
      entry(op::UniqueWithCounts, Whole),
      entry(op::UniqueWithCountsV2, Whole),
      entry(op::UnsortedSegmentProd, Whole, {.Sizes = sizes::unsortedSegment}),

      // Losses, pools and cells.
      entry(op::ApproxTopK, Whole),
      entry(op::CTCBeamSearchDecoder, Whole),
      entry(op::CTCGreedyDecoder, Whole),
      entry(op::CTCLoss, Whole),
      entry(op::CTCLossV2, Whole),
      entry(op::Conv3DBackpropFilter, Whole),
      entry(op::Conv3DBackpropInput, Whole),
      entry(op::Conv2DBackpropFilterV2, Whole),
      entry(op::Conv2DBackpropInputV2, Whole),
      entry(op::CudnnRNNCanonicalToParams, Whole),
      entry(op::CudnnRNNCanonicalToParamsV2, Whole),
      entry(op::CudnnRNNParamsSize, Whole),
      entry(op::CudnnRNNParamsToCanonical, Whole),
      entry(op::CudnnRNNParamsToCanonicalV2, Whole),
      entry(op::FractionalAvgPoolGrad, Whole),
      entry(op::FractionalMaxPoolGrad, Whole),
      entry(op::FusedPadConv2D, Whole),
      entry(op::FusedResizeAndPadConv2D, Whole),
      entry(op::MaxPoolGradGradWithArgmax, Whole),
      entry(op::MaxPoolGradWithArgmax, Whole),
      entry(op::TopK, Whole),
      entry(op::TopKUnique, Whole),
      entry(op::TopKWithUnique, Whole),
      entry(op::BatchNormWithGlobalNormalizationGrad, Whole),

      // Mathematics and shapes.
      entry(op::BatchToSpace, Whole),
      entry(op::SpaceToBatch, Whole),
      entry(op::DataFormatVecPermute, Whole),
      entry(op::EditDistance, Whole),
      entry(op::KthOrderStatistic, Whole),
      entry(op::MakeUnique, Whole),
      entry(op::NearestNeighbors, Whole),
      entry(op::ParallelConcat, Whole),
      entry(op::RandomIndexShuffle, Whole),
      entry(op::Reverse, Whole),
      entry(op::ScatterNdNonAliasingAdd, Whole),
      entry(op::SobolSample, Whole),
      entry(op::StochasticCastToInt, Whole),
      entry(op::TensorStridedSliceUpdate, Whole),
      entry(op::TileGrad, Whole),
      entry(op::ToBool, Whole),
      entry(op::UnravelIndex, Whole),

      // Records and files.
      entry(op::GenerateVocabRemapping, Whole),
      entry(op::MatchingFiles, Whole),
      entry(op::ParseSequenceExample, Whole),
      entry(op::ParseSequenceExampleV2, Whole),
      entry(op::ParseSingleExample, Whole),
      entry(op::ParseSingleSequenceExample, Whole),
      entry(op::ParseTensor, Whole),
      entry(op::ReadFile, Whole),
      entry(op::SerializeTensor, Whole),
      entry(op::ShardedFilename, Whole),
      entry(op::ShardedFilespec, Whole),

      // Images and sounds.
      entry(op::AdjustContrast, Whole),
      entry(op::AudioMicrofrontend, Whole),
      entry(op::AudioSpectrogram, Whole),
      entry(op::CombinedNonMaxSuppression, Whole),
      entry(op::DecodeAndCropJpeg, Whole),
      entry(op::DecodeBmp, Whole),
      entry(op::DecodeGif, Whole),
      entry(op::DecodeImage, Whole),
      entry(op::DecodeJpeg, Whole),
      entry(op::DecodeJxl, Whole),
      entry(op::DecodePng, Whole),
      entry(op::DecodeProtoV2, Whole),
      entry(op::DecodeWav, Whole),
      entry(op::DecodeWebP, Whole),
      entry(op::EncodeJpeg, Whole),
      entry(op::EncodeJpegVariableQuality, Whole),
      entry(op::EncodePng, Whole),
      entry(op::EncodeProto, Whole),
      entry(op::EncodeWav, Whole),
      entry(op::ExtractJpegShape, Whole),
      entry(op::GenerateBoundingBoxProposals, Whole),
      entry(op::Mfcc, Whole),
      entry(op::NonMaxSuppressionV5, Whole),
      entry(op::NonMaxSuppressionWithOverlaps, Whole),
      entry(op::StatelessSampleDistortedBoundingBox, Whole),

      // Strings.
      entry(op::ReduceJoin, Whole),
      entry(op::StringNGrams, Whole),
      entry(op::StringSplit, Whole),
      entry(op::StringSplitV2, Whole),
      entry(op::UnicodeDecode, Whole),
      entry(op::UnicodeDecodeWithOffsets, Whole),
      entry(op::UnicodeEncode, Whole),
      entry(op::UnsortedSegmentJoin, Whole),

      // Functions of a seed.
      entry(op::KMC2ChainInitialization, Whole),
      entry(op::KmeansPlusPlusInitialization, Whole),
      entry(op::StatelessRandomGetAlg, Whole),
      entry(op::StatelessRandomGetKeyCounterAlg, Whole),
      entry(op::StatelessShuffle, Whole),

      // Boosted trees.
      entry(op::BoostedTreesAggregateStats, Whole),
      entry(op::BoostedTreesBucketize, Whole),
      entry(op::BoostedTreesCalculateBestFeatureSplit, Whole),
      entry(op::BoostedTreesCalculateBestFeatureSplitV2, Whole),
      entry(op::BoostedTreesCalculateBestGainsPerFeature, Whole),
      entry(op::BoostedTreesMakeQuantileSummaries, Whole),
      entry(op::BoostedTreesMakeStatsSummary, Whole),
      entry(op::BoostedTreesSparseAggregateStats, Whole),
      entry(op::BoostedTreesSparseCalculateBestFeatureSplit, Whole),
      entry(op::SdcaFprint, Whole),

      // Ops of compilers.
      entry(op::XlaBroadcastHelper, Whole),
      entry(op::XlaConcatND, Whole),
      entry(op::XlaConv, Whole),
      entry(op::XlaConvV2, Whole),
      entry(op::XlaDot, Whole),
      entry(op::XlaDotV2, Whole),
      entry(op::XlaDynamicSlice, Whole),
      entry(op::XlaDynamicUpdateSlice, Whole),
      entry(op::XlaEinsum, Whole),
      entry(op::XlaGather, Whole),
      entry(op::XlaKeyValueSort, Whole),
      entry(op::XlaPad, Whole),
      entry(op::XlaReduce, Whole),
      entry(op::XlaReducePrecision, Whole),
      entry(op::XlaReduceWindow, Whole),
      entry(op::XlaRemoveDynamicDimensionSize, Whole),
      entry(op::XlaRngBitGenerator, Whole),
      entry(op::XlaScatter, Whole),
      entry(op::XlaSelectAndScatter, Whole),
      entry(op::XlaSelfAdjointEig, Whole),
      entry(op::XlaSetBound, Whole),
      entry(op::XlaSetDynamicDimensionSize, Whole),
      entry(op::XlaSort, Whole),
      entry(op::XlaSplitND, Whole),
      entry(op::XlaSvd, Whole),
      entry(op::XlaVariadicReduce, Whole),
      entry(op::XlaVariadicReduceV2, Whole),
      entry(op::XlaVariadicSort, Whole),
      entry("_FusedBatchNormEx", Whole),
      entry("_FusedBatchNormGradEx", Whole),
      entry("_FusedQuantizedConv2D", Whole),
      entry("_FusedQuantizedDepthwiseConv2D", Whole),
      entry("_QuantizedMatMul", Whole),
      entry("_QuantizedMaxPool3D", Whole),
  };
  return Rules;
}

} // namespace graft
