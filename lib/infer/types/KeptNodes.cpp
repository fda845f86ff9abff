//===- lib/infer/types/KeptNodes.cpp - nodes that are computed once -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// If no rule relates the local values of an op to the global value, the op
// becomes unreplicated. It reads the combined values of all replicas and
// computes the global value, of which every replica reads its shard:
//
//     s = Sort*(x)                    all = _FromReplicas(x) concat
//     y = Mul*(s, x)             →    s = Sort(all)
//                                     y = Mul*(_ToReplicas(s), x)
//
// This file finds these nodes: they are *kept* unreplicated. At a fixpoint of
// the types, each node at which Varying begins is kept. Its results are Whole:
// each replica reads its shard of them (TypeContext::ofWhole). A user that
// cannot read a shard, because two axes are batch axes or a size is unknown, is
// kept as well. An operand of a kept node is kept if its local values cannot be
// combined, such as row numbers, joined rows or unknown sizes. The search
// repeats until no unrelated value is left. A loop is kept as a whole, with the
// arrays and stacks that it uses. If replicas may disagree on the predicate of
// a branch, the predicate is kept.
//
// A node stays per-replica if a policy of the user allows its value to vary, or
// if it computes a gradient that --grad names.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeInference.h"

#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Returns true if the policy of \p Var lets \p Update write a different value
/// on each replica. An unreplicated variable without aggregation allows only
/// assignments and additions.
bool TypeInference::letsVary(NodeId Update, NodeId Var) const {
  auto How = aggregationOf(G, Var);
  if (!How || *How != Aggregation::None ||
      G.node(Var).Count == Copies::PerReplica)
    return How.has_value();
  UpdateKind Kind = T.Vars.update(G, Update).Kind;
  return Kind == UpdateKind::Assign || Kind == UpdateKind::AssignAdd;
}

/// Marks as Spared the nodes whose values the user accepts: batch norms with
/// the statistics of one replica, and the direct and indirect operands of
/// reductions that the user asked for. Values that a policy lets vary are
/// spared with their operands, too. Marks as OfMetrics the nodes that only
/// updates of sync-on-read variables use. A metric alone is no reason to keep a
/// node, so these nodes are kept only if they read kept values.
void TypeInference::findSpared(bool LocalBatchNorm) {
  Spared.resize(G.size());
  OfMetrics.resize(G.size());
  std::vector<NodeId> Work, Metrics;
  for (NodeId Node : Order)
    if (Inserted Kind = G.node(Node).Kind;
        (Kind == Inserted::Reduce || Kind == Inserted::Gather ||
         Kind == Inserted::Merge) &&
        (G.hasAttr(Node, AssumedAttr) || G.hasAttr(Node, CombineAttr)) &&
        T.natural({Node, 0}).Assumes & AssumesReduction)
      Work.push_back(Node);
  auto WrittenOnRead = [&](NodeId Node) {
    NodeId Var =
        T.Vars.isUpdate(G, Node) ? T.Vars.variableOf(G.input(Node, 0)) : NoNode;
    return Var != NoNode && G.node(Var).Plan == Policy::SyncOnRead;
  };
  // Values that are written to variables with a policy for values that vary.
  for (NodeId Node : Order) {
    NodeId Var =
        T.Vars.isUpdate(G, Node) ? T.Vars.variableOf(G.input(Node, 0)) : NoNode;
    if (Var == NoNode || (!T.usesState(Node) && !letsVary(Node, Var)))
      continue;
    for (Endpoint E :
         G.dataInputs(Node).drop_front(T.Vars.update(G, Node).NumVars)) {
      Inserted Kind = G.node(E.Node).Kind;
      if (Kind == Inserted::Merge || Kind == Inserted::Reduce) {
        Work.push_back(E.Node);
      } else if (isOfReplicas(E) && T.natural(E).isVarying()) {
        bool OnRead = WrittenOnRead(Node);
        (OnRead ? OfMetrics : Spared)[E.Node] = true;
        (OnRead ? Metrics : Work).push_back(E.Node);
      }
    }
  }
  auto Close = [&](std::vector<bool> &Set, std::vector<NodeId> &From, bool To) {
    while (!From.empty()) {
      NodeId Node = From.back();
      From.pop_back();
      for (Endpoint E : G.dataInputs(Node))
        if (isOfReplicas(E) && Set[E.Node] != To) {
          Set[E.Node] = To;
          From.push_back(E.Node);
        }
    }
  };
  Close(Spared, Work, true);
  Close(OfMetrics, Metrics, true);
  for (NodeId Node : Order)
    if (!OfMetrics[Node] && !Spared[Node] && !WrittenOnRead(Node))
      Metrics.push_back(Node);
  Close(OfMetrics, Metrics, false);
  for (auto [Node, Bits] : T.Sources)
    if (LocalBatchNorm && Bits & AssumesLocalBatchNorm)
      Spared[Node] = true;
}

bool TypeInference::isOfReplicas(Endpoint E) const {
  return G.node(E.Node).Count == Copies::PerReplica && !isKept(E.Node);
}

/// Returns true if an unrelated value is written to the array or stack that the
/// node at hand reads. The node that computes this value is then the cause.
bool TypeInference::readsUnrelated() {
  NodeId Handle = handle();
  auto Element = Handle == NoNode ? std::nullopt : element(Handle);
  if (!Element || !Element->isUnrelated())
    return false;
  auto [It, New] = TakesUnrelated.try_emplace(Handle);
  if (New)
    It->second = any_of(Loops->usersOf(Handle), [&](NodeId User) {
      return any_of(G.dataInputs(User), [&](Endpoint E) {
        return Defined[E.Node] && T.natural(E).isUnrelated();
      });
    });
  return It->second;
}

/// Returns true if a result of the node at hand is unrelated, but every operand
/// is related or holds local row indices.
bool TypeInference::isUnrelated() {
  if (Kept[N] || Spared[N] || node().Count != Copies::PerReplica ||
      node().Kind != Inserted::No)
    return false;
  bool Any = false;
  for (unsigned Port = 0; Port < numResults(); ++Port) {
    ReplicationType X = result(Port);
    if (T.isByPolicy(X))
      return false;
    Any |= X.isUnrelated();
  }
  if (!Any)
    return false;
  bool OfWhole = false;
  for (unsigned I = 0; I < numData(); ++I) {
    if (Loops && !Defined[input(I).Node])
      continue;
    ReplicationType In = T.natural(input(I));
    if (In.isUnrelated())
      return false;
    OfWhole |= In.Whole;
  }
  return OfWhole || !OfMetrics[N];
}

/// Returns why \p Node cannot be unreplicated, or null.
const char *TypeInference::whyNotKept(NodeId Node) const {
  const struct Node &This = G.node(Node);
  if (T.Vars.isUpdate(G, Node))
    return "it writes a variable that every replica has a copy of";
  if (isVariableOp(G.opName(Node)))
    return "it is a variable of which every replica has a copy";
  if (combinesReplicas(G, Node) ||
      (This.Kind != Inserted::No && This.Kind != Inserted::Definition &&
       This.Kind != Inserted::Again))
    return "graft added it";
  if (Spared[Node])
    return "an option or an aggregation decides its value";
  return nullptr;
}

/// Keeps \p First and the loop that it is in. Returns false if that is
/// impossible.
bool TypeInference::keep(NodeId First) {
  SmallVector<NodeId, 8> Work{First};
  SmallVector<NodeId, 8> New;
  DenseSet<NodeId> Seen;
  while (!Work.empty()) {
    NodeId Node = Work.pop_back_val();
    if (Kept[Node] || !Seen.insert(Node).second ||
        G.node(Node).Count != Copies::PerReplica)
      continue;
    if (const char *Why = whyNotKept(Node)) {
      Found.Refused.push_back({Node, Why});
      return false;
    }
    New.push_back(Node);
    if (!Loops)
      continue;
    append_range(Work, Loops->nest(Node));
    // An array or a stack is kept with all nodes that make, use or pass it on.
    for (Endpoint E : G.dataInputs(Node))
      if (Loops->handleOf(E) != NoNode)
        Work.push_back(E.Node);
    G.forEachUse(Node, [&](Use U) {
      if (U.Index < G.node(U.User).NumData &&
          Loops->handleOf(G.input(U.User, U.Index)) != NoNode)
        Work.push_back(U.User);
    });
    for (NodeId Handle : Loops->handlesUsedBy(G, Node)) {
      Work.push_back(Handle);
      append_range(Work, Loops->usersOf(Handle));
    }
  }
  for (NodeId Node : New) {
    Kept[Node] = Due[Node] = true;
    markUsers(Node);
    GivesRows |= claimsRows(Node);
  }
  return true;
}

/// Returns true if a result of \p Node has per-replica rows only because a
/// constant claims that row count, and not because a tensor was split. If
/// \p Node becomes unreplicated, its results are split, which proves these
/// rows.
bool TypeInference::claimsRows(NodeId Node) const {
  for (unsigned Port = 0; Port < D.numOutputs(Node); ++Port) {
    auto Shape = D.shape({Node, Port});
    if (Shape && any_of(*Shape, [&](DimId Size) {
          auto S = D.table().sym(Size);
          return S && S->isLocal() && !D.table().isOfSplit(*S);
        }))
      return true;
  }
  return false;
}

/// Keeps the node that makes a result of the node at hand unrelated.
bool TypeInference::keepCause() {
  if (When)
    if (auto Predicate = localPredicate(N))
      return isOfReplicas(*Predicate) && keep(Predicate->Node);
  std::string Why = T.reason(N);
  // An update stays with the copies of its variable, so its operands are kept.
  if (T.Vars.isUpdate(G, N)) {
    bool Any = false;
    for (unsigned I = T.Vars.update(G, N).NumVars; I < numData(); ++I)
      if (Endpoint E = input(I);
          isOfReplicas(E) && !T.natural(E).isPlain() && keep(E.Node)) {
        Found.Causes.push_back({E.Node, Why});
        Any = true;
      }
    return Any;
  }
  if (!keep(N))
    return false;
  // Nodes that are kept only because they read kept values are not reported.
  if (none_of(G.dataInputs(N), [&](Endpoint E) { return T.natural(E).Whole; }))
    Found.Causes.push_back({N, std::move(Why)});
  return true;
}

/// Returns true if \p Result has the row order of a loop that joined rows on
/// each replica. A loop does not become unreplicated because of a result
/// without a user, such as its last state.
bool TypeInference::isJoinedInLoop(NodeId Result) const {
  auto Leaves = [&](NodeId Node) {
    return G.isOp(Node, op::Exit) || G.isOp(Node, op::RefExit);
  };
  std::vector<NodeId> Work{Result};
  DenseSet<NodeId> Seen{Result};
  while (!Work.empty()) {
    NodeId Node = Work.back();
    Work.pop_back();
    if (Leaves(Node))
      return true;
    for (Endpoint E : G.dataInputs(Node))
      if ((Leaves(E.Node) || T.natural(E).isJoined()) &&
          Seen.insert(E.Node).second)
        Work.push_back(E.Node);
  }
  return false;
}

/// Keeps the node of operand \p I unless its local values can be combined.
bool TypeInference::keepOperand(unsigned I) {
  Endpoint E = input(I);
  if (!isOfReplicas(E) || G.node(E.Node).Kind == Inserted::Split)
    return false;
  ReplicationType X = T.natural(E);
  bool HasValue = X.Symbolic
                      ? T.sizePowers(E).has_value() || !T.number(E).isVarying()
                      : !X.isVarying() && !X.isJoined() && !X.isNothing() &&
                            G.outputType(E) != DT_VARIANT;
  if ((HasValue && !(I == 1 && D.sumsByOneRow(G, N, E))) || T.isByPolicy(X))
    return false;
  if (auto Predicate = When ? localPredicate(E.Node) : std::nullopt)
    return isOfReplicas(*Predicate) && keep(Predicate->Node);
  return keep(E.Node);
}

/// Keeps the operand of the merge at hand if the type of the operand changed
/// after the merge was inserted, because nodes before the operand are kept.
bool TypeInference::keepMerged() {
  Endpoint E = input(0), Last = out();
  G.forEachUse(N, [&](Use U) {
    if (G.isData(U) && G.node(U.User).Kind == Inserted::Scale)
      Last = {U.User, 0};
  });
  ReplicationType X = T.natural(Last);
  if (X.Whole || X.isTrue() || X.Assumes & AssumesReduction ||
      T.isByPolicy(X) || !isOfReplicas(E) || whyNotKept(E.Node))
    return false;
  // An unrelated operand is not kept here: the origin of its type is kept.
  return !T.natural(E).isUnrelated() && keep(E.Node);
}

/// Returns true if the integers of output \p Port may be sizes of the whole
/// batch, which a replica cannot use.
bool TypeInference::holdsSizes(unsigned Port) const {
  unsigned Type = G.outputType(out(Port));
  if (Type != DT_INT32 && Type != DT_INT64)
    return false;
  if (auto Value = D.value(out(Port)); Value && D.table().areSame(*Value))
    return false;
  auto Holds = [&](unsigned I) {
    return I < numData() && T.natural(input(I)).Symbolic;
  };
  auto Measures = [&](unsigned I) {
    auto Shape = I < numData() ? D.shape(input(I)) : std::nullopt;
    return I < numData() && (!Shape || !D.table().areSame(*Shape));
  };
  auto Any = [&](auto Is) {
    for (unsigned I = 0; I < numData(); ++I)
      if (Is(I))
        return true;
    return false;
  };
  switch (Rules[node().Op].Rule.Elements) {
  case ElementsOf::Operands:
  case ElementsOf::Range:
    return Any(Holds);
  case ElementsOf::First:
    return Holds(0);
  case ElementsOf::SamePort:
    return Holds(Port);
  case ElementsOf::Nothing:
    return false;
  case ElementsOf::SizesOfFirst:
    return Measures(0);
  case ElementsOf::SizesOfPort:
    return Measures(Port);
  case ElementsOf::FirstThenSizes:
    return Port == 0 ? Holds(0) : Measures(0);
  case ElementsOf::Counts:
    return Holds(0) || Measures(0);
  }
  llvm_unreachable("no other elements");
}

void TypeInference::inferKept() {
  for (unsigned I = 0; I < numData(); ++I) {
    if (Loops && !Defined[input(I).Node])
      continue;
    Assumes |= T.natural(input(I)).Assumes;
    keepOperand(I);
  }
  for (unsigned Port = 0; Port < numResults(); ++Port) {
    ReplicationType X = ReplicationType::whole();
    X.Symbolic = holdsSizes(Port);
    set(Port, X);
  }
}

bool TypeInference::keepUnrelated(const KeepOptions &Options) {
  // A kept node's split results may let rules relate the remaining unrelated
  // values, so types must be inferred again first.
  if (GivesRows)
    return false;
  bool Any = keepMore(Options);
  // The types of kept values are known now. So rules may relate the values of
  // loops and arrays that read them.
  if (Any)
    restartLoops();
  return Any;
}

bool TypeInference::keepMore(const KeepOptions &Options) {
  if (Kept.empty()) {
    findSpared(Options.LocalBatchNorm);
    Kept.resize(G.size());
  }
  bool Any = false;
  for (ArrayRef<NodeId> Asked : {Options.Fed, Options.Moved})
    for (NodeId Node : Asked)
      Any |= !Kept[Node] && isOfReplicas({Node, 0}) && keep(Node);
  for (auto [Node, Bits] : std::vector(T.Sources))
    if (Bits & AssumesLocalBatchNorm && isOfReplicas({Node, 0}) &&
        !whyNotKept(Node) && keep(Node)) {
      Found.Causes.push_back(
          {Node, "uses the statistics of one replica's rows"});
      Any = true;
    }
  // The elements of an array may be unrelated only because one is computed from
  // another. If the first turn finds nothing, the second keeps the nodes that
  // read elements.
  for (bool InArrays : {false, true}) {
    TakesUnrelated.clear();
    for (NodeId Node : Order) {
      at(Node);
      if (isUnrelated() && (InArrays || !readsUnrelated()))
        Any |= keepCause();
    }
    if (Any || !Loops)
      break;
  }
  // Other values may be Varying only because of the nodes that are kept now.
  if (Any)
    return true;
  for (NodeId Node : Order) {
    at(Node);
    if (node().Count != Copies::Once)
      continue;
    if (!combinesReplicas(G, N)) {
      for (unsigned I = 0; I < numData(); ++I)
        Any |= keepOperand(I);
    } else if (node().Kind == Inserted::Merge) {
      Any |= keepMerged();
    }
  }
  // Nodes that mix per-replica sizes with sizes of the whole batch.
  for (const DimAnalysis::Conflict &C : D.conflicts())
    if (isOfReplicas({C.Node, 0}) && !whyNotKept(C.Node) && keep(C.Node)) {
      Found.Causes.push_back(
          {C.Node, C.Why ? C.Why
                         : "takes sizes that must be equal but scale "
                           "differently with the batch"});
      Any = true;
    }
  for (NodeId Node : Order)
    if (G.node(Node).NumData > 1 && isOfReplicas({Node, 0}) &&
        D.sumsByOneRow(G, Node, G.input(Node, 1)) && !whyNotKept(Node) &&
        keep(Node)) {
      Found.Causes.push_back(
          {Node, "may sum over all rows, along axes that it computes from the "
                 "sizes of one replica"});
      Any = true;
    }
  for (auto [Node, I] : std::vector(T.Unproved)) {
    at(Node);
    if (!T.usesState(Node, I))
      Any |= keepOperand(I);
  }
  for (auto [Node, Predicate] : std::vector(T.LocalEffects))
    Any |= isOfReplicas(Predicate) && keep(Predicate.Node);
  if (Any)
    return true;
  // Results: nodes without users, and fetched nodes.
  auto KeepResult = [&](NodeId Node) {
    if (Kept[Node] || G.node(Node).Count != Copies::PerReplica ||
        whyNotKept(Node) || G.node(Node).Kind != Inserted::No)
      return;
    at(Node);
    // A value in a loop cannot be fetched.
    if ((Loops && !Loops->nest(Node).empty()) ||
        (T.natural(out(0)).isJoined() && isJoinedInLoop(Node)))
      return;
    // The user may allow the operands to be Varying.
    for (unsigned I = 0; I < numData(); ++I)
      if (T.natural(input(I)).isUnrelated())
        return;
    for (unsigned Port = 0; Port < numResults(); ++Port)
      if (ReplicationType X = T.number(out(Port));
          X.isVarying() && T.blocks(out(Port)) == 0 && !T.isByPolicy(X) &&
          !T.type(out(Port)).Symbolic &&
          G.outputType(out(Port)) != DT_VARIANT) {
        if (keep(Node)) {
          Found.Causes.push_back({Node, T.reason(Node)});
          Any = true;
        }
        return;
      }
  };
  // Some results without users are not kept and lose their names, unless they
  // are fetched. These are entries of sparse feeds (their gradient has no
  // user), tensors that a batch norm keeps for its gradient, and selected rows
  // of joined rows (no op restores their order).
  auto IsGivenUp = [&](NodeId Node) {
    if (D.numOutputs(Node) != 1)
      return false;
    ReplicationType X = T.natural({Node, 0});
    return X.isOfEntries() || X.Indices == LocalIndices::ForGradient ||
           (X.isJoined() && partsOf(X).size() == 1 && partsOf(X)[0].Size == 0);
  };
  for (NodeId Node : Order)
    if (!G.hasUses(Node) && !IsGivenUp(Node))
      KeepResult(Node);
  for (NodeId Node : Options.Fetched)
    KeepResult(Node);
  return Any;
}

TypeAnalysis::KeptNodes TypeInference::takeKept() {
  for (NodeId Node = 0; Node < Kept.size(); ++Node)
    if (Kept[Node])
      Found.Nodes.push_back(Node);
  return std::move(Found);
}

} // namespace graft
