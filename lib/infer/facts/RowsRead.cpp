//===- lib/infer/facts/RowsRead.cpp - rows behind a value -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/RowsRead.h"

#include "lib/infer/graph/BatchSources.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

/// Returns \p N as a source. Returns nothing if \p N is no source.
std::optional<RowsRead::Source>
RowsRead::sourceAt(const Graph &G, const ProgramFacts &Facts, NodeId N) const {
  Source S{N};
  bool IsDefault = G.isOp(N, op::PlaceholderWithDefault);
  if (G.isOp(N, ToReplicasOp)) {
    S.Axis = G.intAttr(N, "axis").value_or(0);
    NodeId Of = G.input(N, 0).Node;
    S.IsFed = G.node(Of).Kind != Inserted::Definition &&
              (G.dataInputs(Of).empty() || readsBatch(G, Of));
  } else if (IsDefault && Facts.Types.type({N, 0}).isSharded()) {
    S.Axis = Facts.Types.type({N, 0}).Axis;
    S.IsFed = true;
  } else if (!ownBatchAxes(G, N) && G.node(N).Kind != Inserted::Split) {
    return std::nullopt;
  }
  auto Shape = Facts.Dims.shape({N, 0});
  auto Axis = static_cast<size_t>(S.Axis);
  if (!S.IsFed || !Shape || Axis >= Shape->size()) {
    S.IsFed = false;
    return S;
  }
  auto Rows = Facts.Dims.table().sym((*Shape)[Axis]);
  const SizeOrigins &Origins = Facts.Dims.origins();
  // Workers divide a static batch into equal shards.
  S.IsFed = Rows && Rows->B == 1 && Rows->R == 0 && Rows->Ragged == 0 &&
            Facts.Dims.table().isOfSplit(*Rows) &&
            !Origins.isFixed((*Shape)[Axis]);
  if (Rows)
    S.Rows = Rows->Rows;
  S.Origin = Origins.of((*Shape)[Axis]);
  return S;
}

RowsRead::RowsRead(const Graph &G, const ProgramFacts &Facts)
    : Sets(G.size()), Numbers(G.size()) {
  std::vector<uint32_t> Own(G.size());
  for (NodeId N : Facts.Order)
    if (G.isPerReplica(N))
      if (auto S = sourceAt(G, Facts, N)) {
        Own[N] = Numbers.single(static_cast<uint32_t>(Sources.size()));
        Sources.push_back(*S);
      }
  // Loops pass values on against the order of nodes. Each round that changes a
  // set carries a source once more around a loop.
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (NodeId N : Facts.Order) {
      if (!G.isPerReplica(N))
        continue;
      uint32_t Set = Own[N];
      if (Set == NumberSets::None)
        for (Endpoint E : G.dataInputs(N))
          if (Sets[E.Node] != NumberSets::None)
            Set = Numbers.unite(Set, Sets[E.Node]);
      Changed |= Set != Sets[N];
      Sets[N] = Set;
    }
  }
}

SmallVector<const RowsRead::Source *, 4> RowsRead::of(NodeId N) {
  SmallVector<const Source *, 4> Result;
  uint32_t Found = NumberSets::None;
  while (Found != Sets[N]) {
    uint32_t Next = Numbers.firstOutside(Sets[N], Found);
    Found = Numbers.unite(Found, Numbers.single(Next));
    Result.push_back(&Sources[Next]);
  }
  return Result;
}

} // namespace graft
