//===- lib/graph/InputGraph.cpp - the graph that was read -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/InputGraph.h"

#include "lib/graph/AttrWire.h"

using namespace llvm;

namespace graft {

InputGraph::InputGraph(const Graph &G) {
  size_t NumEdges = 0;
  for (NodeId N = 0; N < G.size(); ++N)
    NumEdges += G.node(N).NumInputs;
  Nodes.reserve(G.size());
  Edges.reserve(NumEdges);
  for (NodeId N = 0; N < G.size(); ++N) {
    const graft::Node &From = G.node(N);
    Nodes.push_back({From.NameData, From.AttrData,
                     From.isDead() ? 0 : From.NameSize, From.AttrSize, From.Op,
                     static_cast<uint32_t>(Edges.size()), From.NumInputs,
                     From.NumData});
    for (Endpoint E : G.inputs(N))
      Edges.push_back(E);
  }
  OpNames.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    OpNames.push_back(G.opNameOf(Op));
}

std::optional<StringRef> InputGraph::attr(NodeId N, StringRef Key) const {
  AttrReader R(attrBytes(N));
  AttrEntry A;
  while (R.next(A))
    if (A.Key == Key)
      return A.Value;
  return std::nullopt;
}

bool AttrReader::next(AttrEntry &Entry) {
  wire::Field F;
  while (Reader.next(F))
    if (parseEntry(F, Entry))
      return true;
  return false;
}

} // namespace graft
