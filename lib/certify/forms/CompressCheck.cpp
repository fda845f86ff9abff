//===- lib/certify/forms/CompressCheck.cpp - values sent in fewer bits ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/CompressCheck.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

bool isNarrow(unsigned Type) { return Type == DT_HALF || Type == DT_BFLOAT16; }

static bool is(const Graph &G, NodeId N, StringRef Op) {
  return G.node(N).Kind == Inserted::Compress && G.isOp(N, Op);
}

/// The residual that \p N reads or assigns, or NoNode.
static NodeId residualOf(const Graph &G, NodeId N) {
  NodeId Var = G.node(N).NumData == 0 ? NoNode : G.input(N, 0).Node;
  return Var != NoNode && is(G, Var, "VarHandleOp") ? Var : NoNode;
}

/// The residual that is added to the first operand of \p N, or NoNode.
static NodeId addedResidual(const Graph &G, NodeId N) {
  if (!is(G, N, "AddV2") || G.node(N).NumData != 2)
    return NoNode;
  NodeId Read = G.input(N, 1).Node;
  return is(G, Read, "ReadVariableOp") ? residualOf(G, Read) : NoNode;
}

Endpoint uncompressed(const Graph &G, NodeId N) {
  bool Passes = (is(G, N, "Cast") && G.node(N).NumData == 1) ||
                addedResidual(G, N) != NoNode;
  return Passes ? G.input(N, 0) : Endpoint();
}

bool clearsResidual(const Graph &G, NodeId N) {
  if (!is(G, N, "AssignVariableOp") || residualOf(G, N) == NoNode ||
      G.node(N).NumInputs != 2 || !is(G, G.input(N, 1).Node, "Const"))
    return false;
  auto Value = constValue(G, G.input(N, 1).Node);
  return Value && Value->AllZero;
}

/// Whether \p N is the sum with the residual \p Var less what is sent of it.
static bool isLoss(const Graph &G, NodeId N, NodeId Var) {
  if (!is(G, N, "Sub") || G.node(N).NumData != 2)
    return false;
  Endpoint Sum = G.input(N, 0);
  NodeId Wide = G.input(N, 1).Node;
  if (addedResidual(G, Sum.Node) != Var || !is(G, Wide, "Cast"))
    return false;
  NodeId Narrow = G.input(Wide, 0).Node;
  return is(G, Narrow, "Cast") && G.input(Narrow, 0) == Sum;
}

static StringRef castFault(const Graph &G, NodeId N,
                           function_ref<Endpoint(Endpoint)> Erase) {
  unsigned From = G.typeAttr(N, "SrcT").value_or(DT_INVALID),
           To = G.typeAttr(N, "DstT").value_or(DT_INVALID);
  auto IsWide = [](unsigned T) { return T == DT_FLOAT || T == DT_DOUBLE; };
  if (IsWide(From) && isNarrow(To))
    return "";
  Endpoint Of = Erase({N, 0});
  return isNarrow(From) && IsWide(To) && Of.Node != NoNode &&
                 G.outputType(Of.Node, Of.Port) == To
             ? ""
             : "is no cast to 16 bits, nor back to what it stands for";
}

/// A residual is the business of its own reduction alone.
static StringRef residualFault(const Graph &G, NodeId N) {
  const Node &This = G.node(N);
  if (This.Count != Copies::PerReplica || This.Plan != Policy::SyncOnRead ||
      aggregationOf(G, N) != Aggregation::Sum)
    return "is a residual and not one of each replica";
  bool Others = G.anyUse(N, [&](Use U) {
    return U.Index != 0 || (!is(G, U.User, "ReadVariableOp") &&
                            !is(G, U.User, "AssignVariableOp"));
  });
  return Others ? "is a residual that other nodes use" : "";
}

static StringRef assignFault(const Graph &G, NodeId N) {
  NodeId Var = residualOf(G, N);
  return Var != NoNode &&
                 (clearsResidual(G, N) || isLoss(G, G.input(N, 1).Node, Var))
             ? ""
             : "gives a residual another value than what was lost";
}

StringRef compressFault(const Graph &G, NodeId N,
                        function_ref<Endpoint(Endpoint)> Erase) {
  // To send a value may come after the residual is written; nothing else waits.
  for (Endpoint E : G.controlInputs(N))
    if (!G.isOp(N, "Cast") || !is(G, E.Node, "AssignVariableOp") ||
        clearsResidual(G, E.Node))
      return "was inserted and waits for what its value does not need";
  if (is(G, N, "Cast"))
    return castFault(G, N, Erase);
  if (is(G, N, "VarHandleOp"))
    return residualFault(G, N);
  if (is(G, N, "AssignVariableOp"))
    return assignFault(G, N);
  if (is(G, N, "Const"))
    return "";
  if (is(G, N, "ReadVariableOp"))
    return residualOf(G, N) != NoNode ? "" : "reads what is no residual";
  if (is(G, N, "AddV2"))
    return addedResidual(G, N) != NoNode ? "" : "adds what is no residual";
  if (is(G, N, "Sub"))
    return isLoss(G, N, addedResidual(G, G.input(N, 0).Node))
               ? ""
               : "is not what was lost";
  return "is no part of a compression";
}

} // namespace graft
