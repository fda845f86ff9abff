//===- lib/infer/rules/Quantization.cpp - rounding to few values *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// QuantizeAndDequantize rounds each element to a value that a number of bits
// can represent in a range. The range is an operand, an attribute, or the
// minimum and maximum of the tensor. With `axis`, each slice along that axis
// has a separate range (array_ops.cc, quantize_and_dequantize_op.cc). The
// gradient is the incoming gradient.
//
// A quantized tensor consists of integers and the range that they represent.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Relates the rows of output 0 and operand 0. The other outputs are ranges,
/// without rows.
static void rowsOfFirst(SizeContext &C) {
  if (Dims X = C.in(0), Y = C.out(0); X && Y && !C.flag("transpose_a"))
    C.sameRows(*X, *Y, 1);
}

} // namespace sizes

namespace types {

static void quantize(TypeContext &C) {
  ReplicationType X = C.plain(0);
  bool PerRow = X.isSharded() && C.intAttr("axis").value_or(-1) == X.Axis,
       Given = C.flag("range_given");
  for (unsigned I = 1; I < C.numData(); ++I) {
    ReplicationType Range = C.plain(I);
    if (Range.isVarying())
      X = C.varyingLike(Range);
    // A range per row is sharded like the rows.
    else if (PerRow && I < 3 ? !Range.isSharded() : !Range.isReplicated())
      X = C.varying("has a range whose layout does not fit that of its rows");
  }
  // The range of one replica's rows differs from that of all rows.
  C.setAll(X.isSharded() && !PerRow && !Given ? ofAllRows(C) : X);
}

/// Infers the types of quantized rows and of their range. The range depends on
/// the ranges of the operands only.
static void ranged(TypeContext &C) {
  // With `axis` 0 each row has a range. With `transpose_a` axis 0 is not the
  // batch axis.
  if (C.intAttr("axis").value_or(-1) == 0 || C.flag("transpose_a"))
    return whole(C);
  perExample(C);
  for (unsigned Port = 1; Port < C.numResults(); ++Port)
    if (C.result(Port).isSharded())
      C.set(Port, ReplicationType::replicated());
}

} // namespace types

ArrayRef<OpRule> families::quantization() {
  static constexpr OpRule Quantize = {.Sizes = sizes::same,
                                      .Type = types::quantize};
  static constexpr OpRule Ranged = {.Rows = sizes::rowsOfFirst,
                                    .Type = types::ranged,
                                    .ComparedOperands = AllOperands};
  static const OpRule Rules[] = {
      entry(op::QuantizeAndDequantize, Quantize),
      entry(op::QuantizeAndDequantizeV2, Quantize),
      entry(op::QuantizeAndDequantizeV3, Quantize),
      entry(op::QuantizeAndDequantizeV4, Quantize),

      // Ops on rows with a range as an operand.
      entry(op::Dequantize, Ranged),
      entry(op::QuantizeV2, Ranged),
      entry(op::QuantizedAvgPool, Ranged),
      entry(op::QuantizedBiasAdd, Ranged),
      entry(op::QuantizedConv2D, Ranged),
      entry(op::QuantizedConv2DAndRelu, Ranged),
      entry(op::QuantizedConv2DAndReluAndRequantize, Ranged),
      entry(op::QuantizedConv2DAndRequantize, Ranged),
      entry(op::QuantizedConv2DPerChannel, Ranged),
      entry(op::QuantizedConv2DWithBias, Ranged),
      entry(op::QuantizedConv2DWithBiasAndRelu, Ranged),
      entry(op::QuantizedConv2DWithBiasAndReluAndRequantize, Ranged),
      entry(op::QuantizedConv2DWithBiasAndRequantize, Ranged),
      entry(op::QuantizedDepthwiseConv2D, Ranged),
      entry(op::QuantizedDepthwiseConv2DWithBias, Ranged),
      entry(op::QuantizedDepthwiseConv2DWithBiasAndRelu, Ranged),
      entry(op::QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize, Ranged),
      entry(op::QuantizedMatMul, Ranged),
      entry(op::QuantizedMatMulWithBias, Ranged),
      entry(op::QuantizedMatMulWithBiasAndDequantize, Ranged),
      entry(op::QuantizedMatMulWithBiasAndRelu, Ranged),
      entry(op::QuantizedMatMulWithBiasAndReluAndRequantize, Ranged),
      entry(op::QuantizedMatMulWithBiasAndRequantize, Ranged),
      entry(op::QuantizedMaxPool, Ranged),
      entry(op::QuantizedRelu, Ranged),
      entry(op::QuantizedRelu6, Ranged),
      entry(op::QuantizedReluX, Ranged),
      entry(op::QuantizedResizeBilinear, Ranged),
      entry(op::Requantize, Ranged),
      entry(op::RequantizePerChannel, Ranged),

      // Ops that read all values, or align two tensors.
      entry(op::QuantizeAndDequantizeV4Grad, Whole),
      entry(op::QuantizeDownAndShrinkRange, Whole),
      entry(op::QuantizedAdd, Whole),
      entry(op::QuantizedBatchNormWithGlobalNormalization, Whole),
      entry(op::QuantizedConcat, Whole),
      entry(op::QuantizedConcatV2, Whole),
      entry(op::QuantizedConv2DWithBiasSignedSumAndReluAndRequantize, Whole),
      entry(op::QuantizedConv2DWithBiasSumAndRelu, Whole),
      entry(op::QuantizedConv2DWithBiasSumAndReluAndRequantize, Whole),
      entry(op::QuantizedInstanceNorm, Whole),
      entry(op::QuantizedMul, Whole),
      entry(op::QuantizedReshape, Whole),
      entry(op::RequantizationRange, Whole),
      entry(op::RequantizationRangePerChannel, Whole),
      entry(op::UniformDequantize, Whole),
      entry(op::UniformQuantize, Whole),
      entry(op::UniformQuantizedAdd, Whole),
      entry(op::UniformQuantizedClipByValue, Whole),
      entry(op::UniformQuantizedConvolution, Whole),
      entry(op::UniformQuantizedConvolutionHybrid, Whole),
      entry(op::UniformQuantizedDot, Whole),
      entry(op::UniformQuantizedDotHybrid, Whole),
      entry(op::UniformRequantize, Whole),
  };
  return Rules;
}

} // namespace graft
