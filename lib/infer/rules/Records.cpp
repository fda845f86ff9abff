//===- lib/infer/rules/Records.cpp - records and tables ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rows of serialized records, and lookups in tables by key. Each works on a
// record, or a key, at a time, but for what numbers the rows.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/BatchSources.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Decoding adds an axis, the same for all records.
static void decode(SizeContext &C) {
  Dims X = C.in(0);
  if (!X)
    return;
  DimList List(X->begin(), X->end());
  auto Hints = C.shapeListAttr("_output_shapes");
  bool Known = Hints && !Hints->empty() &&
               (*Hints)[0].Dims.size() == List.size() + 1 &&
               (*Hints)[0].Dims.back() >= 0;
  List.push_back(Known ? C.number(1, (*Hints)[0].Dims.back()) : C.slot(0));
  C.setShape(0, List);
}

static void parseExample(SizeContext &C) {
  auto Shapes = C.shapeListAttr("dense_shapes");
  Dims X = C.in(0);
  if (!Shapes || !X)
    return;
  for (unsigned I = 0; I < Shapes->size(); ++I) {
    DimList List(C.in(0)->begin(), C.in(0)->end());
    for (size_t D = 0; D < (*Shapes)[I].Dims.size(); ++D) {
      unsigned Slot = I * 32 + static_cast<unsigned>(D);
      int64_t Size = (*Shapes)[I].Dims[D];
      List.push_back(Size < 0 ? C.slot(Slot) : C.number(Slot, Size));
    }
    if (!(*Shapes)[I].UnknownRank)
      C.setShape(firstDenseFeature(C.G, C.N) + I, List);
  }
}

} // namespace sizes

ArrayRef<OpRule> families::records() {
  static constexpr OpRule Rules[] = {
      // Records and tables.
      {.Op = op::DecodeCSV,
       .Sizes = sizes::same,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::DecodePaddedRaw,
       .Sizes = sizes::decode,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::DecodeRaw,
       .Sizes = sizes::decode,
       .Rows = sizes::sameRows,
       .Type = TypeRule::PerExample},
      {.Op = op::LookupTableFind,
       .Sizes = sizes::sameAsSecond,
       .Type = TypeRule::Lookup},
      {.Op = op::LookupTableFindV2,
       .Sizes = sizes::sameAsSecond,
       .Type = TypeRule::Lookup},
      {.Op = op::LookupTableSize, .Sizes = sizes::scalar},
      {.Op = op::LookupTableSizeV2, .Sizes = sizes::scalar},
      {.Op = op::ParseExample,
       .Sizes = sizes::parseExample,
       .Type = TypeRule::ParseExample},
      {.Op = op::ParseExampleV2,
       .Sizes = sizes::parseExample,
       .Type = TypeRule::ParseExample},
  };
  return Rules;
}

} // namespace graft
