//===- lib/infer/rules/RecordRules.cpp - rows of records --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that make rows of serialized records, and lookups in tables by key. Each
// works on a record, or a key, at a time, but for what numbers the rows.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/sizes/DimRules.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

/// Decoding adds an axis, the same for all records.
void DimRules::decode() {
  Dims X = in(0);
  if (!X)
    return;
  DimList List(X->begin(), X->end());
  auto Hints = G.shapeListAttr(N, "_output_shapes");
  bool Known = Hints && !Hints->empty() &&
               (*Hints)[0].Dims.size() == List.size() + 1 &&
               (*Hints)[0].Dims.back() >= 0;
  List.push_back(Known ? number(1, (*Hints)[0].Dims.back()) : slot(0));
  setShape(0, List);
}

unsigned firstDenseFeature(const Graph &G, NodeId N) {
  StringRef Key = G.isOp(N, op::ParseExample) ? "Nsparse" : "num_sparse";
  return static_cast<unsigned>(3 * G.intAttr(N, Key).value_or(0));
}

void DimRules::parseExample() {
  auto Shapes = G.shapeListAttr(N, "dense_shapes");
  Dims X = in(0);
  if (!Shapes || !X)
    return;
  for (unsigned I = 0; I < Shapes->size(); ++I) {
    DimList List(in(0)->begin(), in(0)->end());
    for (size_t D = 0; D < (*Shapes)[I].Dims.size(); ++D) {
      unsigned Slot = I * 32 + static_cast<unsigned>(D);
      int64_t Size = (*Shapes)[I].Dims[D];
      List.push_back(Size < 0 ? slot(Slot) : number(Slot, Size));
    }
    if (!(*Shapes)[I].UnknownRank)
      setShape(firstDenseFeature(G, N) + I, List);
  }
}

void TypeRules::parseExample() {
  RType X = plain(0);
  for (unsigned I = 1; I < numData(); ++I)
    if (RType Other = plain(I); !Other.isReplicated())
      X = Other.isVarying() ? varyingLike(Other)
                            : varying("has defaults or keys that are split");
  if (X.isVarying() || X.isReplicated()) {
    setAll(X);
    return;
  }
  auto Names = D.shape(G.input(N, 1));
  if (!Names || Names->size() != 1 || D.table().number((*Names)[0]) != 0) {
    setAll(varying("has a name for each record of the batch"));
    return;
  }
  auto Shapes = G.shapeListAttr(N, "dense_shapes");
  unsigned First = firstDenseFeature(G, N);
  for (unsigned Port = 0; Port < D.numOutputs(N); ++Port) {
    bool Dense = Shapes && Port >= First && Port - First < Shapes->size();
    if (!Dense)
      set(Port, varying("has row indices that are local to one replica"));
    else if (any_of((*Shapes)[Port - First].Dims,
                    [](int64_t Size) { return Size < 0; }))
      set(Port, varying("pads to the longest record of one replica"));
    else
      set(Port, RType::sharded(0));
  }
}

/// The table is the same for all, and is only read.
RType TypeRules::lookup() {
  if (RType Default = plain(2); !Default.isReplicated())
    return Default.isVarying() ? varyingLike(Default)
                               : varying("has a default value that is split");
  return plain(1);
}

} // namespace graft
