//===- lib/infer/graph/BatchSources.cpp - where batches come from -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Queues declare the shapes of their components, iterators those of their
// elements; a dequeue of many adds an axis.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"

#include "lib/infer/sizes/DimRules.h"
#include "lib/infer/types/TypeRules.h"

using namespace llvm;

namespace graft {

bool isBatchRead(StringRef Op) {
  return Op.starts_with("QueueDequeue") || Op == "IteratorGetNext" ||
         Op == "IteratorGetNextSync";
}

std::optional<SmallVector<int64_t, 4>> ownBatchAxes(const Graph &G, NodeId N) {
  const Node &This = G.node(N);
  if (This.Count != Copies::PerReplica || !(This.Flags & NF_MayHaveGraft) ||
      !isBatchRead(G.opName(N)))
    return std::nullopt;
  return G.intListAttr(N, BatchAttr);
}

bool fillsPipeline(StringRef Op) {
  return Op.starts_with("QueueEnqueue") || Op == "MakeIterator" ||
         Op.starts_with("InitializeTable") ||
         Op.starts_with("LookupTableImport") ||
         Op.starts_with("LookupTableInsert");
}

/// The component of the queue that \p E dequeues.
static std::optional<ShapeValue> componentShape(const Graph &G, Endpoint E) {
  NodeId Queue = G.input(E.Node, 0).Node;
  while (G.isOp(Queue, "Identity"))
    Queue = G.input(Queue, 0).Node;
  // The priority of a PriorityQueue is its first component.
  bool Priority = G.opName(Queue).starts_with("PriorityQueue");
  if (Priority && E.Port == 0)
    return ShapeValue();
  auto Shapes = G.shapeListAttr(Queue, "shapes");
  size_t I = E.Port - (Priority ? 1 : 0);
  if (!Shapes || I >= Shapes->size())
    return std::nullopt;
  return (*Shapes)[I];
}

std::optional<ShapeValue> sourceShape(const Graph &G, Endpoint E) {
  StringRef Op = G.opName(E.Node);
  if (Op.starts_with("Placeholder"))
    return G.shapeAttr(E.Node, "shape");
  if (!isBatchRead(Op) || G.node(E.Node).NumData == 0)
    return std::nullopt;
  if (!Op.starts_with("Queue")) {
    auto Shapes = G.shapeListAttr(E.Node, "output_shapes");
    if (!Shapes || E.Port >= Shapes->size())
      return std::nullopt;
    return (*Shapes)[E.Port];
  }
  auto Shape = componentShape(G, E);
  if (!Shape || Shape->UnknownRank || G.node(E.Node).NumData < 2)
    return Shape;
  // At most so many for DequeueUpTo: the last batch may be a smaller one.
  NodeId Count = G.input(E.Node, 1).Node;
  int64_t Rows = -1;
  if (Op.starts_with("QueueDequeueMany") && G.isOp(Count, "Const"))
    if (auto Value = constValue(G, Count); Value && Value->Ints.size() == 1)
      Rows = Value->Ints[0];
  Shape->Dims.insert(Shape->Dims.begin(), Rows);
  return Shape;
}

/// A size that is not declared is nobody else's. In particular the axis of a
/// dequeue of many is not the constant that says how many: that stays, since
/// the queue gives the global batch.
void DimRules::source() {
  auto Axes = ownBatchAxes(G, N);
  A.OwnRows |= Axes.has_value();
  // A dequeue of many gives as many of each component.
  std::optional<DimId> Many;
  bool TakesMany = G.opName(N).starts_with("QueueDequeueMany") ||
                   G.opName(N).starts_with("QueueDequeueUpTo");
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
                  : varying("every replica takes an element of its own"));
}

} // namespace graft
