//===- lib/infer/rules/ValueRules.cpp - rules for integer values *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Shape arithmetic on symbols: which element of a shape vector is the batch.
// What leaves the monomials c * b^B * N^R (a sum with the batch, an inexact
// quotient) becomes an unknown size.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/DimRules.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

using namespace llvm;

namespace graft {

static bool isShapeInteger(unsigned Type) {
  return Type == DT_INT32 || Type == DT_INT64;
}

void DimRules::constant() {
  if (A.Shapes[A.outputIndex({N, 0})].Known)
    return;
  auto Tensor = constValue(G, N);
  if (!Tensor)
    return;
  A.ZeroConsts[N] = Tensor->AllZero;
  // Where it holds the sizes of one replica, those of the input count.
  std::optional<TensorValue> Was;
  if (auto Bytes = G.node(N).Flags & NF_MayHaveGraft ? G.attr(N, OriginalAttr)
                                                     : std::nullopt)
    Was = tensorValue(*Bytes);
  if (Was && (Was->Shape.Dims.size() != Tensor->Shape.Dims.size() ||
              Was->Ints.size() != Tensor->Ints.size()))
    Was.reset();
  DimList Shape;
  for (size_t I = 0; I < Tensor->Shape.Dims.size(); ++I) {
    int64_t Size = Tensor->Shape.Dims[I];
    Shape.push_back(Was && Was->Shape.Dims[I] != Size
                        ? changedNumber(I, Was->Shape.Dims[I], Size)
                        : number(I, Size));
  }
  setShape(0, Shape);
  if (!Tensor->HasInts || Shape.size() > 1)
    return;
  // Every element is a variable of its own, also an element that is 1.
  DimList Elements;
  for (size_t I = 0; I < Tensor->Ints.size(); ++I)
    Elements.push_back(changedNumber(
        64 + I, Was ? Was->Ints[I] : Tensor->Ints[I], Tensor->Ints[I]));
  setValue(0, Elements);
}

/// Only what reads a tracked value can make one; Shape, Range and their like
/// make theirs together with their shapes.
void DimRules::valueRule(ValueRule Rule) {
  if (Rule == ValueRule::None || numData() == 0)
    return;
  Dims X = val(0);
  if (!X && Rule != ValueRule::Pack && Rule != ValueRule::Concat &&
      Rule != ValueRule::Fill)
    return;
  switch (Rule) {
  case ValueRule::None:
    return;
  case ValueRule::Pack: {
    DimList List;
    for (unsigned I = 0; I < numData(); ++I) {
      Dims V = val(I), S = in(I);
      if (!V || !S || !S->empty())
        return;
      List.push_back((*V)[0]);
    }
    setValue(0, List);
    return;
  }
  case ValueRule::Concat: {
    DimList List;
    for (unsigned I = 0; I + 1 < numData(); ++I) {
      Dims V = val(I);
      if (!V)
        return;
      List.append(V->begin(), V->end());
    }
    setValue(0, List);
    return;
  }
  case ValueRule::Fill: {
    Dims V = val(1);
    auto Count = nums(0);
    if (!V || V->size() != 1 || !Count || Count->size() > 1)
      return;
    size_t Size = Count->empty() ? 1 : static_cast<size_t>((*Count)[0]);
    if (Size <= 64)
      setValue(0, DimList(Size, (*V)[0]));
    return;
  }
  case ValueRule::Same: {
    // What replicas add up is no size of one.
    if (G.isOp(N, "_FromReplicas") &&
        G.stringAttr(N, "combine") != StringRef("pick"))
      return;
    Dims S = A.shape({N, 0});
    for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
      if (S && S->size() <= 1)
        setValue(Port, *X);
    return;
  }
  case ValueRule::Cast:
    if (isShapeInteger(G.outputType(N, 0)))
      setValue(0, *X);
    return;
  case ValueRule::StridedSlice:
    stridedSlice(true);
    return;
  case ValueRule::Slice: {
    auto Begin = num(1), Size = num(2);
    if (!Begin || !Size || *Begin < 0 || *Begin > int64_t(X->size()))
      return;
    size_t Count = *Size < 0 ? X->size() - *Begin : static_cast<size_t>(*Size);
    if (*Begin + Count <= X->size())
      setValue(0, X->slice(*Begin, Count));
    return;
  }
  case ValueRule::Gather: {
    auto Rows = nums(1);
    if (!Rows)
      return;
    DimList List;
    for (int64_t R : *Rows) {
      if (R < 0 || R >= int64_t(X->size()))
        return;
      List.push_back((*X)[R]);
    }
    setValue(0, List);
    return;
  }
  case ValueRule::Unpack:
    for (unsigned I = 0; I < A.numOutputs(N) && I < val(0)->size(); ++I)
      setValue(I, (*val(0))[I]);
    return;
  case ValueRule::Prod: {
    DimId Product = One;
    for (size_t I = 0; I < X->size(); ++I)
      Product = product(32 + I, Product, (*val(0))[I]);
    Dims S = A.shape({N, 0});
    if (S && S->size() <= 1)
      setValue(0, Product);
    return;
  }
  case ValueRule::Like: {
    DimList List;
    for (size_t I = 0; I < X->size(); ++I)
      List.push_back(number(I + 1, G.isOp(N, op::OnesLike)));
    setValue(0, List);
    return;
  }
  case ValueRule::InvertPermutation: {
    auto Perm = nums(0);
    if (!Perm)
      return;
    SmallVector<int64_t, 8> Inverse(Perm->size());
    for (size_t I = 0; I < Perm->size(); ++I) {
      if ((*Perm)[I] < 0 || (*Perm)[I] >= int64_t(Perm->size()))
        return;
      Inverse[(*Perm)[I]] = static_cast<int64_t>(I);
    }
    DimList List;
    for (size_t I = 0; I < Inverse.size(); ++I)
      List.push_back(number(32 + I, Inverse[I]));
    setValue(0, List);
    return;
  }
  case ValueRule::Arithmetic:
    arithmetic(G.opName(N));
    return;
  }
}

DimId DimRules::arithmeticElement(StringRef Op, unsigned Slot, DimId X,
                                  DimId Y) {
  if (Op == op::Mul)
    return product(Slot, X, Y);
  if (Op == op::FloorDiv || Op == op::TruncateDiv)
    return quotient(Slot, X, Y);
  bool Numbers = !A.Dims.hasSym(X) && !A.Dims.hasSym(Y) && A.Dims.isKnown(X) &&
                 A.Dims.isKnown(Y);
  int64_t NX = A.Dims.number(X), NY = A.Dims.number(Y);
  if (Op == op::Maximum) {
    if (A.Dims.find(X) == A.Dims.find(Y))
      return X;
    // Sizes are at least 1, but for ragged rows.
    auto IsSize = [&](DimId D) {
      return A.Dims.hasSym(D) && !A.Dims.isRagged(D);
    };
    if (IsSize(X) && !A.Dims.hasSym(Y) && NY != UnknownSize && NY <= 1)
      return X;
    if (IsSize(Y) && !A.Dims.hasSym(X) && NX != UnknownSize && NX <= 1)
      return Y;
    // A number that may yet turn out to be the batch keeps its identity.
    if (Numbers)
      return NX >= NY ? X : Y;
    return slotFrom(Slot | OpaqueSlot, {X, Y});
  }
  if (Op == op::Minimum) {
    if (A.Dims.find(X) == A.Dims.find(Y))
      return X;
    if (Numbers)
      return NX <= NY ? X : Y;
    return slotFrom(Slot | OpaqueSlot, {X, Y});
  }
  if (Op == op::Add || Op == op::AddV2 || Op == op::Sub) {
    if (!A.Dims.hasSym(Y) && NY == 0)
      return X;
    if (Op != op::Sub && !A.Dims.hasSym(X) && NX == 0)
      return Y;
    if (Numbers)
      return number(Slot, Op == op::Sub ? NX - NY : NX + NY);
    if (Op != op::Sub)
      return total(Slot | OpaqueSlot, {X, Y});
    return slotFrom(Slot | OpaqueSlot, {X, Y});
  }
  if ((Op == op::FloorMod || Op == op::Mod) && Numbers && NY > 0)
    return number(Slot, ((NX % NY) + NY) % NY);
  return slotFrom(Slot | OpaqueSlot, {X, Y});
}

void DimRules::arithmetic(StringRef Op) {
  if (numData() == 1)
    return;
  Dims X = val(0), Y = val(1);
  if (!X || !Y || X->empty() || Y->empty())
    return;
  size_t Size = std::max(X->size(), Y->size());
  if ((X->size() != Size && X->size() != 1) ||
      (Y->size() != Size && Y->size() != 1))
    return;
  DimList List;
  for (size_t I = 0; I < Size; ++I) {
    DimId EX = (*val(0))[X->size() == 1 ? 0 : I];
    DimId EY = (*val(1))[Y->size() == 1 ? 0 : I];
    List.push_back(arithmeticElement(Op, 128 + I, EX, EY));
  }
  setValue(0, List);
}

/// StridedSlice of a tensor's shape, or of the elements of a tracked vector.
/// StridedSliceGrad takes a tensor of the shape that the slice has.
void DimRules::stridedSlice(bool OfValue) {
  bool OfGrad = G.isOp(N, op::StridedSliceGrad);
  if (Dims V = val(0); V && OfGrad)
    setShape(0, *V);
  auto Begin = nums(1), Stride = nums(3);
  Dims EndSizes = val(2);
  if (!Begin || !EndSizes || !Stride || Begin->size() != EndSizes->size() ||
      Begin->size() != Stride->size())
    return;
  auto Mask = [&](const char *Key) { return G.intAttr(N, Key).value_or(0); };
  int64_t BeginMask = Mask("begin_mask"), EndMask = Mask("end_mask"),
          Ellipsis = Mask("ellipsis_mask"), NewAxis = Mask("new_axis_mask"),
          Shrink = Mask("shrink_axis_mask");
  if (OfValue) {
    Dims X = val(0);
    if (Begin->size() != 1 || Ellipsis || NewAxis || (*Stride)[0] != 1)
      return;
    int64_t Size = int64_t(X->size());
    int64_t From = BeginMask & 1 ? 0 : (*Begin)[0];
    int64_t End = A.Dims.number((*EndSizes)[0]);
    if (A.Dims.hasSym((*EndSizes)[0]) || (End == UnknownSize && !(EndMask & 1)))
      return;
    int64_t To = EndMask & 1 ? Size : End;
    if (From < 0)
      From += Size;
    if (To < 0)
      To += Size;
    To = std::min(To, Size);
    if (From < 0 || From > Size)
      return;
    if (Shrink & 1) {
      if (From < Size)
        setValue(0, (*X)[From]);
      return;
    }
    setValue(0, X->slice(From, std::max<int64_t>(0, To - From)));
    return;
  }
  Dims X = OfGrad ? val(0) : in(0);
  if (!X)
    return;
  DimList Whole(X->begin(), X->end()), List;
  size_t Axis = 0, Count = Begin->size();
  for (size_t I = 0; I < Count; ++I) {
    if (Ellipsis >> I & 1) {
      size_t Rest = 0;
      for (size_t K = I + 1; K < Count; ++K)
        Rest += !(NewAxis >> K & 1);
      while (Axis + Rest < Whole.size())
        List.push_back(Whole[Axis++]);
      continue;
    }
    if (NewAxis >> I & 1) {
      List.push_back(One);
      continue;
    }
    if (Axis >= Whole.size())
      return;
    DimId Old = Whole[Axis++];
    if (Shrink >> I & 1) {
      int64_t Rows = A.localNumber(Old), At = (*Begin)[I];
      require(Rows == UnknownSize || (At < Rows && At >= -Rows), Old,
              "selects a row that a replica does not have");
      continue;
    }
    int64_t Size = A.Dims.number(Old);
    DimId End = (*EndSizes)[I];
    bool FromStart = (BeginMask >> I & 1) || (*Begin)[I] == 0;
    // All rows: to the end, or up to a size that is the dimension's own.
    bool ToEnd = (EndMask >> I & 1) || A.Dims.find(End) == A.Dims.find(Old);
    if (FromStart && ToEnd && (*Stride)[I] == 1) {
      List.push_back(Old);
      continue;
    }
    int64_t From = BeginMask >> I & 1 ? 0 : (*Begin)[I];
    int64_t To = EndMask >> I & 1 ? Size : A.Dims.number(End);
    if (Size == UnknownSize || A.Dims.hasSym(Old) || To == UnknownSize ||
        (!(EndMask >> I & 1) && A.Dims.hasSym(End)) || (*Stride)[I] <= 0) {
      bool Open = EndMask >> I & 1;
      List.push_back(slotFrom(I, {Old, Open ? Old : End}));
      continue;
    }
    if (From < 0)
      From += Size;
    if (To < 0)
      To += Size;
    To = std::min(To, Size);
    int64_t Length =
        To > From ? (To - From + (*Stride)[I] - 1) / (*Stride)[I] : 0;
    List.push_back(number(I, Length));
  }
  while (Axis < Whole.size())
    List.push_back(Whole[Axis++]);
  if (!OfGrad)
    setShape(0, List);
  else if (Dims Dy = in(4))
    sameShapes(*Dy, List);
}

/// Axes along which a broadcast operand's gradient is summed
/// (tensorflow/core/util/bcast.h).
void DimRules::broadcastGradientArgs() {
  setShape(0, slot(0));
  setShape(1, slot(1));
  Dims X = val(0), Y = val(1);
  if (!X || !Y)
    return;
  size_t Rank = std::max(X->size(), Y->size()),
         Both = std::min(X->size(), Y->size());
  sameRows(X->take_back(Both), Y->take_back(Both), Both);
  DimList AxesX, AxesY;
  for (size_t I = 0; I < Rank; ++I) {
    size_t FromEnd = Rank - I;
    DimId DX = FromEnd <= X->size() ? (*X)[X->size() - FromEnd] : One;
    DimId DY = FromEnd <= Y->size() ? (*Y)[Y->size() - FromEnd] : One;
    bool OneX = A.Dims.isOne(DX), OneY = A.Dims.isOne(DY);
    if (!OneX && !OneY && A.Dims.find(DX) != A.Dims.find(DY) &&
        !(A.Dims.isKnown(DX) && A.Dims.isKnown(DY)))
      return;
    if (OneX)
      AxesX.push_back(number(2 + I, int64_t(I)));
    if (OneY)
      AxesY.push_back(number(34 + I, int64_t(I)));
  }
  setValue(0, AxesX);
  setValue(1, AxesY);
}

void DimRules::rangeValue() {
  auto Start = num(0), Delta = num(2);
  Dims Limit = val(1);
  if (!Start || !Delta || !Limit || *Delta == 0) {
    setShape(0, slot(0));
    return;
  }
  DimId End = (*Limit)[0];
  if (*Start == 0 && *Delta == 1)
    setShape(0, End);
  auto Stop = num(1);
  if (!Stop)
    return;
  DimList List;
  for (int64_t V = *Start; *Delta > 0 ? V < *Stop : V > *Stop; V += *Delta) {
    if (List.size() == 64)
      return;
    List.push_back(number(1 + List.size(), V));
  }
  if (*Start != 0 || *Delta != 1)
    setShape(0, number(0, int64_t(List.size())));
  setValue(0, List);
}

void DimRules::dynamicStitch() {
  unsigned Count = numData() / 2;
  DimList List;
  std::vector<bool> Set;
  for (unsigned I = 0; I < Count; ++I) {
    auto Rows = nums(I);
    Dims Data = val(Count + I);
    if (!Rows || !Data)
      return;
    for (size_t K = 0; K < Rows->size(); ++K) {
      int64_t R = (*Rows)[K];
      if (R < 0 || R >= 64 ||
          (Data->size() != Rows->size() && Data->size() != 1))
        return;
      if (size_t(R) >= List.size()) {
        List.resize(R + 1, One);
        Set.resize(R + 1);
      }
      List[R] = (*Data)[Data->size() == 1 ? 0 : K];
      Set[R] = true;
    }
  }
  if (!llvm::all_of(Set, [](bool B) { return B; }))
    return;
  setShape(0, number(0, int64_t(List.size())));
  setValue(0, List);
}

/// Where each part begins in a concatenation along one axis.
void DimRules::concatOffset() {
  auto Axis = num(0);
  if (!Axis)
    return;
  DimId Sum = number(0, 0);
  for (unsigned I = 1; I < numData(); ++I) {
    Dims S = val(I);
    if (!S || *Axis < 0 || *Axis >= int64_t(S->size()))
      return;
    // The op checks that the other sizes are the same.
    if (Dims First = val(1); First && First->size() == S->size())
      for (size_t D = 0; D < S->size(); ++D)
        if (int64_t(D) != *Axis)
          same((*First)[D], (*S)[D]);
    DimList List(S->size(), number(1, 0));
    List[*Axis] = Sum;
    DimId Part = (*S)[*Axis];
    Sum = arithmeticElement(op::Add, 2 + I, Sum, Part);
    setShape(I - 1, number(100, int64_t(List.size())));
    setValue(I - 1, List);
  }
}

} // namespace graft
