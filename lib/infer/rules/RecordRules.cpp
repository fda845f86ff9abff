//===- lib/infer/rules/RecordRules.cpp - rows of records --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that make rows of serialized records, and lookups in tables by key. Each
// works on a record, or a key, at a time, but for what numbers the rows.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

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
