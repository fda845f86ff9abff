//===- lib/infer/facts/GradientWrites.cpp - writes of a step ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/GradientWrites.h"

#include "lib/graph/Walk.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Returns a flag for each node. It is set if the node is in \p From, or is
/// computed from a node in \p From.
static std::vector<bool> behind(const Graph &G, std::vector<NodeId> From) {
  std::vector<bool> Made(G.size());
  walkUsers(G, std::move(From), Along::Data, Made);
  return Made;
}

GradientWrites GradientWrites::find(const Graph &G, const VariableIndex &Vars,
                                    ArrayRef<NodeId> Trained,
                                    function_ref<bool(NodeId)> IsCounted) {
  std::vector<NodeId> Rows;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isNeed(G.opName(N), G.opDef(N)) &&
        !Vars.isUpdate(G, N) && !G.isOp(N, op::RestoreV2))
      Rows.push_back(N);
  std::vector<bool> OfRows = behind(G, std::move(Rows)),
                    OfState = behind(
                        G, {Vars.variables().begin(), Vars.variables().end()}),
                    OfTrained = behind(G, Trained.vec());
  auto Value = [&](NodeId N, UpdateDef Update) {
    return G.input(N, static_cast<unsigned>(Update.Grad)).Node;
  };
  auto WritesGradient = [&](NodeId N) {
    UpdateDef Update = Vars.update(G, N);
    if (Update.Kind == UpdateKind::None)
      return false;
    NodeId Var = Vars.variableOf(G.input(N, 0));
    if (Var == NoNode || !IsCounted(Var))
      return false;
    if (Update.Kind == UpdateKind::Apply)
      return true;
    return is_contained(Trained, Var) && Update.Grad >= 0 &&
           OfRows[Value(N, Update)] && OfState[Value(N, Update)];
  };
  GradientWrites Found;
  Found.Runs.resize(G.size());
  Found.InLoop.resize(G.size());
  std::vector<NodeId> Order = topologicalOrder(G);
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  for (NodeId N : Order) {
    Found.InLoop[N] = Loops && Loops->givesInside(N);
    for (Endpoint E : G.inputs(N))
      if (!isBackEdgeOp(G.opName(E.Node)) && Found.Runs[E.Node])
        Found.Runs[N] = true;
    if (!WritesGradient(N))
      continue;
    Found.Runs[N] = true;
    Found.Writes.push_back(N);
  }
  // An assignment that runs together with a write sets no initial value.
  std::vector<bool> Beside(G.size());
  std::vector<NodeId> Runs;
  copy_if(Order, std::back_inserter(Runs),
          [&](NodeId N) { return Found.Runs[N]; });
  walkInputs(G, std::move(Runs), Along::All, Beside);
  for (NodeId Var : Trained)
    if (IsCounted(Var))
      Vars.forEachUse(G, Var, [&](Use U) {
        UpdateDef Update = Vars.update(G, U.User);
        if (Update.Kind == UpdateKind::Assign && U.Index == 0 &&
            Update.Grad >= 0 && !Beside[U.User] &&
            !OfTrained[Value(U.User, Update)])
          Found.Starts.push_back(U.User);
      });
  return Found;
}

} // namespace graft
