//===- lib/infer/types/TypeRules.cpp - rules for types ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One round over the nodes, the operands, and the families; the families that
// mix axes are in TypeRulesAxes.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeRules.h"

#include "lib/graph/FileWalk.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/support/InternalError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

TypeRules::TypeRules(TypeAnalysis &T, ArrayRef<NodeId> Order)
    : T(T), G(T.G), D(T.Dims), Order(Order), Ops(G.numOps()),
      HasStates(!T.States.empty()) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    const OpDef *Def = G.opDefOf(Op);
    OpRule &R = Ops[Op];
    R.Rule = ruleOf(Name).Type;
    R.IsConst = Name == op::Const;
    R.Draws = isRandomOp(Name);
    uint8_t Traits = traitsOf(R.Rule);
    R.Special = R.IsConst || Traits & trait::NotOfTrue;
    R.Slow = R.Special || HasStates;
    // What a default is replaced by is no zero.
    R.KeepsZeros = R.IsConst || (Traits & trait::KeepsZeros &&
                                 Name != op::PlaceholderWithDefault);
    // What TensorFlow does not know may do anything; what keeps a state may do
    // something else each time.
    R.Opaque = Def ? Def->isStateful() && !Def->readsVariable() &&
                         Def->update().Kind == UpdateKind::None &&
                         !isVariableOp(Name) && R.Rule == TypeRule::None &&
                         !R.Draws
                   : R.Rule == TypeRule::None && Name != MeshOp;
  }
  Due.resize(G.size());
  Visited.resize(G.size());
  if (Conditions::any(G))
    When = std::make_unique<const Conditions>(G, Order);
  Loops = LoopInfo::find(G, Order);
  if (Loops)
    Defined.resize(G.size());
}

/// Removes those of the first \p Old elements that \p IsGone is true of.
template <typename List, typename Fn>
static void dropOld(List &L, size_t Old, Fn IsGone) {
  L.erase(std::remove_if(L.begin(), L.begin() + Old, IsGone), L.begin() + Old);
}

bool TypeRules::round() {
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

/// Sweeps until nothing changes. What a sweep leaves to the next one is behind
/// something that comes round: a loop variable, what an array holds, a
/// predicate. Each of these rises only so often.
bool TypeRules::settleLoops() {
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

std::string TypeRules::takeReason(NodeId Node) {
  auto It = T.Reasons.find(Node);
  if (It == T.Reasons.end())
    return "";
  std::string Reason = std::move(It->second);
  T.Reasons.erase(It);
  return Reason;
}

/// Visits the nodes that are due, once.
bool TypeRules::sweep() {
  size_t OldAsked = Asked.size(), OldUnproved = T.Unproved.size(),
         OldSources = T.Sources.size(), OldEffects = T.LocalEffects.size();
  bool Any = false;
  for (NodeId Node : Order) {
    if (!Due[Node])
      continue;
    Due[Node] = false;
    Visited[Node] = Any = true;
    std::string Reason = takeReason(Node);
    visit(Node);
    // What comes round a loop to where it began is so for the old reason.
    if (Loops && D.numOutputs(Node) != 0 && T.natural(out()).Cause == Node)
      T.Reasons.try_emplace(Node, std::move(Reason));
  }
  if (!Any)
    return false;
  // What a node said before it was visited again does not count.
  dropOld(Asked, OldAsked, [&](const Demand &A) { return Visited[A.Because]; });
  dropOld(T.Unproved, OldUnproved, [&](auto &E) { return Visited[E.first]; });
  dropOld(T.Sources, OldSources, [&](auto &E) { return Visited[E.first]; });
  dropOld(T.LocalEffects, OldEffects,
          [&](auto &E) { return Visited[E.first]; });
  Visited.assign(G.size(), false);
  return true;
}

void TypeRules::markUsers(NodeId Node) {
  G.forEachUse(Node, [&](Use U) { Due[U.User] = true; });
}

std::vector<Demand> TypeRules::takeReductions() {
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

void TypeRules::visit(NodeId Node) {
  N = Node;
  if (Loops && !isReady())
    return;
  // In the first round the users are still to come, but for those in a loop.
  if (FirstRound && !Loops) {
    infer();
    return;
  }
  ArrayRef<RType> Now(T.Types.data() + D.outputIndex(out()), D.numOutputs(N));
  SmallVector<RType, 4> Before(Now.begin(), Now.end());
  infer();
  if (Refused) {
    setAll(RType::varying(N));
    Refused.reset();
  }
  bool IsNew = Loops && !Defined[N];
  if (IsNew)
    Defined[N] = true;
  if (Now == ArrayRef(Before) && !IsNew)
    return;
  markUsers(N);
  if (uint32_t P = When ? When->predicateOf(N) : ~0u; P != ~0u)
    for (NodeId Member : When->members(P))
      Due[Member] = true;
}

/// Whether everything that the node reads is a true value on every replica and
/// nothing more is to be said of it: the optimizer, initializers, the saver.
bool TypeRules::readsPlain() const {
  for (Endpoint E : G.dataInputs(N))
    if (!T.natural(E).isPlain())
      return false;
  return G.node(N).NumData > 0;
}

void TypeRules::infer() {
  const struct Node &This = G.node(N);
  const OpRule &Op = Ops[This.Op];
  bool PerReplica = This.Count == Copies::PerReplica;
  Assumes = 0;
  if (When) {
    if (auto Predicate = localPredicate(N)) {
      infersLocally(*Predicate);
      return;
    }
    if (!T.LocalPredicates.empty())
      T.LocalPredicates.erase(N);
  }
  if (Loops && (Op.Rule == TypeRule::LocalHandle || Loops->isLoopMerge(N))) {
    for (unsigned I = 0; I < This.NumData; ++I)
      Assumes |= operand(I).Assumes;
    if (Op.Rule == TypeRule::LocalHandle)
      localHandle();
    else
      loopMerge();
    return;
  }
  if (!Op.Slow && !(PerReplica && (Op.Opaque || Op.Draws)) && readsPlain()) {
    // A function of values that are equal and true is equal and true.
    setAll(RType::replicated());
    return;
  }
  if (HasStates && usesState())
    return;
  bool AllTrue = true, AnySymbolic = false, AnyOrdered = false,
       AnyVarying = false;
  for (unsigned I = 0; I < This.NumData; ++I) {
    RType In = operand(I);
    AnyOrdered |= In.Order != RType::InOrder && !In.isVarying();
    AnyVarying |= In.isVarying();
    AllTrue &= In.isTrue() && !In.Zero;
    AnySymbolic |= In.Symbolic;
    Assumes |= In.Assumes;
  }
  if (AnyVarying && !PerReplica)
    askForRows();
  const UpdateDef &U = T.Vars.update(G, N);
  if (U.Kind != UpdateKind::None) {
    update(U);
    return;
  }
  unsigned Outputs = D.numOutputs(N);
  if (Outputs == 0) {
    // What is put is taken by a node to which no edge leads.
    if (Op.Rule == TypeRule::AccumulatorPut && !FirstRound)
      G.forEachUse(G.input(N, 0).Node, [&](Use U) {
        if (Ops[G.node(U.User).Op].Rule == TypeRule::AccumulatorTake)
          Due[U.User] = true;
      });
    return;
  }
  bool Draws = Op.Draws && PerReplica;
  if (PerReplica && Op.Opaque) {
    apply(TypeRule::None);
    return;
  }
  if (AllTrue && !Draws && !Op.Special && This.NumData > 0) {
    setAll(RType::replicated());
    return;
  }
  if (AnySymbolic && PerReplica && Op.Rule == TypeRule::Range && range())
    return;
  if (AnySymbolic || Op.IsConst)
    for (unsigned Port = 0; Port < Outputs; ++Port)
      if (auto Value = D.value(out(Port))) {
        // Shape arithmetic: the local value is used unchanged as a size.
        RType Type = RType::replicated();
        Type.Symbolic = hasLocalSize(*Value);
        setAll(Type);
        return;
      }
  if (Op.IsConst) {
    // One value, as long as the rows of a replica (the certificate sees to it).
    int Axis = PerReplica ? D.batchAxis(out()) : -1;
    RType Type = Axis >= 0 ? RType::sharded(Axis) : RType::replicated();
    Type.Zero = D.isZero(N);
    setAll(Type);
    return;
  }
  if (Draws && Op.Rule != TypeRule::Random) {
    setAll(varying("draws different random numbers on each replica"));
    return;
  }
  if (This.NumData == 0 && !Draws) {
    setAll(Op.Rule == TypeRule::OptionalNone ? RType::nothing()
                                             : RType::replicated());
    return;
  }
  bool Counts = AnyVarying && PerReplica && byRowNumbers(Op.Rule);
  if (!Counts && D.table().hasRagged() && mixesRows(Op.Rule))
    setAll(varying("combines a data-dependent number of rows with other rows"));
  else if (!Counts && AnyOrdered)
    applyOrdered(Op.Rule);
  else if (!Counts)
    apply(Op.Rule);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

RType TypeRules::operand(unsigned I) const {
  Endpoint E = G.input(N, I);
  RType Type = T.type(E);
  return G.node(N).Count == Copies::Once ? mergedOperand(E, Type) : Type;
}

/// A node that exists once reads what merge-fetches will make of a per-replica
/// tensor: the true value.
RType TypeRules::mergedOperand(Endpoint E, RType Type) const {
  if (Type.isVarying() || G.node(E.Node).Count != Copies::PerReplica ||
      combinesReplicas(G, N))
    return Type;
  if (Type.isJoined())
    return RType::varying(E.Node);
  RType Merged = RType::replicated();
  Merged.Assumes = Type.Assumes;
  return Merged;
}

RType TypeRules::number(unsigned I) {
  RType Type = operand(I);
  if (!Type.Symbolic)
    return Type;
  RType Number = T.number(G.input(N, I));
  if (Number.isVarying())
    return varying("uses a size that is not a multiple of the batch size");
  return Number;
}

RType TypeRules::numeric(unsigned I) {
  RType Type = number(I);
  // A minimum, or a conjunction, is no sum: arithmetic needs its value.
  return Type.isPartial() && Type.Op != Combine::Sum ? reduced(I) : Type;
}

RType TypeRules::reduced(unsigned I) {
  RType Type = number(I);
  if (!Type.isPartial())
    return Type;
  Demand A;
  A.Kind = Demand::Reduce;
  A.Source = hoist(G.input(N, I));
  A.Because = N;
  // Others read it as a size.
  if (operand(I).Symbolic) {
    A.Kind = Demand::Count;
    A.Source = G.input(N, I);
    A.User = N;
    A.Index = I;
  }
  if (Loops && Loops->givesInside(A.Source.Node))
    refuseInside(I, "needs the " + Type.str() +
                        " of all replicas inside a loop, where replicas cannot "
                        "exchange values");
  else
    Asked.push_back(A);
  RType Result = RType::replicated();
  Result.Assumes = Type.Assumes;
  return Result;
}

RType TypeRules::scaled(unsigned I, RType Is, int ToK) {
  if (Is.K == ToK || Is.Zero || Is.isVarying())
    return Is;
  Demand A;
  A.Kind = Demand::Scale;
  A.Source = G.input(N, I);
  A.User = A.Because = N;
  A.Index = I;
  A.Power = ToK - Is.K;
  if (Loops && Loops->givesInside(A.Source.Node))
    refuseInside(
        I, "needs the global value of a per-replica row count inside a loop");
  else
    Asked.push_back(A);
  Is.K = static_cast<int8_t>(ToK);
  Is.Symbolic = false;
  return Is;
}

RType TypeRules::plain(unsigned I) {
  RType Type = reduced(I);
  return Type.K != 0 ? scaled(I, Type, 0) : Type;
}

RType TypeRules::whole(unsigned I) {
  RType Type = reduced(I);
  if (Type.isSharded())
    return gathered(I, Type);
  return scaled(I, Type, 0);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// \p Type as a result of the node at hand has it.
RType TypeRules::asResult(RType Type) const {
  Type.Assumes |= Assumes;
  Type.Zero &= Ops[G.node(N).Op].KeepsZeros;
  // Only what takes row numbers can say that its result is such.
  if (Type.isVarying() && !SetsNumbers)
    Type.Order = RType::InOrder;
  return Type;
}

void TypeRules::set(unsigned Port, RType Type) {
  if (Port < D.numOutputs(N))
    T.Types[D.outputIndex(out(Port))] = asResult(Type);
}

void TypeRules::setAll(RType Type) {
  std::fill_n(T.Types.begin() + D.outputIndex(out()), D.numOutputs(N),
              asResult(Type));
}

RType TypeRules::varying(const Twine &Why) {
  T.Reasons.try_emplace(N, Why.str());
  return RType::varying(N);
}

RType TypeRules::varyingLike(RType From) {
  return RType::varying(From.Cause == NoNode ? N : From.Cause);
}

int TypeRules::rank(Endpoint E) const {
  auto S = D.shape(E);
  return S ? static_cast<int>(S->size()) : -1;
}

int TypeRules::alignedAxis(unsigned I, int Axis) const {
  int In = rank(G.input(N, I)), Out = rank(out());
  return In < 0 || Out < In ? -1 : Axis + Out - In;
}

bool TypeRules::broadcastsAlong(unsigned I, int OutAxis) const {
  auto S = D.shape(G.input(N, I));
  int Out = rank(out());
  if (!S || Out < 0)
    return false;
  int Axis = OutAxis - (Out - static_cast<int>(S->size()));
  return Axis < 0 || D.table().isOne((*S)[Axis]);
}

//===----------------------------------------------------------------------===//
// Element-wise families
//===----------------------------------------------------------------------===//

/// Sums: what is added must have one relation.
RType TypeRules::add(ArrayRef<unsigned> Operands) {
  SmallVector<RType, 8> Types;
  bool AnySharded = false, AnyPartial = false, AllZero = true;
  for (unsigned I : Operands) {
    Types.push_back(numeric(I));
    const RType &X = Types.back();
    if (X.isVarying())
      return varyingLike(X);
    AnySharded |= X.isSharded();
    AnyPartial |= X.isPartial() && !X.Zero;
    AllZero &= X.Zero;
  }
  if (AnySharded) {
    int Axis = -1;
    std::optional<int> K;
    for (size_t J = 0; J < Types.size(); ++J) {
      RType &X = Types[J];
      unsigned I = Operands[J];
      if (X.isPartial())
        X = reduced(I);
      if (X.isSharded()) {
        int At = alignedAxis(I, X.Axis);
        if (At < 0 || (Axis >= 0 && At != Axis))
          return varying("adds values that are split along different axes");
        Axis = At;
      }
      if (!X.Zero && (!K || X.K == 0))
        K = X.K;
    }
    for (size_t J = 0; J < Types.size(); ++J) {
      if (!Types[J].isSharded() && !broadcastsAlong(Operands[J], Axis))
        return varying("adds a per-replica shard to a replicated value along "
                       "the batch axis");
      scaled(Operands[J], Types[J], K.value_or(0));
    }
    RType Result = RType::sharded(Axis, K.value_or(0));
    Result.Zero = AllZero;
    return Result;
  }
  if (AnyPartial) {
    // Partial(k) goes with Partial(k), and with Replicated(k-1), which is
    // Partial(k) as well: N equal terms.
    std::optional<int> K;
    bool Fits = true;
    for (const RType &X : Types) {
      if (X.Zero)
        continue;
      int As = X.isPartial() ? X.K : X.K + 1;
      Fits &= !K || *K == As;
      K = As;
    }
    if (Fits)
      return RType::partial(*K);
    bool OnlyPartials =
        all_of(Types, [](const RType &X) { return X.Zero || X.isPartial(); });
    if (OnlyPartials) {
      for (size_t J = 0; J < Types.size(); ++J)
        scaled(Operands[J], Types[J], 0);
      return RType::partial(0);
    }
    for (size_t J = 0; J < Types.size(); ++J)
      Types[J] = plain(Operands[J]);
    return RType::replicated();
  }
  std::optional<int> K;
  for (const RType &X : Types)
    if (!X.Zero && (!K || X.K == 0))
      K = X.K;
  for (size_t J = 0; J < Types.size(); ++J)
    scaled(Operands[J], Types[J], K.value_or(0));
  RType Result = RType::replicated(K.value_or(0));
  Result.Zero = AllZero;
  return Result;
}

/// Products and quotients of operands \p I and \p J.
RType TypeRules::multiply(unsigned I, RType X, unsigned J, RType Y, int Sign) {
  if (X.isVarying())
    return varyingLike(X);
  if (Y.isVarying())
    return varyingLike(Y);
  auto Reduce = [&](unsigned Index, RType &Type) {
    if (Type.isPartial())
      Type = reduced(Index);
  };
  if (Sign < 0)
    Reduce(J, Y);
  if (X.isPartial() && !Y.isReplicated()) {
    Reduce(I, X);
    Reduce(J, Y);
  } else if (Y.isPartial() && !X.isReplicated()) {
    Reduce(J, Y);
  }
  int K = X.K + Sign * Y.K;
  // Zeros divided by zeros are none.
  bool Zero = Sign > 0 ? X.Zero || Y.Zero : X.Zero && !Y.Zero;
  if (X.isPartial() || Y.isPartial()) {
    RType Result = RType::partial(K);
    Result.Zero = Zero;
    return Result;
  }
  RType Result = RType::replicated(K);
  if (X.isSharded() || Y.isSharded()) {
    int AX = X.isSharded() ? alignedAxis(I, X.Axis) : -1;
    int AY = Y.isSharded() ? alignedAxis(J, Y.Axis) : -1;
    if ((X.isSharded() && AX < 0) || (Y.isSharded() && AY < 0))
      return varying("has an operand of unknown rank");
    int Axis = X.isSharded() ? AX : AY;
    if (X.isSharded() && Y.isSharded() && AX != AY)
      return varying("combines every row of the batch with every other row");
    if ((!X.isSharded() && !broadcastsAlong(I, Axis)) ||
        (!Y.isSharded() && !broadcastsAlong(J, Axis)))
      return varying("combines a per-replica shard with a replicated value "
                     "along the batch axis");
    Result = RType::sharded(Axis, K);
  }
  Result.Zero = Zero;
  return Result;
}

/// Anything element-wise that is not linear: plain operands along one axis.
RType TypeRules::elementwise(ArrayRef<unsigned> Operands) {
  int Axis = -1;
  SmallVector<RType, 4> Types;
  for (unsigned I : Operands) {
    RType X = plain(I);
    if (X.isVarying())
      return varyingLike(X);
    if (X.isSharded()) {
      int At = alignedAxis(I, X.Axis);
      if (At < 0)
        return varying("has an operand of unknown rank");
      if (Axis >= 0 && At != Axis)
        return varying("combines every row of the batch with every other row");
      Axis = At;
    }
    Types.push_back(X);
  }
  if (Axis < 0)
    return RType::replicated();
  for (size_t J = 0; J < Types.size(); ++J)
    if (!Types[J].isSharded() && !broadcastsAlong(Operands[J], Axis))
      return varying("combines a per-replica shard with a replicated value "
                     "along the batch axis");
  return RType::sharded(Axis);
}

//===----------------------------------------------------------------------===//
// Updates of variables
//===----------------------------------------------------------------------===//

/// Every value that an update reads must be the true one. The op's gradient
/// slot plays no part: an optimizer made of plain assignments is as good.
void TypeRules::update(const UpdateDef &U) {
  TypeAnalysis::VariableState *S = HasStates ? stateOf(G.input(N, 0)) : nullptr;
  for (unsigned I = U.NumVars; I < numData(); ++I) {
    RType Type = whole(I);
    if (!Type.isVarying() && Refused != I)
      continue;
    T.Unproved.push_back({N, I});
    if (S && G.node(G.input(N, I).Node).Count == Copies::PerReplica)
      diverge(T.Vars.variableOf(G.input(N, 0)), *S);
  }
  setAll(RType::replicated());
}

} // namespace graft
