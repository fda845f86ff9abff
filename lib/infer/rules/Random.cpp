//===- lib/infer/rules/Random.cpp - random draws ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Random ops.
//
// A sample with a row per example has the distribution of the single-device
// sample if replicas draw from different streams. Stateful ops always draw from
// different streams. Stateless ops read a seed, so they need a different seed
// on each replica. If a sample has no row per example, a stateless op returns
// the global value, and a stateful op draws a different sample on each replica.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/program/forms/SeedOffset.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void sizesThenShape(SizeContext &C) {
  if (Dims V = C.val(0), X = C.in(1); V && X) {
    DimList List(V->begin(), V->end());
    List.append(X->begin(), X->end());
    C.setShape(0, List);
  }
}

static void rowsThenSize(SizeContext &C) {
  if (Dims X = C.in(0), V = C.val(1); X && !X->empty() && V && V->size() == 1)
    C.setShape(0, {(*X)[0], (*V)[0]});
}

} // namespace sizes

/// Returns the concatenation order of sampled rows: that of the tensor whose
/// shape the op reads. Any order is right, because sampled rows are
/// interchangeable.
static uint32_t orderDrawn(const TypeContext &C, int Sizes, int Axis) {
  if (Sizes < 0)
    return ReplicationType::InOrder;
  NodeId N = C.input(Sizes).Node;
  if (!C.G.isOp(N, op::Shape))
    return ReplicationType::InOrder;
  ReplicationType Like = C.Types.natural(C.G.input(N, 0));
  return Like.isJoined() && Like.Axis == Axis ? Like.Order
                                              : ReplicationType::InOrder;
}

static ReplicationType drawType(TypeContext &C) {
  DrawOperands Of = drawOperands(C.opName());
  int Axis = C.D.batchAxis(C.out());
  if (Of.Sizes >= 0 && (!C.isSize(Of.Sizes) || C.localAxis(C.out()) != Axis))
    return C.varying("draws random numbers of a per-replica size");
  bool AllTrue = true, OwnSeed = Of.Seed < 0 || C.D.replicas() == 1;
  for (unsigned I = 0; I < C.numData(); ++I) {
    int Index = static_cast<int>(I);
    // The shape operand may hold the sizes of one replica.
    if (Index == Of.Sizes) {
      ReplicationType Sizes = C.operand(I);
      if (Sizes.isVarying() && Axis < 0)
        return C.varyingLike(Sizes);
      AllTrue &= Sizes.isTrue();
      continue;
    }
    if (Index == Of.Seed && offsetsSeed(C.G, C.input(I).Node, C.D.replicas())) {
      ReplicationType Seed = C.Types.type(C.G.input(C.input(I).Node, 0));
      if (!Seed.isTrue())
        return Seed.isVarying()
                   ? C.varyingLike(Seed)
                   : C.varying(
                         "has a seed that depends on the rows of the batch");
      OwnSeed = true;
      AllTrue = false;
      continue;
    }
    ReplicationType X = C.plain(I);
    if (X.isVarying())
      return C.varyingLike(X);
    AllTrue &= C.operand(I).isTrue();
    if (!X.isSharded())
      continue;
    if (Index != Of.Rows)
      return C.varying("draws random numbers with per-row parameters, for "
                       "which graft has no rule");
    auto Sizes = Of.Sizes < 0 ? std::nullopt : C.shape(Of.Sizes);
    if (Of.Sizes < 0)
      Axis = X.Axis;
    else if (auto Lead = Sizes && Sizes->size() == 1
                             ? C.D.table().number((*Sizes)[0])
                             : UnknownSize;
             Axis < 0 && Lead != UnknownSize)
      Axis = static_cast<int>(Lead) + X.Axis;
    else
      return C.varying("draws random numbers with per-row parameters, for "
                       "which graft has no rule");
  }
  if (Axis < 0)
    return AllTrue && Of.Seed >= 0
               ? ReplicationType::replicated()
               : C.varying("draws different random numbers on each replica");
  if (!OwnSeed)
    return C.varying("draws the same numbers for the rows of every replica");
  C.assume(AssumesRandomDraw);
  ReplicationType Rows = ReplicationType::sharded(Axis);
  Rows.Order = orderDrawn(C, Of.Sizes, Axis);
  return Rows;
}

void types::random(TypeContext &C) { C.setAll(drawType(C)); }

namespace {

using namespace trait;

constexpr OpRule Random = {.Sizes = sizes::fromSizes<0>,
                           .Type = types::random,
                           .Is = DrawsRows | Draws,
                           .SizeOperands = operands(0),
                           .LengthOperands = operands(0)};

} // namespace

ArrayRef<OpRule> families::random() {
  static const OpRule Rules[] = {
      entry(op::RandomUniform, Random),
      entry(op::RandomStandardNormal, Random),
      entry(op::TruncatedNormal, Random),
      entry(op::RandomUniformInt, Random),
      entry(op::ParameterizedTruncatedNormal, Random),
      entry(op::RandomGamma, Random, {.Sizes = sizes::sizesThenShape}),
      entry(op::RandomPoissonV2, Random, {.Sizes = sizes::sizesThenShape}),
      entry(op::Multinomial, Random,
            {.Sizes = sizes::rowsThenSize,
             .SizeOperands = operands(1),
             .LengthOperands = operands(1)}),
      entry(op::StatelessMultinomial, Random,
            {.Sizes = sizes::rowsThenSize,
             .SizeOperands = operands(1),
             .LengthOperands = operands(1)}),
      entry(op::StatelessRandomUniformInt, Random),
      entry(op::StatelessRandomUniformIntV2, Random),
      entry(op::StatelessRandomUniformFullInt, Random),
      entry(op::StatelessRandomUniformFullIntV2, Random),
      entry(op::StatelessRandomUniform, Random),
      entry(op::StatelessRandomUniformV2, Random),
      entry(op::StatelessRandomNormal, Random),
      entry(op::StatelessRandomNormalV2, Random),
      entry(op::StatelessTruncatedNormal, Random),
      entry(op::StatelessTruncatedNormalV2, Random),
      entry(op::StatelessParameterizedTruncatedNormal, Random),
      entry(op::StatelessRandomBinomial, Random),
      entry(op::StatelessRandomGammaV2, Random),
      entry(op::StatelessRandomGammaV3, Random),
      entry(op::StatelessRandomPoisson, Random),
  };
  return Rules;
}

} // namespace graft
