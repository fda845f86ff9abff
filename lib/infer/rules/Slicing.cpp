//===- lib/infer/rules/Slicing.cpp - parts of a tensor ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Splits, slices and paddings.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// The operands and attributes of a strided slice; none if they are not known.
struct Slice {
  SmallVector<int64_t, 4> Begin, Stride;
  Dims End;
  int64_t BeginMask, EndMask, Ellipsis, NewAxis, Shrink;
};

static std::optional<Slice> sliceOf(SizeContext &C) {
  auto Begin = C.nums(1), Stride = C.nums(3);
  Dims End = C.val(2);
  if (!Begin || !End || !Stride || Begin->size() != End->size() ||
      Begin->size() != Stride->size())
    return std::nullopt;
  auto Mask = [&](const char *Key) { return C.intAttr(Key).value_or(0); };
  return Slice{*Begin,
               *Stride,
               End,
               Mask("begin_mask"),
               Mask("end_mask"),
               Mask("ellipsis_mask"),
               Mask("new_axis_mask"),
               Mask("shrink_axis_mask")};
}

static void unpack(SizeContext &C) {
  Dims X = C.in(0);
  int64_t Axis = C.intAttr("axis").value_or(0);
  if (!X || X->empty())
    return;
  if (Axis < 0)
    Axis += int64_t(X->size());
  if (Axis < 0 || Axis >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  C.require(C.fits(List[Axis], C.numOutputs()), List[Axis],
            "unstacks the rows of the whole batch");
  List.erase(List.begin() + Axis);
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    C.setShape(Port, List);
}

/// The size of each of \p Count equal parts of \p Whole. Of a static batch each
/// has rows of its own number, also where that is no multiple of others.
static DimId partOfRows(SizeContext &C, DimId Whole, DimId Count) {
  DimId Part = C.quotient(1, Whole, Count);
  auto Rows = C.Table.hasSym(Whole) ? C.Table.sym(Whole) : std::nullopt;
  int64_t Number = C.Table.number(Whole), Parts = C.Table.number(Count);
  if (C.Table.isKnown(Part) || !Rows || Rows->B != 1 || Rows->Ragged != 0 ||
      Number == UnknownSize || Parts <= 0 || Number % Parts != 0)
    return Part;
  if (auto S = C.rowsAt(1, {C.N, 0}))
    C.Table.assign(Part, {1, 1, Rows->R, S->Rows});
  C.Table.assignNumber(Part, Number / Parts);
  return Part;
}

static void split(SizeContext &C) {
  bool Uneven = C.isOp(op::SplitV);
  Dims X = C.in(Uneven ? 0 : 1);
  auto Axis = C.num(Uneven ? 2 : 0);
  if (!X || !Axis || X->empty())
    return;
  int64_t At = *Axis < 0 ? *Axis + int64_t(X->size()) : *Axis;
  if (At < 0 || At >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  // A copy: what is set below is in the same pool.
  std::optional<DimList> Sizes;
  if (Dims Parts = Uneven ? C.val(1) : std::nullopt)
    Sizes.emplace(Parts->begin(), Parts->end());
  DimId Whole = List[At];
  DimId Count = C.number(0, C.numOutputs());
  const char *Parts =
      "splits rows into parts that do not divide the rows of a replica";
  if (!Uneven && C.Known.localNumber(Whole) != UnknownSize)
    C.require(C.Known.localNumber(Whole) % C.numOutputs() == 0, Whole, Parts);
  // The size that is -1 is what the others leave.
  int64_t Rest = C.plainNumber(Whole);
  for (DimId Size : Sizes ? ArrayRef(*Sizes) : ArrayRef<DimId>()) {
    int64_t Known = C.plainNumber(Size);
    if (Rest == UnknownSize || Known == UnknownSize)
      Rest = UnknownSize;
    else if (Known != -1)
      Rest -= Known;
  }
  if (auto Ends = Uneven ? C.nums(1) : std::nullopt) {
    int64_t Sum = 0;
    for (int64_t Size : *Ends)
      Sum += Size < 0 ? 0 : Size;
    C.require(is_contained(*Ends, -1) || C.fits(Whole, Sum), Whole, Parts);
  }
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port) {
    if (Uneven && Sizes && Port < Sizes->size() &&
        C.Table.number((*Sizes)[Port]) != -1)
      List[At] = (*Sizes)[Port];
    else if (Uneven)
      List[At] =
          Sizes && Rest >= 0 ? C.number(64 + Port, Rest) : C.slot(64 + Port);
    else
      List[At] = partOfRows(C, Whole, Count);
    C.setShape(Port, List);
  }
}

static void slice(SizeContext &C) {
  Dims X = C.in(0), Size = C.val(2), From = C.val(1);
  auto Begin = C.nums(1);
  if (!X || !Size || Size->size() != X->size())
    return;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    bool ToEnd = C.Table.number((*Size)[I]) == -1;
    if (ToEnd && Begin && (*Begin)[I] == 0)
      List.push_back((*X)[I]);
    else if (ToEnd && Begin)
      List.push_back(C.slotFrom(I, (*X)[I]));
    else if (auto Rest = ToEnd && From && I < From->size()
                             ? C.sizeAfter((*X)[I], (*From)[I])
                             : std::nullopt)
      List.push_back(*Rest);
    else if (ToEnd && From && I < From->size() &&
             C.Table.number((*From)[I]) == 0 && !C.Table.hasSym((*From)[I]))
      List.push_back((*X)[I]);
    else if (ToEnd)
      List.push_back(C.slot(I));
    else
      List.push_back((*Size)[I]);
  }
  C.setShape(0, List);
}

static void pad(SizeContext &C) {
  Dims X = C.in(0);
  // The paddings are a [rank, 2] tensor, which is not tracked as a vector.
  if (!X || C.numData() < 2)
    return;
  auto Tensor = C.G.isOp(C.G.input(C.N, 1).Node, op::Const)
                    ? constValue(C.G, C.G.input(C.N, 1).Node)
                    : std::nullopt;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    if (!Tensor || !Tensor->HasInts || Tensor->Ints.size() != 2 * X->size()) {
      List.push_back(C.slot(I));
      continue;
    }
    int64_t Extra = Tensor->Ints[2 * I] + Tensor->Ints[2 * I + 1];
    if (C.isOp(op::MirrorPadGrad))
      Extra = -Extra;
    int64_t Size = C.Table.number((*C.in(0))[I]);
    if (Extra == 0)
      List.push_back((*C.in(0))[I]);
    else if (Size != UnknownSize && !C.Table.hasSym((*C.in(0))[I]))
      List.push_back(C.number(I, Size + Extra));
    else
      List.push_back(C.slotFrom(I, (*C.in(0))[I]));
  }
  C.setShape(0, List);
}

/// StridedSliceGrad takes a tensor of the shape that the slice has.
static void stridedSlice(SizeContext &C) {
  bool OfGrad = C.isOp(op::StridedSliceGrad);
  if (Dims V = C.val(0); V && OfGrad)
    C.setShape(0, *V);
  auto S = sliceOf(C);
  if (!S)
    return;
  Dims X = OfGrad ? C.val(0) : C.in(0);
  if (!X)
    return;
  DimList Whole(X->begin(), X->end()), List;
  size_t Axis = 0, Count = S->Begin.size();
  for (size_t I = 0; I < Count; ++I) {
    if (S->Ellipsis >> I & 1) {
      size_t Rest = 0;
      for (size_t K = I + 1; K < Count; ++K)
        Rest += !(S->NewAxis >> K & 1);
      while (Axis + Rest < Whole.size())
        List.push_back(Whole[Axis++]);
      continue;
    }
    if (S->NewAxis >> I & 1) {
      List.push_back(C.One);
      continue;
    }
    if (Axis >= Whole.size())
      return;
    DimId Old = Whole[Axis++];
    if (S->Shrink >> I & 1) {
      int64_t Rows = C.Known.localNumber(Old), At = S->Begin[I];
      C.require(Rows == UnknownSize || (At < Rows && At >= -Rows), Old,
                "selects a row that a replica does not have");
      continue;
    }
    int64_t Size = C.Table.number(Old);
    DimId End = (*S->End)[I];
    bool FromStart = (S->BeginMask >> I & 1) || S->Begin[I] == 0;
    // All rows: to the end, or up to a size that is the dimension's own.
    bool ToEnd =
        (S->EndMask >> I & 1) || C.Table.find(End) == C.Table.find(Old);
    if (FromStart && ToEnd && S->Stride[I] == 1) {
      List.push_back(Old);
      continue;
    }
    int64_t From = S->BeginMask >> I & 1 ? 0 : S->Begin[I];
    int64_t To = S->EndMask >> I & 1 ? Size : C.Table.number(End);
    if (Size == UnknownSize || C.Table.hasSym(Old) || To == UnknownSize ||
        (!(S->EndMask >> I & 1) && C.Table.hasSym(End)) || S->Stride[I] <= 0) {
      bool Open = S->EndMask >> I & 1;
      List.push_back(C.slotFrom(I, {Old, Open ? Old : End}));
      continue;
    }
    if (From < 0)
      From += Size;
    if (To < 0)
      To += Size;
    To = std::min(To, Size);
    int64_t Length =
        To > From ? (To - From + S->Stride[I] - 1) / S->Stride[I] : 0;
    List.push_back(C.number(I, Length));
  }
  while (Axis < Whole.size())
    List.push_back(Whole[Axis++]);
  if (!OfGrad)
    C.setShape(0, List);
  else if (Dims Dy = C.in(4))
    C.sameShapes(*Dy, List);
}

} // namespace sizes

namespace values {

static void unpack(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  for (unsigned I = 0; I < C.numOutputs() && I < C.val(0)->size(); ++I)
    C.setValue(I, (*C.val(0))[I]);
}

static void slice(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  auto Begin = C.num(1), Size = C.num(2);
  if (!Begin || !Size || *Begin < 0 || *Begin > int64_t(X->size()))
    return;
  size_t Count = *Size < 0 ? X->size() - *Begin : static_cast<size_t>(*Size);
  if (*Begin + Count <= X->size())
    C.setValue(0, X->slice(*Begin, Count));
}

/// Elements of a tracked vector.
static void stridedSlice(SizeContext &C) {
  Dims X = C.val(0);
  auto S = X ? sizes::sliceOf(C) : std::nullopt;
  if (!S || S->Begin.size() != 1 || S->Ellipsis || S->NewAxis ||
      S->Stride[0] != 1)
    return;
  int64_t Size = int64_t(X->size()), End = C.Table.number((*S->End)[0]);
  bool ToEnd = S->EndMask & 1;
  if (C.Table.hasSym((*S->End)[0]) || (End == UnknownSize && !ToEnd))
    return;
  int64_t From = S->BeginMask & 1 ? 0 : S->Begin[0], To = ToEnd ? Size : End;
  if (From < 0)
    From += Size;
  if (To < 0)
    To += Size;
  To = std::min(To, Size);
  if (From < 0 || From > Size)
    return;
  if (!(S->Shrink & 1))
    C.setValue(0, X->slice(From, std::max<int64_t>(0, To - From)));
  else if (From < Size)
    C.setValue(0, (*X)[From]);
}

} // namespace values

ArrayRef<OpRule> families::slicing() {
  static constexpr OpRule Rules[] = {
      // Layout.
      {.Op = op::Unpack,
       .Sizes = sizes::unpack,
       .Values = values::unpack,
       .Type = TypeRule::Part},
      {.Op = op::Split,
       .Sizes = sizes::split,
       .Type = TypeRule::Part,
       .Is = trait::ComparesSizes},
      {.Op = op::SplitV,
       .Sizes = sizes::split,
       .Type = TypeRule::Part,
       .Is = trait::ComparesSizes},
      {.Op = op::Slice,
       .Sizes = sizes::slice,
       .Values = values::slice,
       .Type = TypeRule::Part},
      {.Op = op::StridedSlice,
       .Sizes = sizes::stridedSlice,
       .Values = values::stridedSlice,
       .Type = TypeRule::Part,
       .Is = trait::ComparesSizes},
      {.Op = op::StridedSliceGrad,
       .Sizes = sizes::stridedSlice,
       .Type = TypeRule::Part,
       .Is = trait::ComparesSizes},
      {.Op = op::Pad, .Sizes = sizes::pad, .Type = TypeRule::Part},
      {.Op = op::PadV2, .Sizes = sizes::pad, .Type = TypeRule::Part},
      {.Op = op::MirrorPad, .Sizes = sizes::pad, .Type = TypeRule::Part},
      {.Op = op::MirrorPadGrad, .Sizes = sizes::pad, .Type = TypeRule::Part},
  };
  return Rules;
}

} // namespace graft
