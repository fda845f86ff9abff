//===- lib/program/forms/Compression.cpp - values in fewer bits -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/Compression.h"

#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

bool isNarrow(unsigned Type) { return Type == DT_HALF || Type == DT_BFLOAT16; }

bool isCompressPart(const Graph &G, NodeId N, StringRef Op) {
  return G.node(N).Kind == Inserted::Compress && G.isOp(N, Op);
}

NodeId residualOf(const Graph &G, NodeId N) {
  NodeId Var = G.node(N).NumData == 0 ? NoNode : G.input(N, 0).Node;
  return Var != NoNode && isCompressPart(G, Var, op::VarHandleOp) ? Var
                                                                  : NoNode;
}

NodeId addedResidual(const Graph &G, NodeId N) {
  if (!isCompressPart(G, N, op::AddV2) || G.node(N).NumData != 2)
    return NoNode;
  NodeId Read = G.input(N, 1).Node;
  return isCompressPart(G, Read, op::ReadVariableOp) ? residualOf(G, Read)
                                                     : NoNode;
}

Endpoint uncompressed(const Graph &G, NodeId N) {
  bool Passes = (isCompressPart(G, N, op::Cast) && G.node(N).NumData == 1) ||
                addedResidual(G, N) != NoNode;
  return Passes ? G.input(N, 0) : Endpoint();
}

bool clearsResidual(const Graph &G, NodeId N) {
  if (!isCompressPart(G, N, op::AssignVariableOp) ||
      residualOf(G, N) == NoNode || G.node(N).NumInputs != 2 ||
      !isCompressPart(G, G.input(N, 1).Node, op::Const))
    return false;
  auto Value = constValue(G, G.input(N, 1).Node);
  return Value && Value->AllZero;
}

} // namespace graft
