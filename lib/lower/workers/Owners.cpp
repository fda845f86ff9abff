//===- lib/lower/workers/Owners.cpp - the owners of nodes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/DeviceName.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/lower/workers/Cutter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <utility>

using namespace llvm;

namespace graft {

/// Returns the worker of the replica whose number is in the name of \p N.
/// Returns nothing if there is no number, as in most names of copy 0.
std::optional<unsigned> Cutter::workerOf(NodeId N) const {
  auto Replica = numberOfCopy(G.name(N), Plan.Word);
  return Replica && *Replica < Plan.WorkerOf.size()
             ? std::optional(Plan.WorkerOf[*Replica])
             : std::nullopt;
}

/// Sets the kind of all nodes that refresh copies of variables to \p Kind.
void Cutter::markRefreshes(Inserted Kind) {
  StringSet<> Names;
  for (const std::string &Name : Plan.Refreshes)
    Names.insert(Name);
  for (NodeId N = 0; N < G.size() && !Names.empty(); ++N) {
    StringRef Name = G.name(N);
    if (Name.consume_front(Plan.Word))
      Name = Name.drop_while(isDigit).drop_front();
    if (Names.contains(Name))
      G.node(N).Kind = Kind;
  }
}

/// Returns true if \p N draws, reads or writes, so that a second run of it
/// changes the step. A hash table does not count: it is filled once, and is the
/// same for all workers.
bool Cutter::isOnce(NodeId N) const {
  return isNeed(G.opName(N), G.opDef(N)) && !G.isOp(N, op::HashTable) &&
         !G.isOp(N, op::HashTableV2);
}

void Cutter::findOwners() {
  std::vector<bool> OfRows(G.size()), First(G.size());
  std::vector<NodeId> Work, Order = topologicalOrder(G);
  for (NodeId N : Order)
    if (isSplit(N))
      Work.push_back(N);
  walkUsers(G, std::exchange(Work, {}), Along::All, OfRows);
  auto IsAssign = [&](NodeId N) {
    return Vars.update(G, N).Kind == UpdateKind::Assign;
  };
  markRefreshes(Inserted::Refresh);
  // Variables may be on any worker, and every worker's graph has them. Every
  // graph also has assignments of values that depend on no rows, and the nodes
  // that only such assignments use.
  for (NodeId N : reverse(Order)) {
    if (isVariableOp(G.opName(N)))
      First[N] = true;
    else if (Vars.isUpdate(G, N))
      First[N] = IsAssign(N) && !OfRows[N];
    else
      First[N] =
          G.hasUses(N) && !G.anyUse(N, [&](Use U) { return !First[U.User]; });
    // A worker draws its own samples, even if they depend on no rows.
    if (!OfRows[N] && workerOf(N).value_or(0) > 0 && !First[N] && isOnce(N))
      Work.push_back(N);
  }
  std::vector<bool> Made = OfRows;
  walkUsers(G, std::exchange(Work, {}), Along::All, Made);
  // A draw, read or write belongs to worker 0 alone if its result leads to a
  // node that depends on rows.
  std::vector<bool> Leads(G.size());
  for (NodeId N : reverse(Order))
    Leads[N] = Made[N] || G.anyUse(N, [&](Use U) { return Leads[U.User]; });
  // Worker 0 also owns each write of a value that depends on a variable. If
  // every worker repeated such a write, one run would be several steps. Any
  // worker may write initial values and checkpoints.
  std::vector<bool> OfState(G.size());
  for (NodeId N : Order) {
    const OpDef *Def = G.opDef(N);
    OfState[N] = any_of(G.dataInputs(N), [&](Endpoint E) {
      return OfState[E.Node] ||
             (G.isOp(E.Node, op::VarHandleOp) && Def && Def->readsVariable() &&
              !(Def->Flags & OpDef::AllowsUninitialized));
    });
    UpdateDef Update = Vars.update(G, N);
    bool Writes = Update.Kind != UpdateKind::None && !Made[N];
    if (!Writes && any_of(G.dataInputs(N), [&](Endpoint E) {
          return G.isRefOutput(E.Node, E.Port) &&
                 !(Def && Def->Flags & OpDef::AllowsUninitialized);
        }))
      OfState[N] = true;
    bool Once = Writes && !isFirstValue(N) &&
                G.node(N).Kind != Inserted::Refresh &&
                (Update.Kind != UpdateKind::Assign || OfState[N] || Leads[N]);
    if (Once || (!Made[N] && Leads[N] &&
                 !G.opName(N).starts_with(op::Placeholder) && isOnce(N)))
      Work.push_back(N);
  }
  walkUsers(G, std::move(Work), Along::All, Made);
  markRefreshes(Inserted::No);
  findWaiting(Order, Made);
  // A copy belongs to its worker. Any other node that depends on rows belongs
  // to worker 0.
  Owner.assign(G.size(), Common);
  for (NodeId N : Order)
    if (Made[N] && !Waiting[N])
      Owner[N] = ownerOfMade(N);
}

/// Finds the nodes of \p Made that read no copy and wait only for copies that
/// have no effect and always run. An example is the group of the gradients of a
/// division. Every worker may have such a node and let it wait for its own
/// copies only: no result changes.
void Cutter::findWaiting(ArrayRef<NodeId> Order,
                         const std::vector<bool> &Made) {
  StringSet<> Numbered, Origins, Runs;
  for (NodeId N : Order)
    if (numberOfCopy(G.name(N), Plan.Word)) {
      Numbered.insert(G.name(N));
      Origins.insert(originOfCopy(G.name(N), Plan.Word));
    }
  for (StringRef Name : Plan.Names)
    Runs.insert(Name);
  auto IsCopy = [&](NodeId N) {
    StringRef Name = G.name(N);
    // Copy 0 has the name of its node, unless a merged value took that name.
    return workerOf(N).has_value() ||
           (Origins.contains(Name) &&
            !Numbered.contains((Plan.Word + "0/" + Name).str()));
  };
  std::optional<Conditions> When;
  if (Conditions::any(G))
    When.emplace(G, Order);
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  std::vector<bool> HasEffect(G.size());
  Waiting.assign(G.size(), false);
  for (NodeId N : Order) {
    HasEffect[N] =
        Vars.isUpdate(G, N) ||
        (isNeed(G.opName(N), G.opDef(N)) &&
         !G.opName(N).starts_with(op::Placeholder)) ||
        any_of(G.inputs(N), [&](Endpoint E) { return HasEffect[E.Node]; });
    auto IsOpen = [&](NodeId Of) {
      return !HasEffect[Of] && (!When || When->of(Of).empty()) &&
             !(Loops && Loops->isInLoop(Of));
    };
    Waiting[N] = Made[N] && !isSplit(N) && !IsCopy(N) && IsOpen(N) &&
                 !Runs.contains(G.name(N)) && G.hasUses(N) &&
                 all_of(G.inputs(N), [&](Endpoint E) {
                   return !Made[E.Node] || Waiting[E.Node] ||
                          (E.isControl() && IsCopy(E.Node) && IsOpen(E.Node));
                 });
  }
}

/// Returns the owner of \p N, which depends on rows.
int Cutter::ownerOfMade(NodeId N) const {
  auto It = Given.find(N);
  return It == Given.end() ? static_cast<int>(workerOf(N).value_or(0))
                           : It->second;
}

/// Returns true if \p N assigns a variable its initial value.
bool Cutter::isFirstValue(NodeId N) const {
  NodeId Var = Vars.isUpdate(G, N) ? Vars.variableOf(G.input(N, 0)) : NoNode;
  return Var != NoNode && Vars.initialAssign(G, Var) == N;
}

} // namespace graft
