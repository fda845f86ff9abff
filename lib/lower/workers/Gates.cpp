//===- lib/lower/workers/Gates.cpp - writes that wait for reads -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/graph/Topology.h"
#include "lib/lower/workers/Cutter.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace llvm;

namespace graft {

/// Makes a write wait until all other workers have read the variable, because
/// they need the value from before the step. Writes of one worker that the same
/// names run form a group, and wait for the same reads.
void Cutter::gateWrites() {
  DenseMap<NodeId, std::vector<size_t>> Runs, Takes;
  auto TakesOther = [&](NodeId N) {
    return !Rows.contains(N) && any_of(G.inputs(N), [&](Endpoint E) {
      return Owner[E.Node] > 0 && !isFeedSplit(E.Node);
    });
  };
  std::vector<NodeId> Writes;
  for (auto [I, Name] : enumerate(Plan.Names)) {
    NodeId N = G.find(Name);
    if (N == NoNode || Owner[N] != 0)
      continue;
    forEachBehind(N, [&, I = I](NodeId At) {
      if (Owner[At] == 0 && TakesOther(At))
        Takes[At].push_back(I);
      if (!Vars.isUpdate(G, At))
        return;
      std::vector<size_t> &Of = Runs[At];
      if (Of.empty())
        Writes.push_back(At);
      Of.push_back(I);
    });
  }
  llvm::sort(Writes);
  for (NodeId N : Writes)
    WriteGroups[{Runs[N], Owner[N]}].push_back(N);
  // Nodes after a write read the value that it wrote.
  std::vector<bool> &After = AfterWrites;
  After.resize(G.size());
  walkUsers(G, Writes, Along::All, After);
  DenseMap<NodeId, BitVector> Leads = leadsOf();
  // The givers() of each write group. Empty unless the chief makes the writes.
  std::vector<ByWorker> Givers;
  Givers.reserve(WriteGroups.size());
  for (const auto &[Key, Group] : WriteGroups)
    Givers.push_back(Key.second == 0 ? givers(Key.first, Takes) : ByWorker());
  for (unsigned I = 0; I < Workers; ++I) {
    int Worker = static_cast<int>(I);
    auto LeadsTo = [&](NodeId N) {
      if (Owner[N] != Common)
        return Owner[N] == Worker && N < After.size() && !After[N];
      auto It = Leads.find(N);
      return It != Leads.end() && It->second.test(I);
    };
    for (const auto &[Of, Entry] : zip_equal(Givers, WriteGroups))
      if (Entry.first.second != Worker)
        gate(Entry.second, Worker, LeadsTo,
             Of.empty() ? DenseSet<NodeId>() : givenBefore(Of[I], Worker));
  }
}

/// Returns, for each node that every worker has, the owners of the nodes that
/// depend on it. Nodes that depend on a write are ignored.
DenseMap<NodeId, BitVector> Cutter::leadsOf() const {
  DenseMap<NodeId, BitVector> Leads;
  std::vector<NodeId> Order = topologicalOrder(G);
  for (NodeId N : reverse(Order)) {
    if (Owner[N] != Common || AfterWrites[N])
      continue;
    BitVector Of;
    G.forEachUse(N, [&](Use U) {
      auto It = Leads.find(U.User);
      bool IsOwned = Owner[U.User] != Common && !AfterWrites[U.User];
      if (!IsOwned && It == Leads.end())
        return;
      Of.resize(Workers);
      if (IsOwned)
        Of.set(static_cast<unsigned>(Owner[U.User]));
      else
        Of |= It->second;
    });
    if (!Of.empty())
      Leads.try_emplace(N, std::move(Of));
  }
  return Leads;
}

/// Returns, for each worker, its nodes whose values the chief reads in every
/// run of any of \p Names. Nodes that depend on a write are ignored. \p Takes
/// maps a node of the chief to the names that run it.
Cutter::ByWorker
Cutter::givers(ArrayRef<size_t> Names,
               const DenseMap<NodeId, std::vector<size_t>> &Takes) const {
  ByWorker Givers(Workers);
  for (const auto &[N, Of] : Takes)
    if (std::includes(Of.begin(), Of.end(), Names.begin(), Names.end()))
      for (Endpoint E : G.inputs(N))
        if (Owner[E.Node] != Common && !AfterWrites[E.Node] &&
            !isFeedSplit(E.Node) && !Conditionals->contain(E))
          Givers[static_cast<size_t>(Owner[E.Node])].push_back(E.Node);
  return Givers;
}

/// Returns \p Givers, whose values \p Worker sends to the chief, and the nodes
/// of the worker that they depend on. The chief's writes wait for these values
/// (gateOnAll).
DenseSet<NodeId> Cutter::givenBefore(ArrayRef<NodeId> Givers,
                                     int Worker) const {
  DenseSet<NodeId> Given;
  walk::close(Givers.vec(), Given, walk::Everywhere,
              [&](NodeId N, std::vector<NodeId> &Next) {
                for (Endpoint E : G.inputs(N))
                  if (Owner[E.Node] == Worker || Owner[E.Node] == Common)
                    Next.push_back(E.Node);
              });
  return Given;
}

/// Makes the writes \p Group wait until \p Worker has read their variables. A
/// read by handle in \p Given, outside of conditionals, needs no wait: the
/// writes already wait for a value that depends on it. A reference may still be
/// read after its node has run, so it always needs the wait.
void Cutter::gate(ArrayRef<NodeId> Group, int Worker,
                  function_ref<bool(NodeId)> Leads,
                  const DenseSet<NodeId> &Given) {
  SmallVector<Endpoint, 8> Reads;
  DenseSet<NodeId> Written;
  for (NodeId Write : Group)
    for (unsigned I = 0; I < Vars.update(G, Write).NumVars; ++I)
      if (NodeId Var = Vars.variableOf(G.input(Write, I));
          Var != NoNode && Written.insert(Var).second)
        for (NodeId Read : readsOf(Var)) {
          bool ByHandle = G.outputType(G.input(Read, 0)) == DT_RESOURCE;
          if (!Leads(Read) || (Given.contains(Read) && ByHandle &&
                               !Conditionals->contain({Read, ControlPort})))
            continue;
          Endpoint Ends{isTakenHere(Read, Worker) ? taken(Read, Worker) : Read,
                        ControlPort};
          if (!Conditionals->canLeave(Ends))
            if (NodeId Outside = readOutside(Read, Worker); Outside != NoNode)
              Ends.Node = Outside;
          if (Conditionals->contain(Ends) && Conditionals->canLeave(Ends))
            Ends = {Conditionals->leave(Ends, Worker).Node, ControlPort};
          Reads.push_back(Ends);
        }
  if (Reads.empty())
    return;
  NodeId Token =
      add(G.name(Group.front()) + "/read_by_" + Twine(Worker), part::Reads,
          op::NoOp, Reads, Group.front(), AttrRun(), hostOf(Worker), Worker);
  Conditionals->add(Token);
  for (NodeId Write : Group)
    G.addControlInput(Write, Token);
}

/// Returns the nodes that read the value of \p Var.
SmallVector<NodeId, 4> Cutter::readsOf(NodeId Var) const {
  SmallVector<NodeId, 4> Reads;
  Vars.forEachUse(G, Var, [&](Use U) {
    if (!Vars.isUpdate(G, U.User) && Vars.variableOf({U.User, 0}) == NoNode &&
        G.numOutputs(U.User).value_or(0) != 0)
      Reads.push_back(U.User);
  });
  llvm::sort(Reads);
  Reads.erase(std::unique(Reads.begin(), Reads.end()), Reads.end());
  return Reads;
}

/// Returns true if waiting for \p Read costs \p Worker no message of its own.
/// Either every worker runs the read, or all its users are on the task of \p
/// Worker, to which the value is sent anyway.
bool Cutter::isTakenHere(NodeId Read, int Worker) const {
  if (Owner[Read] != Worker)
    return true;
  if (taskOf(G.device(Read)) == Worker || G.outputType(Read, 0) == DT_INVALID)
    return false;
  bool Here = true;
  G.forEachUse(Read, [&](Use U) {
    Here &= G.isData(U) && G.input(U).Port == 0 && Owner[U.User] == Worker &&
            taskOf(G.device(U.User)) == Worker;
  });
  return Here;
}

/// Returns a node that copies the value of \p Read to \p Worker, or \p Read
/// itself if no node of the worker reads it. Without the copy a user could read
/// a reference after its variable was written.
NodeId Cutter::taken(NodeId Read, int Worker) {
  SmallVector<Use, 8> Uses;
  for (Use U : G.uses(Read))
    if (G.isData(U) && G.input(U).Port == 0 && Owner[U.User] == Worker)
      Uses.push_back(U);
  if (Uses.empty())
    return Read;
  NodeId Copy =
      add(G.name(Read) + "/of_" + Twine(Worker), part::Taken, op::Identity,
          Endpoint{Read, 0}, Read, AttrRun().type("T", G.outputType(Read, 0)),
          hostOf(Worker), Worker);
  Conditionals->add(Copy);
  for (Use U : Uses)
    G.setInput(U.User, U.Index, {Copy, 0});
  return Copy;
}

/// Reads the variable before the loop around \p Read, and passes the value into
/// the loop: no node writes the variable while the loop runs. Returns the new
/// read, or NoNode if \p Read is no read by a handle that enters the loop.
NodeId Cutter::readOutside(NodeId Read, int Worker) {
  if (!G.isOp(Read, op::ReadVariableOp) || Owner[Read] != Worker)
    return NoNode;
  SmallVector<NodeId, 2> Enters;
  Endpoint Handle = G.input(Read, 0), Outside;
  while (G.isOp(Handle.Node, op::Enter) || G.isOp(Handle.Node, op::Identity)) {
    if (G.isOp(Handle.Node, op::Enter)) {
      Enters.push_back(Handle.Node);
      Outside = G.input(Handle.Node, 0);
    }
    Handle = G.input(Handle.Node, 0);
  }
  if (Enters.empty() || !Conditionals->canLeave(Outside))
    return NoNode;
  unsigned Type = G.outputType(Read, 0);
  NodeId Before =
      add(G.name(Read) + "/outside", part::Outside, op::ReadVariableOp, Outside,
          Read, AttrRun().type("dtype", Type), G.device(Read), Worker);
  Conditionals->add(Before);
  Endpoint Value{Before, 0};
  for (NodeId Enter : reverse(Enters)) {
    AttrRun Attrs;
    for (const AttrEntry &A : G.attrs(Enter))
      if (A.Key == "frame_name" || A.Key == "parallel_iterations")
        Attrs.raw(A.Key, A.Value);
    Attrs.type("T", Type).boolean("is_constant", true);
    Value = {add(G.name(Read) + "/enter", part::Outside, op::Enter, Value, Read,
                 Attrs, G.device(Read), Worker),
             0};
  }
  Endpoint Was = G.input(Read, 0);
  G.setStringAttr(Read, InputAttr,
                  (G.name(Was.Node) + ":" + Twine(Was.Port)).str());
  G.removeAttr(Read, "dtype");
  G.setStringAttr(Read, PartAttr, part::Outside);
  G.setOp(Read, op::Identity);
  G.setTypeAttr(Read, "T", Type);
  G.setInput(Read, 0, Value);
  return Before;
}

/// Makes writes wait until the chief has received all values that depend on no
/// write. A worker that is killed before these writes can then be restarted.
void Cutter::gateOnAll() {
  // From the number of a name in the plan to its number in Names.
  DenseMap<size_t, unsigned> NumberOf;
  DenseMap<NodeId, size_t> PlanOf;
  for (auto [I, Name] : enumerate(Plan.Names))
    if (NodeId N = G.find(Name); N != NoNode)
      PlanOf.try_emplace(N, I);
  for (auto [I, R] : enumerate(Names))
    NumberOf[PlanOf.lookup(R.Node)] = static_cast<unsigned>(I);
  for (const auto &[Key, Group] : WriteGroups) {
    if (Key.second != Mine)
      continue;
    BitVector Of(static_cast<unsigned>(Plan.Names.size()));
    for (size_t Name : Key.first)
      if (auto It = NumberOf.find(Name); It != NumberOf.end())
        Of.set(It->second);
    SmallVector<Endpoint, 8> Gets;
    for (auto [I, M] : enumerate(All))
      if (M.Target == 0 && !Of.test(M.Of) &&
          none_of(M.Channels, [&](unsigned C) {
            NodeId From = Channels[C].From.Node;
            return From < AfterWrites.size() && AfterWrites[From];
          }))
        Gets.push_back({Received[I].Get, ControlPort});
    if (Gets.empty())
      continue;
    std::map<std::string, NodeId> Gates;
    for (NodeId Write : Group) {
      auto [It, New] = Gates.try_emplace(G.device(Write).str(), NoNode);
      if (New)
        It->second = add(G.name(Group.front()) + "/all_given", part::AllGiven,
                         op::NoOp, Gets, Write, AttrRun(), It->first, Mine);
      G.addControlInput(Write, It->second);
    }
  }
}

} // namespace graft
