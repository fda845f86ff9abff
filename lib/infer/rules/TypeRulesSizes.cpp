//===- lib/infer/rules/TypeRulesSizes.cpp - tensors by size -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sizes of tensors, and tensors of a size that is an operand. A tensor that has
// the rows of one replica is a slice of a larger one; what it is made of must
// then be the same for every row.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeRules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;

namespace graft {

/// The axis whose size is a multiple of the rows of one replica; -1: all sizes
/// are those of the single-device step; -2: not known.
int TypeRules::localAxis(Endpoint E) const {
  auto Shape = D.shape(E);
  if (!Shape)
    return -2;
  int Axis = -1;
  for (size_t I = 0; I < Shape->size(); ++I) {
    if (D.table().isSame((*Shape)[I]))
      continue;
    auto S = D.table().sym((*Shape)[I]);
    if (!S || S->B != 1 || S->R != 0 || Axis >= 0)
      return -2;
    Axis = static_cast<int>(I);
  }
  return Axis;
}

/// Whether operand \p I is integers that are equal on all replicas where they
/// are no sizes of a replica.
bool TypeRules::isSize(unsigned I) const {
  RType X = operand(I);
  return X.isReplicated() && (X.K == 0 || X.Zero);
}

/// Whether an element of \p Value is another on replicas than in the
/// single-device step, or may be.
bool TypeRules::hasLocalSize(ArrayRef<DimId> Value) const {
  return any_of(Value, [&](DimId Dim) { return !D.table().isSame(Dim); });
}

/// Shape, Size and their like.
RType TypeRules::sizes(unsigned Port) {
  RType Type = RType::replicated();
  // Equal tensors, and those that are added up, have equal shapes.
  bool Same = all_of(seq(0u, numData()), [&](unsigned I) {
    RType X = operand(I);
    return (X.isReplicated() || X.isPartial()) && !X.Symbolic;
  });
  auto Value = D.value(out(Port));
  if (!Value)
    Type.Symbolic = !Same;
  else
    Type.Symbolic = any_of(*Value, [&](DimId Dim) {
      return !D.table().isSame(Dim) && !(Same && !D.table().isKnown(Dim));
    });
  // What exists once has the sizes of true values.
  if (G.node(N).Count == Copies::Once && !D.isLocal(out(Port)))
    Type.Symbolic = false;
  return Type;
}

/// ZerosLike, OnesLike: only the shape of the operand counts.
RType TypeRules::alike(bool Zero) {
  RType X = operand(0), Type = RType::replicated();
  int Axis = D.batchAxis(out());
  if (X.isSharded())
    Type = RType::sharded(X.Axis);
  else if (X.isVarying() && localAxis(out()) == -2)
    return varyingLike(X);
  else if (Axis >= 0)
    Type = RType::sharded(Axis);
  Type.Order = Type.isSharded() ? RType::AnyOrder : RType::InOrder;
  Type.Zero = Zero;
  return Type;
}

/// A tensor of one value.
RType TypeRules::fill() {
  RType Value = numeric(1);
  if (Value.isVarying())
    return varyingLike(Value);
  if (operand(0).isTrue() && D.batchAxis(out()) < 0)
    return Value;
  int Axis = isSize(0) ? localAxis(out()) : -2;
  if (Axis == -2)
    return varying("makes a tensor of a per-replica size");
  if (Axis < 0)
    return Value;
  if (Value.isPartial())
    Value = reduced(1);
  RType Type = RType::sharded(Axis, Value.K);
  Type.Order = RType::AnyOrder;
  Type.Zero = Value.Zero;
  return Type;
}

/// Tile, BroadcastTo.
RType TypeRules::tile() {
  RType X = numeric(0);
  if (X.isVarying())
    return varyingLike(X);
  bool IsTrue =
      operand(1).isTrue() && (X.isSharded() || D.batchAxis(out()) < 0);
  if (IsTrue && !X.isSharded())
    return X;
  int Axis = isSize(1) ? localAxis(out()) : -2;
  if (X.isSharded()) {
    int At = alignedAxis(0, X.Axis);
    auto In = D.shape(G.input(N, 0)), Out = D.shape(out());
    bool Keeps = isSize(1) && (IsTrue || Axis == At) && At >= 0 && In && Out &&
                 D.table().find((*In)[X.Axis]) == D.table().find((*Out)[At]);
    return Keeps ? RType::sharded(At, X.K)
                 : varying("repeats the rows of the batch");
  }
  if (Axis == -2)
    return varying("makes a tensor of a per-replica size");
  if (Axis < 0)
    return X;
  if (X.isPartial())
    X = reduced(0);
  RType Rows = RType::sharded(Axis, X.K);
  if (broadcastsAlong(0, Axis))
    Rows.Order = RType::AnyOrder;
  return Rows;
}

} // namespace graft
