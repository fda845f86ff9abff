//===- lib/infer/batch/LocalSizes.cpp - sizes of one replica ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/LocalSizes.h"

#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

using namespace llvm;

namespace graft {

int64_t timesLarger(const DimTable &Table, DimId D, unsigned Replicas) {
  int64_t Times = 1;
  auto S = Table.sym(D);
  for (int P = 0; S && Table.isOfSplit(*S) && P < S->globalPower(); ++P)
    Times *= Replicas;
  return Times;
}

/// Returns \p Shape with per-replica numbers at the axes whose \p Sizes follow
/// the batch.
static SmallVector<int64_t, 4> localShape(const DimTable &Table,
                                          ArrayRef<DimId> Sizes,
                                          ArrayRef<int64_t> Shape,
                                          unsigned Replicas) {
  SmallVector<int64_t, 4> Result(Shape);
  for (size_t I = 0; I < Result.size() && I < Sizes.size(); ++I)
    if (Result[I] > 0)
      Result[I] /= timesLarger(Table, Sizes[I], Replicas);
  return Result;
}

bool shrinkSplat(Graph &G, NodeId N, const DimAnalysis &Dims,
                 unsigned Replicas) {
  auto Tensor = constValue(G, N);
  auto Sizes = Dims.shape({N, 0});
  if (!Tensor || !Sizes)
    return false;
  auto Value = resizeSplat(
      *G.attr(N, "value"),
      localShape(Dims.table(), *Sizes, Tensor->Shape.Dims, Replicas));
  if (!Value)
    return false;
  G.setAttr(N, OriginalAttr, *G.attr(N, "value"));
  G.setAttr(N, "value", *Value);
  G.node(N).Count = Copies::PerReplica;
  return true;
}

bool localiseShape(Graph &G, NodeId N, const DimAnalysis &Dims,
                   unsigned Replicas) {
  StringRef Key = statedShape(G.opName(N));
  auto Sizes = statedSizes(G, Dims, N);
  auto Shape = Key.empty() ? std::nullopt : G.shapeAttr(N, Key);
  if (!Shape || Shape->UnknownRank || !Sizes)
    return false;
  ShapeValue Local;
  Local.Dims = localShape(Dims.table(), *Sizes, Shape->Dims, Replicas);
  if (Local.Dims == Shape->Dims)
    return false;
  G.setAttr(N, OriginalAttr, *G.attr(N, Key));
  G.setAttr(N, Key, encodeShapeAttr(Local));
  return true;
}

std::optional<SmallVector<DimId, 4>>
statedSizes(const Graph &G, const DimAnalysis &Dims, NodeId N) {
  auto Shape = Dims.shape({N, 0});
  if (!Shape)
    return std::nullopt;
  // A read of many elements adds a leading axis to its result.
  bool Many = isLocalHandleOp(G.opName(N)) && !G.isOp(N, op::TensorArrayV3);
  if (Many && Shape->empty())
    return std::nullopt;
  return SmallVector<DimId, 4>(Many ? Shape->drop_front() : *Shape);
}

} // namespace graft
