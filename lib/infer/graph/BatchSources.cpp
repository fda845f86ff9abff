//===- lib/infer/graph/BatchSources.cpp - where batches come from -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// A queue declares the shapes of its components. An iterator declares the
// shapes of its elements. QueueDequeueMany adds an axis.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"

#include "lib/graph/Walk.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/program/JoinedBatches.h"

using namespace llvm;

namespace graft {

bool isElementOfOptional(const Graph &G, NodeId N) {
  return G.isOp(N, op::OptionalGetValue) && G.node(N).NumData == 1 &&
         G.isOp(through(G, G.input(N, 0), op::Identity).Node,
                op::IteratorGetNextAsOptional);
}

bool readsBatch(const Graph &G, NodeId N) {
  if (G.node(N).Flags & NF_MayHaveGraft && G.hasAttr(N, JoinedAttr))
    return isJoinedBatch(G, N);
  return isBatchRead(G.opName(N)) || isElementOfOptional(G, N);
}

std::vector<NodeId> findJoinableReads(const Graph &G) {
  std::vector<NodeId> Reads;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !readsBatch(G, N) || !G.hasUses(N))
      continue;
    if (!isJoinable(G, N))
      return {};
    Reads.push_back(N);
  }
  return Reads;
}

std::set<uint32_t> readOutputs(const Graph &G, NodeId N) {
  std::set<uint32_t> Ports;
  G.forEachUse(N, [&](Use U) {
    if (Endpoint E = G.input(U.User, U.Index); !E.isControl())
      Ports.insert(E.Port);
  });
  return Ports;
}

std::optional<SmallVector<int64_t, 4>> ownBatchAxes(const Graph &G, NodeId N) {
  const Node &This = G.node(N);
  if (This.Count != Copies::PerReplica || !(This.Flags & NF_MayHaveGraft) ||
      !isBatchRead(G.opName(N)))
    return std::nullopt;
  return G.intListAttr(N, BatchAttr);
}

bool fillsPipeline(StringRef Op) {
  return Op.starts_with(op::QueueEnqueue) || Op == op::MakeIterator ||
         Op.starts_with(op::InitializeTable) ||
         Op.starts_with(op::LookupTableImport) ||
         Op.starts_with(op::LookupTableInsert);
}

/// Returns the shape of the queue component that \p E dequeues.
static std::optional<ShapeValue> componentShape(const Graph &G, Endpoint E) {
  NodeId Queue = through(G, G.input(E.Node, 0), op::Identity).Node;
  // Component 0 of a PriorityQueue is the priority.
  bool Priority = G.opName(Queue).starts_with(op::PriorityQueue);
  if (Priority && E.Port == 0)
    return ShapeValue();
  auto Shapes = G.shapeListAttr(Queue, "shapes");
  size_t I = E.Port - (Priority ? 1 : 0);
  if (!Shapes || I >= Shapes->size())
    return std::nullopt;
  return (*Shapes)[I];
}

/// Returns the shape that the op of \p E declares.
static std::optional<ShapeValue> declaredShape(const Graph &G, Endpoint E) {
  // The number of rows of a joined element is unknown. So the number of rows of
  // the batch is unknown, too.
  if (isJoinedBatch(G, E.Node))
    if (Endpoint Rows = G.input(E.Node, E.Port);
        G.isOp(Rows.Node, op::ConcatV2))
      E = G.input(Rows.Node, 0);
  StringRef Op = G.opName(E.Node);
  if (Op.starts_with(op::Placeholder))
    return G.shapeAttr(E.Node, "shape");
  if ((!readsBatch(G, E.Node) && !isBatchRead(Op)) ||
      G.node(E.Node).NumData == 0)
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
  // DequeueUpTo may return fewer rows: the last batch may be smaller.
  NodeId Count = G.input(E.Node, 1).Node;
  int64_t Rows = -1;
  if (Op.starts_with(op::QueueDequeueMany) && G.isOp(Count, op::Const))
    if (auto Value = constValue(G, Count); Value && Value->Ints.size() == 1)
      Rows = Value->Ints[0];
  Shape->Dims.insert(Shape->Dims.begin(), Rows);
  return Shape;
}

std::optional<ShapeValue> sourceShape(const Graph &G, Endpoint E) {
  auto Shape = declaredShape(G, E);
  if (!Shape || !Shape->UnknownRank)
    return Shape;
  auto Hints = G.shapeListAttr(E.Node, "_output_shapes");
  return Hints && E.Port < Hints->size() ? (*Hints)[E.Port] : *Shape;
}

std::string feedName(const Graph &G, Endpoint E) {
  std::string Name = G.name(E.Node).str();
  return E.Port == 0 ? Name : Name + ":" + std::to_string(E.Port);
}

unsigned firstDenseFeature(const Graph &G, NodeId N) {
  StringRef Key = G.isOp(N, op::ParseExample) ? "Nsparse" : "num_sparse";
  return static_cast<unsigned>(3 * G.intAttr(N, Key).value_or(0));
}

} // namespace graft
