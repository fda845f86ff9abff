//===- lib/infer/rules/RowIndices.cpp - rows selected by their values ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rows that are counted by their values, sent to parts and stitched.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// The indices of what is true: a row each, of as many columns as there are
/// axes.
static void where(SizeContext &C) {
  Dims X = C.in(0);
  if (!X)
    return;
  DimId Rows = C.slot(0);
  if (C.countsLocally(*X) && !is_contained(C.options().Whole, C.N))
    C.countRows(Rows, {C.firstLike(0), 0});
  C.setShape(0, {Rows, C.number(1, int64_t(X->size()))});
}

/// DynamicPartition: each part gets the rows that are sent to it.
static void parts(SizeContext &C) {
  Dims X = C.in(0), Part = C.in(1);
  if (!X || !Part || X->size() < Part->size())
    return;
  C.sameShapes(X->take_front(Part->size()), *Part);
  NodeId First = C.N;
  bool Local = C.countsLocally(*Part);
  if (Local) {
    First = C.firstLike(1);
    Local = !is_contained(C.options().Whole, First);
  }
  DimList List{0};
  List.append(X->begin() + Part->size(), X->end());
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port) {
    List[0] = C.slot(Port);
    if (Local)
      C.countRows(List[0],
                  {Port < C.Known.numOutputs(First) ? First : C.N, Port});
    C.setShape(Port, List);
  }
}

} // namespace sizes

ArrayRef<OpRule> families::rowIndices() {
  static constexpr OpRule Rules[] = {
      // Rows by index.
      {.Op = op::DynamicPartition,
       .Sizes = sizes::parts,
       .Type = TypeRule::Partition},
      {.Op = op::ParallelDynamicStitch,
       .Sizes = sizes::stitch,
       .Type = TypeRule::Stitch},

      // What needs the rows of all replicas: they are gathered.
      {.Op = op::Where, .Sizes = sizes::where, .Type = TypeRule::Where},
  };
  return Rules;
}

} // namespace graft
