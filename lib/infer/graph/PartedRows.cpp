//===- lib/infer/graph/PartedRows.cpp - rows sent to parts ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/PartedRows.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace llvm;

namespace graft {

static Endpoint skipIdentities(const Graph &G, Endpoint E) {
  while (G.isOp(E.Node, op::Identity) && G.node(E.Node).NumData == 1)
    E = G.input(E.Node, 0);
  return E;
}

NodeId numbersParted(const Graph &G, NodeId Partition) {
  Endpoint E = skipIdentities(G, G.input(Partition, 0));
  while (G.isOp(E.Node, op::Reshape))
    E = skipIdentities(G, G.input(E.Node, 0));
  return G.isOp(E.Node, op::Range) ? E.Node : NoNode;
}

NodeId partitionStitched(const Graph &G, NodeId Stitch) {
  unsigned Count = G.node(Stitch).NumData / 2;
  NodeId From = NoNode;
  SmallBitVector Has(Count);
  for (unsigned I = 0; I < Count; ++I) {
    Endpoint E = skipIdentities(G, G.input(Stitch, I));
    if (I == 0)
      From = E.Node;
    if (E.Node != From || E.Port >= Count || Has.test(E.Port))
      return NoNode;
    Has.set(E.Port);
  }
  bool All = From != NoNode && G.isOp(From, op::DynamicPartition) &&
             G.intAttr(From, "num_partitions").value_or(0) == Count &&
             numbersParted(G, From) != NoNode;
  return All ? From : NoNode;
}

} // namespace graft
