//===- lib/certify/forms/CompressCheck.cpp - values sent in fewer bits ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks that the form of lib/program/forms/Compression.h loses nothing but a
// rounding error.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/Compression.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Returns true if \p N is the rounding error: the sum of a tensor and the
/// residual \p Var, minus that sum after a cast to 16 bits and back.
static bool isLoss(const Graph &G, NodeId N, NodeId Var) {
  if (!isCompressPart(G, N, op::Sub) || G.node(N).NumData != 2)
    return false;
  Endpoint Sum = G.input(N, 0);
  NodeId Wide = G.input(N, 1).Node;
  if (addedResidual(G, Sum.Node) != Var || !isCompressPart(G, Wide, op::Cast))
    return false;
  NodeId Narrow = G.input(Wide, 0).Node;
  return isCompressPart(G, Narrow, op::Cast) && G.input(Narrow, 0) == Sum;
}

static StringRef castFault(const Comparison &C, NodeId N) {
  const Graph &G = C.G;
  unsigned From = G.typeAttr(N, "SrcT").value_or(DT_INVALID),
           To = G.typeAttr(N, "DstT").value_or(DT_INVALID);
  auto IsWide = [](unsigned T) { return T == DT_FLOAT || T == DT_DOUBLE; };
  if (IsWide(From) && isNarrow(To))
    return "";
  Endpoint Of = C.erase({N, 0});
  return isNarrow(From) && IsWide(To) && Of.Node != NoNode &&
                 G.outputType(Of.Node, Of.Port) == To
             ? ""
             : "is neither a cast to 16 bits nor one back to the type of its "
               "source";
}

/// Returns the reason why the residual \p N is refused, or "". Only nodes of
/// its compression may read or assign a residual.
static StringRef residualFault(const Graph &G, NodeId N) {
  const Node &This = G.node(N);
  if (This.Count != Copies::PerReplica || This.Plan != Policy::SyncOnRead ||
      aggregationOf(G, N) != Aggregation::Sum)
    return "is a residual but not per-replica";
  bool Others = G.anyUse(N, [&](Use U) {
    return U.Index != 0 || (!isCompressPart(G, U.User, op::ReadVariableOp) &&
                            !isCompressPart(G, U.User, op::AssignVariableOp));
  });
  return Others ? "is a residual that other nodes use" : "";
}

static StringRef assignFault(const Graph &G, NodeId N) {
  NodeId Var = residualOf(G, N);
  return Var != NoNode &&
                 (clearsResidual(G, N) || isLoss(G, G.input(N, 1).Node, Var))
             ? ""
             : "assigns a value other than the rounding error to a residual";
}

static StringRef fault(const Comparison &C, NodeId N) {
  const Graph &G = C.G;
  // A cast may wait for the write of the residual; no other node may wait.
  for (Endpoint E : G.controlInputs(N))
    if (!G.isOp(N, op::Cast) ||
        !isCompressPart(G, E.Node, op::AssignVariableOp) ||
        clearsResidual(G, E.Node))
      return "is inserted and waits for a node on which its value does not "
             "depend";
  if (isCompressPart(G, N, op::Cast))
    return castFault(C, N);
  if (isCompressPart(G, N, op::VarHandleOp))
    return residualFault(G, N);
  if (isCompressPart(G, N, op::AssignVariableOp))
    return assignFault(G, N);
  if (isCompressPart(G, N, op::ReadVariableOp))
    return residualOf(G, N) != NoNode ? ""
                                      : "reads a value that is not a residual";
  if (isCompressPart(G, N, op::AddV2))
    return addedResidual(G, N) != NoNode
               ? ""
               : "adds a value that is not a residual";
  if (isCompressPart(G, N, op::Sub))
    return isLoss(G, N, addedResidual(G, G.input(N, 0).Node))
               ? ""
               : "does not compute the rounding error";
  return isCompressPart(G, N, op::Const) ? "" : "is not part of a compression";
}

static void checkCompress(Comparison &C, const ProgramFacts &Facts, NodeId N) {
  if (StringRef Fault = fault(C, N); !Fault.empty())
    C.error(N, Fault);
  // A residual may be cleared only for an assignment in the input.
  if (clearsResidual(C.G, N))
    C.G.forEachUse(N, [&](Use U) {
      if (C.InputOf[U.User] == NoNode ||
          Facts.Vars.update(C.G, U.User).Kind != UpdateKind::Assign)
        C.error(U.User, "clears a residual and does not assign a variable");
    });
}

static Endpoint standsForCompress(const Comparison &C, Endpoint E) {
  return uncompressed(C.G, E.Node);
}

static bool recognizeCompress(const LoweredFile &File, NodeId N) {
  return File.G.hasAttr(N, CompressAttr);
}

const InsertedForm CompressForm = {.StandsFor = standsForCompress,
                                   .Check = checkCompress,
                                   .Recognize = recognizeCompress,
                                   .WritesCopies = true,
                                   .IsUnseen = true};

} // namespace graft
