//===- lib/infer/types/TypeContext.cpp - one node to its rule ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A concatenation along the batch axis computes, on every replica, the
// replica's rows of the first part, then those of the second, and so on. These
// are the rows of the global value in another order, which the sizes of the
// parts determine. An op that works row by row, or sums over all rows, may use
// them if all its operands have the same order. An op that needs the rows of
// all replicas asks for a gather of each part, before the concatenation.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeContext.h"

#include "lib/infer/graph/Topology.h"
#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

TypeContext::TypeContext(TypeAnalysis &T, ArrayRef<NodeId> Order)
    : NodeView{T.G}, Types(T), D(T.Dims), T(T), Due(G.size()),
      Loops(LoopInfo::find(G, Order)) {
  Rules.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    const OpRule &Rule = ruleOf(Name);
    Rules.push_back({Rule, traitsOf(Name), Rule.ZerosOf, onNoRows(Name)});
  }
  if (Conditions::any(G))
    When = std::make_unique<const Conditions>(G, Order);
  if (Loops)
    Defined.resize(G.size());
}

bool TypeContext::multipliesZeros() const {
  uint16_t Of = Rules[node().Op].ZerosOf;
  for (unsigned I = 0; I < numData(); ++I)
    if (isOperand(Of, I) && T.natural(input(I)).Zero && given(I).Zero)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Returns the type in which an unreplicated node reads \p E. The pass
/// merge-fetches inserts nodes that compute the global value of a per-replica
/// tensor.
ReplicationType TypeContext::mergedOperand(Endpoint E,
                                           ReplicationType Type) const {
  if (Type.isVarying() || G.node(E.Node).Count != Copies::PerReplica ||
      combinesReplicas(G, N))
    return Type;
  if (Type.isJoined())
    return ReplicationType::varying(E.Node);
  ReplicationType Merged = ReplicationType::replicated();
  Merged.Assumes = Type.Assumes;
  Merged.Zero = Type.Zero && Type.isReplicated();
  return Merged;
}

/// Returns the type in which a replica reads \p E, a global value that an
/// unreplicated node computes. A replica reads its shard, or the whole value if
/// \p E has no batch axis. A size of the whole batch is Varying for a replica.
ReplicationType TypeContext::ofWhole(Endpoint E, ReplicationType Type) const {
  Type.Whole = false;
  auto Axis = Types.wholeAxis(E);
  if (!Axis)
    return ReplicationType::varying(N);
  if (*Axis < 0)
    return Type;
  ReplicationType Rows = ReplicationType::sharded(*Axis);
  Rows.Assumes = Type.Assumes;
  return Rows;
}

ReplicationType TypeContext::number(unsigned I) {
  ReplicationType Type = operand(I);
  if (!Type.Symbolic || G.outputType(input(I)) == DT_VARIANT)
    return Type;
  ReplicationType Number = Types.number(input(I));
  if (Number.isVarying())
    return varying("uses a size that is not a multiple of the batch size");
  return Number;
}

ReplicationType TypeContext::numeric(unsigned I) {
  ReplicationType Type = number(I);
  // Arithmetic is linear in a Partial sum, but not in a Partial minimum.
  return Type.isPartial() && Type.Op != Combine::Sum &&
                 G.outputType(input(I)) != DT_VARIANT
             ? reduced(I)
             : Type;
}

ReplicationType TypeContext::reduced(unsigned I) {
  ReplicationType Type = number(I);
  if (!Type.isPartial())
    return Type;
  Demand A;
  A.Kind = Demand::Reduce;
  A.Source = hoist(input(I));
  A.Because = N;
  // Other users read the operand as a size, which must stay per-replica.
  if (operand(I).Symbolic) {
    A.Kind = Demand::Count;
    A.Source = input(I);
    A.User = N;
    A.Index = I;
  }
  if (Loops && Loops->givesInside(A.Source.Node))
    refuseInside(I, "needs the " + Type.str() +
                        " of all replicas inside a loop, where replicas cannot "
                        "exchange values");
  else
    Asked.push_back(A);
  ReplicationType Result = ReplicationType::replicated();
  Result.Assumes = Type.Assumes;
  return Result;
}

ReplicationType TypeContext::scaled(unsigned I, ReplicationType Is, int ToK) {
  if (Is.K == ToK || Is.Zero || Is.isVarying())
    return Is;
  Demand A;
  A.Kind = Demand::Scale;
  A.Source = input(I);
  A.User = A.Because = N;
  A.Index = I;
  A.Power = ToK - Is.K;
  if (Loops && Loops->givesInside(A.Source.Node))
    refuseInside(
        I, "needs the global value of a per-replica row count inside a loop");
  else
    Asked.push_back(A);
  Is.setPower(ToK);
  Is.Symbolic = false;
  return Is;
}

ReplicationType TypeContext::plain(unsigned I) {
  ReplicationType Type = reduced(I);
  return Type.K != 0 ? scaled(I, Type, 0) : Type;
}

ReplicationType TypeContext::whole(unsigned I) {
  ReplicationType Type = reduced(I);
  if (Type.isSharded())
    return gathered(I, Type);
  return scaled(I, Type, 0);
}

ReplicationType TypeContext::gathered(unsigned I, ReplicationType Is) {
  ReplicationType Result = ReplicationType::replicated();
  Result.Assumes = Is.Assumes;
  Demand A;
  A.Because = N;
  if (Is.isJoined()) {
    // A concatenation of gathered parts has the order of the global value.
    A.Source = whereJoined(input(I));
    if (A.Source.Node == NoNode)
      return varying("needs rows in the order of the single-device step, which "
                     "a concatenation changed");
    if (Loops && Loops->givesInside(A.Source.Node))
      return varying("needs the rows of all replicas, which are concatenated "
                     "inside a loop, where replicas cannot exchange values");
    A.Kind = Demand::Reduce;
    Asked.push_back(A);
    return Result;
  }
  A.Kind = Demand::Gather;
  A.Source = input(I);
  A.User = N;
  A.Index = I;
  A.Axis = Is.Axis;
  A.Uneven = D.isUneven(A.Source, Is.Axis);
  A.Power = -Is.K;
  if (Loops && Loops->givesInside(A.Source.Node))
    refuseInside(I, "needs the rows of all replicas inside a loop, where "
                    "replicas cannot exchange values");
  else
    Asked.push_back(A);
  return Result;
}

//===----------------------------------------------------------------------===//
// Where to reduce
//===----------------------------------------------------------------------===//

/// Returns the tensor to reduce for \p E. Moves up through linear ops with one
/// Partial operand, because a reduction there serves every user of the raw
/// tensor. Does not move above a node with control users, because these would
/// wait for all replicas. Example: control dependencies make a backward pass
/// wait for the gradient of a broadcast operand.
Endpoint TypeContext::hoist(Endpoint E) const {
  auto IsFloat = [&](Endpoint Of) {
    return isFloating(G.outputType(Of.Node, Of.Port));
  };
  for (;;) {
    const Node &P = G.node(E.Node);
    if (P.Count != Copies::PerReplica ||
        (P.Kind != Inserted::No && P.Kind != Inserted::Definition))
      return E;
    int Partial = -1;
    bool Others = true;
    for (unsigned I = 0; I < P.NumData; ++I) {
      ReplicationType In = T.type(G.input(E.Node, I));
      if (In.isPartial()) {
        if (Partial >= 0)
          return E;
        Partial = static_cast<int>(I);
      } else if (!In.isReplicated()) {
        Others = false;
      }
    }
    if (Partial < 0 || !Others)
      return E;
    Endpoint Up = G.input(E.Node, Partial);
    bool IsLinear =
        is(E.Node, trait::LinearInEach) ||
        (is(E.Node, trait::LinearInFirst) && Partial == 0) ||
        (is(E.Node, trait::LinearInSame) && Partial == int(E.Port)) ||
        (is(E.Node, trait::LinearOfFloats) && IsFloat(E) && IsFloat(Up));
    bool IsAwaited = G.anyUse(E.Node, [&](Use U) { return !G.isData(U); });
    // The demand may move out of a loop, not into one.
    if (!IsLinear || IsAwaited ||
        (Loops && Loops->givesInside(Up.Node) && !Loops->givesInside(E.Node)))
      return E;
    E = Up;
  }
}

/// Returns the concatenation that joined the rows of \p E. Returns no node if
/// there are several or none is found.
Endpoint TypeContext::whereJoined(Endpoint E) const {
  for (;;) {
    const Node &P = G.node(E.Node);
    if (is(E.Node, trait::JoinsRows))
      return E;
    bool Keeps = is(E.Node, trait::KeepsRowOrder);
    int From = -1;
    for (unsigned I = 0; Keeps && I < P.NumData; ++I) {
      if (!T.type(G.input(E.Node, I)).isSharded())
        continue;
      Keeps = From < 0;
      From = static_cast<int>(I);
    }
    if (!Keeps || From < 0 || P.Kind != Inserted::No)
      return {};
    E = G.input(E.Node, From);
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

ReplicationType TypeContext::varying(const Twine &Why) {
  T.Reasons.try_emplace(N, Why.str());
  return ReplicationType::varying(N);
}

ReplicationType TypeContext::varyingLike(ReplicationType From) const {
  return ReplicationType::varying(From.Cause == NoNode ? N : From.Cause);
}

void TypeContext::assume(Assumption Assumption) {
  Assumes |= Assumption;
  T.Sources.push_back({N, Assumption});
}

bool TypeContext::isReduced() const { return T.Reduced[D.outputIndex(out())]; }

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

int TypeContext::rank(Endpoint E) const {
  auto S = D.shape(E);
  return S ? static_cast<int>(S->size()) : -1;
}

std::optional<Sym> TypeContext::sizeOf(Endpoint E, unsigned Axis) const {
  auto S = D.shape(E);
  return S && Axis < S->size() ? D.table().sym((*S)[Axis]) : std::nullopt;
}

bool TypeContext::isSameSize(Endpoint X, unsigned AxisOfX, Endpoint Y,
                             unsigned AxisOfY) const {
  auto A = D.shape(X), B = D.shape(Y);
  return A && AxisOfX < A->size() && B && AxisOfY < B->size() &&
         D.table().isEqual((*A)[AxisOfX], (*B)[AxisOfY]);
}

int TypeContext::alignedAxis(unsigned I, int Axis) const {
  int In = rank(I), Out = rank(out());
  return In < 0 || Out < In ? -1 : Axis + Out - In;
}

bool TypeContext::broadcastsAlong(unsigned I, int OutAxis) const {
  auto S = shape(I);
  int Out = rank(out());
  if (!S || Out < 0)
    return false;
  int Axis = OutAxis - (Out - static_cast<int>(S->size()));
  return Axis < 0 || D.table().isOne((*S)[Axis]);
}

int TypeContext::localAxis(Endpoint E) const { return Types.localAxis(E); }

bool TypeContext::isSize(unsigned I) const {
  ReplicationType X = operand(I);
  return X.isReplicated() && (X.K == 0 || X.Zero);
}

ReplicationType TypeContext::sizes(ArrayRef<DimId> Value) const {
  // An element may differ between replicas and the single-device step.
  ReplicationType Type = ReplicationType::replicated();
  // The number of axes may differ as well.
  Type.Symbolic = !D.table().areSame(Value) || D.hasAxesOfOneRow(G, N);
  for (unsigned I = 0; I < numData() && !Type.Symbolic; ++I)
    if (operand(I).Symbolic)
      if (auto Own = D.value(input(I)))
        Type.Symbolic = D.table().areSame(*Own);
  return Type;
}

//===----------------------------------------------------------------------===//
// Orders of rows
//===----------------------------------------------------------------------===//

std::optional<int64_t> TypeContext::blocksOf(ArrayRef<DimId> Before) const {
  constexpr int64_t MaxBlocks = 4096;
  int64_t Blocks = 1;
  for (DimId Size : Before) {
    int64_t Number = D.table().hasSym(Size) ? -1 : D.table().number(Size);
    if (Number <= 0 || Number > MaxBlocks / Blocks)
      return std::nullopt;
    Blocks *= Number;
  }
  return Blocks;
}

std::optional<uint32_t> TypeContext::orderBehind(ArrayRef<DimId> Before,
                                                 const Sym &Each,
                                                 uint32_t Order) {
  if (Order == ReplicationType::AnyOrder)
    Order = ReplicationType::InOrder;
  if (auto Blocks = blocksOf(Before))
    return *Blocks == 1
               ? Order
               : orderOf(TypeAnalysis::OrderedParts(*Blocks, {Order, 0, Each}));
  // There is one block for each step. All replicas must have equally many
  // steps.
  if (Before.size() != 1 || !D.table().isSame(Before[0]) ||
      D.table().hasSym(Before[0]))
    return std::nullopt;
  return orderOf({{Order, D.table().find(Before[0]), Each}});
}

NodeId TypeContext::partedBy(Endpoint E) const {
  auto Shape = D.shape(E);
  if (Shape)
    for (DimId Size : *Shape)
      if (D.table().isRagged(Size))
        if (NodeId By = D.counterOf(D.table().sym(Size)->Ragged);
            is(By, trait::SendsRows))
          return By;
  return NoNode;
}

//===----------------------------------------------------------------------===//
// Conditionals
//===----------------------------------------------------------------------===//

std::optional<Endpoint> TypeContext::localPredicate(NodeId Node) const {
  if (When->isMany(Node)) {
    auto It = LocalOfMany.find(Node);
    return It == LocalOfMany.end() ? std::nullopt : std::optional(It->second);
  }
  for (uint32_t P : When->of(Node))
    if (auto E = localTensor(P))
      return E;
  return std::nullopt;
}

std::optional<Endpoint> TypeContext::localTensor(uint32_t Predicate) const {
  for (Endpoint E : When->tensors(Predicate)) {
    // A predicate in a loop may not have a type yet.
    if (Loops && !Defined[E.Node])
      continue;
    if (ReplicationType Type = T.type(E); Type.isVarying() || Type.isSharded())
      return E;
  }
  return std::nullopt;
}

/// Records a predicate on which replicas may disagree, if an input of the node
/// at hand runs under one. The node at hand runs under many predicates.
void TypeContext::noteMany() {
  LocalOfMany.erase(N);
  for (Endpoint E : G.inputs(N)) {
    if (isBackEdgeOp(G.opName(E.Node)))
      continue;
    auto Predicate = localPredicate(E.Node);
    if (uint32_t P = When->predicateOf(E.Node); !Predicate && P != ~0u)
      Predicate = localTensor(P);
    if (Predicate) {
      LocalOfMany.insert({N, *Predicate});
      return;
    }
  }
}

void types::none(TypeContext &C) {
  bool AllSame = !C.is(trait::Opaque) || !C.isPerReplica();
  for (unsigned I = 0; I < C.numData(); ++I) {
    ReplicationType X = C.number(I);
    if (X.isVarying())
      return C.setAll(C.varyingLike(X));
    AllSame &= !X.isSharded();
  }
  // A function of global values is a global value.
  for (unsigned I = 0; AllSame && I < C.numData(); ++I)
    C.plain(I);
  C.setAll(AllSame ? ReplicationType::replicated()
                   : C.varying("no rule for op " + C.G.opName(C.N)));
}

} // namespace graft
