//===- lib/infer/types/TypeRulesOrder.cpp - orders of rows ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What joins tensors along the axis of the batch has, on every replica, the
// replica's rows of each part, one part after the other: the rows of the true
// value in another order, which the sizes of the parts determine. What works on
// rows one by one, or adds all up, may go on with them as long as all operands
// have one order. What needs the rows of all replicas asks for those of each
// part, before they are joined.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Applies \p Rule where an operand has its rows in another order, or in any.
void TypeRules::applyOrdered(TypeRule Rule) {
  // These look at the orders themselves.
  if (Rule == TypeRule::Join || Rule == TypeRule::Part ||
      Rule == TypeRule::ToBlocks || Rule == TypeRule::FromBlocks) {
    apply(Rule);
    return;
  }
  uint8_t Order = RType::AnyOrder;
  bool Differ = false;
  for (unsigned I = 0; I < numData(); ++I) {
    RType X = operand(I);
    if (!X.isSharded() || X.Zero || X.Order == RType::AnyOrder)
      continue;
    Differ |= Order != RType::AnyOrder && Order != X.Order;
    Order = X.Order;
  }
  bool Joined = Order != RType::InOrder && Order != RType::AnyOrder;
  if (Differ || (Joined && (Rule == TypeRule::FromReplicas ||
                            Rule == TypeRule::GatherReplicas))) {
    setAll(varying(Differ ? "combines rows in different concatenation orders"
                          : "needs rows in a different concatenation order"));
    return;
  }
  apply(Rule);
  for (unsigned Port = 0; Port < D.numOutputs(N); ++Port) {
    RType Type = T.natural(out(Port));
    if (!Type.isSharded())
      continue;
    Type.Order = Order & 63;
    // A row that becomes several, or a part of one, is in no order known.
    if (Rule == TypeRule::Relayout) {
      auto In = D.shape(G.input(N, 0)), Out = D.shape(out(Port));
      uint8_t Axis = operand(0).Axis;
      if (!In || !Out ||
          D.table().find((*In)[Axis]) != D.table().find((*Out)[Type.Axis])) {
        if (Joined)
          Type = varying("reshapes concatenated rows");
        Type.Order = RType::InOrder;
      }
    }
    set(Port, Type);
  }
}

/// The tensor whose rows were joined to what \p E has; no node if there are
/// several, or none is found.
Endpoint TypeRules::whereJoined(Endpoint E) const {
  for (;;) {
    const Node &P = G.node(E.Node);
    TypeRule Rule = Ops[P.Op].Rule;
    if (Rule == TypeRule::Join)
      return E;
    bool Linear = Rule == TypeRule::Pass || Rule == TypeRule::Linear ||
                  Rule == TypeRule::Cast || Rule == TypeRule::Relayout ||
                  Rule == TypeRule::Mul || Rule == TypeRule::Div ||
                  Rule == TypeRule::Add;
    int From = -1;
    for (unsigned I = 0; Linear && I < P.NumData; ++I) {
      if (!T.type(G.input(E.Node, I)).isSharded())
        continue;
      Linear = From < 0;
      From = static_cast<int>(I);
    }
    if (!Linear || From < 0 || P.Kind != Inserted::No)
      return {};
    E = G.input(E.Node, From);
  }
}

/// What exists once reads the rows of all replicas, joined in their order.
void TypeRules::askForRows() {
  for (unsigned I = 0; I < numData(); ++I)
    if (RType Read = T.natural(G.input(N, I)); Read.isJoined())
      gathered(I, Read);
}

RType TypeRules::gathered(unsigned I, RType Is) {
  RType Result = RType::replicated();
  Result.Assumes = Is.Assumes;
  Demand A;
  A.Because = N;
  if (Is.isJoined()) {
    // The rows of all replicas are joined in the order of the true value.
    A.Source = whereJoined(G.input(N, I));
    if (A.Source.Node == NoNode)
      return varying("needs rows in a different concatenation order");
    if (Loops && Loops->givesInside(A.Source.Node))
      return varying("needs rows that a loop concatenates");
    A.Kind = Demand::Reduce;
    Asked.push_back(A);
    return Result;
  }
  A.Kind = Demand::Gather;
  A.Source = G.input(N, I);
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

/// Pack, Concat.
RType TypeRules::join() {
  bool Pack = G.isOp(N, op::Pack), Old = G.isOp(N, op::Concat);
  unsigned First = Old ? 1 : 0, Count = Pack ? numData() : numData() - 1;
  std::optional<int64_t> Axis;
  if (Pack) {
    Axis = G.intAttr(N, "axis").value_or(0);
  } else if (auto V = D.numbers(G.input(N, Old ? 0 : numData() - 1));
             V && V->size() == 1) {
    Axis = (*V)[0];
  }
  SmallVector<unsigned, 8> Operands;
  bool AnySharded = false;
  for (unsigned I = First; I < First + Count; ++I) {
    Operands.push_back(I);
    AnySharded |= numeric(I).isSharded();
  }
  if (!Pack && !operand(Old ? 0 : numData() - 1).isTrue())
    return varying("concatenates along an axis that differs per replica");
  RType Sum = add(Operands);
  if (!AnySharded || !Sum.isSharded()) {
    Sum.Zero = false;
    return Sum;
  }
  int Rank = rank(out());
  if (!Axis || Rank < 0)
    return varying("concatenates tensors of the batch along an unknown axis");
  int At = static_cast<int>(*Axis < 0 ? *Axis + Rank : *Axis);
  // add() aligned the operands at the right, which shifts by the new axis.
  int Batch = Pack ? Sum.Axis - 1 : Sum.Axis;
  if (!Pack && At == Batch)
    return joinRows(Operands, At, Sum);
  uint8_t Order = RType::AnyOrder;
  for (unsigned I : Operands) {
    RType X = operand(I);
    if (!X.isSharded())
      return varying("concatenates a per-replica shard with a replicated value "
                     "along the batch axis");
    if (X.Zero || X.Order == RType::AnyOrder)
      continue;
    if (Order != RType::AnyOrder && Order != X.Order)
      return varying("combines rows in different concatenation orders");
    Order = X.Order;
  }
  Sum.Order = Order & 63;
  Sum.Axis = static_cast<uint8_t>(Pack && At <= Batch ? Batch + 1 : Batch);
  Sum.Zero = false;
  return Sum;
}

/// Concat along the axis of the batch. \p Type is that of a sum of the parts.
RType TypeRules::joinRows(ArrayRef<unsigned> Operands, int Axis, RType Type) {
  if (T.Reduced[D.outputIndex(out())]) {
    // Who reads this needs the rows of all replicas.
    Assumes |= Type.Assumes;
    for (unsigned I : Operands)
      if (RType X = whole(I); !X.isReplicated())
        return varyingLike(X);
    return RType::replicated();
  }
  SmallVector<TypeAnalysis::OrderedPart, 2> Parts;
  for (unsigned I : Operands) {
    RType X = operand(I);
    auto Shape = D.shape(G.input(N, I));
    if (!X.isSharded() || !Shape)
      return varying("concatenates a per-replica shard with a replicated value "
                     "along the batch axis");
    TypeAnalysis::OrderedPart P;
    P.Order = X.Order;
    P.Size = D.table().find((*Shape)[Axis]);
    P.Rows = Sym();
    if (auto S = D.table().sym(P.Size)) {
      P.Size = 0;
      P.Rows = *S;
    }
    Parts.push_back(P);
  }
  Type.Zero = false;
  Type.Axis = static_cast<uint8_t>(Axis);
  if (Parts.size() == 1) {
    Type.Order = Parts[0].Order & 63;
    return Type;
  }
  Type.Order = orderOf(Parts) & 63;
  return Type.isJoined() ? Type
                         : varying("exceeds the limit of distinct "
                                   "concatenation orders along the batch");
}

/// The order of rows of these parts; InOrder when there are too many orders.
uint8_t TypeRules::orderOf(ArrayRef<TypeAnalysis::OrderedPart> Parts) {
  if (T.Orders.empty())
    T.Orders.emplace_back(); // InOrder
  auto It = llvm::find(T.Orders, Parts);
  if (It == T.Orders.end()) {
    if (T.Orders.size() == RType::AnyOrder)
      return RType::InOrder;
    T.Orders.emplace_back(Parts);
    return static_cast<uint8_t>(T.Orders.size() - 1);
  }
  return static_cast<uint8_t>(It - T.Orders.begin());
}

/// How many blocks an image becomes in SpaceToBatch; 0 if that is not known.
static unsigned countBlocks(std::optional<SmallVector<int64_t, 4>> Sizes) {
  unsigned Count = 1;
  for (int64_t Size : Sizes ? *Sizes : SmallVector<int64_t, 4>{0})
    Count = Size <= 0 || Size > 64 || Count > 4096 ? 0 : Count * unsigned(Size);
  return Count;
}

/// SpaceToBatchND: row r of block i is row i*b+r, as if the blocks were joined.
RType TypeRules::toBlocks() {
  RType X = numeric(0);
  unsigned Count = countBlocks(D.numbers(G.input(N, 1)));
  bool Fits = operand(1).isTrue() && operand(2).isTrue();
  if (X.isVarying())
    return varyingLike(X);
  if (Fits && !X.isSharded())
    return X;
  auto Shape = D.shape(G.input(N, 0));
  auto Rows =
      Shape && !Shape->empty() ? D.table().sym((*Shape)[0]) : std::nullopt;
  if (!Fits || X.Axis != 0 || Count < 2 || !Rows)
    return varying("makes blocks whose size differs per replica");
  X.Order = orderOf(SmallVector<TypeAnalysis::OrderedPart>(
                Count, {X.Order, 0, *Rows})) &
            63;
  return X.isJoined() ? X
                      : varying("exceeds the limit of distinct concatenation "
                                "orders along the batch");
}

RType TypeRules::fromBlocks() {
  RType X = numeric(0);
  unsigned Count = countBlocks(D.numbers(G.input(N, 1)));
  if (X.isVarying())
    return varyingLike(X);
  if (!operand(1).isTrue() || !operand(2).isTrue())
    return varying("depends on a per-replica size");
  if (!X.isSharded())
    return X;
  const auto *Parts = X.isJoined() ? &T.Orders[X.Order] : nullptr;
  if (X.Axis != 0 || !Parts || Parts->size() != Count || !all_equal(*Parts))
    return varying("combines blocks that SpaceToBatch did not make");
  X.Order = Parts->front().Order & 63;
  return X;
}

/// Split or Slice that takes one of the parts that \p X, operand \p I, is made
/// of; Varying when it does not.
RType TypeRules::ownPart(unsigned I, RType X) {
  auto None = RType::varying(N);
  const auto &Parts = T.Orders[X.Order];
  auto RowsOf = [&](Endpoint E, unsigned Axis) -> std::optional<Sym> {
    auto Shape = D.shape(E);
    return Shape && Axis < Shape->size() ? D.table().sym((*Shape)[Axis])
                                         : std::nullopt;
  };
  auto Known = [](const TypeAnalysis::OrderedPart &P) {
    return P.Size == 0 && P.Rows.Ragged == 0;
  };
  if (!all_of(Parts, Known))
    return None;
  RType Own = X;
  if (G.isOp(N, op::Split) || G.isOp(N, op::SplitV)) {
    auto Axis = D.numbers(G.input(N, G.isOp(N, op::Split) ? 0 : 2));
    int Rank = rank(G.input(N, I));
    if (!Axis || Axis->size() != 1 || D.numOutputs(N) != Parts.size() ||
        ((*Axis)[0] < 0 ? (*Axis)[0] + Rank : (*Axis)[0]) != X.Axis)
      return None;
    for (unsigned Port = 0; Port < Parts.size(); ++Port)
      if (RowsOf(out(Port), X.Axis) != Parts[Port].Rows ||
          Parts[Port].Order != Parts[0].Order)
        return None;
    Own.Order = Parts[0].Order & 63;
    return Own;
  }
  if (!G.isOp(N, op::Slice))
    return None;
  auto Begin = D.value(G.input(N, 1));
  if (!Begin || X.Axis >= Begin->size() || !isSize(1) || !isSize(2))
    return None;
  for (size_t A = 0; A < Begin->size(); ++A)
    if (A != X.Axis && !D.table().isSame((*Begin)[A]))
      return None;
  auto From = D.table().sym((*Begin)[X.Axis]);
  Sym At;
  At.C = 0;
  for (const auto &P : Parts) {
    bool Starts =
        From && (At.C == 0 ? From->isNumber() && From->C == 0 : *From == At);
    if (Starts && RowsOf(out(), X.Axis) == P.Rows) {
      Own.Order = P.Order & 63;
      return Own;
    }
    // Where a part begins after rows of several feeds is not known.
    if (P.Rows.B != Parts[0].Rows.B || P.Rows.R != Parts[0].Rows.R ||
        (At.C != 0 && P.Rows.Rows != At.Rows))
      return None;
    At = {At.C + P.Rows.C, P.Rows.B, P.Rows.R, P.Rows.Rows};
  }
  return None;
}

} // namespace graft
