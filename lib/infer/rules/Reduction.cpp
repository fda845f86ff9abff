//===- lib/infer/rules/Reduction.cpp - along axes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reductions, and ops that mix the elements along given axes.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void reduction(SizeContext &C) {
  Dims X = C.in(0);
  auto Axes = C.nums(1);
  if (!X)
    return;
  bool Keep = C.flag("keep_dims");
  if (!Axes) {
    // With keep_dims, the rank is known even if the axes are not.
    DimList List;
    for (size_t I = 0; Keep && I < X->size(); ++I)
      List.push_back(C.slot(I));
    if (Keep)
      C.setShape(0, List);
    return;
  }
  auto Reduced = axesIn(*Axes, int64_t(X->size()));
  if (!Reduced)
    return;
  DimList List;
  for (unsigned I = 0; I < X->size(); ++I) {
    if (!Reduced->test(I))
      List.push_back((*X)[I]);
    else if (Keep)
      List.push_back(C.One);
  }
  C.setShape(0, List);
}

static void argReduction(SizeContext &C) {
  Dims X = C.in(0);
  auto Axis = C.num(1);
  auto At = X && Axis ? axisIn(*Axis, int64_t(X->size())) : std::nullopt;
  if (!At)
    return;
  DimList List(X->begin(), X->end());
  List.erase(List.begin() + *At);
  C.setShape(0, List);
}

static void reverseSequence(SizeContext &C) {
  C.passShape(0, C.inRun(0));
  Dims X = C.in(0), Lengths = C.in(1);
  int64_t Number = C.intAttr("batch_dim").value_or(0);
  auto At =
      X && Number >= 0 ? axisIn(Number, int64_t(X->size())) : std::nullopt;
  if (!At || !Lengths || Lengths->size() != 1)
    return;
  DimId Rows = (*X)[*At];
  // In the input graph each row has a length, even if the number of rows is not
  // known.
  if (C.options().Unpatched ||
      (C.Table.hasSym(Rows) && C.Table.hasSym(Lengths->front())))
    C.same(Rows, Lengths->front());
  else
    C.sameRows(Rows, Lengths->front());
}

} // namespace sizes

namespace values {

/// Returns true if \p N combines the numbers of all replicas into one.
static bool exchanges(const Graph &G, NodeId N) {
  return G.isOp(N, ReduceOp) || G.isOp(N, op::CollectiveReduce) ||
         (G.isOp(N, FromReplicasOp) &&
          G.stringAttr(N, CombineAttr) != StringRef(combine::Pick));
}

static void prod(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  DimId Product = C.One;
  for (size_t I = 0; I < X->size(); ++I)
    Product = C.product(32 + I, Product, (*C.val(0))[I]);
  Dims S = C.out(0);
  if (S && S->size() <= 1)
    C.setValue(0, Product);
}

void shared(SizeContext &C) {
  // If a collective combines the number, the number differs between replicas.
  // Then it is no shared size.
  bool IsExchanged = false;
  C.G.forEachUse(C.N, [&](Use U) { IsExchanged |= exchanges(C.G, U.User); });
  if (!IsExchanged)
    C.setShared();
}

} // namespace values

namespace {

/// Infers the type of a reduction. \p Along returns the type if the operand is
/// sharded along a reduced axis. If \p Linear, the operand may have a scale.
template <typename Fn>
ReplicationType reductionType(TypeContext &C, bool Linear, Fn Along) {
  ReplicationType X = Linear ? C.numeric(0) : C.plain(0);
  if (X.isVarying())
    return C.varyingLike(X);
  if (!C.isSize(1))
    return C.varying("reduces axes that differ per replica");
  if (!X.isSharded())
    return X;
  auto Listed = C.numbers(1);
  if (!Listed && X.Axis == 0 && types::keepsFirstAxis(C, C.N))
    return X;
  auto Axes = Listed ? axesIn(*Listed, C.rank(0)) : std::nullopt;
  if (!Axes || X.Axis >= Axes->size())
    return C.varying("reduces unknown axes");
  if (Axes->test(X.Axis))
    return Along(X);
  if (!C.flag("keep_dims")) {
    Axes->resize(X.Axis);
    X.setAxis(int64_t(X.Axis) - int64_t(Axes->count()));
  }
  return X;
}

/// Types a reduction other than a sum. \p Op also combines the results of the
/// replicas.
void reduceBy(TypeContext &C, Combine Op) {
  C.setAll(reductionType(C, /*Linear=*/false, [&](ReplicationType) {
    return ReplicationType::partial(0, Op);
  }));
}

} // namespace

namespace types {

bool keepsFirstAxis(const TypeContext &C, NodeId Sum) {
  if (!C.G.isOp(Sum, op::Sum))
    return false;
  Endpoint Axes = C.G.input(Sum, 1);
  if (!C.G.isOp(Axes.Node, op::BroadcastGradientArgs))
    return false;
  auto X = C.D.shape(C.G.input(Sum, 0));
  auto Sizes = C.D.value(C.G.input(Axes.Node, Axes.Port));
  if (!X || !Sizes || X->size() != Sizes->size() || X->empty())
    return false;
  const DimTable &Table = C.D.table();
  DimId First = Sizes->front();
  auto IsSame = [&](DimId D) { return Table.isSame(D); };
  auto Other = C.D.value(C.G.input(Axes.Node, 1 - Axes.Port));
  if (!Other || Other->size() > Sizes->size() ||
      !all_of(Sizes->drop_front(), IsSame) ||
      !all_of(Other->take_back(std::min(Other->size(), Sizes->size() - 1)),
              IsSame))
    return false;
  return Table.isKnown(First) ? !Table.isOne(First) : Table.followsRows(First);
}

static void sumReduction(TypeContext &C) {
  C.setAll(reductionType(C, /*Linear=*/true, [&](ReplicationType X) {
    ReplicationType Sum = ReplicationType::partial(X.K);
    Sum.Zero = X.Zero;
    return Sum;
  }));
}

static void meanReduction(TypeContext &C) {
  // The mean of integers is rounded, which is not linear.
  bool Linear = isFloating(C.G.outputType(C.N, 0));
  C.setAll(reductionType(C, Linear, [&](ReplicationType X) {
    // Shards differ in length, and an empty shard has no mean.
    if (C.D.isUneven(C.input(0), X.Axis))
      return C.gathered(0, X);
    // All shards have equally many rows, so the mean over the replicas is the
    // global mean.
    return Linear ? ReplicationType::partial(X.K + 1)
                  : C.varying("rounds the mean of each replica's rows");
  }));
}

static void minReduction(TypeContext &C) { reduceBy(C, Combine::Min); }
static void maxReduction(TypeContext &C) { reduceBy(C, Combine::Max); }
static void andReduction(TypeContext &C) { reduceBy(C, Combine::And); }
static void orReduction(TypeContext &C) { reduceBy(C, Combine::Or); }

static void argReduction(TypeContext &C) {
  C.setAll(reductionType(C, /*Linear=*/false, [&](ReplicationType) {
    return C.varying("selects along the batch axis");
  }));
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule ArgReduction = {.Type = types::argReduction,
                                 .Elements = ElementsOf::Counts};
constexpr OpRule AlongAxes = {.Sizes = sizes::same,
                              .Type = types::alongAxes,
                              .Is = KeepsZeros | KeepsRows};
constexpr OpRule AlongAxesNonLinear = {
    .Sizes = sizes::same, .Type = types::alongAxesNonLinear, .Is = KeepsRows};

} // namespace

ArrayRef<OpRule> families::reduction() {
  static const OpRule Rules[] = {
      // Reductions.
      {.Op = op::Sum,
       .Sizes = sizes::reduction,
       .Type = types::sumReduction,
       .LocalIndices = types::entrySums,
       .ZerosOf = operands(0),
       .Elements = ElementsOf::Counts},
      {.Op = op::Mean,
       .Sizes = sizes::reduction,
       .Type = types::meanReduction,
       .ZerosOf = operands(0)},
      {.Op = op::Max,
       .Sizes = sizes::reduction,
       .Values = values::shared,
       .Type = types::maxReduction},
      {.Op = op::Min,
       .Sizes = sizes::reduction,
       .Values = values::shared,
       .Type = types::minReduction},
      {.Op = op::All, .Sizes = sizes::reduction, .Type = types::andReduction},
      {.Op = op::Any, .Sizes = sizes::reduction, .Type = types::orReduction},
      entry(op::Prod, ArgReduction,
            {.Sizes = sizes::reduction, .Values = values::prod}),
      entry(op::EuclideanNorm, ArgReduction, {.Sizes = sizes::reduction}),
      entry(op::ArgMax, ArgReduction, {.Sizes = sizes::argReduction}),
      entry(op::ArgMin, ArgReduction, {.Sizes = sizes::argReduction}),
      {.Op = op::L2Loss,
       .Sizes = sizes::scalar,
       .Type = types::l2Loss,
       .ZerosOf = operands(0)},

      // Layout.
      entry(op::ReverseV2, AlongAxes),
      entry(op::Roll, AlongAxes),
      entry(op::Cumsum, AlongAxes),
      entry(op::Cumprod, AlongAxesNonLinear),
      entry(op::CumulativeLogsumexp, AlongAxesNonLinear),
      {.Op = op::ReverseSequence,
       .Sizes = sizes::reverseSequence,
       .Type = types::reverseSequence,
       .Is = KeepsZeros},
  };
  return Rules;
}

} // namespace graft
