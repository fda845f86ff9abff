//===- lib/infer/rules/Quantization.cpp - rounding to few values *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// QuantizeAndDequantize rounds to as many values as some bits have between a
// least and a greatest one, which are given, or those of the tensor; with
// `axis` there is a pair for each slice along it (array_ops.cc,
// quantize_and_dequantize_op.cc). Its gradient is the incoming one.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace types {

static void quantize(TypeContext &C) {
  ReplicationType X = C.plain(0);
  bool PerRow = X.isSharded() && C.intAttr("axis").value_or(-1) == X.Axis,
       Given = C.flag("range_given");
  for (unsigned I = 1; I < C.numData(); ++I) {
    ReplicationType Range = C.plain(I);
    if (Range.isVarying())
      X = C.varyingLike(Range);
    // A pair for each row comes with the rows.
    else if (PerRow && I < 3 ? !Range.isSharded() : !Range.isReplicated())
      X = C.varying("has a range that is not split as its rows are");
  }
  // The range of all that a replica has is not that of all rows.
  C.setAll(X.isSharded() && !PerRow && !Given ? ofAllRows(C) : X);
}

} // namespace types

ArrayRef<OpRule> families::quantization() {
  static constexpr OpRule Quantize = {.Sizes = sizes::same,
                                      .Type = types::quantize};
  static const OpRule Rules[] = {
      entry(op::QuantizeAndDequantizeV2, Quantize),
      entry(op::QuantizeAndDequantizeV3, Quantize),
      entry(op::QuantizeAndDequantizeV4, Quantize),
  };
  return Rules;
}

} // namespace graft
