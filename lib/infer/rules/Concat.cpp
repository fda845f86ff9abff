//===- lib/infer/rules/Concat.cpp - tensors made of parts -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Concatenation and packing.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void pack(SizeContext &C) {
  Dims X = C.in(0);
  for (unsigned I = 1; X && I < C.numData(); ++I)
    if (Dims Y = C.in(I))
      C.sameShapes(*X, *Y);
  if (!X)
    return;
  auto Axis = axisIn(C.intAttr("axis").value_or(0), int64_t(X->size()) + 1);
  if (!Axis)
    return;
  DimList List(X->begin(), X->end());
  List.insert(List.begin() + *Axis, C.number(0, C.numData()));
  C.setShape(0, List);
}

static void concat(SizeContext &C) {
  bool Old = C.isOp(op::Concat);
  unsigned AxisInput = Old ? 0 : C.numData() - 1, First = Old ? 1 : 0;
  auto Axis = C.num(AxisInput);
  Dims X = C.in(First);
  auto Along = Axis && X ? axisIn(*Axis, int64_t(X->size())) : std::nullopt;
  if (!Along)
    return;
  unsigned At = *Along;
  DimList List(X->begin(), X->end());
  int64_t Sum = 0;
  bool Known = true;
  DimList Parts;
  for (unsigned I = First; I < First + C.numData() - 1; ++I) {
    Dims Y = C.in(I);
    if (!Y || Y->size() != List.size())
      return;
    for (size_t D = 0; D < List.size(); ++D)
      if (D != At)
        C.same(List[D], (*Y)[D]);
    DimId Part = (*Y)[At];
    Parts.push_back(Part);
    Known = Known && C.plainNumber(Part) != UnknownSize &&
            !AddOverflow(Sum, C.Table.number(Part), Sum);
  }
  C.areLengths(Parts);
  if (C.numData() > 2)
    List[At] = Known ? C.number(0, Sum) : C.total(1, Parts);
  if (!Known && Parts.size() == 2)
    C.join(List[At], Parts[0], Parts[1]);
  C.setShape(0, List);
}

} // namespace sizes

namespace values {

/// Packs tracked scalars to a vector, or tracked vectors to a matrix.
static void pack(SizeContext &C) {
  DimList List;
  bool Any = false;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims V = C.val(I), S = C.in(I);
    int64_t Size = !S || S->size() > 1 ? UnknownSize
                   : S->empty()        ? 1
                                       : C.plainNumber(S->front());
    if (Size < 0 || Size > C.MaxElements || (V && int64_t(V->size()) != Size) ||
        (!S->empty() && C.intAttr("axis").value_or(0) != 0))
      return;
    // An operand without a tracked value gets fresh size variables, so that the
    // elements of the other operands stay known.
    for (int64_t At = 0; At < Size; ++At)
      List.push_back(V ? (*C.val(I))[At] : C.slot(64 + List.size()));
    Any |= V.has_value();
  }
  if (Any)
    C.setValue(0, List);
}

/// Concatenates vectors, or matrices along axis 1, row by row.
static void concat(SizeContext &C) {
  unsigned Count = C.numData() - 1;
  auto Axis = C.num(Count);
  Dims Out = C.out(0);
  int64_t Rows = Out && Out->size() == 2 ? C.plainNumber(Out->front()) : 1;
  bool Beside = Axis && Out && Out->size() == 2 && axisIn(*Axis, 2) == 1u;
  if (Rows <= 0 || Rows > C.MaxElements)
    return;
  DimList List;
  for (int64_t Row = 0; Row < (Beside ? Rows : 1); ++Row)
    for (unsigned I = 0; I < Count; ++I) {
      Dims V = Beside ? C.elements(I) : C.val(I);
      if (!V || (Beside && V->size() % Rows != 0))
        return;
      size_t Each = Beside ? V->size() / Rows : V->size();
      List.append(V->begin() + Row * Each, V->begin() + (Row + 1) * Each);
    }
  C.setValue(0, List);
}

} // namespace values

namespace {

/// Infers the type of a Concat along the batch axis. \p Type is the type that
/// sumOf() infers for the parts, since a sum also needs equal layouts and
/// scales. The requests of sumOf() begin at index \p Asked of C.Asked.
ReplicationType joinRows(TypeContext &C, ArrayRef<unsigned> Operands,
                         unsigned Axis, ReplicationType Type, size_t Asked) {
  if (C.isReduced()) {
    // A user needs the gathered rows of all replicas, with a scale exponent of
    // 0. Drop the requests that only a sum of the parts needs.
    C.Asked.erase(C.Asked.begin() + Asked, C.Asked.end());
    C.Assumes |= Type.Assumes;
    for (unsigned I : Operands)
      if (ReplicationType X = C.whole(I); !X.isReplicated())
        return C.varyingLike(X);
    return ReplicationType::replicated();
  }
  TypeAnalysis::OrderedParts Parts;
  for (unsigned I : Operands) {
    ReplicationType X = C.operand(I);
    auto Shape = C.shape(I);
    if (!X.isSharded() || !Shape || Axis >= Shape->size())
      return C.varying(
          "concatenates a per-replica shard with a replicated value "
          "along the batch axis");
    TypeAnalysis::OrderedPart P;
    // Rows that are all equal (AnyOrder) are in every order.
    P.Order = X.Order == ReplicationType::AnyOrder ? ReplicationType::InOrder
                                                   : X.Order;
    P.Size = C.D.table().find((*Shape)[Axis]);
    P.Rows = Sym();
    if (auto S = C.D.table().sym(P.Size)) {
      P.Size = 0;
      P.Rows = *S;
    }
    Parts.push_back(P);
  }
  Type.setAxis(Axis);
  Type.Order = Parts.size() == 1 ? Parts[0].Order : C.orderOf(Parts);
  return Type;
}

ReplicationType joinType(TypeContext &C) {
  bool Pack = C.isOp(op::Pack), Old = C.isOp(op::Concat);
  unsigned First = Old ? 1 : 0, Count = Pack ? C.numData() : C.numData() - 1;
  std::optional<int64_t> Axis;
  if (Pack) {
    Axis = C.intAttr("axis").value_or(0);
  } else if (auto V = C.numbers(Old ? 0 : C.numData() - 1);
             V && V->size() == 1) {
    Axis = (*V)[0];
  }
  SmallVector<unsigned, 8> Operands;
  bool AnySharded = false;
  for (unsigned I = First; I < First + Count; ++I) {
    Operands.push_back(I);
    AnySharded |= C.numeric(I).isSharded();
  }
  if (!Pack && !C.operand(Old ? 0 : C.numData() - 1).isTrue())
    return C.varying("concatenates along an axis that differs per replica");
  size_t Asked = C.Asked.size();
  ReplicationType Sum = types::sumOf(C, Operands);
  if (!AnySharded || !Sum.isSharded())
    return Sum;
  auto Along = Axis ? axisIn(*Axis, C.rank(C.out())) : std::nullopt;
  if (!Along)
    return C.varying("concatenates tensors of the batch along an unknown axis");
  int At = static_cast<int>(*Along);
  // sumOf() aligned the operands with the output at the right. Pack adds an
  // axis to the output, which shifts the batch axis by one.
  int Batch = Pack ? Sum.Axis - 1 : Sum.Axis;
  if (!Pack && At == Batch)
    return joinRows(C, Operands, *Along, Sum, Asked);
  uint32_t Order = ReplicationType::AnyOrder;
  std::optional<DimId> Rows;
  for (unsigned I : Operands) {
    ReplicationType X = C.operand(I);
    if (!X.isSharded())
      return C.varying(
          "concatenates a per-replica shard with a replicated value "
          "along the batch axis");
    // Data-dependent row counts may be equal in the single-device step and
    // differ on a replica.
    if (auto Shape = C.shape(I); Shape && X.Axis < Shape->size()) {
      DimId Mine = C.D.table().find((*Shape)[X.Axis]);
      auto S = C.D.table().sym(Mine);
      if (Rows && *Rows != Mine && (!S || S != C.D.table().sym(*Rows)) &&
          (C.D.table().isRagged(Mine) || C.D.table().isRagged(*Rows)))
        return C.varying("concatenates tensors whose data-dependent row counts "
                         "may differ on a replica");
      Rows = Mine;
    }
    if (X.Zero || X.Order == ReplicationType::AnyOrder)
      continue;
    if (Order != ReplicationType::AnyOrder && Order != X.Order)
      return C.varying(
          "combines tensors whose rows were concatenated in different orders");
    Order = X.Order;
  }
  Sum.Order = Order;
  Sum.setAxis(Pack && At <= Batch ? Batch + 1 : Batch);
  return Sum;
}

/// Returns the number of blocks that SpaceToBatch makes of an image, or 0 if it
/// is not known.
unsigned countBlocks(std::optional<SmallVector<int64_t, 4>> Sizes) {
  unsigned Count = 1;
  for (int64_t Size : Sizes ? *Sizes : SmallVector<int64_t, 4>{0})
    Count = Size <= 0 || Size > 64 || Count > 4096 ? 0 : Count * unsigned(Size);
  return Count;
}

/// Infers the type of a SpaceToBatchND: as in a concatenation of blocks with b
/// rows, row r of block i is row i*b+r of the result.
ReplicationType toBlocksType(TypeContext &C) {
  ReplicationType X = C.numeric(0);
  unsigned Count = countBlocks(C.numbers(1));
  bool Fits = C.operand(1).isTrue() && C.operand(2).isTrue();
  if (X.isVarying())
    return C.varyingLike(X);
  if (Fits && !X.isSharded())
    return X;
  auto Rows = C.sizeOf(C.input(0), 0);
  if (!Fits || X.Axis != 0 || Count < 2 || !Rows)
    return C.varying("makes blocks whose size differs per replica");
  X.Order = C.orderOf(TypeAnalysis::OrderedParts(Count, {X.Order, 0, *Rows}));
  return X;
}

ReplicationType fromBlocksType(TypeContext &C) {
  ReplicationType X = C.numeric(0);
  unsigned Count = countBlocks(C.numbers(1));
  if (X.isVarying())
    return C.varyingLike(X);
  if (!C.operand(1).isTrue() || !C.operand(2).isTrue())
    return C.varying("depends on a per-replica size");
  if (!X.isSharded())
    return X;
  auto Parts =
      X.isJoined() ? C.partsOf(X) : ArrayRef<TypeAnalysis::OrderedPart>();
  if (X.Axis != 0 || Parts.empty() || Parts.size() != Count ||
      !all_equal(Parts))
    return C.varying("combines blocks that SpaceToBatch did not make");
  X.Order = Parts.front().Order;
  return X;
}

/// Infers the type of a node that concatenates the row numbers \p Numbers with
/// other indices along the last axis. For this, the row numbers are treated as
/// sharded rows. For any other node, the type is Varying without a mark.
ReplicationType rowIndices(TypeContext &C, const ReplicationType &Numbers) {
  auto Type = ReplicationType::varying(Numbers.Cause);
  auto Rows = ReplicationType::sharded(Numbers.Axis);
  // A Range has the numbers of all rows in order, so it fits every row order.
  bool CountsAll =
      C.G.isOp(Numbers.Cause, op::Range) &&
      C.isSameSize(C.input(0), Numbers.Axis, {Numbers.Cause, 0}, 0);
  if (CountsAll)
    Rows.Order = ReplicationType::AnyOrder;
  ReplicationType All = C.suppose(Rows, joinType);
  if (All.isJoined())
    Type.Order = All.Order;
  bool Pack = C.isOp(op::Pack);
  int Rank = C.rank(C.out());
  if (!All.isSharded() || (All.isJoined() && !CountsAll) || All.K != 0 ||
      Rank < 2 || (!Pack && !C.isOp(op::ConcatV2)))
    return Type;
  auto Axis = axisIn(Pack ? C.intAttr("axis").value_or(0)
                          : (*C.numbers(C.numData() - 1))[0],
                     Rank);
  if (!Axis)
    return Type;
  if (Pack && *Axis == 0 && Rank == 2 && All.Axis == 1) {
    Type.Indices = LocalIndices::IndexRows;
    Type.Axis = 1;
    return Type;
  }
  if (All.Axis + 1 >= Rank)
    return Type;
  auto Shape = C.shape(0);
  if (static_cast<int>(*Axis) + 1 != Rank ||
      (!Pack &&
       (!Shape || Shape->empty() || !C.D.table().isOne(Shape->back()))))
    return Type;
  Type.Indices = LocalIndices::RowIndices;
  Type.Axis = All.Axis;
  return Type;
}

} // namespace

namespace types {

static void join(TypeContext &C) { C.setAll(joinType(C)); }
void toBlocks(TypeContext &C) { C.setAll(toBlocksType(C)); }
void fromBlocks(TypeContext &C) { C.setAll(fromBlocksType(C)); }

static bool joinIndices(TypeContext &C) {
  ReplicationType First = C.operand(0);
  if (First.isRowNumbers()) {
    for (unsigned I = 1; I < C.numData(); ++I)
      if (C.operand(I).isVarying())
        return false;
    ReplicationType Type = rowIndices(C, First);
    C.setAll(Type, Type.Indices);
    return true;
  }
  // This ConcatV2 makes the indices of accidental hits from their rows and
  // their columns.
  if (First.Indices != LocalIndices::HitRows || !C.isOp(op::ConcatV2) ||
      C.numData() != 3 || !C.operand(2).isTrue())
    return false;
  auto IsColumn = [&](unsigned I) {
    auto Shape = C.shape(I);
    return Shape && Shape->size() == 2 && C.D.table().isOne(Shape->back());
  };
  ReplicationType Columns = C.operand(1);
  auto Axis = C.numbers(2);
  if (Columns.Indices != LocalIndices::HitValues ||
      Columns.Cause != First.Cause || !Axis || Axis->size() != 1 ||
      axisIn((*Axis)[0], 2) != 1u || !IsColumn(0) || !IsColumn(1))
    return false;
  C.setAll(First, LocalIndices::HitIndices);
  return true;
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Join = {.Sizes = sizes::concat,
                         .Type = types::join,
                         .LocalIndices = types::joinIndices,
                         .Is = KeepsZeros | TakesUnequalRows | OrdersRows |
                               JoinsRows | KeepsRows,
                         .ComparedOperands = AllOperands};

} // namespace

ArrayRef<OpRule> families::concat() {
  static const OpRule Rules[] = {
      entry(op::Pack, Join, {.Sizes = sizes::pack, .Values = values::pack}),
      entry(op::ConcatV2, Join,
            {.Values = values::concat, .Is = ComparesSizes}),
      entry(op::Concat, Join, {.Is = ComparesSizes}),
  };
  return Rules;
}

} // namespace graft
