//===- lib/program/forms/Proxy.cpp - copies of shared variables -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/Proxy.h"

#include "lib/graph/Walk.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

bool leavesVariable(const Graph &G, Use U) {
  StringRef Op = G.opName(U.User);
  const OpDef *Def = G.opDef(U.User);
  // A merged handle is the handle of copy 0, here of the shared variable.
  if (!Def)
    return Op == FromReplicasOp;
  // An op without a reference input takes the value of the reference.
  if (G.isRefOutput(G.input(U).Node, 0) && !G.isRefInput(U.User, U.Index) &&
      G.outputType(U.User, 0) != DT_RESOURCE)
    return !Op.starts_with(op::Enter);
  return Def->readsVariable() || Op == op::Identity || Op == op::RefIdentity ||
         Op == op::Switch || Op == op::RefSwitch;
}

bool looksUpRows(const Graph &G, NodeId N) {
  return G.isOp(N, op::ResourceGather) || G.isOp(N, op::ResourceGatherNd);
}

NodeId proxyOf(const Graph &G, NodeId Var) {
  NodeId Found = NoNode;
  G.anyUse(Var, [&](Use W) {
    return G.node(W.User).Kind == Inserted::Proxy &&
           G.node(W.User).NumData == 1 && G.anyUse(W.User, [&](Use F) {
             if (F.Index != 1 || G.node(F.User).Kind != Inserted::Proxy ||
                 !G.isOp(F.User, op::AssignVariableOp))
               return false;
             Found = G.input(F.User, 0).Node;
             return true;
           });
  });
  return Found;
}

bool areOrdered(const Graph &G, ArrayRef<NodeId> Updates,
                function_ref<NodeId(NodeId)> Gate) {
  // In a total order, each update has a different number of updates after it.
  SmallVector<bool, 8> Taken(Updates.size());
  for (NodeId U : Updates) {
    if (Updates.size() < 2)
      break;
    std::vector<bool> After(G.size());
    walkUsers(G, {Gate(U)}, Along::All, After);
    size_t Later = count_if(
        Updates, [&](NodeId Other) { return Other != U && After[Other]; });
    if (Taken[Later])
      return false;
    Taken[Later] = true;
  }
  return true;
}

} // namespace graft
