//===- lib/lower/workers/Names.cpp - names that can be run ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/lower/workers/Cutter.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace llvm;

namespace graft {

/// Returns true if \p N concatenates the rows of all replicas for a fetch.
bool Cutter::isRowsOfAll(NodeId N) const {
  return G.isOp(N, op::ConcatV2) && G.hasAttr(N, StampAttr) && !G.hasUses(N);
}

/// Finds the outputs of \p N that other workers receive under its name. If \p N
/// has no outputs, they receive a control dependency. Returns false if no other
/// process can use an output, as for a resource, or if a run computes an output
/// several times.
bool Cutter::findGiven(NodeId N, SmallVectorImpl<Endpoint> &Given) {
  unsigned Outputs = G.numOutputs(N).value_or(0);
  for (unsigned Port = 0; Port < std::max(Outputs, 1U); ++Port) {
    Endpoint E{N, Outputs == 0 ? ControlPort : Port};
    if (!E.isControl() && !canSend(E))
      return false;
    if (Conditionals->contain(E)) {
      if (!Conditionals->canLeave(E))
        return false;
      bool IsEnd = E.isControl();
      E = Conditionals->leave(E, 0);
      if (IsEnd)
        E.Port = ControlPort;
    }
    Given.push_back(E);
  }
  return true;
}

void Cutter::findNames() {
  // The channel of each use.
  DenseMap<std::pair<NodeId, unsigned>, unsigned> ChannelOf;
  for (auto [I, C] : enumerate(Channels))
    for (Use U : C.Uses)
      ChannelOf[{U.User, U.Index}] = static_cast<unsigned>(I);
  // The names that need each channel.
  std::vector<BitVector> NamesOf(
      Channels.size(), BitVector(static_cast<unsigned>(Plan.Names.size())));
  for (auto [Number, Name] : enumerate(Plan.Names)) {
    NodeId N = G.find(Name);
    if (N == NoNode || Owner[N] == Common)
      continue;
    bool IsRows = Rows.contains(N);
    if (!IsRows && Owner[N] != 0)
      continue;
    SmallVector<Endpoint, 2> Given;
    if (!IsRows && !findGiven(N, Given))
      continue;
    forEachBehind(N, [&](NodeId At) {
      for (unsigned I = 0; I < G.node(At).NumInputs; ++I)
        if (auto C = ChannelOf.find({At, I}); C != ChannelOf.end())
          NamesOf[C->second].set(static_cast<unsigned>(Names.size()));
    });
    Names.push_back({.Node = N,
                     .IsRows = IsRows,
                     .Given = std::move(Given),
                     .Values = {},
                     .Messages = {}});
  }
  groupMessages(NamesOf);
  for (auto [Number, R] : enumerate(Names)) {
    for (int To = 1; To < static_cast<int>(Workers) && !R.IsRows; ++To) {
      Message M{.Source = 0,
                .Target = To,
                .Level = 0,
                .Of = BitVector(static_cast<unsigned>(Plan.Names.size())),
                .Channels = {},
                .Queue = {queueName(G.name(R.Node) + "/end", 0, To), Home, {}},
                .Root = {}};
      M.Of.set(static_cast<unsigned>(Number));
      for (Endpoint E : R.Given)
        if (!E.isControl())
          M.Queue.Types += static_cast<char>(G.outputType(E));
      R.Values.push_back(static_cast<unsigned>(All.size()));
      All.push_back(std::move(M));
    }
  }
  for (auto [I, M] : enumerate(All))
    for (unsigned Name : M.Of.set_bits())
      Names[Name].Messages.push_back(static_cast<unsigned>(I));
}

/// Makes a fetch of rows return the rows of this worker.
void Cutter::writeRows(NodeId N, ArrayRef<NodeId> Waits) {
  SmallVector<Endpoint, 4> Parts;
  ArrayRef<Endpoint> All = G.dataInputs(N).drop_back();
  for (auto [I, E] : enumerate(All)) {
    // Values that depend on no rows, such as a sample, exist on all workers.
    auto Place = static_cast<int>(I * Workers / All.size());
    if ((Owner[E.Node] == Common ? Place : Owner[E.Node]) == Mine)
      Parts.push_back(E);
  }
  Owner[N] = Mine;
  if (auto Axis = constScalar(G, G.dataInputs(N).back().Node))
    G.setIntAttr(N, RowsAxisAttr, static_cast<int64_t>(*Axis));
  std::string Device =
      Parts.empty() ? hostOf(Mine) : G.device(Parts.front().Node).str();
  if (Parts.size() == 1) {
    G.removeAttr(N, "N");
    G.removeAttr(N, "Tidx");
    G.setOp(N, op::Identity);
  } else {
    G.setIntAttr(N, "N", static_cast<int64_t>(Parts.size()));
    Parts.push_back(G.dataInputs(N).back());
  }
  for (NodeId W : Waits)
    Parts.push_back({W, ControlPort});
  G.setInputs(N, Parts);
  G.setDevice(N, Device);
}

/// Writes the node that has the name in the end. It waits for all messages that
/// the worker sends or receives in a run of the name. On a worker other than 0
/// it returns the value of worker 0, unless it returns rows.
void Cutter::writeName(unsigned Number) {
  RunName &R = Names[Number];
  NodeId N = R.Node;
  std::string Name = G.name(N).str(), Device = G.device(N).str();
  if (int Task = taskOf(Device); Task != Common)
    Device = Task == Mine ? Device : hostOf(Mine);
  SmallVector<Endpoint, 8> Values;
  std::string Types;
  unsigned Outputs = R.IsRows ? 0 : G.numOutputs(N).value_or(0);
  for (unsigned Port = 0; Port < Outputs; ++Port) {
    Types += static_cast<char>(G.outputType(N, Port));
    Values.push_back({N, Port});
  }
  SmallVector<NodeId, 8> Waits;
  if (Mine == 0 && !R.IsRows) {
    SmallVector<NodeId, 1> End;
    SmallVector<Endpoint, 8> Sends;
    for (Endpoint E : R.Given)
      if (E.isControl())
        End.push_back(E.Node);
      else
        Sends.push_back(E);
    for (unsigned M : R.Values)
      Sent[M] = Wire->put(All[M].Queue, Sends, End, {});
  }
  for (unsigned M : R.Messages) {
    if (All[M].Target == Mine) {
      Waits.push_back(Received[M].Get);
      Waits.push_back(Received[M].Back);
    }
    if (All[M].Source == Mine)
      Waits.push_back(Sent[M]);
  }
  // By worker: the run numbers of its messages without a root. These need not
  // be equal, so a node compares them.
  std::map<unsigned, SmallVector<Endpoint, 4>> Keys;
  for (unsigned M : R.Messages)
    if (Mine == 0 && All[M].Source > 0 && !All[M].Root)
      Keys[static_cast<unsigned>(All[M].Source)].push_back(Received[M].Key);
  for (const auto &[From, Its] : Keys)
    if (Its.size() > 1)
      Waits.push_back(Wire->same(Number, From, Its));
  erase(Waits, NoNode);
  if (!Waits.empty()) {
    Waits = {Wire->end(Number, Waits, writtenBy(N))};
    if (NodeId Here = Wire->here(); Here != NoNode)
      Waits.push_back(Here);
  }
  takeOwners();
  R.Run = N;
  if (R.IsRows)
    return writeRows(N, Waits);
  if (Mine != 0) {
    Values.clear();
    Device = hostOf(Mine);
    for (unsigned M : R.Values)
      if (All[M].Target == Mine)
        for (unsigned Port = 0; Port < Outputs; ++Port)
          Values.push_back({Received[M].Get, Port});
  } else if (Outputs == 0) {
    if (taskOf(Device) == Common)
      Device = hostOf(Mine);
    Waits.push_back(N);
  }
  StringRef Op = Outputs == 0   ? op::NoOp
                 : Outputs == 1 ? op::Identity
                                : op::IdentityN;
  AttrRun Attrs;
  if (Outputs == 1)
    Attrs.type("T", static_cast<unsigned char>(Types[0]));
  else if (Outputs > 1)
    Attrs.raw("T", encodeTypeListAttr(Types));
  for (NodeId W : Waits)
    if (!is_contained(Values, Endpoint{W, ControlPort}))
      Values.push_back({W, ControlPort});
  G.rename(N, G.uniqueName(Scope + "/step/" + Name));
  G.setStringAttr(N, PartAttr, part::Step);
  R.Run = G.insertNode(Name, Op, Values, N, Attrs);
  G.setDevice(R.Run, Device);
  G.setStringAttr(R.Run, PartAttr, part::Name);
  takeOwners();
}

/// Limits the preparation of a worker's session to the worker's variables,
/// since a worker may be restarted while others run a step. The chief prepares
/// its session after variables are initialized or restored, when earlier steps
/// are over.
void Cutter::prepareSessions() {
  NodeId N = Plan.LocalInit;
  if (N == NoNode || !Wire)
    return;
  G.setDevice(N, hostOf(Mine));
  if (Mine == 0) {
    G.addControlInput(N, Wire->close());
    return takeOwners();
  }
  SmallVector<Endpoint, 8> Kept;
  DenseSet<NodeId> Seen;
  walkFrom({N}, Seen, [&](NodeId At, std::vector<NodeId> &Next) {
    bool IsUpdate = Vars.isUpdate(G, At);
    NodeId Var = IsUpdate ? Vars.variableOf(G.input(At, 0)) : NoNode;
    if (!G.isOp(At, op::NoOp) &&
        (!IsUpdate || (Var != NoNode && taskOf(G.device(Var)) == Mine))) {
      Kept.push_back({At, ControlPort});
      return;
    }
    for (Endpoint E : reverse(G.controlInputs(At)))
      Next.push_back(E.Node);
  });
  G.setInputs(N, Kept);
}

} // namespace graft
