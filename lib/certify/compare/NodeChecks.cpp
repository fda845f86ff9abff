//===- lib/certify/compare/NodeChecks.cpp - what each node has and takes --===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The part of the certificate that goes node by node, over types that were
// inferred from scratch.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/Certificate.h"
#include "lib/certify/forms/AccumulateCheck.h"
#include "lib/certify/forms/Comparison.h"
#include "lib/certify/forms/CompressCheck.h"
#include "lib/certify/forms/PackCheck.h"
#include "lib/graph/FileWalk.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/LengthGather.h"
#include "lib/program/forms/SeedOffset.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

bool observes(const Graph &G, NodeId N) {
  const OpDef *Def = G.opDef(N);
  return Def &&
         (!Def->isStateful() || Def->readsVariable() || G.isOp(N, op::Assert));
}

/// Whether \p N was inserted to run what compares copies, and nothing else.
bool runsChecks(const Graph &G, NodeId N) {
  return G.node(N).Kind == Inserted::Gate && G.node(N).NumData == 0 &&
         !G.controlInputs(N).empty() &&
         all_of(G.controlInputs(N), [&](Endpoint E) {
           return G.node(E.Node).Kind == Inserted::Check;
         });
}

namespace {

class NodeChecker {
public:
  NodeChecker(Comparison &C, const ProgramFacts &Facts)
      : C(C), In(C.In), G(C.G), Replicas(C.Replicas), InputOf(C.InputOf),
        IsRead(C.IsRead), IsInside(C.IsInside), NamedAfter(C.NamedAfter) {
    run(Facts);
  }

private:
  void run(const ProgramFacts &Facts);
  void error(NodeId N, const Twine &Message) { C.error(N, Message); }
  Endpoint erase(Endpoint E) const { return C.erase(E); }
  OpKind opKind(NodeId N) const { return C.opKind(N); }
  bool isOpen(const RType &Type) const;
  bool isExcused(const RType &Type) const;
  bool hasTrueOutputs(const ProgramFacts &Facts, NodeId N) const;
  void checkWaits(const ProgramFacts &Facts, NodeId N, OpKind Op);
  void checkNeeds(const ProgramFacts &Facts, NodeId Pack);
  void checkInserted(const ProgramFacts &Facts, NodeId N);
  bool isRefresh(const ProgramFacts &Facts, NodeId N) const;
  bool onlyGatesWait(NodeId N) const;
  bool isGate(NodeId N) const;
  bool runsRefreshes(NodeId N) const;
  bool overwrites(const ProgramFacts &Facts, NodeId N) const;
  bool initializes(const ProgramFacts &Facts, NodeId N) const;
  void checkOnce(const ProgramFacts &Facts, NodeId N);
  void checkPerReplica(const ProgramFacts &Facts, NodeId N);
  void checkName(const ProgramFacts &Facts, NodeId N);
  void checkInsertedName(const ProgramFacts &Facts, NodeId N);

  Comparison &C;
  const InputGraph &In;
  const Graph &G;
  unsigned Replicas;
  const std::vector<NodeId> &InputOf;
  const std::vector<bool> &IsRead, &IsInside;
  const DenseMap<NodeId, NodeId> &NamedAfter;
  std::optional<Needs> Sets; ///< If there are packs.
};

/// Whether a type is one that the input leaves open and a pass warned of. What
/// an inserted node spoils has no excuse.
bool NodeChecker::isOpen(const RType &Type) const {
  return Type.isVarying() && Type.Cause != NoNode &&
         G.node(Type.Cause).Kind == Inserted::No;
}

/// Whether a type is that of a true value, or of an open one.
bool NodeChecker::isExcused(const RType &Type) const {
  return Type.isTrue() || isOpen(Type);
}

/// Whether every output has its true value under the name of the node.
bool NodeChecker::hasTrueOutputs(const ProgramFacts &Facts, NodeId N) const {
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
    if (Facts.Types.natural({N, Port}).isPlain())
      continue;
    RType Type = Facts.Types.number({N, Port});
    if (!isExcused(Type) ||
        (Type.isVarying() && G.node(N).Count == Copies::PerReplica))
      return false;
  }
  return true;
}

/// Whether the variable \p N assigns gets the value that it has, and nothing of
/// the input makes that happen.
bool NodeChecker::isRefresh(const ProgramFacts &Facts, NodeId N) const {
  if (Facts.Vars.update(G, N).Kind != UpdateKind::Assign ||
      G.node(N).Count != Copies::PerReplica || G.node(N).NumInputs != 2)
    return false;
  // All copies take one tensor, a node that the output has.
  NodeId From = G.input(N, 1).Node, Var = Facts.Vars.variableOf(G.input(N, 0));
  Endpoint Value = erase(G.input(N, 1));
  if (Var == NoNode || Value.Node == NoNode ||
      G.node(From).Count != Copies::Once ||
      G.node(From).Flags & NF_ElidePrimary)
    return false;
  StringRef Op = G.opName(Value.Node);
  // A per-replica value would be the copy's own, and nothing would change.
  return (Op == op::ReadVariableOp || Op == op::Identity) &&
         erase(G.input(Value.Node, 0)) == erase({Var, 0}) && G.hasUses(N) &&
         onlyGatesWait(N);
}

/// Whether whatever waits for \p N was inserted to be waited for.
bool NodeChecker::onlyGatesWait(NodeId N) const {
  return !G.anyUse(N, [&](Use U) {
    return G.node(U.User).Kind != Inserted::Gate || !onlyGatesWait(U.User);
  });
}

/// Each reader has a default of its own for an op that does not say how.
static bool isCombine(StringRef Text) {
  return StringSwitch<bool>(Text)
      .Cases("sum", "min", "max", "and", "or", "concat", "pick", true)
      .Default(false);
}

/// Whether \p N waits for something that was inserted, and does no more.
bool NodeChecker::isGate(NodeId N) const {
  return opKind(N) == OpKind::NoOp && G.node(N).NumData == 0 &&
         any_of(G.controlInputs(N),
                [&](Endpoint E) { return InputOf[E.Node] == NoNode; });
}

/// Whether \p N was inserted to run what refreshes copies.
bool NodeChecker::runsRefreshes(NodeId N) const {
  return any_of(G.controlInputs(N), [&](Endpoint E) {
    Inserted Kind = G.node(E.Node).Kind;
    return Kind == Inserted::Refresh ||
           (Kind == Inserted::Gate && runsRefreshes(E.Node));
  });
}

/// Whether \p N, of the input, writes a variable whose copies are refreshed.
bool NodeChecker::overwrites(const ProgramFacts &Facts, NodeId N) const {
  if (InputOf[N] == NoNode || !Facts.Vars.isUpdate(G, N))
    return false;
  NodeId Var = Facts.Vars.variableOf(G.input(N, 0));
  return Var != NoNode && G.anyUse(Var, [&](Use U) {
    return G.node(U.User).Kind == Inserted::Refresh;
  });
}

/// Whether \p N, of the input, can be run for what it does: to take a value
/// that waits for nothing is no initialization.
bool NodeChecker::initializes(const ProgramFacts &Facts, NodeId N) const {
  if (InputOf[N] == NoNode)
    return false;
  const OpDef *Op = G.opDef(N);
  return opKind(N) == OpKind::NoOp || Facts.Vars.isUpdate(G, N) || !Op ||
         G.node(N).NumInputs != G.node(N).NumData ||
         (Op->isStateful() && !isVariableOp(Op->Name) && !Op->readsVariable());
}

/// To take a value runs nothing that the input does not run for it: a gate
/// waits for collectives only, and nothing else that was inserted waits but
/// at a gate. What refreshes copies waits for the refreshes alone; who runs it
/// may run initializers of the input with it.
void NodeChecker::checkWaits(const ProgramFacts &Facts, NodeId N, OpKind Op) {
  if (Op == OpKind::NoOp && runsChecks(G, N))
    return;
  if (Op == OpKind::NoOp && onlyGatesWait(N) && runsRefreshes(N)) {
    bool Refreshes = any_of(G.controlInputs(N), [&](Endpoint E) {
      return G.node(E.Node).Kind == Inserted::Refresh;
    });
    for (Endpoint E : G.controlInputs(N)) {
      Inserted Kind = G.node(E.Node).Kind;
      if (overwrites(Facts, E.Node))
        error(N, "refreshes copies and waits for '" + G.name(E.Node) +
                     "', which writes them");
      else if (Refreshes
                   ? Kind != Inserted::Refresh
                   : Kind != Inserted::Gate && !initializes(Facts, E.Node))
        error(N, "refreshes copies and waits for '" + G.name(E.Node) +
                     "', which is not part of the refresh");
    }
    return;
  }
  for (Endpoint E : G.controlInputs(N)) {
    OpKind Source = opKind(E.Node);
    bool Collective = Source == OpKind::CollectiveReduce ||
                      Source == OpKind::CollectiveGather;
    if (InputOf[E.Node] != NoNode ||
        (Op == OpKind::NoOp ? !Collective
                            : G.node(E.Node).Kind != Inserted::Gate))
      error(N, "is inserted and waits for '" + G.name(E.Node) +
                   "', on which its value does not depend");
  }
}

/// Who takes one tensor out of a pack runs what all of them are made of.
void NodeChecker::checkNeeds(const ProgramFacts &Facts, NodeId Pack) {
  if (!Sets)
    Sets.emplace(G, Facts);
  auto SourceOf = [&](Endpoint E) {
    return G.node(E.Node).Kind == Inserted::Pack ? G.input(E.Node, 0).Node
                                                 : E.Node;
  };
  NodeId First = SourceOf(G.input(Pack, 0));
  for (Endpoint E : G.dataInputs(Pack).drop_back())
    if (NodeId Other = SourceOf(E); Sets->of(Other) != Sets->of(First)) {
      error(Pack, "packs '" + originName(G, First) + "' and '" +
                      originName(G, Other) +
                      "', which need different feeds, variables, random draws "
                      "or effects: a step that runs one would run the other");
      return;
    }
}

/// What was inserted is of the form that its kind says.
void NodeChecker::checkInserted(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  OpKind Op = C.Kinds[This.Op];
  if (This.Kind == Inserted::Definition) {
    if (!BatchNormCheck::isDefinitionOp(G.opName(N)))
      error(N, "op " + G.opName(N) + " is not part of a batch norm definition");
    return;
  }
  if (This.Kind == Inserted::Compress) {
    StringRef Fault =
        compressFault(G, N, [this](Endpoint E) { return erase(E); });
    if (!Fault.empty())
      error(N, Fault);
    return;
  }
  if (This.Kind == Inserted::Pack) {
    StringRef Fault = packFault(G, Facts.Dims, N,
                                [this](NodeId Of) { return C.passesPack(Of); });
    if (!Fault.empty())
      error(N, Fault);
    else if (G.isOp(N, op::ConcatV2))
      checkNeeds(Facts, N);
    checkWaits(Facts, N, Op);
    return;
  }
  if (This.Kind == Inserted::Accumulate)
    return checkAccumulate(
        G, N, Replicas, [&](NodeId At, const Twine &Text) { error(At, Text); });
  if (This.Kind == Inserted::Proxy) {
    if (!C.Proxies || !C.Proxies->isPart(N))
      error(N,
            "op " + G.opName(N) + " does not match its inserted kind 'proxy'");
    return;
  }
  // Of no consequence but through the whole of them, which is erased as one.
  if (isLengthGatherOp(G, N)) {
    checkWaits(Facts, N, Op);
    return;
  }
  if (This.Kind == Inserted::Gate      ? !isGate(N)
      : This.Kind == Inserted::Mesh    ? Op != OpKind::Mesh
      : This.Kind == Inserted::Refresh ? !isRefresh(Facts, N)
      : This.Kind == Inserted::Check   ? !observes(G, N)
                                       : !isErasable(This.Kind, Op)) {
    error(N, "op " + G.opName(N) + " does not match its inserted kind");
    return;
  }
  if ((Op == OpKind::CollectiveReduce || Op == OpKind::CollectiveGather) &&
      G.intAttr(N, "group_size") != Replicas)
    error(N, "is a member of a group whose size is not the number of replicas");
  checkWaits(Facts, N, Op);
  if (This.Kind == Inserted::Gate)
    return;
  if (This.Kind == Inserted::Mesh) {
    if (G.intAttr(N, "replicas") != Replicas)
      error(N, "does not have as many replicas as devices");
    return;
  }
  if ((Op == OpKind::FromReplicas || Op == OpKind::Reduce) &&
      !isCombine(G.stringAttr(N, "combine").value_or("")))
    error(N, "does not say how the values of the replicas are combined");
  if (This.Flags & NF_ElidePrimary) {
    bool Pick = Op == OpKind::FromReplicas &&
                G.stringAttr(N, "combine") == StringRef("pick");
    bool Place = This.Kind == Inserted::Identity && Op == OpKind::Identity &&
                 This.NumInputs == 1;
    if (!Place && !Pick && This.Kind != Inserted::Refresh)
      error(N, "is marked as forwarding for replica 0 but is not an Identity "
               "or pick");
  }
  if (Op != OpKind::ToReplicas)
    return;
  auto Shape = Facts.Dims.shape(G.input(N, 0));
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  if (Axis < 0 || (Shape && static_cast<size_t>(Axis) >= Shape->size()))
    error(N, "splits along an axis that does not exist");
}

/// What exists once takes true values.
void NodeChecker::checkOnce(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
    if (!Facts.Dims.isPlain({N, Port}) &&
        !isOpen(Facts.Types.natural({N, Port})) &&
        (Facts.Dims.batchAxis({N, Port}) >= 0 ||
         (This.Kind == Inserted::No && Facts.Dims.isLocal({N, Port}))))
      error(N, "is unreplicated but has a per-replica size");
  for (unsigned I = 0; I < Facts.Vars.update(G, N).NumVars; ++I) {
    NodeId Var = Facts.Vars.variableOf(G.input(N, I));
    if (Var != NoNode && G.node(Var).Count == Copies::PerReplica)
      error(N, "updates only one copy of a variable that has one per replica");
  }
  for (unsigned I = 0; I < This.NumData; ++I) {
    Endpoint E = G.input(N, I);
    if (G.node(E.Node).Count == Copies::PerReplica && !combinesReplicas(G, N)) {
      error(N, formatv("input {0} is per-replica and is not merged", I).str());
      continue;
    }
    if (This.Kind != Inserted::No)
      continue;
    RType Type = Facts.Types.type(E);
    if (!Type.isPlain() && !isExcused(Type))
      error(N, formatv("input {0} is {1}, not the value of the single-device "
                       "step",
                       I, Type.str())
                   .str());
  }
}

void NodeChecker::checkPerReplica(const ProgramFacts &Facts, NodeId N) {
  if (Facts.Vars.isOnce(G, N) && !ownBatchAxes(G, N))
    error(N, "has a side effect and must be unreplicated, not per-replica");
  // Its numbers are assumed to be others for the rows of each replica.
  if (opKind(N) == OpKind::SeededDraw && Replicas > 1 &&
      Facts.Dims.batchAxis({N, 0}) >= 0) {
    Endpoint Seed = G.input(N, drawOperands(G.opName(N)).Seed);
    if (!offsetsSeed(G, Seed.Node, Replicas))
      error(N, "draws the same numbers for the rows of every replica: its seed "
               "does not depend on the replica");
  }
  if (!Facts.Vars.isUpdate(G, N))
    return;
  for (unsigned I = 0; I < Facts.Vars.update(G, N).NumVars; ++I) {
    NodeId Var = Facts.Vars.variableOf(G.input(N, I));
    if (Var != NoNode && G.node(Var).Count == Copies::Once)
      error(N, "every replica updates an unreplicated variable");
  }
  if (!(G.node(N).Flags & NF_Led) && G.node(N).Kind != Inserted::Refresh &&
      G.node(N).Kind != Inserted::Proxy && G.node(N).Kind != Inserted::Compress)
    error(N, "updates the copies of a variable, but its copy 0 does not wait "
             "for the others");
}

/// A name of the input has its true value or does not exist.
void NodeChecker::checkName(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  if (This.Flags & NF_ElidePrimary)
    error(N,
          "is marked as forwarding for replica 0, so its name would not exist");
  if (C.BatchNorms && C.BatchNorms->isRewritten(InputOf[N]) &&
      !(This.Flags & NF_LocalName))
    error(N, "its name has a different value than in the input");
  if (This.Count == Copies::Once || !(This.Flags & NF_LocalName)) {
    if (!hasTrueOutputs(Facts, N) && !Facts.Types.readsUnaggregated(N))
      error(N, "its name gives the value of one replica, not that of the "
               "single-device step");
    return;
  }
  // A result of the input, which nothing reads, keeps its name.
  // Nobody can fetch what is in a loop.
  NodeId I = InputOf[N];
  if (IsRead[I] || (!IsInside.empty() && IsInside[N]) ||
      Facts.Dims.numOutputs(N) != 1 || !Facts.Dims.shape({N, 0}) ||
      Facts.Types.number({N, 0}).isVarying())
    return;
  NodeId Global = G.find(In.name(I));
  if (Global == NoNode || InputOf[Global] != NoNode)
    error(N, "this result has no global value");
}

/// Nor does something inserted take it.
void NodeChecker::checkInsertedName(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  if (This.Count == Copies::PerReplica && This.Flags & NF_LocalName)
    return;
  auto It = NamedAfter.find(N);
  if (It == NamedAfter.end())
    return;
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
    Endpoint E = erase({N, Port});
    if (E.Node == NoNode || InputOf[E.Node] != It->second || E.Port != Port ||
        (C.BatchNorms && C.BatchNorms->isHollow({It->second, Port})))
      error(N, "has the name of another node of the input");
  }
  if (!hasTrueOutputs(Facts, N))
    error(N, "its name gives a value that is not that of the single-device "
             "step");
}

void NodeChecker::run(const ProgramFacts &Facts) {
  for (FileWalk Walk(G); NodeId N : Facts.Order) {
    Walk.at(N);
    bool IsInserted = InputOf[N] == NoNode;
    if (IsInserted)
      checkInserted(Facts, N);
    if (G.node(N).Count == Copies::Once)
      checkOnce(Facts, N);
    else
      checkPerReplica(Facts, N);
    if (IsInserted)
      checkInsertedName(Facts, N);
    else
      checkName(Facts, N);
  }
}

} // namespace

void checkNodes(Comparison &C, const ProgramFacts &Facts) {
  NodeChecker(C, Facts);
}

} // namespace graft
