//===- lib/infer/rules/Slicing.cpp - parts of a tensor ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Splits, slices and paddings.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/SparseRows.h"
#include "lib/program/forms/RowRepeat.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// The operands and attributes of a strided slice. An element of Begin may be
/// UnknownSize.
struct Slice {
  SmallVector<int64_t, 4> Begin, Stride;
  Dims End;
  int64_t BeginMask, EndMask, Ellipsis, NewAxis, Shrink;
};

static std::optional<Slice> sliceOf(SizeContext &C) {
  auto Stride = C.nums(3);
  Dims From = C.val(1), End = C.val(2);
  if (!From || !End || !Stride || From->size() != End->size() ||
      From->size() != Stride->size())
    return std::nullopt;
  SmallVector<int64_t, 4> Begin;
  for (DimId D : *From)
    Begin.push_back(C.plainNumber(D));
  auto Mask = [&](const char *Key) { return C.intAttr(Key).value_or(0); };
  return Slice{Begin,
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
  auto Axis = X ? axisIn(C.intAttr("axis").value_or(0), int64_t(X->size()))
                : std::nullopt;
  if (!Axis)
    return;
  DimList List(X->begin(), X->end());
  C.require(C.fits(List[*Axis], C.numOutputs()), List[*Axis],
            "unstacks the rows of the whole batch");
  List.erase(List.begin() + *Axis);
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    C.setShape(Port, List);
}

/// Returns the size of each of \p Count equal parts of \p Whole. If the batch
/// size is static, each part gets a new row count, which need not be a multiple
/// of other row counts.
static DimId partOfRows(SizeContext &C, DimId Whole, DimId Count) {
  DimId Part = C.quotient(1, Whole, Count);
  auto Rows = C.Table.hasSym(Whole) ? C.Table.sym(Whole) : std::nullopt;
  int64_t Number = C.Table.number(Whole), Parts = C.Table.number(Count);
  if (C.Table.isKnown(Part) || !Rows || Rows->B != 1 || Rows->Ragged != 0 ||
      Number == UnknownSize || Parts <= 0 || Number % Parts != 0)
    return Part;
  if (auto S = C.rowsAt(1, {C.N, 0}))
    C.assign(Part, {1, 1, Rows->R, S->Rows});
  C.assignNumber(Part, Number / Parts);
  return Part;
}

static void split(SizeContext &C) {
  bool Uneven = C.isOp(op::SplitV);
  Dims X = C.in(Uneven ? 0 : 1);
  auto Axis = C.num(Uneven ? 2 : 0);
  auto Along = X && Axis ? axisIn(*Axis, int64_t(X->size())) : std::nullopt;
  if (!Along || C.numOutputs() == 0)
    return;
  unsigned At = *Along;
  DimList List(X->begin(), X->end());
  // Copy the sizes: setting a shape below may move the pool that holds them.
  std::optional<DimList> Sizes;
  if (Dims Parts = Uneven ? C.val(1) : std::nullopt)
    Sizes.emplace(Parts->begin(), Parts->end());
  DimId Whole = List[At];
  DimId Count = C.number(0, C.numOutputs());
  const char *Parts =
      "splits rows into parts that do not divide the rows of a replica";
  if (!Uneven && C.Known.localNumber(Whole) != UnknownSize)
    C.require(C.Known.localNumber(Whole) % C.numOutputs() == 0, Whole, Parts);
  // A size of -1 is the rest of the axis after all other parts.
  int64_t Rest = C.plainNumber(Whole);
  for (DimId Size : Sizes ? ArrayRef(*Sizes) : ArrayRef<DimId>()) {
    int64_t Known = C.plainNumber(Size);
    if (Rest == UnknownSize || Known == UnknownSize ||
        (Known != -1 && SubOverflow(Rest, Known, Rest)))
      Rest = UnknownSize;
  }
  if (auto Ends = Uneven ? C.nums(1) : std::nullopt) {
    int64_t Sum = 0;
    bool Fits = all_of(*Ends, [&](int64_t Size) {
      return Size < 0 || !AddOverflow(Sum, Size, Sum);
    });
    C.require(is_contained(*Ends, -1) || (Fits && C.fits(Whole, Sum)), Whole,
              Parts);
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

/// Returns \p Whole minus \p First if both are known multiples of the same row
/// count; else none.
static std::optional<DimId> restOf(SizeContext &C, unsigned Slot, DimId Whole,
                                   DimId First) {
  auto All = C.Table.sym(Whole), Before = C.Table.sym(First);
  int64_t Number = C.Table.number(Whole), Begin = C.Table.number(First);
  if (!C.Table.hasSym(Whole) || !C.Table.hasSym(First) || !All || !Before ||
      Number == UnknownSize || Begin == UnknownSize || All->Ragged != 0 ||
      All->C <= Before->C)
    return std::nullopt;
  Sym Rest = *All;
  Rest.C = Before->C;
  if (!(Rest == *Before))
    return std::nullopt;
  Rest.C = All->C - Before->C;
  DimId D = C.slot(Slot);
  C.assign(D, Rest);
  C.assignNumber(D, Number - Begin);
  return D;
}

static void slice(SizeContext &C) {
  Dims X = C.in(0), Size = C.val(2), From = C.val(1);
  auto Begin = C.nums(1);
  if (!X || !Size || Size->size() != X->size() ||
      (Begin && Begin->size() != X->size()))
    return;
  // A slice that begins at 0 and is as long as the axis selects the whole axis,
  // even if the length is a constant: Slice(x, 0, 8) of 8 rows. Likewise, a
  // slice may select the rest of an axis.
  for (size_t I = 0; I < X->size(); ++I) {
    int64_t Number = C.Table.number((*Size)[I]);
    if (Begin && (*Begin)[I] == 0 && Number > 0 &&
        Number == C.Table.number((*X)[I]))
      C.sameByNumber((*Size)[I], (*X)[I], {(*Size)[I], (*X)[I]});
    else if (auto Rest = Number > 0 && From && I < From->size()
                             ? restOf(C, 32 + I, (*X)[I], (*From)[I])
                             : std::nullopt;
             Rest && Number == C.Table.number(*Rest))
      C.sameByNumber((*Size)[I], *Rest, {(*Size)[I], *Rest});
  }
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    bool ToEnd = C.Table.number((*Size)[I]) == -1;
    if (ToEnd && Begin && (*Begin)[I] == 0)
      List.push_back((*X)[I]);
    else if (int64_t All = C.plainNumber((*X)[I]);
             ToEnd && Begin && All != UnknownSize && (*Begin)[I] >= 0 &&
             (*Begin)[I] <= All)
      List.push_back(C.number(64 + I, All - (*Begin)[I]));
    else if (ToEnd && Begin)
      List.push_back(C.slotFrom(I, (*X)[I]));
    else if (auto Rest = ToEnd && From && I < From->size()
                             ? C.sizeAfter((*X)[I], (*From)[I])
                             : std::nullopt)
      List.push_back(*Rest);
    else if (ToEnd && From && I < From->size() &&
             C.Table.number((*From)[I]) == 0 && !C.Table.hasSym((*From)[I]))
      List.push_back((*X)[I]);
    else if (ToEnd && From && I < From->size())
      List.push_back(C.slotFrom(I, {(*X)[I], (*From)[I]}));
    else if (ToEnd)
      List.push_back(C.slot(I));
    else
      List.push_back((*Size)[I]);
  }
  C.setShape(0, List);
}

/// Returns the padding before and after each axis, a matrix. The elements of a
/// constant matrix are not tracked, so they are read from the constant.
static std::optional<DimList> paddings(SizeContext &C) {
  if (C.numData() < 2)
    return std::nullopt;
  if (Dims P = C.elements(1))
    return DimList(*P);
  NodeId Source = C.G.input(C.N, 1).Node;
  auto Tensor =
      C.G.isOp(Source, op::Const) ? constValue(C.G, Source) : std::nullopt;
  if (!Tensor || !Tensor->HasInts || Tensor->Ints.size() > C.MaxElements)
    return std::nullopt;
  DimList List;
  for (int64_t Number : Tensor->Ints)
    List.push_back(C.number(64 + List.size(), Number));
  return List;
}

static void pad(SizeContext &C) {
  Dims X = C.in(0);
  if (!X)
    return;
  auto By = paddings(C);
  bool Known = By && By->size() == 2 * X->size();
  bool Takes = C.isOp(op::MirrorPadGrad);
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    DimId Size = (*C.in(0))[I];
    if (!Known) {
      List.push_back(C.slot(I));
      continue;
    }
    DimId Before = (*By)[2 * I], After = (*By)[2 * I + 1];
    int64_t First = C.plainNumber(Before), Last = C.plainNumber(After),
            Number = C.plainNumber(Size);
    std::optional<int64_t> Padded;
    if (First != UnknownSize && Last != UnknownSize && Number != UnknownSize)
      Padded = Takes ? checkedSub(Number, First) : checkedAdd(Number, First);
    if (Padded)
      Padded = Takes ? checkedSub(*Padded, Last) : checkedAdd(*Padded, Last);
    if (First == 0 && Last == 0)
      List.push_back(Size);
    else if (Padded)
      List.push_back(C.number(I, *Padded));
    else
      List.push_back(C.slotFrom(I, {Size, Before, After}));
  }
  C.setShape(0, List);
}

/// Returns index \p Number of an axis of \p Size elements, clamped to the range
/// from 0 to Size. A negative index counts from the end.
static int64_t placeIn(int64_t Number, int64_t Size) {
  if (Number < 0)
    Number = Number < -Size ? 0 : Number + Size;
  return std::min(Number, Size);
}

/// Returns the size of a slice along an axis of size \p Whole, in which two
/// tensors were concatenated. The slice must be exactly one of the two tensors.
/// It begins at \p Begin (none: at 0) and ends at \p End (none: at the end of
/// the axis).
///
///     both = Concat(x, y)     both[:rows of x]     both[rows of x:]
static std::optional<DimId> partOf(SizeContext &C, DimId Whole,
                                   std::optional<DimId> Begin,
                                   std::optional<DimId> End) {
  auto Parts = C.Known.partsOf(Whole);
  if (!Parts || Begin.has_value() == End.has_value())
    return std::nullopt;
  auto [First, Rest] = *Parts;
  DimId At = Begin ? *Begin : *End;
  int64_t Number = C.Table.number(At);
  bool Same = C.sizeAfter(Whole, At).has_value();
  // Both numbers hold in the single-device step.
  if (!Same && Number > 0 && C.isFixed(At) && C.isFixed(First) &&
      Number == C.Table.number(First)) {
    C.sameByNumber(At, First, {At, First});
    Same = true;
  }
  return Same ? std::optional(Begin ? Rest : First) : std::nullopt;
}

/// Infers the shape of a strided slice. For a StridedSliceGrad, this is the
/// shape of the incoming gradient.
static void stridedSlice(SizeContext &C) {
  // This slice drops the repeated rows that a gather returned (keptMember).
  // Sizes hold with the number of shards in place of N, so the remaining rows
  // are those of all replicas.
  if (keptMember(C.G, C.N) != NoNode)
    return same(C);
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
      C.require(Rows == UnknownSize || At == UnknownSize ||
                    (At < Rows && At >= -Rows),
                Old, "selects a row that a replica does not have");
      continue;
    }
    int64_t Size = C.Table.number(Old);
    DimId End = (*S->End)[I];
    bool FromStart = (S->BeginMask >> I & 1) || S->Begin[I] == 0;
    // If another op states the size of the axis, the statement may not hold
    // here. If End equals the stated number, End is the size of the axis, and
    // this equality depends on the statement.
    if (Size != UnknownSize && !C.isFixed(Old) && Size == C.plainNumber(End))
      C.sameByNumber(End, Old, {End, Old});
    // The slice reaches the end of the axis in three cases: the mask is set,
    // End is the size of the axis, or End is a number that is at least the size
    // in the whole batch.
    bool ToEnd = (S->EndMask >> I & 1) ||
                 (Size != UnknownSize && C.isFixed(Old) &&
                  !C.Table.hasSym(End) && C.Table.number(End) >= Size) ||
                 C.Table.find(End) == C.Table.find(Old) ||
                 (C.Table.hasSym(End) && C.Table.sym(End) &&
                  C.Table.sym(End) == C.Table.sym(Old));
    // A reversed axis keeps its size.
    bool Turned = (S->BeginMask & S->EndMask) >> I & 1 && S->Stride[I] == -1;
    if ((FromStart && ToEnd && S->Stride[I] == 1) || Turned) {
      List.push_back(Old);
      continue;
    }
    if (auto Part = S->Stride[I] == 1
                        ? partOf(C, Old,
                                 FromStart ? std::nullopt
                                           : std::optional((*C.val(1))[I]),
                                 ToEnd ? std::nullopt : std::optional(End))
                        : std::nullopt) {
      List.push_back(*Part);
      continue;
    }
    int64_t From = S->BeginMask >> I & 1 ? 0 : S->Begin[I];
    int64_t To = S->EndMask >> I & 1 ? Size : C.Table.number(End);
    if (From == UnknownSize) {
      List.push_back(C.slot(I));
      continue;
    }
    if (Size == UnknownSize || C.Table.hasSym(Old) || To == UnknownSize ||
        (!(S->EndMask >> I & 1) && C.Table.hasSym(End)) || S->Stride[I] <= 0) {
      bool Open = S->EndMask >> I & 1;
      List.push_back(C.slotFrom(I, {Old, Open ? Old : End}));
      continue;
    }
    From = placeIn(From, Size);
    To = placeIn(To, Size);
    // (The sum To + Stride could overflow, since a stride may be any number.)
    int64_t Length = To > From ? (To - From - 1) / S->Stride[I] + 1 : 0;
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
  int64_t Rest = int64_t(X->size()) - *Begin, Count = *Size < 0 ? Rest : *Size;
  if (Count <= Rest)
    C.setValue(0, X->slice(*Begin, Count));
}

/// Tracks the elements that a strided slice selects from a tracked vector.
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
  if (From == UnknownSize)
    return;
  To = sizes::placeIn(To, Size);
  if (From < -Size || From > Size)
    return;
  From = sizes::placeIn(From, Size);
  if (!(S->Shrink & 1))
    C.setValue(0, X->slice(From, std::max<int64_t>(0, To - From)));
  else if (From < Size)
    C.setValue(0, (*X)[From]);
}

} // namespace values

namespace {

/// Returns the axis of the result that is axis \p Axis of \p Whole, the tensor
/// that a strided slice reads. Returns -1 if the axis is dropped or its stride
/// is not 1. Example: a stride of -1 reverses the axis.
int stridedAxis(const TypeContext &C, int Axis, Endpoint Whole) {
  auto Strides = C.numbers(3);
  int Rank = C.rank(Whole);
  if (!Strides || Rank < 0)
    return -1;
  auto Mask = [&](const char *Key, size_t I) {
    return C.intAttr(Key).value_or(0) >> I & 1;
  };
  int Explicit = 0;
  for (size_t I = 0; I < Strides->size(); ++I)
    Explicit += !Mask("new_axis_mask", I) && !Mask("ellipsis_mask", I);
  int At = 0, Out = 0;
  for (size_t I = 0; I < Strides->size(); ++I) {
    if (Mask("ellipsis_mask", I)) {
      int Skipped = Rank - Explicit;
      if (Axis >= At && Axis < At + Skipped)
        return Out + Axis - At;
      At += Skipped;
      Out += Skipped;
    } else if (Mask("new_axis_mask", I)) {
      ++Out;
    } else {
      bool Drops = Mask("shrink_axis_mask", I);
      if (At == Axis)
        return (*Strides)[I] == 1 && !Drops ? Out : -1;
      ++At;
      Out += !Drops;
    }
  }
  return Out + Axis - At;
}

/// Returns true if axis \p Out of the result is axis \p In of operand \p I,
/// which the node at hand slices or pads.
bool isAxisOf(const TypeContext &C, unsigned I, int In, int Out) {
  if (C.isOp(op::StridedSlice))
    return stridedAxis(C, In, C.input(I)) == Out;
  if (C.isOp(op::StridedSliceGrad))
    return stridedAxis(C, Out, C.out()) == In;
  if (!C.isOp(op::Unpack))
    return In == Out;
  auto Axis = axisIn(C.intAttr("axis").value_or(0), C.rank(I));
  int At = Axis ? static_cast<int>(*Axis) : In;
  return At != In && Out == In - (In > At);
}

/// Returns true if a strided slice with stride 1 selects along axis \p Axis of
/// \p Whole, and element \p Axis of its begin, end and stride belongs to that
/// axis. All replicas must slice the other axes alike.
bool slicesAxes(const TypeContext &C, int Axis, Endpoint Whole) {
  auto Mask = [&](const char *Key) { return C.intAttr(Key).value_or(0); };
  int64_t Before = (int64_t(2) << Axis) - 1;
  auto Begin = C.D.value(C.input(1)), End = C.D.value(C.input(2));
  if (Axis > 31 || (Mask("new_axis_mask") | Mask("ellipsis_mask")) & Before ||
      stridedAxis(C, Axis, Whole) < 0 || !Begin || !End)
    return false;
  for (size_t I = 0; I < Begin->size(); ++I)
    if (int(I) != Axis &&
        (!C.D.table().isSame((*Begin)[I]) || !C.D.table().isSame((*End)[I])))
      return false;
  return true;
}

/// Infers the type of a StridedSliceGrad with the sharded gradient \p Dy. The
/// slice must be exactly one of two parts that were concatenated along the
/// batch axis. The other part of the result is zeros:
///
///     both = Concat(x, y)     dboth = [dx | zeros like y]
///
/// The type is Varying for any other slice.
ReplicationType gradOfPart(TypeContext &C, ReplicationType Dy) {
  auto None = ReplicationType::varying(C.N);
  auto Out = C.D.shape(C.out()), In = C.shape(4);
  auto Begin = C.D.value(C.input(1));
  for (unsigned I : {0, 1, 2})
    if (!C.isSize(I))
      return None;
  if (!Out || !In || !Begin || !C.operand(3).isTrue() || Dy.Axis >= In->size())
    return None;
  const DimTable &Table = C.D.table();
  DimId Own = (*In)[Dy.Axis];
  for (unsigned Axis = 0; Axis < Out->size() && Axis < Begin->size(); ++Axis) {
    auto Parts = C.D.partsOf((*Out)[Axis]);
    if (!Parts || stridedAxis(C, int(Axis), C.out()) != Dy.Axis ||
        !slicesAxes(C, int(Axis), C.out()))
      continue;
    bool FromStart =
        C.intAttr("begin_mask").value_or(0) >> Axis & 1 ||
        (Table.number((*Begin)[Axis]) == 0 && !Table.hasSym((*Begin)[Axis]));
    bool Behind = Table.isEqual((*Begin)[Axis], Parts->first);
    if (!Table.isEqual(Own, FromStart ? Parts->first : Parts->second) ||
        (!FromStart && !Behind))
      return None;
    TypeAnalysis::OrderedParts Rows;
    for (DimId Part : {Parts->first, Parts->second}) {
      auto S = Table.sym(Part);
      bool IsOwn = FromStart == (Rows.empty());
      if (!S || !S->isLocal())
        return None;
      Rows.push_back({IsOwn && Dy.Order != ReplicationType::AnyOrder
                          ? Dy.Order
                          : uint32_t(ReplicationType::InOrder),
                      0, *S});
    }
    Dy.setAxis(static_cast<int>(Axis));
    Dy.Order = C.orderOf(Rows);
    return Dy;
  }
  return None;
}

/// Infers the type of a Split or Slice of operand \p I, which has type \p X and
/// concatenated rows. The type is Varying unless each result is exactly one of
/// the concatenated parts.
ReplicationType ownPart(const TypeContext &C, unsigned I, ReplicationType X) {
  auto None = ReplicationType::varying(C.N);
  ArrayRef Parts = C.partsOf(X);
  auto Known = [](const TypeAnalysis::OrderedPart &P) {
    return P.Size == 0 && P.Rows.Ragged == 0;
  };
  if (!all_of(Parts, Known))
    return None;
  ReplicationType Own = X;
  if (C.isOp(op::Split) || C.isOp(op::SplitV)) {
    auto Axis = C.numbers(C.isOp(op::Split) ? 0 : 2);
    if (!Axis || Axis->size() != 1 || C.numResults() != Parts.size() ||
        axisIn((*Axis)[0], C.rank(I)) != unsigned(X.Axis))
      return None;
    for (unsigned Port = 0; Port < Parts.size(); ++Port)
      if (C.sizeOf(C.out(Port), X.Axis) != Parts[Port].Rows ||
          Parts[Port].Order != Parts[0].Order)
        return None;
    Own.Order = Parts[0].Order;
    return Own;
  }
  if (!C.isOp(op::Slice) && !C.isOp(op::StridedSlice))
    return None;
  auto Begin = C.D.value(C.input(1));
  if (!Begin || X.Axis >= Begin->size() || !C.isSize(1) || !C.isSize(2))
    return None;
  for (size_t A = 0; A < Begin->size(); ++A)
    if (A != X.Axis && !C.D.table().isSame((*Begin)[A]))
      return None;
  auto From = C.D.table().sym((*Begin)[X.Axis]);
  if (C.isOp(op::StridedSlice)) {
    if (!slicesAxes(C, X.Axis, C.input(0)) || !C.operand(3).isTrue())
      return None;
    if (C.intAttr("begin_mask").value_or(0) >> X.Axis & 1)
      From = Sym{0, 0, 0};
    Own.setAxis(stridedAxis(C, X.Axis, C.input(0)));
  }
  Sym At;
  At.C = 0;
  for (const auto &P : Parts) {
    bool Starts =
        From && (At.C == 0 ? From->isNumber() && From->C == 0 : *From == At);
    if (Starts && C.sizeOf(C.out(), Own.Axis) == P.Rows) {
      Own.Order = P.Order;
      return Own;
    }
    // Behind parts with the rows of different feeds, the begin of a part is not
    // known.
    if (P.Rows.B != Parts[0].Rows.B || P.Rows.R != Parts[0].Rows.R ||
        (At.C != 0 && P.Rows.Rows != At.Rows))
      return None;
    At = {At.C + P.Rows.C, P.Rows.B, P.Rows.R, P.Rows.Rows};
  }
  return None;
}

/// Infers the type of a Split or Slice of zeros. Zeros have every row order,
/// including that of concatenated parts: a loop may begin with zeros and
/// continue with concatenated parts. The type is Varying if a part does not
/// have all rows of a replica.
ReplicationType partOfZeros(const TypeContext &C, unsigned I,
                            ReplicationType X) {
  bool Parts = C.isOp(op::Split) || C.isOp(op::SplitV) || C.isOp(op::Slice);
  for (unsigned J = 0; J < C.numData(); ++J)
    Parts &= J == I || C.isSize(J);
  for (unsigned Port = 0; Port < C.numResults(); ++Port)
    Parts &= C.localAxis(C.out(Port)) == X.Axis;
  return Parts ? X : ReplicationType::varying(C.N);
}

/// Infers the type of a split, a slice or a padding, which must keep the whole
/// batch axis.
ReplicationType partType(TypeContext &C) {
  unsigned I = C.isOp(op::Split) ? 1 : C.isOp(op::StridedSliceGrad) ? 4 : 0;
  // Padding with a value other than zero is not linear.
  bool PadsValue = C.isOp(op::PadV2), Strided = C.isOp(op::StridedSlice),
       OfGrad = C.isOp(op::StridedSliceGrad);
  bool Linear = !PadsValue || C.operand(2).Zero;
  ReplicationType X = Linear ? C.numeric(I) : C.plain(I);
  X.Zero &= Linear;
  if (X.isVarying())
    return C.varyingLike(X);
  if (X.isJoined())
    if (ReplicationType Own = ownPart(C, I, X); !Own.isVarying())
      return Own;
  if (OfGrad && X.isSharded())
    if (ReplicationType Whole = gradOfPart(C, X); !Whole.isVarying())
      return Whole;
  if (X.isSharded() && X.Zero)
    if (ReplicationType Own = partOfZeros(C, I, X); !Own.isVarying())
      return Own;
  bool BySize = false;
  for (unsigned J = 0; J < C.numData(); ++J) {
    if (J == I || C.operand(J).isTrue())
      continue;
    // Sizes may be local. The begin of a slice, the strides and the padding
    // value must be equal on all replicas.
    bool Begins = (Strided || OfGrad || C.isOp(op::Slice)) && J == 1;
    bool Fills = PadsValue && J == 2;
    if (!(Fills ? C.plain(J).isReplicated() : C.isSize(J)) || Begins ||
        (J == 3 && (Strided || OfGrad)))
      return C.operand(J).isVarying()
                 ? C.varyingLike(C.operand(J))
                 : C.varying("takes a different slice on each replica");
    BySize |= !Fills;
  }
  if (!X.isSharded()) {
    for (unsigned Port = 0; BySize && Port < C.numResults(); ++Port)
      if (C.localAxis(C.out(Port)) != -1)
        return C.varying("takes a slice of a per-replica size");
    return X;
  }
  ReplicationType Result = X;
  auto In = C.shape(I);
  for (unsigned Port = 0; Port < C.numResults(); ++Port) {
    auto Out = C.D.shape(C.out(Port));
    int Axis = C.D.batchAxis(C.out(Port));
    if (!In || !Out || Axis < 0 || X.Axis >= In->size() ||
        C.D.table().find((*Out)[Axis]) != C.D.table().find((*In)[X.Axis]) ||
        !isAxisOf(C, I, X.Axis, Axis))
      return C.varying("takes a slice of the batch axis");
    if (BySize && C.localAxis(C.out(Port)) != Axis)
      return C.varying("takes a slice of a per-replica size");
    Result.setAxis(Axis);
  }
  return Result;
}

/// Infers the type of an op along the axes in the last operand.
ReplicationType alongAxesType(TypeContext &C, bool Linear) {
  ReplicationType X = Linear ? C.numeric(0) : C.plain(0);
  if (X.isVarying())
    return C.varyingLike(X);
  for (unsigned I = 1; I < C.numData(); ++I)
    if (!C.operand(I).isTrue())
      return C.varying("has axes or shifts that differ per replica");
  if (!X.isSharded())
    return X;
  auto Listed = C.numbers(C.numData() - 1);
  auto Axes = Listed ? axesIn(*Listed, C.rank(0)) : std::nullopt;
  if (!Axes || X.Axis >= Axes->size())
    return C.varying("operates along unknown axes");
  return Axes->test(X.Axis) ? C.varying("operates along the batch axis") : X;
}

ReplicationType reverseSequenceType(TypeContext &C) {
  ReplicationType X = C.numeric(0), Lengths = C.plain(1);
  if (X.isVarying() || Lengths.isVarying())
    return C.varyingLike(X.isVarying() ? X : Lengths);
  int64_t Batch = C.intAttr("batch_dim").value_or(0),
          Along = C.intAttr("seq_dim").value_or(-1);
  if (!X.isSharded() && !Lengths.isSharded())
    return X;
  bool ByRow = X.isSharded() && X.Axis == Batch && Lengths.isSharded();
  bool Beside = X.isSharded() && X.Axis != Batch && Lengths.isReplicated();
  return X.Axis != Along && Batch >= 0 && Along >= 0 && (ByRow || Beside)
             ? X
             : C.varying("reverses rows by the sequence lengths of other rows");
}

} // namespace

namespace types {

static void part(TypeContext &C) {
  if (keptMember(C.G, C.N) != NoNode)
    return pass(C);
  C.setAll(partType(C));
}

static bool partIndices(TypeContext &C) {
  if (keptMember(C.G, C.N) != NoNode)
    return passIndices(C);
  // Padding zeros are neither row numbers nor column indices.
  if (!C.isOp(op::StridedSlice))
    return false;
  ReplicationType First = C.operand(0);
  if (First.isOfEntries())
    return entryColumns(C);
  if (!First.isRowIndices())
    return moveNumbers(C, partType);
  auto Column = columnTaken(C.G, C.N);
  if (!Column || First.Axis != 0 || C.rank(0) != 2)
    return false;
  if (*Column == 0)
    C.setAll(First, LocalIndices::RowNumbers);
  else
    C.setAll(ReplicationType::sharded(0));
  return true;
}

void alongAxes(TypeContext &C) { C.setAll(alongAxesType(C, /*Linear=*/true)); }

void alongAxesNonLinear(TypeContext &C) {
  C.setAll(alongAxesType(C, /*Linear=*/false));
}

void reverseSequence(TypeContext &C) { C.setAll(reverseSequenceType(C)); }

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Part = {.Type = types::part,
                         .LocalIndices = types::partIndices,
                         .Is = KeepsZeros | OrdersRows | ComparesWithSizes,
                         .ComparedOperands = AllOperands};

} // namespace

ArrayRef<OpRule> families::slicing() {
  static const OpRule Rules[] = {
      entry(op::Unpack, Part,
            {.Sizes = sizes::unpack, .Values = values::unpack}),
      entry(op::Split, Part,
            {.Sizes = sizes::split,
             .Is = ComparesSizes,
             .SizeOperands = operands(0)}),
      entry(op::SplitV, Part,
            {.Sizes = sizes::split,
             .Is = ComparesSizes,
             .SizeOperands = operands(1, 2),
             .LengthOperands = operands(1)}),
      entry(op::Slice, Part,
            {.Sizes = sizes::slice,
             .Values = values::slice,
             .SizeOperands = operands(1, 2),
             .LengthOperands = operands(2)}),
      entry(op::StridedSlice, Part,
            {.Sizes = sizes::stridedSlice,
             .Values = values::stridedSlice,
             .Is = ComparesSizes | AltersRows,
             .SizeOperands = operands(1, 2, 3),
             .LengthOperands = operands(1, 2)}),
      entry(op::StridedSliceGrad, Part,
            {.Sizes = sizes::stridedSlice,
             .Is = ComparesSizes,
             .SizeOperands = operands(0, 1, 2, 3)}),
      entry(op::Pad, Part,
            {.Sizes = sizes::pad,
             .Is = AltersRows,
             .SizeOperands = operands(1),
             .LengthOperands = operands(1)}),
      entry(op::PadV2, Part,
            {.Sizes = sizes::pad,
             .Is = AltersRows,
             .SizeOperands = operands(1),
             .LengthOperands = operands(1)}),
      entry(
          op::MirrorPad, Part,
          {.Sizes = sizes::pad, .Is = AltersRows, .SizeOperands = operands(1)}),
      entry(op::MirrorPadGrad, Part,
            {.Sizes = sizes::pad, .SizeOperands = operands(1)}),
  };
  return Rules;
}

} // namespace graft
