//===- lib/infer/rules/ProgramOps.cpp - the program's own ops ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that exchange values between replicas.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"

#include "lib/program/Program.h"
#include "lib/program/forms/Accumulator.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Returns the axis along which replicas have shards; none if \p X does not
/// have this axis.
static std::optional<unsigned> splitAxis(SizeContext &C, Dims X) {
  int64_t Axis = C.intAttr("axis").value_or(0);
  return X && Axis >= 0 ? axisIn(Axis, int64_t(X->size())) : std::nullopt;
}

/// Assigns N^\p Power times \p From to \p Size, unless the exponent overflows.
/// \p S is the symbol of From.
static void assignTimes(SizeContext &C, DimId Size, DimId From, Sym S,
                        int64_t Power) {
  if (int64_t R; !AddOverflow<int64_t>(S.R, Power, R) && isInt<8>(R)) {
    S.R = static_cast<int8_t>(R);
    C.assign(Size, S, From);
  }
}

/// Infers the sizes of the slice of one replica.
static void toReplicas(SizeContext &C) {
  Dims X = C.in(0);
  auto Axis = splitAxis(C, X);
  if (!Axis)
    return;
  DimList List(X->begin(), X->end());
  DimId Old = List[*Axis], New = C.slot(0);
  int64_t Number = C.Table.number(Old);
  Endpoint Input = C.Inputs[0];
  if (C.G.node(Input.Node).Kind == Inserted::Definition) {
    // The operand holds replica indices, not rows.
    int64_t Replicas = C.options().Unpatched ? 1 : C.options().Replicas;
    if (Number != UnknownSize && Number % Replicas == 0)
      C.assignNumber(New, Number / Replicas);
  } else {
    // Use the number only if the feed declares it, not if a fact implies it.
    if (C.isFixed(Old))
      C.assignNumber(New, Number);
    if (auto All = C.Table.sym(Old);
        C.isDefined(Old) && All && All->B > 0 && All->R > 0 && All->Ragged == 0)
      assignTimes(C, New, Old, {All->C, All->B, All->R, All->Rows}, -1);
    C.splitRows(New, 0, Input, /*Own=*/false);
    // The user has declared which feeds have equally many rows.
    auto S = C.Table.sym(New);
    if (auto Batch = S && C.G.node(C.N).Flags & NF_MayHaveGraft
                         ? C.intAttr(RowsAttr)
                         : std::nullopt)
      C.sayRows(*Batch, New);
    if (auto Own = C.Table.sym(New); Own && Own->B > 0)
      assignTimes(C, Old, New, {Own->C, Own->B, Own->R, Own->Rows}, 1);
  }
  List[*Axis] = New;
  C.setShape(0, List);
}

/// Infers the sizes of the values of all replicas, concatenated.
static void gatherReplicas(SizeContext &C) {
  Dims X = C.in(0);
  auto Axis = splitAxis(C, X);
  if (!Axis)
    return;
  DimList List(X->begin(), X->end());
  DimId Old = List[*Axis], New = C.slot(0);
  int64_t Number = C.Table.number(Old);
  // The number of a batch size is already that of all replicas, unless each
  // replica reads a separate batch.
  auto S = C.Table.sym(Old);
  bool IsOfAll =
      C.options().Unpatched || (S && S->isLocal() && !C.hasOwnRows());
  if (S)
    assignTimes(C, New, Old, *S, 1);
  else if (auto Own = C.isOp(FromReplicasOp) && Number == UnknownSize
                          ? C.rowsAt(0, {C.N, 0}, /*Claimed=*/true)
                          : std::nullopt)
    assignTimes(C, New, Old, *Own, 1); // Unknown, but not a per-replica size.
  int64_t Times = IsOfAll ? 1 : C.options().Replicas;
  if (Number != UnknownSize && !MulOverflow(Number, Times, Number))
    C.assignNumber(New, Number);
  List[*Axis] = New;
  C.setShape(0, List);
}

static void fromReplicas(SizeContext &C) {
  if (C.stringAttr(CombineAttr) == StringRef(combine::Concat))
    gatherReplicas(C);
  else
    C.passShape(0, C.inRun(0));
}

/// Relates \p Old, a size of the single-device step, to \p New, the share of
/// one replica. If Old is unknown, marks New as a size that follows the rows of
/// a replica. If Old is a number, claims that New counts rows, as for a
/// constant that was changed to local sizes. If New is known to be a row count
/// of a split tensor, Old becomes N times New.
static void share(SizeContext &C, unsigned I, DimId Old, DimId New) {
  if (!C.Table.hasSym(Old) && !C.Table.followsRows(Old) &&
      (C.options().Unpatched || C.Table.isSame(Old))) {
    if (C.Table.number(Old) == UnknownSize)
      C.Table.markRows(New);
    else
      C.claimRows(I, New);
  }
  auto Own = C.Table.hasSym(New) ? C.Table.sym(New) : std::nullopt;
  if (Own && Own->B == 1 && Own->R == 0 && Own->Ragged == 0 &&
      C.Table.isOfSplit(*Own))
    C.assign(Old, {Own->C, 1, 1, Own->Rows}, New);
}

/// Returns element \p I of the result: \p Size times N^\p Power. Its number
/// does not change, because it is already that of the single-device step.
static DimId scaledSize(SizeContext &C, unsigned I, DimId Size, int64_t Power) {
  DimId New = C.slot(I);
  if (auto S = C.Table.sym(Size); S && C.Table.hasSym(Size))
    assignTimes(C, New, Size, *S, Power);
  else if (Power == 1 && C.Table.followsRows(Size))
    C.Table.markSame(New);
  else if (Power == -1)
    share(C, I, Size, New);
  C.assignNumber(New, C.Table.number(Size));
  return New;
}

/// Multiplies sizes by powers of N.
static void scaledSizes(SizeContext &C) {
  Dims X = C.val(0);
  auto Powers = C.intListAttr(PowersAttr);
  if (!X || (Powers && Powers->size() != X->size()))
    return;
  int64_t Each = C.intAttr(PowerAttr).value_or(0);
  DimList List(X->begin(), X->end());
  for (unsigned I = 0; I < List.size(); ++I) {
    int64_t Power = Powers ? (*Powers)[I] : Each;
    if (Power != 0)
      List[I] = scaledSize(C, I, List[I], Power);
  }
  C.setValue(0, List);
}

/// Infers the shape of an accumulator's sum: that of the values of the
/// replicas.
static void accumulated(SizeContext &C) {
  NodeId Put = putOf(C.G, C.N);
  Dims X = Put == NoNode ? Dims() : C.Known.shape(C.G.input(Put, 2));
  if (X)
    C.setShape(0, DimList(X->begin(), X->end()));
}

} // namespace sizes

namespace values {

/// Tracks numbers of rows that are added up over replicas. Returns false if the
/// operand holds other values.
static bool addUp(SizeContext &C) {
  Dims X = C.val(0);
  auto IsRows = [&](DimId D) {
    auto S = C.Table.hasSym(D) ? C.Table.sym(D) : std::nullopt;
    return S && S->B == 1 && S->R == 0 && S->Ragged == 0;
  };
  if (!X || !all_of(*X, IsRows))
    return false;
  DimList List(X->begin(), X->end());
  for (unsigned I = 0; I < List.size(); ++I)
    List[I] = sizes::scaledSize(C, I, List[I], 1);
  C.setValue(0, List);
  return true;
}

/// Tracks a value that is combined over replicas. The result is not a local
/// size, but may be a size of the single-device step.
static void fromReplicas(SizeContext &C) {
  auto Combine = C.stringAttr(CombineAttr);
  if (Combine == StringRef(combine::Pick))
    same(C);
  else if (Combine != StringRef(combine::Concat) &&
           !(Combine == StringRef(combine::Sum) && addUp(C)))
    shared(C);
}

} // namespace values

namespace {

/// Returns the axis of the node. If it is invalid, returns MaxRank, which no
/// tensor has as an axis.
int axisOf(const TypeContext &C) {
  int64_t Axis = C.intAttr("axis").value_or(0);
  return Axis >= 0 && Axis < MaxRank ? static_cast<int>(Axis) : MaxRank;
}

/// Clamps a power of N in an attribute. A power above MaxPower stays above it.
int clampPower(int64_t Power) {
  constexpr int64_t TooLarge = 2 * ReplicationType::MaxPower + 2;
  return static_cast<int>(std::clamp(Power, -TooLarge, TooLarge));
}

/// Returns the type of operand 0 of an op that combines replicas.
ReplicationType termOf(TypeContext &C, bool Gathers) {
  std::optional<int64_t> Assumed;
  // Only nodes that combine replicas can assume a scale. In a written output
  // all of these nodes are merges.
  if (Inserted Kind = C.node().Kind; Kind == Inserted::Reduce ||
                                     Kind == Inserted::Gather ||
                                     Kind == Inserted::Merge)
    Assumed = C.intAttr(AssumedAttr);
  if (!Assumed)
    return C.number(0);
  // The sum over replicas, or the gathered rows, have the assumed scale for any
  // type of operand. In a lowered graph, a _Scale follows.
  C.assume(AssumesReduction);
  int K = clampPower(*Assumed);
  return Gathers ? ReplicationType::sharded(axisOf(C), K)
                 : ReplicationType::partial(K);
}

/// Returns the type of the gathered rows of all replicas.
ReplicationType gatheredType(TypeContext &C, ReplicationType X) {
  if (X.isVarying())
    return axisOf(C) == 0 ? types::gatheredDistinct(C, X) : C.varyingLike(X);
  return X.isSharded() && X.Axis == axisOf(C)
             ? ReplicationType::replicated(X.K)
             : C.varying("gathers a value that is not split along its axis");
}

/// Returns the type of \p X combined by \p Combine over all replicas, times
/// N^\p Power.
ReplicationType combinedType(TypeContext &C, ReplicationType X,
                             StringRef Combine, int Power) {
  if (X.isVarying())
    return C.varyingLike(X);
  // Zeros have every scale.
  auto Replicated = [&](int K) {
    ReplicationType Result = ReplicationType::replicated(X.Zero ? 0 : K);
    Result.Zero = X.Zero;
    return Result;
  };
  // The sum of a replicated value has N equal terms, so the exponent grows by
  // 1.
  if (X.isReplicated() && Combine == combine::Sum)
    return Replicated(X.K + 1 + Power);
  if (X.isPartial() && Combine == combineName(X.Op))
    return Replicated(X.K + Power);
  return C.varying("reduces a value whose layout is not Partial of the same "
                   "operation");
}

int powerOf(const TypeContext &C) {
  return clampPower(C.intAttr("power").value_or(0));
}

/// Returns the type of a _Reduce or _FromReplicas by its attribute `combine`.
ReplicationType mergedType(TypeContext &C) {
  StringRef Combine = C.stringAttr(CombineAttr).value_or("sum");
  bool Gathers = Combine == combine::Concat;
  ReplicationType X = termOf(C, Gathers);
  if (Gathers)
    return gatheredType(C, X);
  return combinedType(C, X, Combine, powerOf(C));
}

ReplicationType collectiveType(TypeContext &C) {
  ReplicationType X = termOf(C, /*Gathers=*/false);
  StringRef Merge = C.stringAttr("merge_op").value_or("");
  bool Divides = C.stringAttr("final_op") == StringRef(op::Div);
  if (!X.isVarying() && Merge != op::Add && Merge != op::Min &&
      Merge != op::Max)
    return C.varying(
        "combines replicas by an operation other than sum, min or max");
  return combinedType(C, X,
                      Merge == op::Add   ? combine::Sum
                      : Merge == op::Min ? combine::Min
                                         : combine::Max,
                      Divides ? -1 : 0);
}

/// Returns the type of a value taken from an accumulator: the sum of the values
/// that the replicas put.
ReplicationType takenType(TypeContext &C) {
  NodeId Put = putOf(C.G, C.N);
  if (Put == NoNode || C.G.node(Put).Count != Copies::PerReplica)
    return C.varying(
        "takes from an accumulator without exactly one apply per replica");
  if (none_of(C.G.controlInputs(C.N),
              [&](Endpoint E) { return E.Node == Put; }))
    return C.varying("takes from an accumulator and does not wait for the "
                     "applies of the replicas");
  ReplicationType X = C.Types.type(C.G.input(Put, 2));
  C.Assumes |= X.Assumes;
  return X.isPartial() && X.Op != Combine::Sum
             ? C.varying("sums a value that is not a partial sum")
             : combinedType(C, X, combine::Sum, 0);
}

} // namespace

namespace types {

static void toReplicas(TypeContext &C) {
  ReplicationType X = C.number(0);
  if (!X.isReplicated())
    return C.setAll(X.isVarying()
                        ? C.varyingLike(X)
                        : C.varying("splits a value that is already split"));
  ReplicationType Rows = ReplicationType::sharded(axisOf(C), X.K);
  // A caller may feed other values than the default zeros.
  Rows.Zero = X.Zero && !C.G.hasAttr(C.input(0).Node, FedAttr);
  C.setAll(Rows);
}

/// Infers the type of local sizes that are scaled to global ones.
static ReplicationType scaledSizes(TypeContext &C, ArrayRef<int64_t> Powers) {
  ReplicationType X = C.operand(0);
  if (X.isVarying())
    return C.varyingLike(X);
  auto Is = C.Types.sizePowers(C.input(0));
  return X.isReplicated() && Is && ArrayRef(*Is) == Powers
             ? ReplicationType::replicated()
             : C.varying("scales per-replica sizes by other powers of the "
                         "number of replicas than the global sizes need");
}

static void scale(TypeContext &C) {
  if (auto Powers = C.intListAttr(PowersAttr))
    return C.setAll(scaledSizes(C, *Powers));
  ReplicationType X = C.number(0);
  if (X.isVarying())
    X = C.varyingLike(X);
  else
    X.setPower(X.Zero ? 0 : X.K + powerOf(C));
  // A global size times N^-1 is a local size, so mark the result as symbolic,
  // not as scaled.
  auto Powers =
      X.isReplicated() && X.K != 0 ? C.Types.sizePowers(C.out()) : std::nullopt;
  if (Powers && !Powers->empty() &&
      all_of(*Powers, [&](int64_t Power) { return Power == -X.K; })) {
    X.setPower(0);
    X.Symbolic = true;
  }
  C.setAll(X);
}

static void fromReplicas(TypeContext &C) {
  if (C.stringAttr(CombineAttr) != StringRef(combine::Pick)) {
    ReplicationType Merged = mergedType(C);
    return C.setAll(Merged, Merged.Indices);
  }
  ReplicationType X = termOf(C, /*Gathers=*/false);
  C.setAll(X.isVarying()      ? C.varyingLike(X)
           : X.isReplicated() ? X
                              : C.varying("takes the value of one replica "
                                          "where replicas differ"));
}

static void reduce(TypeContext &C) { C.setAll(mergedType(C)); }
static void collectiveReduce(TypeContext &C) { C.setAll(collectiveType(C)); }

static void gatherReplicas(TypeContext &C) {
  ReplicationType X = termOf(C, /*Gathers=*/true);
  bool IsUneven =
      X.isDistinct() || (X.isSharded() && C.D.isUneven(C.input(0), X.Axis));
  ReplicationType Type =
      C.isOp(op::CollectiveGather) && IsUneven
          ? C.varying("gathers rows whose number differs per replica")
          : gatheredType(C, X);
  C.setAll(Type, Type.Indices);
}

/// Wakes the node that takes the sum, since no edge leads to that node.
static void accumulatorPut(TypeContext &C) {
  C.G.forEachUse(C.input(0).Node, [&](Use U) {
    if (C.G.isOp(U.User, op::AccumulatorTakeGradient))
      C.wake(U.User);
  });
}

static void accumulatorTake(TypeContext &C) { C.setAll(takenType(C)); }

static bool isPutReady(const TypeContext &C) {
  NodeId Put = putOf(C.G, C.N);
  return Put == NoNode || C.isDefined(C.G.input(Put, 2).Node);
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule GatherReplicas = {.Sizes = sizes::gatherReplicas,
                                   .Type = types::gatherReplicas,
                                   .Is = NeedsOrder};

} // namespace

ArrayRef<OpRule> families::programOps() {
  static const OpRule Rules[] = {
      {.Op = ToReplicasOp,
       .Sizes = sizes::toReplicas,
       .Type = types::toReplicas,
       .Is = KeepsZeros | NotOfTrue},
      {.Op = FromReplicasOp,
       .Sizes = sizes::fromReplicas,
       .Values = values::fromReplicas,
       .Type = types::fromReplicas,
       .Is = KeepsZeros | NotOfTrue | NeedsOrder},
      {.Op = ReduceOp,
       .Sizes = sizes::same,
       .Values = values::shared,
       .Type = types::reduce,
       .Is = KeepsZeros | NotOfTrue},
      entry(GatherOp, GatherReplicas),
      {.Op = ScaleOp,
       .Sizes = sizes::same,
       .Values = sizes::scaledSizes,
       .Type = types::scale,
       .Is = KeepsZeros | NotOfTrue},
      {.Op = op::CollectiveReduce,
       .Sizes = sizes::same,
       .Values = values::shared,
       .Type = types::collectiveReduce,
       .Is = KeepsZeros | NotOfTrue},
      entry(op::CollectiveGather, GatherReplicas),
      {.Op = op::AccumulatorApplyGradient,
       .Type = types::accumulatorPut,
       .Is = NotOfTrue | ForEffect},
      {.Op = op::AccumulatorTakeGradient,
       .Sizes = sizes::accumulated,
       .Type = types::accumulatorTake,
       .IsReady = types::isPutReady,
       .Is = KeepsZeros | NotOfTrue},
  };
  return Rules;
}

} // namespace graft
