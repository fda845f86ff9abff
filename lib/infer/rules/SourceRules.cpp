//===- lib/infer/rules/SourceRules.cpp - rules for batch reads --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What comes from a queue, an iterator or a feed.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/sizes/DimRules.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

/// A size that is not declared is nobody else's. In particular the axis of a
/// dequeue of many is not the constant that says how many: that stays, since
/// the queue gives the global batch.
void DimRules::source() {
  auto Axes = ownBatchAxes(G, N);
  A.OwnRows |= Axes.has_value();
  // A dequeue of many gives as many of each component.
  std::optional<DimId> Many;
  bool TakesMany = G.opName(N).starts_with(op::QueueDequeueMany) ||
                   G.opName(N).starts_with(op::QueueDequeueUpTo);
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port) {
    auto Shape = sourceShape(G, {N, Port});
    if (!Shape || Shape->UnknownRank)
      continue;
    DimList List;
    for (size_t I = 0; I < Shape->Dims.size(); ++I) {
      unsigned Slot = 0x8000 + Port * 32 + I;
      List.push_back(Shape->Dims[I] < 0 ? slot(Slot)
                                        : number(Slot, Shape->Dims[I]));
    }
    if (TakesMany && !List.empty()) {
      if (!Many)
        Many = List[0];
      List[0] = *Many;
    }
    if (Axes && Port < Axes->size() && (*Axes)[Port] >= 0 &&
        size_t((*Axes)[Port]) < List.size())
      splitRows(List[(*Axes)[Port]], Port, {N, Port}, /*Own=*/true);
    setShape(Port, List);
  }
}

/// What is read once is the true value. Where every replica reads for itself
/// the step is that of all their batches together.
void TypeRules::source() {
  if (G.node(N).Count == Copies::Once) {
    setAll(RType::replicated());
    return;
  }
  auto Axes = ownBatchAxes(G, N);
  for (unsigned Port = 0; Port < D.numOutputs(N); ++Port)
    set(Port, Axes && Port < Axes->size() && (*Axes)[Port] >= 0
                  ? RType::sharded(static_cast<int>((*Axes)[Port]))
                  : varying("every replica takes its own element"));
}

} // namespace graft
