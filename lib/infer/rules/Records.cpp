//===- lib/infer/rules/Records.cpp - records and tables ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that decode serialized records to rows, and lookups in tables by key.
// Each op handles one record or key at a time, unless it outputs row numbers.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/BatchSources.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Adds the axis of decoded records, whose size is equal for all records.
static void decode(SizeContext &C) {
  Dims X = C.in(0);
  if (!X)
    return;
  DimList List(X->begin(), X->end());
  // If there are no records, the op may leave this axis out.
  if (any_of(List, [&](DimId D) { return C.Table.isRagged(D); }))
    return;
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

namespace types {

static void parseExample(TypeContext &C) {
  ReplicationType X = C.plain(0);
  for (unsigned I = 1; I < C.numData(); ++I)
    if (ReplicationType Other = C.plain(I); !Other.isReplicated())
      X = Other.isVarying() ? C.varyingLike(Other)
                            : C.varying("has defaults or keys that are split");
  if (X.isVarying() || X.isReplicated())
    return C.setAll(X);
  auto Names = C.shape(1);
  if (!Names || Names->size() != 1 || C.D.table().number((*Names)[0]) != 0)
    return C.setAll(C.varying("has a name for each record of the batch"));
  auto Shapes = C.shapeListAttr("dense_shapes");
  unsigned First = firstDenseFeature(C.G, C.N);
  for (unsigned Port = 0; Port < C.numResults(); ++Port) {
    bool Dense = Shapes && Port >= First && Port - First < Shapes->size();
    if (!Dense)
      C.set(Port, C.varying("has row indices that are local to one replica"));
    else if (any_of((*Shapes)[Port - First].Dims,
                    [](int64_t Size) { return Size < 0; }))
      C.set(Port, C.varying("pads to the longest record of one replica"));
    else
      C.set(Port, ReplicationType::sharded(0));
  }
}

/// Types a decoder of records of equal length. The op cannot find that length
/// on a replica without records.
static void decode(TypeContext &C) {
  perExample(C);
  ReplicationType X = C.result(0);
  if (X.isSharded() && C.D.isUneven(C.input(0), X.Axis))
    C.setAll(C.varying("decodes a data-dependent number of records"));
}

/// Types a lookup in a table that all replicas share. No replica changes it.
static void lookup(TypeContext &C) {
  if (ReplicationType Default = C.plain(2); !Default.isReplicated())
    return C.setAll(Default.isVarying()
                        ? C.varyingLike(Default)
                        : C.varying("has a default value that is split"));
  C.setAll(C.plain(1));
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule PerExample = {.Sizes = sizes::decode,
                               .Rows = sizes::sameRows,
                               .Type = types::perExample,
                               .ComparedOperands = AllOperands};
constexpr OpRule Lookup = {.Sizes = sizes::sameAsSecond, .Type = types::lookup};
constexpr OpRule ParseExample = {.Sizes = sizes::parseExample,
                                 .Type = types::parseExample};

} // namespace

ArrayRef<OpRule> families::records() {
  static const OpRule Rules[] = {
      entry(op::DecodeCSV, PerExample, {.Sizes = sizes::same}),
      entry(op::DecodeJSONExample, PerExample, {.Sizes = sizes::same}),
      entry(op::DecodePaddedRaw, PerExample),
      entry(op::DecodeRaw, PerExample, {.Type = types::decode}),
      {.Op = op::Fingerprint,
       .Rows = sizes::sameRows,
       .Type = types::perExample,
       .ComparedOperands = AllOperands},
      entry(op::LookupTableFind, Lookup),
      entry(op::LookupTableFindV2, Lookup),
      {.Op = op::LookupTableSize, .Sizes = sizes::scalar, .Is = Once},
      {.Op = op::LookupTableSizeV2, .Sizes = sizes::scalar},
      entry(op::ParseExample, ParseExample),
      entry(op::ParseExampleV2, ParseExample),
  };
  return Rules;
}

} // namespace graft
