//===- lib/infer/rules/Concat.cpp - tensors made of parts -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Concatenation and packing.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

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
  int64_t Axis = C.intAttr("axis").value_or(0);
  if (Axis < 0)
    Axis += int64_t(X->size()) + 1;
  if (Axis < 0 || Axis > int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  List.insert(List.begin() + Axis, C.number(0, C.numData()));
  C.setShape(0, List);
}

static void concat(SizeContext &C) {
  bool Old = C.isOp(op::Concat);
  unsigned AxisInput = Old ? 0 : C.numData() - 1, First = Old ? 1 : 0;
  auto Axis = C.num(AxisInput);
  Dims X = C.in(First);
  if (!Axis || !X || X->empty())
    return;
  int64_t At = *Axis < 0 ? *Axis + int64_t(X->size()) : *Axis;
  if (At < 0 || At >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  int64_t Sum = 0;
  bool Known = true;
  DimList Parts;
  for (unsigned I = First; I < First + C.numData() - 1; ++I) {
    Dims Y = C.in(I);
    if (!Y || Y->size() != List.size())
      return;
    for (size_t D = 0; D < List.size(); ++D)
      if (int64_t(D) != At)
        C.same(List[D], (*Y)[D]);
    DimId Part = (*Y)[At];
    Parts.push_back(Part);
    Known &= C.plainNumber(Part) != UnknownSize;
    if (Known)
      Sum += C.Table.number(Part);
  }
  if (C.numData() > 2)
    List[At] = Known ? C.number(0, Sum) : C.total(1, Parts);
  if (!Known && Parts.size() == 2)
    C.join(List[At], Parts[0], Parts[1]);
  C.setShape(0, List);
}

} // namespace sizes

namespace values {

static void pack(SizeContext &C) {
  DimList List;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims V = C.val(I), S = C.in(I);
    if (!V || !S || !S->empty())
      return;
    List.push_back((*V)[0]);
  }
  C.setValue(0, List);
}

static void concat(SizeContext &C) {
  DimList List;
  for (unsigned I = 0; I + 1 < C.numData(); ++I) {
    Dims V = C.val(I);
    if (!V)
      return;
    List.append(V->begin(), V->end());
  }
  C.setValue(0, List);
}

} // namespace values

ArrayRef<OpRule> families::concat() {
  static constexpr OpRule Rules[] = {
      // Layout.
      {.Op = op::Pack,
       .Sizes = sizes::pack,
       .Values = values::pack,
       .Type = TypeRule::Join},
      {.Op = op::ConcatV2,
       .Sizes = sizes::concat,
       .Values = values::concat,
       .Type = TypeRule::Join},
      {.Op = op::Concat, .Sizes = sizes::concat, .Type = TypeRule::Join},
  };
  return Rules;
}

} // namespace graft
