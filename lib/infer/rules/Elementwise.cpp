//===- lib/infer/rules/Elementwise.cpp - element by element -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Identities, element-wise ops (linear or not), and their gradients, which are
// linear in the incoming gradient.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"
#include "lib/infer/sizes/RaggedRows.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/JoinedBatches.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Returns the axis of the channels in a tensor of rank \p Rank.
size_t channelAxis(const SizeContext &C, size_t Rank) {
  bool First = Rank > 2 && C.stringAttr("data_format") == StringRef("NCHW");
  return First ? 1 : Rank - 1;
}

void same(SizeContext &C) {
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    C.passShape(Port, C.inRun(0));
}

/// Relates the sizes of output 0 to those in attribute `shape`.
static void stated(SizeContext &C) {
  DimList List;
  if (Dims X = C.out(0); !X || !C.sizesFrom("shape", List))
    return;
  for (size_t I = 0; I < std::min(List.size(), C.out(0)->size()); ++I)
    C.sameRows((*C.out(0))[I], List[I]);
}

static void ensureShape(SizeContext &C) {
  C.passShape(0, C.inRun(0));
  stated(C);
}

void sameAll(SizeContext &C) {
  Dims First;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims X = C.in(I);
    if (X && First)
      C.sameShapes(*First, *X);
    else if (X)
      First = X;
  }
  if (First)
    C.setShape(0, *First);
}

static void accumulate(SizeContext &C) {
  sameAll(C);
  stated(C);
}

static void perInput(SizeContext &C) {
  if (isJoinedBatch(C.G, C.N))
    return source(C);
  for (unsigned I = 0; I < C.numData(); ++I)
    C.passShape(I, C.inRun(I));
}

void broadcast(SizeContext &C) {
  if (C.numData() == 2) {
    // The shapes are equal, or an operand is a scalar: nothing to align.
    DimRun X = C.inRun(0), Y = C.inRun(1);
    if (!X.Known || !Y.Known)
      return;
    if (X == Y || X.Count == 0 || Y.Count == 0) {
      C.passShape(0, X.Count == 0 ? Y : X);
      return;
    }
  }
  DimList Result;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims X = C.in(I);
    if (!X)
      return;
    DimList Next;
    size_t Rank = std::max(Result.size(), X->size());
    for (size_t D = 0; D < Rank; ++D) {
      size_t FromEnd = Rank - D;
      bool InResult = FromEnd <= Result.size(), InX = FromEnd <= X->size();
      DimId R = InResult ? Result[Result.size() - FromEnd] : C.One;
      DimId Y = InX ? (*X)[X->size() - FromEnd] : C.One;
      Next.push_back(InResult && InX ? C.broadcast(R, Y) : InX ? Y : R);
    }
    Result = Next;
  }
  C.setShape(0, Result);
}

/// Returns true if the shapes \p X and \p Y, aligned at the right, are
/// compatible for every batch size.
static bool mustFit(const DimTable &Table, ArrayRef<DimId> X,
                    ArrayRef<DimId> Y) {
  return all_of(zip(reverse(X), reverse(Y)), [&](auto Pair) {
    auto [A, B] = Pair;
    return Table.isOne(A) || Table.isOne(B) || Table.isEqual(A, B);
  });
}

/// Infers the shape of a comparison. Without incompatible_shape_error, the
/// result for incompatible shapes is a scalar, so the shapes must be compatible
/// for every batch size.
static void compare(SizeContext &C) {
  if (C.G.boolAttr(C.N, "incompatible_shape_error").value_or(true))
    return broadcast(C);
  Dims X = C.in(0), Y = C.in(1);
  if (!X || !Y || !mustFit(C.Table, *X, *Y))
    return;
  if (X->size() < Y->size())
    std::swap(X, Y);
  DimList List(X->begin(), X->end());
  for (auto [Mine, Its] : zip(reverse(List), reverse(*Y)))
    if (C.Table.isOne(Mine))
      Mine = Its;
  C.setShape(0, List);
}

void select(SizeContext &C) {
  Dims Cond = C.in(0), X = C.in(1), Y = C.in(2);
  if (X && Y)
    C.sameShapes(*X, *Y);
  // The condition may be a vector along axis 0, or a scalar.
  if (Cond && X && Cond->size() == 1 && !X->empty())
    C.same((*Cond)[0], (*X)[0]);
  else if (Cond && X)
    C.sameShapes(*Cond, *X);
  if (Dims S = X ? X : Y)
    C.setShape(0, *S);
}

void scalar(SizeContext &C) { C.setShape(0, {}); }

void sameAsSecond(SizeContext &C) { C.passShape(0, C.inRun(1)); }

static void biasAdd(SizeContext &C) {
  Dims X = C.in(0), B = C.in(1);
  if (!X)
    return;
  if (B && B->size() == 1 && X->size() >= 2)
    C.same((*X)[channelAxis(C, X->size())], (*B)[0]);
  C.setShape(0, *X);
}

} // namespace sizes

namespace values {

static bool isOfRows(const SizeContext &C, DimId D) {
  return C.Table.hasSym(D) || C.Table.followsRows(D);
}

/// If \p X or \p Y is 1, returns the other size if it is a row count that may
/// be 0. Otherwise returns none.
static std::optional<DimId> orOne(const SizeContext &C, DimId X, DimId Y) {
  for (auto [Rows, Other] : {std::pair(X, Y), std::pair(Y, X)})
    if (C.Table.isOne(Other) && isOfRows(C, Rows) && C.Table.number(Rows) <= 0)
      return Rows;
  return std::nullopt;
}

/// Returns true if nodes of the input graph read the result, all of them as a
/// divisor.
static bool isDivisor(const SizeContext &C) {
  bool Divides = false, IsRead = false;
  C.G.forEachUse(C.N, [&](Use U) {
    if (!C.G.isData(U) || C.G.node(U.User).Kind != Inserted::No)
      return;
    bool ByIt = U.Index == 1 && (C.G.isOp(U.User, op::FloorDiv) ||
                                 C.G.isOp(U.User, op::TruncateDiv));
    (ByIt ? Divides : IsRead) = true;
  });
  return Divides && !IsRead;
}

/// Returns the element that \p Op computes from the elements \p X and \p Y.
DimId arithmeticElement(SizeContext &C, StringRef Op, unsigned Slot, DimId X,
                        DimId Y) {
  if (Op == op::Mul)
    return C.product(Slot, X, Y);
  if (Op == op::FloorDiv || Op == op::TruncateDiv)
    return C.quotient(Slot, X, Y);
  bool Numbers = !C.Table.hasSym(X) && !C.Table.hasSym(Y) &&
                 C.Table.isKnown(X) && C.Table.isKnown(Y);
  int64_t NX = C.Table.number(X), NY = C.Table.number(Y);
  if (Op == op::Maximum) {
    if (C.Table.find(X) == C.Table.find(Y))
      return X;
    // No size is negative, and a row count with a positive number is at least
    // 1.
    auto IsAtLeast = [&](DimId Size, int64_t Least) {
      return isOfRows(C, Size) && Least <= (C.Table.number(Size) > 0 ? 1 : 0);
    };
    if (!C.Table.hasSym(Y) && NY != UnknownSize && IsAtLeast(X, NY))
      return X;
    if (!C.Table.hasSym(X) && NX != UnknownSize && IsAtLeast(Y, NX))
      return Y;
    // Return the size variable of an operand, not a number: a later round may
    // find that the size is the batch size.
    if (Numbers)
      return NX >= NY ? X : Y;
    DimId D = C.slotFrom(Slot | SizeContext::OpaqueSlot, {X, Y});
    if (auto Rows = orOne(C, X, Y))
      C.isOrOne(D, *Rows);
    return D;
  }
  if (Op == op::Minimum) {
    if (C.Table.find(X) == C.Table.find(Y))
      return X;
    if (Numbers)
      return NX <= NY ? X : Y;
    return C.slotFrom(Slot | SizeContext::OpaqueSlot, {X, Y});
  }
  if (Op == op::Add || Op == op::AddV2 || Op == op::Sub) {
    if (!C.Table.hasSym(Y) && NY == 0)
      return X;
    if (Op != op::Sub && !C.Table.hasSym(X) && NX == 0)
      return Y;
    if (int64_t Result;
        Numbers && !(Op == op::Sub ? SubOverflow(NX, NY, Result)
                                   : AddOverflow(NX, NY, Result)))
      return C.number(Slot, Result);
    if (Op != op::Sub)
      return C.total(Slot | SizeContext::OpaqueSlot, {X, Y});
    return C.slotFrom(Slot | SizeContext::OpaqueSlot, {X, Y});
  }
  if ((Op == op::FloorMod || Op == op::Mod) && Numbers && NY > 0)
    return C.number(Slot, NX % NY < 0 ? NX % NY + NY : NX % NY);
  return C.slotFrom(Slot | SizeContext::OpaqueSlot, {X, Y});
}

void same(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  Dims S = C.out(0);
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    if (S && S->size() <= 1)
      C.setValue(Port, *X);
}

/// Negates numbers, such as positions counted from the end of an axis. Any
/// other element becomes an unknown size.
static void negate(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  DimList List;
  bool AllNumbers = true;
  for (size_t I = 0; I < X->size(); ++I) {
    DimId Element = (*C.val(0))[I];
    int64_t Number = C.plainNumber(Element);
    AllNumbers &= Number != UnknownSize;
    List.push_back(
        Number != UnknownSize
            ? C.number(128 + I, -Number)
            : C.slotFrom((128 + I) | SizeContext::OpaqueSlot, {Element}));
  }
  if (AllNumbers || C.Known.value({C.N, 0}))
    C.setValue(0, List);
}

static void cast(SizeContext &C) {
  Dims X = C.val(0);
  unsigned Type = C.G.outputType(C.N, 0);
  if (X && (Type == DT_INT32 || Type == DT_INT64))
    C.setValue(0, *X);
  else if (!X && isFloating(C.typeAttr("SrcT").value_or(DT_INVALID)))
    shared(C);
}

static void like(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I)
    List.push_back(C.number(I + 1, C.isOp(op::OnesLike)));
  C.setValue(0, List);
}

static void arithmetic(SizeContext &C) {
  if (C.numData() == 1)
    return;
  Dims X = C.val(0), Y = C.val(1);
  if (!X || !Y || dividesByNone(C.G, C.Known, C.N))
    return;
  // An empty operand makes the result empty.
  bool AnyEmpty = X->empty() || Y->empty();
  size_t Size = AnyEmpty ? 0 : std::max(X->size(), Y->size());
  if ((X->size() != Size && X->size() != 1) ||
      (Y->size() != Size && Y->size() != 1))
    return;
  auto Pair = [&](size_t I) {
    return std::pair((*C.val(0))[X->size() == 1 ? 0 : I],
                     (*C.val(1))[Y->size() == 1 ? 0 : I]);
  };
  // On a replica without rows, Maximum(rows, 1) is 1, which is no multiple of
  // the row count. So the size is tracked only if it is a divisor in all users,
  // as in FloorDiv(n, Maximum(rows, 1)). Other users need the row count of all
  // replicas.
  bool IsNumber = C.isOp(op::Maximum) && any_of(seq(Size), [&](size_t I) {
                    return orOne(C, Pair(I).first, Pair(I).second);
                  });
  if (IsNumber && !C.Known.value({C.N, 0}) && !isDivisor(C))
    return;
  DimList List;
  for (size_t I = 0; I < Size; ++I) {
    auto [EX, EY] = Pair(I);
    List.push_back(arithmeticElement(C, C.opName(), 128 + I, EX, EY));
  }
  C.setValue(0, List);
}

} // namespace values

namespace {

SmallVector<unsigned, 8> allOperands(const TypeContext &C) {
  return to_vector<8>(seq(0u, C.numData()));
}

/// Returns true if a BiasAdd in NCHW, whose operands are not aligned at the
/// right, has a sharded bias or a value sharded along an axis other than 0.
bool addsChannels(const TypeContext &C) {
  int Rank = C.rank(C.out());
  return C.isOp(op::BiasAdd) && Rank != 2 &&
         C.stringAttr("data_format") == StringRef("NCHW") &&
         (C.operand(1).isSharded() ||
          (C.operand(0).isSharded() && (Rank < 0 || C.operand(0).Axis != 0)));
}

/// Infers the type of a non-linear element-wise op. The op needs plain
/// operands: replicated, or sharded along the same axis.
ReplicationType elementwise(TypeContext &C, ArrayRef<unsigned> Operands) {
  int Axis = -1;
  SmallVector<ReplicationType, 4> Types;
  for (unsigned I : Operands) {
    ReplicationType X = C.plain(I);
    if (X.isVarying())
      return C.varyingLike(X);
    if (X.isSharded()) {
      int At = C.alignedAxis(I, X.Axis);
      if (At < 0)
        return C.varying("has an operand of unknown rank");
      if (Axis >= 0 && At != Axis)
        return C.varying(
            "combines every row of the batch with every other row");
      Axis = At;
    }
    Types.push_back(X);
  }
  if (Axis < 0)
    return ReplicationType::replicated();
  for (size_t J = 0; J < Types.size(); ++J)
    if (!Types[J].isSharded() && !C.broadcastsAlong(Operands[J], Axis))
      return C.varying("combines a per-replica shard with a replicated value "
                       "along the batch axis");
  return ReplicationType::sharded(Axis);
}

/// Infers the type of an op that is linear only in operand \p I.
ReplicationType linearIn(TypeContext &C, unsigned I) {
  ReplicationType X = C.numeric(I), Y = C.plain(1 - I);
  // Zeros in another operand do not make the result zero: the derivative at 0
  // may be another number.
  Y.Zero = false;
  return types::productOf(C, I, X, 1 - I, Y);
}

ReplicationType selectType(TypeContext &C) {
  ReplicationType Cond = C.plain(0);
  ReplicationType Value = types::sumOf(C, {1, 2});
  // In Select, the older op, a condition of rank 1 selects rows.
  bool ByRows = C.isOp(op::Select) && C.rank(0) == 1;
  if (Cond.isVarying() || Value.isVarying())
    return C.varyingLike(Cond.isVarying() ? Cond : Value);
  if (Cond.isReplicated())
    return Value.isSharded() && (ByRows ? Value.Axis == 0
                                        : !C.broadcastsAlong(0, Value.Axis))
               ? C.varying("selects from a per-replica shard by a replicated "
                           "condition along the batch axis")
               : Value;
  int Axis = ByRows ? 0 : C.alignedAxis(0, Cond.Axis);
  if (Value.isPartial())
    return C.varying("selects rows of a partial sum");
  if (Value.isSharded())
    return Axis == Value.Axis ? Value
                              : C.varying("selects by a condition that is "
                                          "split along a different axis");
  // The condition differs by row, so both values need the row axis.
  bool Fits =
      Axis >= 0 && C.broadcastsAlong(1, Axis) && C.broadcastsAlong(2, Axis);
  if (!Fits)
    return C.varying("selects by a per-replica condition between replicated "
                     "values along the batch axis");
  ReplicationType Rows = ReplicationType::sharded(Axis, Value.K);
  Rows.Zero = Value.Zero;
  return Rows;
}

} // namespace

namespace types {

ReplicationType sumOf(TypeContext &C, ArrayRef<unsigned> Operands) {
  SmallVector<ReplicationType, 8> Types;
  bool AnySharded = false, AnyPartial = false, AllZero = true;
  for (unsigned I : Operands) {
    Types.push_back(C.numeric(I));
    const ReplicationType &X = Types.back();
    if (X.isVarying())
      return C.varyingLike(X);
    AnySharded |= X.isSharded();
    AnyPartial |= X.isPartial() && !X.Zero;
    AllZero &= X.Zero;
  }
  if (AnySharded) {
    int Axis = -1;
    std::optional<int> K;
    for (size_t J = 0; J < Types.size(); ++J) {
      ReplicationType &X = Types[J];
      unsigned I = Operands[J];
      if (X.isPartial())
        X = C.reduced(I);
      if (X.isSharded()) {
        int At = C.alignedAxis(I, X.Axis);
        if (At < 0 || (Axis >= 0 && At != Axis))
          return C.varying("adds values that are split along different axes");
        Axis = At;
      }
      if (!X.Zero && (!K || X.K == 0))
        K = X.K;
    }
    for (size_t J = 0; J < Types.size(); ++J) {
      if (!Types[J].isSharded() && !C.broadcastsAlong(Operands[J], Axis))
        return C.varying("adds a per-replica shard to a replicated value along "
                         "the batch axis");
      C.scaled(Operands[J], Types[J], K.value_or(0));
    }
    ReplicationType Result = ReplicationType::sharded(Axis, K.value_or(0));
    Result.Zero = AllZero;
    return Result;
  }
  if (AnyPartial) {
    // Partial(k) can be added to Partial(k), and to Replicated(k-1): as a sum
    // of N equal terms, Replicated(k-1) is also Partial(k).
    std::optional<int> K;
    bool Fits = true;
    for (const ReplicationType &X : Types) {
      if (X.Zero)
        continue;
      int As = X.isPartial() ? X.K : X.K + 1;
      Fits &= !K || *K == As;
      K = As;
    }
    if (Fits)
      return ReplicationType::partial(*K);
    bool OnlyPartials = all_of(Types, [](const ReplicationType &X) {
      return X.Zero || X.isPartial();
    });
    if (OnlyPartials) {
      for (size_t J = 0; J < Types.size(); ++J)
        C.scaled(Operands[J], Types[J], 0);
      return ReplicationType::partial(0);
    }
    for (size_t J = 0; J < Types.size(); ++J)
      Types[J] = C.plain(Operands[J]);
    return ReplicationType::replicated();
  }
  std::optional<int> K;
  for (const ReplicationType &X : Types)
    if (!X.Zero && (!K || X.K == 0))
      K = X.K;
  for (size_t J = 0; J < Types.size(); ++J)
    C.scaled(Operands[J], Types[J], K.value_or(0));
  ReplicationType Result = ReplicationType::replicated(K.value_or(0));
  Result.Zero = AllZero;
  return Result;
}

ReplicationType productOf(TypeContext &C, unsigned I, ReplicationType X,
                          unsigned J, ReplicationType Y, int Sign) {
  if (X.isVarying())
    return C.varyingLike(X);
  if (Y.isVarying())
    return C.varyingLike(Y);
  auto Reduce = [&](unsigned Index, ReplicationType &Type) {
    if (Type.isPartial())
      Type = C.reduced(Index);
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
  // 0 / 0 is not 0.
  bool Zero = Sign > 0 ? X.Zero || Y.Zero : X.Zero && !Y.Zero;
  if (X.isPartial() || Y.isPartial()) {
    ReplicationType Result = ReplicationType::partial(K);
    Result.Zero = Zero;
    return Result;
  }
  ReplicationType Result = ReplicationType::replicated(K);
  if (X.isSharded() || Y.isSharded()) {
    int AX = X.isSharded() ? C.alignedAxis(I, X.Axis) : -1;
    int AY = Y.isSharded() ? C.alignedAxis(J, Y.Axis) : -1;
    if ((X.isSharded() && AX < 0) || (Y.isSharded() && AY < 0))
      return C.varying("has an operand of unknown rank");
    int Axis = X.isSharded() ? AX : AY;
    if (X.isSharded() && Y.isSharded() && AX != AY)
      return C.varying("combines every row of the batch with every other row");
    if ((!X.isSharded() && !C.broadcastsAlong(I, Axis)) ||
        (!Y.isSharded() && !C.broadcastsAlong(J, Axis)))
      return C.varying("combines a per-replica shard with a replicated value "
                       "along the batch axis");
    Result = ReplicationType::sharded(Axis, K);
  }
  Result.Zero = Zero;
  return Result;
}

void pass(TypeContext &C) {
  for (unsigned I = 0; I < C.numData(); ++I)
    C.set(I, C.operand(I));
}

bool passIndices(TypeContext &C) {
  bool Any = C.numData() == 1 && C.operand(0).isOfHits();
  for (unsigned I = 0; I < C.numData(); ++I)
    Any |= C.operand(I).countsRows() || C.operand(I).isDistinct() ||
           C.operand(I).isOfEntries() ||
           C.operand(I).Indices == LocalIndices::ForGradient;
  for (unsigned I = 0; Any && I < C.numData(); ++I)
    C.set(I, C.operand(I), C.operand(I).Indices);
  return Any;
}

/// Types zeros that have the shape of a tensor marked ForGradient. The zeros
/// get the same mark.
static bool zerosForGradient(TypeContext &C) {
  bool IsIt = C.operand(0).Indices == LocalIndices::ForGradient;
  if (IsIt)
    C.setAll(C.operand(0), LocalIndices::ForGradient);
  return IsIt;
}

static void linear(TypeContext &C) { C.setAll(C.numeric(0)); }
static void linearFirst(TypeContext &C) { C.setAll(linearIn(C, 0)); }
static void linearSecond(TypeContext &C) { C.setAll(linearIn(C, 1)); }
static void nonLinear(TypeContext &C) {
  C.setAll(elementwise(C, allOperands(C)));
}

/// Returns true if the operands are sizes that are equal, element by element.
static bool comparesSame(const TypeContext &C) {
  auto X = C.D.value(C.input(0)), Y = C.D.value(C.input(1));
  return (C.operand(0).Symbolic || C.operand(1).Symbolic) && C.isSize(0) &&
         C.isSize(1) && X && Y && !C.D.isMatrix(C.input(0)) &&
         !C.D.isMatrix(C.input(1)) && equal(*X, *Y, [&](DimId A, DimId B) {
           auto Mine = C.D.table().sym(A);
           return C.D.table().find(A) == C.D.table().find(B) ||
                  (Mine && Mine == C.D.table().sym(B));
         });
}

/// Types a comparison of local sizes. The local result is the global result if
/// both operands have the same k (global size = N^k * local size). Otherwise
/// returns false.
static bool comparesSizes(TypeContext &C) {
  if (C.numData() != 2 || !C.operand(0).Symbolic || !C.operand(1).Symbolic)
    return false;
  auto X = C.Types.sizePowers(C.input(0)), Y = C.Types.sizePowers(C.input(1));
  if (!X || !Y || X->empty() || Y->empty())
    return false;
  bool Alike = all_equal(*X) && all_equal(*Y) && X->front() == Y->front();
  if (!Alike && !(*X == *Y && C.rank(0u) == 1 && C.rank(1) == 1))
    return false;
  C.setAll(ReplicationType::replicated());
  return true;
}

static void order(TypeContext &C) {
  if (!comparesSizes(C))
    nonLinear(C);
}

static void compare(TypeContext &C) {
  if (comparesSizes(C))
    return;
  if (comparesSame(C))
    return C.setAll(ReplicationType::replicated());
  ReplicationType Type = elementwise(C, allOperands(C));
  if (Type.isSharded() &&
      !C.G.boolAttr(C.N, "incompatible_shape_error").value_or(true)) {
    auto X = C.shape(0), Y = C.shape(1);
    if (!X || !Y || !sizes::mustFit(C.D.table(), *X, *Y))
      Type = C.varying("compares tensors whose sizes may be incompatible");
  }
  C.setAll(Type);
}

/// Types the sum of lists, which adds their elements.
static ReplicationType sumOfLists(TypeContext &C) {
  ReplicationType Sum = C.operand(0);
  for (unsigned I = 1; I < C.numData() && !Sum.isVarying(); ++I)
    Sum = C.joined(Sum, C.operand(I));
  if (Sum.isVarying() && Sum.Cause != NoNode)
    return C.varyingLike(Sum);
  if (Sum.isVarying() || Sum.Symbolic ||
      (Sum.isPartial() && Sum.Op != Combine::Sum))
    return C.varying("adds lists with elements of different types");
  return Sum;
}

static void add(TypeContext &C) {
  if (C.G.outputType(C.N, 0) == DT_VARIANT)
    return C.setAll(sumOfLists(C));
  C.setAll(addsChannels(C) ? C.varying("adds a bias along the batch axis")
                           : sumOf(C, allOperands(C)));
}

static void mul(TypeContext &C) {
  ReplicationType X = C.numeric(0), Y = C.numeric(1);
  C.setAll(productOf(C, 0, X, 1, Y));
}

static void div(TypeContext &C) {
  // Integer division rounds, which is not linear.
  if (unsigned Type = C.G.outputType(C.N, 0);
      Type != DT_INVALID && !isFloating(Type))
    return C.setAll(elementwise(C, {0, 1}));
  ReplicationType X = C.numeric(0), Y = C.numeric(1);
  C.setAll(productOf(C, 0, X, 1, Y, -1));
}

static void select(TypeContext &C) { C.setAll(selectType(C)); }

static void cast(TypeContext &C) {
  unsigned From = C.typeAttr("SrcT").value_or(DT_INVALID);
  unsigned To = C.typeAttr("DstT").value_or(DT_INVALID);
  bool Exact = isFloating(To) || (!isFloating(From) && To != DT_BOOL);
  C.setAll(Exact ? C.numeric(0) : elementwise(C, {0}));
}

static bool castIndices(TypeContext &C) {
  auto IsIndex = [&](StringRef Key) {
    auto Type = C.typeAttr(Key);
    return Type == DT_INT32 || Type == DT_INT64;
  };
  ReplicationType X = C.operand(0);
  // A Cast is element-wise, so it may convert values to any type. Row numbers
  // must stay integers.
  bool OfValues = X.Indices == LocalIndices::HitValues ||
                  X.Indices == LocalIndices::Distinct ||
                  X.Indices == LocalIndices::EntryValues;
  if ((!X.countsRows() && !X.isOfHits() && !X.isDistinct() &&
       !X.isOfEntries()) ||
      (!OfValues && (!IsIndex("SrcT") || !IsIndex("DstT"))))
    return false;
  C.setAll(X, X.Indices);
  return true;
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Linear = {.Sizes = sizes::same,
                           .Type = types::linear,
                           .Is = KeepsZeros | KeepsRowOrder | LinearInFirst |
                                 KeepsRows};
constexpr OpRule Add = {.Type = types::add,
                        .Is = KeepsZeros | KeepsRowOrder | LinearInEach |
                              Elementwise};
constexpr OpRule Mul = {.Sizes = sizes::broadcast,
                        .Type = types::mul,
                        .LocalIndices = types::entryProducts,
                        .Is = KeepsZeros | KeepsRowOrder | LinearInEach |
                              Elementwise};
constexpr OpRule Div = {.Sizes = sizes::broadcast,
                        .Type = types::div,
                        .Is = KeepsZeros | KeepsRowOrder | LinearInFirst |
                              Elementwise};
constexpr OpRule Select = {.Type = types::select,
                           .Is = KeepsZeros | Elementwise};
constexpr OpRule NonLinear = {.Sizes = sizes::same,
                              .Type = types::nonLinear,
                              .LocalIndices = types::entryValues,
                              .Is = Elementwise};
constexpr OpRule NonLinearBroadcast = {
    .Sizes = sizes::broadcast, .Type = types::nonLinear, .Is = Elementwise};
constexpr OpRule Order = {
    .Sizes = sizes::broadcast, .Type = types::order, .Is = Elementwise};
constexpr OpRule Compare = {
    .Sizes = sizes::compare, .Type = types::compare, .Is = Elementwise};
constexpr OpRule LinearFirst = {.Sizes = sizes::sameAll,
                                .Type = types::linearFirst,
                                .Is = KeepsZeros | Elementwise};
constexpr OpRule LinearSecond = {.Sizes = sizes::sameAll,
                                 .Type = types::linearSecond,
                                 .Is = KeepsZeros | Elementwise};

} // namespace

ArrayRef<OpRule> families::elementwise() {
  static const OpRule Rules[] = {
      // The value itself.
      entry(op::Identity, Pass, {.Values = values::same, .Is = ReadsVariable}),
      entry(op::StopGradient, Pass, {.Values = values::same}),
      entry(op::PreventGradient, Pass),
      entry(op::CheckNumerics, Pass),
      entry(op::CheckNumericsV2, Pass),
      entry(op::Copy, Pass),
      entry(op::CopyHost, Pass),
      entry(op::DeepCopy, Pass),
      entry(op::GuaranteeConst, Pass),
      entry(op::Snapshot, Pass, {.Values = values::same}),
      entry(op::DebugGradientIdentity, Pass),
      {.Op = op::EnsureShape,
       .Sizes = sizes::ensureShape,
       .Type = types::ensureShape,
       .Is = KeepsZeros},
      entry(op::IdentityN, Pass, {.Sizes = sizes::perInput}),
      entry(op::XlaOptimizationBarrier, Pass, {.Sizes = sizes::perInput}),

      // Element-wise and linear.
      entry(op::Neg, Linear, {.Values = values::negate}),
      entry(op::Real, Linear),
      entry(op::Imag, Linear),
      entry(op::Conj, Linear),
      entry(op::Add, Add,
            {.Sizes = sizes::broadcast, .Values = values::arithmetic}),
      entry(op::AddV2, Add,
            {.Sizes = sizes::broadcast, .Values = values::arithmetic}),
      entry(op::Sub, Add,
            {.Sizes = sizes::broadcast, .Values = values::arithmetic}),
      entry(op::AddN, Add, {.Sizes = sizes::sameAll}),
      entry(op::AccumulateNV2, Add, {.Sizes = sizes::accumulate}),
      entry(op::BiasAdd, Add, {.Sizes = sizes::biasAdd}),
      entry(op::BiasAddV1, Add, {.Sizes = sizes::biasAdd}),
      entry(op::Mul, Mul, {.Values = values::arithmetic}),
      entry(op::MulNoNan, Mul),
      entry(op::Div, Div),
      entry(op::RealDiv, Div),
      entry(op::DivNoNan, Div),
      {.Op = op::ZerosLike,
       .Sizes = sizes::zerosLike,
       .Values = values::like,
       .Type = types::zeros,
       .LocalIndices = types::zerosForGradient,
       .Is = KeepsZeros | NotOfTrue | KeepsRows},
      {.Op = op::OnesLike,
       .Sizes = sizes::same,
       .Values = values::like,
       .Type = types::ones,
       .Is = KeepsRows},
      {.Op = op::Cast,
       .Sizes = sizes::same,
       .Values = values::cast,
       .Type = types::cast,
       .LocalIndices = types::castIndices,
       .Is = KeepsRowOrder | LinearOfFloats | KeepsRows,
       .ZerosOf = operands(0)},
      entry(op::Select, Select, {.Sizes = sizes::select}),
      entry(op::SelectV2, Select, {.Sizes = sizes::broadcast}),

      // Element-wise, not linear.
      entry(op::Abs, NonLinear),
      entry(op::Acos, NonLinear),
      entry(op::Acosh, NonLinear),
      entry(op::Angle, NonLinear),
      entry(op::AsString, NonLinear),
      entry(op::Asin, NonLinear),
      entry(op::Asinh, NonLinear),
      entry(op::Atan, NonLinear),
      entry(op::Atanh, NonLinear),
      entry(op::BesselI0, NonLinear),
      entry(op::BesselI0e, NonLinear),
      entry(op::BesselI1, NonLinear),
      entry(op::BesselI1e, NonLinear),
      entry(op::BesselJ0, NonLinear),
      entry(op::BesselJ1, NonLinear),
      entry(op::BesselK0, NonLinear),
      entry(op::BesselK0e, NonLinear),
      entry(op::BesselK1, NonLinear),
      entry(op::BesselK1e, NonLinear),
      entry(op::BesselY0, NonLinear),
      entry(op::BesselY1, NonLinear),
      entry(op::Bucketize, NonLinear),
      entry(op::Ceil, NonLinear),
      entry(op::ComplexAbs, NonLinear),
      entry(op::Cos, NonLinear),
      entry(op::Cosh, NonLinear),
      entry(op::Dawsn, NonLinear),
      entry(op::Digamma, NonLinear),
      entry(op::Elu, NonLinear),
      entry(op::Erf, NonLinear),
      entry(op::Erfc, NonLinear),
      entry(op::Erfinv, NonLinear),
      entry(op::Exp, NonLinear),
      entry(op::Expint, NonLinear),
      entry(op::Expm1, NonLinear),
      entry(op::FakeQuantWithMinMaxArgs, NonLinear),
      entry(op::Floor, NonLinear),
      entry(op::FresnelCos, NonLinear),
      entry(op::FresnelSin, NonLinear),
      entry(op::Inv, NonLinear),
      entry(op::Invert, NonLinear),
      entry(op::IsFinite, NonLinear),
      entry(op::IsInf, NonLinear),
      entry(op::IsNan, NonLinear),
      entry(op::LeakyRelu, NonLinear),
      entry(op::Lgamma, NonLinear),
      entry(op::Log, NonLinear),
      entry(op::Log1p, NonLinear),
      entry(op::LogicalNot, NonLinear),
      entry(op::Ndtri, NonLinear),
      entry(op::PopulationCount, NonLinear),
      entry(op::Reciprocal, NonLinear),
      entry(op::Relu, NonLinear),
      entry(op::Relu6, NonLinear),
      entry(op::Rint, NonLinear),
      entry(op::Round, NonLinear),
      entry(op::Rsqrt, NonLinear),
      entry(op::Selu, NonLinear),
      entry(op::Sigmoid, NonLinear),
      entry(op::Sign, NonLinear),
      entry(op::Sin, NonLinear),
      entry(op::Sinh, NonLinear),
      entry(op::Softplus, NonLinear),
      entry(op::Softsign, NonLinear),
      entry(op::Spence, NonLinear),
      entry(op::Sqrt, NonLinear),
      entry(op::Square, NonLinear),
      entry(op::StringToHashBucketFast, NonLinear),
      entry(op::StringToNumber, NonLinear),
      entry(op::DecodeBase64, NonLinear),
      entry(op::EncodeBase64, NonLinear),
      entry(op::StaticRegexFullMatch, NonLinear),
      entry(op::StaticRegexReplace, NonLinear),
      entry(op::StringLength, NonLinear),
      entry(op::StringLower, NonLinear),
      entry(op::StringStrip, NonLinear),
      entry(op::StringToHashBucket, NonLinear),
      entry(op::StringToHashBucketStrong, NonLinear),
      entry(op::StringUpper, NonLinear),
      entry(op::DecodeCompressed, NonLinear),
      entry(op::UnicodeScript, NonLinear),
      entry(op::UnicodeTranscode, NonLinear),
      entry("_TensorToHashBucketFast", NonLinear),
      entry("_UnaryOpsComposition", NonLinear),
      entry("_HostCast", NonLinear),
      entry(op::Tan, NonLinear),
      entry(op::Tanh, NonLinear),
      entry(op::Atan2, NonLinearBroadcast),
      entry(op::Betainc, NonLinearBroadcast),
      entry(op::BitwiseAnd, NonLinearBroadcast),
      entry(op::BitwiseOr, NonLinearBroadcast),
      entry(op::BitwiseXor, NonLinearBroadcast),
      entry(op::ClipByValue, NonLinearBroadcast),
      entry(op::Complex, NonLinearBroadcast),
      entry(op::Equal, Compare),
      entry(op::FakeQuantWithMinMaxVars, NonLinearBroadcast),
      entry(op::FloorDiv, NonLinearBroadcast,
            {.Values = values::arithmetic, .Is = ComparesSizes}),
      entry(op::FloorMod, NonLinearBroadcast, {.Values = values::arithmetic}),
      entry(op::Greater, Order),
      entry(op::GreaterEqual, Order),
      entry(op::Igamma, NonLinearBroadcast),
      entry(op::IgammaGradA, NonLinearBroadcast),
      entry(op::Igammac, NonLinearBroadcast),
      entry(op::LeftShift, NonLinearBroadcast),
      entry(op::Less, Order),
      entry(op::LessEqual, Order),
      entry(op::LogicalAnd, NonLinearBroadcast),
      entry(op::LogicalOr, NonLinearBroadcast),
      entry(op::Maximum, NonLinearBroadcast,
            {.Values = values::arithmetic, .Is = ComparesSizes}),
      entry(op::Minimum, NonLinearBroadcast,
            {.Values = values::arithmetic, .Is = ComparesSizes}),
      entry(op::Mod, NonLinearBroadcast, {.Values = values::arithmetic}),
      entry(op::NextAfter, NonLinearBroadcast),
      entry(op::NotEqual, Compare),
      entry(op::Polygamma, NonLinearBroadcast),
      entry(op::Pow, NonLinearBroadcast),
      entry(op::RandomGammaGrad, NonLinearBroadcast),
      entry(op::RightShift, NonLinearBroadcast),
      entry(op::SquaredDifference, NonLinearBroadcast),
      entry(op::Substr, NonLinearBroadcast),
      entry(op::TruncateDiv, NonLinearBroadcast,
            {.Values = values::arithmetic, .Is = ComparesSizes}),
      entry(op::TruncateMod, NonLinearBroadcast),
      entry(op::Xdivy, NonLinearBroadcast),
      entry(op::Xlog1py, NonLinearBroadcast),
      entry(op::Xlogy, NonLinearBroadcast),
      entry(op::Zeta, NonLinearBroadcast),
      entry(op::StringJoin, NonLinearBroadcast),
      entry(op::ApproximateEqual, NonLinear, {.Sizes = sizes::sameAll}),

      // Gradients of element-wise ops: linear in the incoming gradient.
      entry(op::ReluGrad, LinearFirst),
      entry(op::Relu6Grad, LinearFirst),
      entry(op::LeakyReluGrad, LinearFirst),
      entry(op::EluGrad, LinearFirst),
      entry(op::SeluGrad, LinearFirst),
      entry(op::SoftplusGrad, LinearFirst),
      entry(op::SoftsignGrad, LinearFirst),
      entry(op::FakeQuantWithMinMaxArgsGradient, LinearFirst,
            {.ComparedOperands = operands(0, 1)}),
      entry(op::SigmoidGrad, LinearSecond),
      entry(op::TanhGrad, LinearSecond),
      entry(op::SqrtGrad, LinearSecond),
      entry(op::RsqrtGrad, LinearSecond),
      entry(op::InvGrad, LinearSecond),
      entry(op::ReciprocalGrad, LinearSecond),
  };
  return Rules;
}

} // namespace graft
