//===- lib/infer/types/TypeInference.cpp - the fixpoint ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rounds of type inference, and the inference of a node before its rule.
//
// If a predicate is equal on all replicas, a node under it runs on all replicas
// or on none. So a branch may contain a reduction. Under any other predicate,
// no value is related to the global value. This holds even for a constant,
// because the node may not run in the single-device step.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeInference.h"

#include "lib/graph/FileWalk.h"
#include "lib/infer/sizes/RaggedRows.h"
#include "lib/program/Program.h"
#include "lib/program/forms/LengthGather.h"
#include "lib/support/InternalError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;

namespace graft {

TypeInference::TypeInference(TypeAnalysis &T, ArrayRef<NodeId> Order)
    : TypeContext(T, Order), Order(Order), Visited(G.size()),
      HasStates(!T.States.empty()) {}

/// Removes those of the first \p Old elements for which \p IsGone is true.
template <typename List, typename Fn>
static void dropOld(List &L, size_t Old, Fn IsGone) {
  L.erase(std::remove_if(L.begin(), L.begin() + Old, IsGone), L.begin() + Old);
}

bool TypeInference::round() {
  if (FirstRound) {
    walkAttrs(G, Order, [&](NodeId Node) {
      if (Loops)
        Due[Node] = false;
      visit(Node);
    });
    FirstRound = false;
    settleLoops();
    return true;
  }
  bool Any = sweep();
  return settleLoops() || Any;
}

/// Sweeps until nothing changes. After a sweep, only nodes that depend on a
/// back edge, on the elements of an array or on a predicate are still due.
/// Their types can rise only a limited number of times.
bool TypeInference::settleLoops() {
  if (!Loops)
    return false;
  if (SweepLimit == 0)
    SweepLimit =
        2 + TypeHeight *
                (1 +
                 count_if(Order,
                          [&](NodeId Node) {
                            return Loops->isLoopMerge(Node) ||
                                   (When && When->predicateOf(Node) != ~0u);
                          }) +
                 Loops->handles().size());
  TurnLimit Limit("types", SweepLimit);
  bool Any = false;
  while (sweep() || fillUnwritten()) {
    Any = true;
    Limit.turn([&] {
      auto It = find_if(Order, [&](NodeId Node) { return Due[Node]; });
      return It == Order.end() ? std::string() : G.name(*It).str();
    });
  }
  return Any;
}

std::string TypeInference::takeReason(NodeId Node) {
  auto It = T.Reasons.find(Node);
  if (It == T.Reasons.end())
    return "";
  std::string Reason = std::move(It->second);
  T.Reasons.erase(It);
  return Reason;
}

/// Visits the nodes that are due, once.
bool TypeInference::sweep() {
  size_t OldAsked = Asked.size(), OldUnproved = T.Unproved.size(),
         OldSources = T.Sources.size(), OldEffects = T.LocalEffects.size(),
         OldRefused = T.RefusedInside.size();
  bool Any = false;
  ManyDue = false;
  if (std::exchange(ManyAgain, false))
    wakeMany();
  for (NodeId Node : Order) {
    if (!Due[Node])
      continue;
    Due[Node] = false;
    Visited[Node] = Any = true;
    std::string Reason = takeReason(Node);
    visit(Node);
    // A Varying type that returns to its Cause through a back edge keeps its
    // first reason.
    if (Loops && D.numOutputs(Node) != 0 && T.natural(out()).Cause == Node)
      T.Reasons.try_emplace(Node, std::move(Reason));
  }
  if (!Any)
    return false;
  // Drops the records of earlier visits of the visited nodes.
  dropOld(Asked, OldAsked, [&](const Demand &A) { return Visited[A.Because]; });
  dropOld(T.Unproved, OldUnproved, [&](auto &E) { return Visited[E.first]; });
  dropOld(T.Sources, OldSources, [&](auto &E) { return Visited[E.first]; });
  dropOld(T.LocalEffects, OldEffects,
          [&](auto &E) { return Visited[E.first]; });
  dropOld(T.RefusedInside, OldRefused,
          [&](auto &E) { return Visited[E.first]; });
  Visited.assign(G.size(), false);
  return true;
}

void TypeInference::markUsers(NodeId Node) {
  G.forEachUse(Node, [&](Use U) { Due[U.User] = true; });
}

std::vector<Demand> TypeInference::takeReductions() {
  std::vector<Demand> Result;
  copy_if(Asked, std::back_inserter(Result),
          [](const Demand &A) { return A.Kind == Demand::Reduce; });
  erase_if(Asked, [](const Demand &A) { return A.Kind == Demand::Reduce; });
  llvm::sort(Result, [](const Demand &A, const Demand &B) {
    return std::tuple(A.Source.Node, A.Source.Port, A.Because) <
           std::tuple(B.Source.Node, B.Source.Port, B.Because);
  });
  return Result;
}

void TypeInference::visit(NodeId Node) {
  N = Node;
  if (Loops && !isKept(N) && !isReady())
    return;
  // The first round visits the users later anyway, except in a graph with
  // loops.
  if (FirstRound && !Loops) {
    inferAndAsk();
    return;
  }
  ArrayRef<ReplicationType> Now(T.Types.data() + D.outputIndex(out()),
                                numResults());
  SmallVector<ReplicationType, 4> Before(Now.begin(), Now.end());
  inferAndAsk();
  if (Refused) {
    setAll(ReplicationType::varying(N));
    T.RefusedInside.push_back({N, *Refused});
    Refused.reset();
  }
  // A user of an unreplicated node may have to be unreplicated, too.
  if (!Kept.empty() && !GivesRows && isUnrelated() && keepCause() && Kept[N]) {
    Assumes = 0;
    inferKept();
  }
  bool IsNew = Loops && !Defined[N];
  if (IsNew)
    Defined[N] = true;
  if (Now == ArrayRef(Before) && !IsNew)
    return;
  markUsers(N);
  if (uint32_t P = When ? When->predicateOf(N) : ~0u; P != ~0u) {
    for (NodeId Member : When->members(P))
      Due[Member] = true;
    wakeMany();
  }
}

/// Marks the nodes that run under many predicates for another visit. The type
/// of a predicate changed, and any of these nodes may run under that predicate.
/// A sweep marks them once. In a graph with loops, the next sweep marks them
/// again after a second change.
void TypeInference::wakeMany() {
  ManyAgain |= ManyDue && Loops;
  if (std::exchange(ManyDue, true))
    return;
  for (NodeId Member : When->members(Conditions::Many))
    Due[Member] = true;
}

/// Returns true if all operands are global values without any mark, as for most
/// optimizers, initializers and savers.
bool TypeInference::readsPlain() const {
  for (Endpoint E : G.dataInputs(N))
    if (!T.natural(E).isPlain())
      return false;
  return node().NumData > 0;
}

/// Infers the types of the node at hand. If a policy makes its results Varying,
/// drops its demands to gather rows.
void TypeInference::inferAndAsk() {
  size_t Old = Asked.size();
  infer();
  if (D.table().hasRagged())
    doubtNoRows(ArrayRef(Asked).drop_front(Old));
  // The check of a sliced sparse tensor (EntrySlice) concatenates per-replica
  // sizes with sizes of the whole batch. No tensor of the input graph has such
  // sizes.
  if (node().Kind == Inserted::Check && isOp(op::Concat) &&
      Asked.size() != Old) {
    Asked.resize(Old);
    setAll(varying("combines sizes of one replica with sizes of all replicas"));
  }
  if (Asked.size() == Old || numResults() == 0 ||
      node().Count != Copies::PerReplica ||
      !all_of(seq(0u, numResults()),
              [&](unsigned Port) { return T.isByPolicy(result(Port)); }))
    return;
  auto Begin = Asked.begin() + static_cast<ptrdiff_t>(Old);
  Asked.erase(
      std::remove_if(Begin, Asked.end(),
                     [](const Demand &A) { return A.Kind == Demand::Gather; }),
      Asked.end());
}

void TypeInference::infer() {
  const struct Node &This = node();
  const OpInfo &Op = Rules[This.Op];
  bool PerReplica = This.Count == Copies::PerReplica;
  Assumes = 0;
  if (When && When->isMany(N))
    noteMany();
  if (isKept(N)) {
    inferKept();
    return;
  }
  // A merge or scale passes an unreplicated operand on unchanged.
  if (!Kept.empty() && !PerReplica && This.NumData != 0 &&
      (This.Kind == Inserted::Merge || This.Kind == Inserted::Scale) &&
      T.natural(input(0)).Whole) {
    setAll(T.natural(input(0)));
    return;
  }
  if (When) {
    if (auto Predicate = localPredicate(N)) {
      inferLocally(*Predicate);
      return;
    }
    if (!T.LocalPredicates.empty())
      T.LocalPredicates.erase(N);
  }
  if (bool IsMerge = Loops && Loops->isLoopMerge(N);
      IsMerge || Op.Is & trait::TakesAnything) {
    for (unsigned I = 0; I < This.NumData; ++I)
      Assumes |= operand(I).Assumes;
    if (IsMerge)
      mergeLoop();
    else
      Op.type(*this);
    return;
  }
  bool Draws = Op.Is & trait::Draws && PerReplica,
       Opaque = Op.Is & trait::Opaque && PerReplica,
       OfTrue = !(Op.Is & trait::NotOfTrue);
  if (OfTrue && !HasStates && !Opaque && !Draws && readsPlain()) {
    // A function of global values is a global value.
    setAll(ReplicationType::replicated());
    return;
  }
  if (HasStates && usesState())
    return;
  bool AllTrue = true, AnySymbolic = false, AnyOrdered = false,
       AnyVarying = false, OfAllRows = false;
  for (unsigned I = 0; I < This.NumData; ++I) {
    ReplicationType In = operand(I);
    OfAllRows |=
        PerReplica && !Kept.empty() && T.natural(input(I)).isWholeSize();
    AnyOrdered |= In.Order != ReplicationType::InOrder && !In.isVarying();
    AnyVarying |= In.isVarying();
    AllTrue &= In.isTrue() && !In.Zero;
    AnySymbolic |= In.Symbolic;
    Assumes |= In.Assumes;
  }
  if (OfAllRows) {
    setAll(varying("uses sizes of the whole batch on each replica"));
    return;
  }
  if (AnyVarying && !PerReplica)
    askForRows();
  UpdateDef U = T.Vars.update(G, N);
  if (U.Kind != UpdateKind::None) {
    update(U);
    return;
  }
  if (numResults() == 0) {
    if (Op.Is & trait::ForEffect)
      Op.type(*this);
    return;
  }
  if (Opaque) {
    Op.type(*this);
    return;
  }
  // A node with global operands, or without operands, computes global values,
  // unless its rule infers something else.
  if (AllTrue && OfTrue && !Draws) {
    setAll(ReplicationType::replicated());
    return;
  }
  bool MayIndex = PerReplica && Op.Rule.LocalIndices;
  if ((AnySymbolic || AnyVarying) && MayIndex && Op.Rule.LocalIndices(*this))
    return;
  if (AnySymbolic && inferSizes())
    return;
  if (Draws && !(Op.Is & trait::DrawsRows)) {
    setAll(varying("draws different random numbers on each replica"));
    return;
  }
  if (D.table().hasRagged() && mixesRows())
    setAll(varying("combines a data-dependent number of rows with other rows"));
  else if (AnyOrdered)
    inferOrdered();
  else
    Op.type(*this);
}

/// Infers the types of shape arithmetic from the elements that the analysis of
/// sizes found. Returns false if no result has known elements. Also returns
/// false if that analysis only assumes that the integer is a size of the
/// single-device step: then the rule must confirm it.
bool TypeInference::inferSizes() {
  // The known elements of scaled sizes are those of the global sizes. They do
  // not show that each element has the right scale.
  if (node().Kind == Inserted::Scale)
    return false;
  auto HasValue = [&](unsigned Port) { return D.value(out(Port)).has_value(); };
  if (none_of(seq(0u, numResults()), HasValue) ||
      (node().Kind == Inserted::No && is_contained(D.shared(), N)))
    return false;
  for (unsigned Port = 0; Port < numResults(); ++Port) {
    ReplicationType Sizes = ReplicationType::replicated();
    Sizes.Symbolic = true;
    if (auto Value = D.value(out(Port)))
      Sizes = sizes(*Value);
    set(Port, Sizes);
  }
  return true;
}

/// Infers the results of a node that runs under \p Predicate, on which replicas
/// may disagree.
void TypeInference::inferLocally(Endpoint Predicate) {
  T.LocalPredicates.insert_or_assign(N, Predicate);
  if (node().Count == Copies::Once && G.opDef(N) && G.opDef(N)->isStateful() &&
      T.Vars.isOnce(G, N) && none_of(G.dataInputs(N), [&](Endpoint E) {
        return G.node(E.Node).Count == Copies::PerReplica;
      }))
    T.LocalEffects.push_back({N, Predicate});
  if (T.Vars.isUpdate(G, N))
    for (unsigned I = T.Vars.update(G, N).NumVars; I < numData(); ++I)
      T.Unproved.push_back({N, I});
  for (unsigned I = 0; I < numData(); ++I)
    if (ReplicationType X = operand(I); X.isVarying()) {
      setAll(varyingLike(X));
      return;
    }
  setAll(varying("runs under a predicate that replicas may disagree on"));
}

/// Asks for a gather of each operand with joined rows, to restore the order of
/// the global value. The node at hand is unreplicated.
void TypeInference::askForRows() {
  for (unsigned I = 0; I < numData(); ++I)
    if (ReplicationType Read = T.natural(input(I)); Read.isJoined())
      gathered(I, Read);
}

/// Returns true if Sharded operands may have different numbers of rows. A
/// replica with a single row of one operand would broadcast that row.
bool TypeInference::mixesRows() const {
  if (is(trait::TakesUnequalRows))
    return false;
  const DimId None = ~DimId(0);
  DimId First = None;
  for (unsigned I = 0; I < numData(); ++I) {
    ReplicationType X = operand(I);
    if (!X.isSharded())
      continue;
    auto Shape = D.shape(input(I));
    if (!Shape || X.Axis >= Shape->size()) {
      if (numData() > 1)
        return true;
      continue;
    }
    DimId Rows = (*Shape)[X.Axis];
    auto S = D.table().sym(Rows);
    if (First == None)
      First = Rows;
    else if (D.table().find(First) != D.table().find(Rows) &&
             (!S || S != D.table().sym(First)))
      return true;
  }
  return false;
}

/// Returns the message text for a kernel that fails or is wrong on zero rows.
static StringRef faultOf(NoRows What) {
  return What == NoRows::Fails       ? "fails"
         : What == NoRows::Unwritten ? "leaves its result uninitialized"
                                     : "returns NaN";
}

/// Makes results Varying if a replica may have no row of an operand and the
/// kernel is wrong on zero rows. Example: the row count of Where is
/// data-dependent. Operands with a gather in \p Met have the rows of all
/// replicas.
void TypeInference::doubtNoRows(ArrayRef<Demand> Met) {
  NoRows What = Rules[node().Op].OnNoRows;
  if (What == NoRows::Right || !isPerReplica() || isKept(N))
    return;
  const DimTable &Table = D.table();
  auto MayBeNone = [&](unsigned I) {
    ReplicationType X = operand(I);
    bool IsWhole =
        (X.isReplicated() && !X.Zero) || any_of(Met, [&](const Demand &A) {
          return A.Kind == Demand::Gather && A.User == N && A.Index == I;
        });
    if (IsWhole)
      return false;
    auto Shape = shape(I);
    if (!Shape || (X.isSharded() && X.Axis >= Shape->size()))
      return X.isSharded() || X.isVarying();
    // A shard of unknown size may be empty, too.
    return any_of(*Shape, [&](DimId S) { return mayBeNone(G, D, S); }) ||
           (X.isSharded() && !Table.isRagged((*Shape)[X.Axis]) &&
            D.isUneven(input(I), X.Axis));
  };
  if (none_of(seq(0u, numData()), MayBeNone))
    return;
  auto HasNone = [&](const ReplicationType &X, unsigned Port) {
    return X.isVarying() || (X.isSharded() && D.isUneven(out(Port), X.Axis));
  };
  for (unsigned Port = 0; Port < numResults(); ++Port) {
    ReplicationType X = result(Port);
    if (!X.isUnrelated() && (What == NoRows::Fails || !HasNone(X, Port)))
      set(Port, varying("takes a tensor that may have no rows on a replica, "
                        "and without rows TensorFlow's kernel " +
                        faultOf(What)));
  }
}

/// Applies the rule to operands whose rows are all equal, or are not in the
/// order of the global value.
void TypeInference::inferOrdered() {
  const OpInfo &Op = Rules[node().Op];
  if (Op.Is & trait::OrdersRows) {
    Op.type(*this);
    return;
  }
  uint32_t Order = ReplicationType::AnyOrder;
  bool Differ = false;
  for (unsigned I = 0; I < numData(); ++I) {
    ReplicationType X = operand(I);
    if (!X.isSharded() || X.Zero || X.Order == ReplicationType::AnyOrder)
      continue;
    Differ |= Order != ReplicationType::AnyOrder && Order != X.Order;
    Order = X.Order;
  }
  bool Joined =
      Order != ReplicationType::InOrder && Order != ReplicationType::AnyOrder;
  if (Differ || (Joined && Op.Is & trait::NeedsOrder)) {
    setAll(varying(Differ ? "combines tensors whose rows were concatenated in "
                            "different orders"
                          : "needs rows in the order of the single-device "
                            "step, which a concatenation changed"));
    return;
  }
  Op.type(*this);
  for (unsigned Port = 0; Port < numResults(); ++Port) {
    ReplicationType Type = result(Port);
    if (!Type.isSharded())
      continue;
    Type.Order = Order;
    // If an op splits or merges rows, their order is not known.
    if (Op.Is & trait::RegroupsRows) {
      auto In = shape(0), Out = D.shape(out(Port));
      unsigned Axis = operand(0).Axis;
      if (!In || !Out ||
          D.table().find((*In)[Axis]) != D.table().find((*Out)[Type.Axis])) {
        if (Joined)
          Type = varying("splits or merges rows that were concatenated along "
                         "the batch axis");
        Type.Order = ReplicationType::InOrder;
      }
    }
    set(Port, Type);
  }
}

/// Adds each node whose row numbers some direct or indirect user cannot use.
/// Row numbers without a user are a result, so their node is added, too.
void TypeInference::findUnusable(std::vector<NodeId> &Found) {
  std::vector<bool> Has(G.size());
  auto Add = [&](NodeId Node) {
    if (!Has[Node] && !D.isOfAllRows(Node))
      Found.push_back(Node);
    Has[Node] = true;
  };
  auto Ask = [&](const ReplicationType &X) {
    if ((X.countsRows() && is(X.Cause, trait::FindsRows)) || X.isDistinct())
      Add(X.Cause);
  };
  // If row numbers are sent to parts, they are right only on their replica.
  std::vector<bool> SendsNumbers(G.size());
  for (NodeId Node : Order)
    if (NodeId By = is(Node, trait::SendsRows) ? partedBy({Node, 0}) : NoNode;
        By != NoNode && T.natural({Node, 0}).countsRows())
      SendsNumbers[By] = true;
  for (NodeId Node : Order) {
    ArrayRef<ReplicationType> Results(T.Types.data() + D.outputIndex({Node, 0}),
                                      D.numOutputs(Node));
    bool Gives = any_of(
        Results, [](const ReplicationType &X) { return X.countsRows(); });
    bool Uses = any_of(Results, [](const ReplicationType &X) {
      return !X.isVarying() || X.isDistinct();
    });
    if (Gives && !G.hasUses(Node))
      Ask(Results.front());
    // If another operand is unrelated, the node may still be able to use the
    // row numbers after that operand is kept.
    auto IsOther = [&](Endpoint E) { return T.type(E).isUnrelated(); };
    if (G.node(Node).Count == Copies::Once || T.Vars.isUpdate(G, Node) ||
        (!Gives && !Uses && none_of(G.dataInputs(Node), IsOther)))
      for (Endpoint E : G.dataInputs(Node))
        // A gather can use distinct values. Its own users are checked in their
        // turn.
        if (!T.type(E).isDistinct() || !combinesReplicas(G, Node) || !Uses)
          Ask(T.type(E));
    // In a gather by row counts (LengthGather.h), only the last node has a
    // type.
    if (!Gives && !Uses && !isLengthGatherOp(G, Node))
      for (Endpoint E : G.dataInputs(Node))
        if (NodeId By = T.type(E).isSharded() ? partedBy(E) : NoNode;
            By != NoNode && !SendsNumbers[By] && !Results.empty())
          Add(By);
  }
}

} // namespace graft
