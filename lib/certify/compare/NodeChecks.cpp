//===- lib/certify/compare/NodeChecks.cpp - checks of each node -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks each node of the program by itself, with types inferred from scratch.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/NodeChecks.h"

#include "lib/certify/forms/InsertedForm.h"
#include "lib/graph/FileWalk.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/forms/SeedOffset.h"
#include "lib/support/Bytes.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

namespace {

class NodeChecker {
public:
  NodeChecker(Comparison &C, const ProgramFacts &Facts)
      : C(C), G(C.G), InputOf(C.InputOf) {
    run(Facts);
  }

private:
  void run(const ProgramFacts &Facts);
  void error(NodeId N, const Twine &Message) { C.error(N, Message); }
  Endpoint erase(Endpoint E) const { return C.erase(E); }
  OpKind opKind(NodeId N) const { return C.opKind(N); }
  bool isOpen(const ReplicationType &Type) const;
  bool isExcused(const ReplicationType &Type) const;
  bool hasTrueOutputs(const ProgramFacts &Facts, NodeId N) const;
  void checkInserted(const ProgramFacts &Facts, NodeId N);
  bool isConditional(const ProgramFacts &Facts, NodeId N);
  void checkOnce(const ProgramFacts &Facts, NodeId N);
  void checkPerReplica(const ProgramFacts &Facts, NodeId N);
  void checkName(const ProgramFacts &Facts, NodeId N);
  void checkInsertedName(const ProgramFacts &Facts, NodeId N);

  Comparison &C;
  const Graph &G;
  const std::vector<NodeId> &InputOf;
  std::optional<const Conditions> When; ///< Computed on first use.
};

/// Returns true if \p Type became unknown at a node of the input: a pass has
/// warned of this. Returns false if it became unknown at an inserted node.
bool NodeChecker::isOpen(const ReplicationType &Type) const {
  return Type.isVarying() && Type.Cause != NoNode &&
         G.node(Type.Cause).Kind == Inserted::No;
}

/// Returns true if \p Type is that of a global value, or became unknown at a
/// node of the input.
bool NodeChecker::isExcused(const ReplicationType &Type) const {
  return Type.isTrue() || isOpen(Type);
}

/// Returns true if all outputs of \p N have global values. Outputs of an
/// unreplicated node may also have types that isOpen() accepts.
bool NodeChecker::hasTrueOutputs(const ProgramFacts &Facts, NodeId N) const {
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
    if (Facts.Types.natural({N, Port}).isPlain())
      continue;
    ReplicationType Type = Facts.Types.number({N, Port});
    if (!isExcused(Type) ||
        (Type.isVarying() && G.node(N).Count == Copies::PerReplica))
      return false;
  }
  return true;
}

/// Checks that an inserted node has the form of its kind.
void NodeChecker::checkInserted(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  formOf(This.Kind).Check(C, Facts, N);
  if (!(This.Flags & NF_ElidePrimary) || This.Kind == Inserted::Refresh)
    return;
  bool Pick = opKind(N) == OpKind::FromReplicas &&
              G.stringAttr(N, CombineAttr) == combine::Pick;
  bool Place = This.Kind == Inserted::Identity &&
               opKind(N) == OpKind::Identity && This.NumInputs == 1;
  if (!Place && !Pick)
    error(N, "is marked as forwarding for replica 0 but is neither an Identity "
             "nor a take-first merge");
}

/// Checks that an unreplicated node has global values and sizes.
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
    ReplicationType Type = Facts.Types.type(E);
    if (!Type.isPlain() && !isExcused(Type))
      error(N, formatv("input {0} is {1}, not the value of the single-device "
                       "step",
                       I, Type.str())
                   .str());
  }
}

/// Returns true if \p N is in a branch or a loop.
bool NodeChecker::isConditional(const ProgramFacts &Facts, NodeId N) {
  if (!C.IsInside.empty() && C.IsInside[N])
    return true;
  if (!When && Conditions::any(G))
    When.emplace(G, Facts.Order);
  return When && !When->of(N).empty();
}

void NodeChecker::checkPerReplica(const ProgramFacts &Facts, NodeId N) {
  if (Facts.Vars.isOnce(G, N) && !ownBatchAxes(G, N))
    error(N, "has a side effect and must be unreplicated, not per-replica");
  // The types assume that each replica draws different numbers for its rows.
  if (opKind(N) == OpKind::SeededDraw && C.Replicas > 1 &&
      Facts.Dims.batchAxis({N, 0}) >= 0) {
    Endpoint Seed = G.input(N, drawOperands(G.opName(N)).Seed);
    if (!offsetsSeed(G, Seed.Node, C.Replicas))
      error(N, "draws the same numbers for the rows of every replica: its seed "
               "does not depend on the replica");
  }
  if (!(G.node(N).Flags & NF_Led) && ownBatchAxes(G, N) &&
      !isConditional(Facts, N))
    error(N, "reads a batch for each replica, but replica 0 does not wait for "
             "the others: a run may read the batches of only some replicas");
  if (!Facts.Vars.isUpdate(G, N))
    return;
  for (unsigned I = 0; I < Facts.Vars.update(G, N).NumVars; ++I) {
    NodeId Var = Facts.Vars.variableOf(G.input(N, I));
    if (Var != NoNode && G.node(Var).Count == Copies::Once)
      error(N, "every replica updates an unreplicated variable");
    else if (Var != NoNode && G.node(G.input(N, I).Node).Count == Copies::Once)
      error(N, "every replica updates copy 0 of a variable that has one per "
               "replica");
  }
  if (!(G.node(N).Flags & NF_Led) && !formOf(G.node(N).Kind).WritesCopies)
    error(N, "updates the copies of a variable, but copy 0 of the update does "
             "not wait for the other copies");
}

/// Checks that a node with a name of the input has the global value, and that
/// each result of the input keeps its name.
void NodeChecker::checkName(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  if (This.Flags & NF_ElidePrimary)
    error(N, "is marked as forwarding for replica 0, so the output would have "
             "no node with its name");
  // No other node of the input may take the old name of a renamed node.
  if (auto It = C.NamedAfter.find(N);
      It != C.NamedAfter.end() && It->second != InputOf[N] &&
      !(This.Count == Copies::PerReplica && This.Flags & NF_LocalName))
    error(N, "has the name of another node of the input");
  bool HasName = This.Count == Copies::Once
                     ? isSameText(G.name(N), C.In.name(InputOf[N]))
                     : !(This.Flags & NF_LocalName);
  if (HasName && C.BatchNorms && C.BatchNorms->isRewritten(InputOf[N]))
    error(N, "has the name of the input node but a different value");
  if (This.Count == Copies::Once || !(This.Flags & NF_LocalName)) {
    if (!hasTrueOutputs(Facts, N) && !Facts.Types.readsUnaggregated(N))
      error(N, "has the name of the input node but the value of one replica, "
               "not that of the single-device step");
    return;
  }
  // A result of the input without users must keep its name. Values in loops and
  // variants are exempt, because they cannot be fetched.
  NodeId I = InputOf[N];
  if (C.IsComputation || C.IsRead[I] ||
      (!C.IsInside.empty() && C.IsInside[N]) || Facts.Dims.numOutputs(N) != 1 ||
      !Facts.Dims.shape({N, 0}) || Facts.Types.number({N, 0}).isVarying() ||
      G.outputType({N, 0}) == DT_VARIANT)
    return;
  NodeId Global = G.find(C.In.name(I));
  if (Global == NoNode || InputOf[Global] != NoNode)
    error(N, "is a result of the input, but the output has no node with its "
             "name and global value");
}

/// Checks that an inserted node with a name of the input has the value of that
/// name in the single-device step.
void NodeChecker::checkInsertedName(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  if (This.Count == Copies::PerReplica && This.Flags & NF_LocalName)
    return;
  auto It = C.NamedAfter.find(N);
  if (It == C.NamedAfter.end())
    return;
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
    Endpoint E = erase({N, Port});
    if (E.Node == NoNode || InputOf[E.Node] != It->second || E.Port != Port ||
        (C.BatchNorms && C.BatchNorms->isHollow({It->second, Port})))
      error(N, "has the name of another node of the input");
  }
  if (!hasTrueOutputs(Facts, N))
    error(N, "has the name of an input node but not its value of the "
             "single-device step");
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
    if (G.node(N).NumData > 1 &&
        Facts.Dims.sumsByOneRow(G, N, erase(G.input(N, 1))))
      error(N, "sums over all rows, along axes that it computes from the sizes "
               "of one replica");
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
