//===- lib/infer/rules/Elementwise.cpp - element by element -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The value itself, functions of each element, linear or not, and their
// gradients, which are linear in the incoming gradient.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Where channels are in a tensor of rank \p Rank.
size_t channelAxis(const SizeContext &C, size_t Rank) {
  bool First = Rank > 2 && C.stringAttr("data_format") == StringRef("NCHW");
  return First ? 1 : Rank - 1;
}

void same(SizeContext &C) {
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    C.passShape(Port, C.inRun(0));
}

static void ensureShape(SizeContext &C) {
  C.passShape(0, C.inRun(0));
  DimList List;
  if (Dims X = C.in(0); !X || !C.sizesFrom("shape", List))
    return;
  for (size_t I = 0; I < std::min(List.size(), C.in(0)->size()); ++I)
    C.sameRows((*C.in(0))[I], List[I]);
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

static void perInput(SizeContext &C) {
  for (unsigned I = 0; I < C.numData(); ++I)
    C.passShape(I, C.inRun(I));
}

void broadcast(SizeContext &C) {
  if (C.numData() == 2) {
    // One shape, or a scalar: nothing to align.
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

/// One element of the result of \p Op.
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
    // Sizes are at least 1, but for ragged rows.
    auto IsSize = [&](DimId D) {
      return C.Table.hasSym(D) && !C.Table.isRagged(D);
    };
    if (IsSize(X) && !C.Table.hasSym(Y) && NY != UnknownSize && NY <= 1)
      return X;
    if (IsSize(Y) && !C.Table.hasSym(X) && NX != UnknownSize && NX <= 1)
      return Y;
    // A number that may yet turn out to be the batch keeps its identity.
    if (Numbers)
      return NX >= NY ? X : Y;
    return C.slotFrom(Slot | SizeContext::OpaqueSlot, {X, Y});
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
    if (Numbers)
      return C.number(Slot, Op == op::Sub ? NX - NY : NX + NY);
    if (Op != op::Sub)
      return C.total(Slot | SizeContext::OpaqueSlot, {X, Y});
    return C.slotFrom(Slot | SizeContext::OpaqueSlot, {X, Y});
  }
  if ((Op == op::FloorMod || Op == op::Mod) && Numbers && NY > 0)
    return C.number(Slot, ((NX % NY) + NY) % NY);
  return C.slotFrom(Slot | SizeContext::OpaqueSlot, {X, Y});
}

void same(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  // What replicas add up is no size of one.
  if (C.isOp("_FromReplicas") && C.stringAttr("combine") != StringRef("pick"))
    return;
  Dims S = C.out(0);
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    if (S && S->size() <= 1)
      C.setValue(Port, *X);
}

static void cast(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  unsigned Type = C.G.outputType(C.N, 0);
  if (Type == DT_INT32 || Type == DT_INT64)
    C.setValue(0, *X);
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
  if (!X || !Y || X->empty() || Y->empty())
    return;
  size_t Size = std::max(X->size(), Y->size());
  if ((X->size() != Size && X->size() != 1) ||
      (Y->size() != Size && Y->size() != 1))
    return;
  DimList List;
  for (size_t I = 0; I < Size; ++I) {
    DimId EX = (*C.val(0))[X->size() == 1 ? 0 : I];
    DimId EY = (*C.val(1))[Y->size() == 1 ? 0 : I];
    List.push_back(arithmeticElement(C, C.opName(), 128 + I, EX, EY));
  }
  C.setValue(0, List);
}

} // namespace values

ArrayRef<OpRule> families::elementwise() {
  static constexpr OpRule Rules[] = {
      // The value itself.
      {.Op = op::Identity,
       .Sizes = sizes::same,
       .Values = values::same,
       .Type = TypeRule::Pass},
      {.Op = op::StopGradient,
       .Sizes = sizes::same,
       .Values = values::same,
       .Type = TypeRule::Pass},
      {.Op = op::PreventGradient, .Sizes = sizes::same, .Type = TypeRule::Pass},
      {.Op = op::CheckNumerics, .Sizes = sizes::same, .Type = TypeRule::Pass},
      {.Op = op::Snapshot,
       .Sizes = sizes::same,
       .Values = values::same,
       .Type = TypeRule::Pass},
      {.Op = op::DebugGradientIdentity,
       .Sizes = sizes::same,
       .Type = TypeRule::Pass},
      {.Op = op::EnsureShape,
       .Sizes = sizes::ensureShape,
       .Type = TypeRule::EnsureShape},
      {.Op = op::IdentityN, .Sizes = sizes::perInput, .Type = TypeRule::Pass},

      // Element-wise and linear.
      {.Op = op::Neg, .Sizes = sizes::same, .Type = TypeRule::Linear},
      {.Op = op::Real, .Sizes = sizes::same, .Type = TypeRule::Linear},
      {.Op = op::Imag, .Sizes = sizes::same, .Type = TypeRule::Linear},
      {.Op = op::Conj, .Sizes = sizes::same, .Type = TypeRule::Linear},
      {.Op = op::Add,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::Add},
      {.Op = op::AddV2,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::Add},
      {.Op = op::Sub,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::Add},
      {.Op = op::AddN, .Sizes = sizes::sameAll, .Type = TypeRule::Add},
      {.Op = op::AccumulateNV2, .Sizes = sizes::sameAll, .Type = TypeRule::Add},
      {.Op = op::BiasAdd, .Sizes = sizes::biasAdd, .Type = TypeRule::Add},
      {.Op = op::Mul,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::Mul},
      {.Op = op::MulNoNan, .Sizes = sizes::broadcast, .Type = TypeRule::Mul},
      {.Op = op::Div, .Sizes = sizes::broadcast, .Type = TypeRule::Div},
      {.Op = op::RealDiv, .Sizes = sizes::broadcast, .Type = TypeRule::Div},
      {.Op = op::DivNoNan, .Sizes = sizes::broadcast, .Type = TypeRule::Div},
      {.Op = op::ZerosLike,
       .Sizes = sizes::same,
       .Values = values::like,
       .Type = TypeRule::Zeros},
      {.Op = op::OnesLike,
       .Sizes = sizes::same,
       .Values = values::like,
       .Type = TypeRule::Ones},
      {.Op = op::Cast,
       .Sizes = sizes::same,
       .Values = values::cast,
       .Type = TypeRule::Cast},
      {.Op = op::Select, .Sizes = sizes::select, .Type = TypeRule::Select},
      {.Op = op::SelectV2, .Sizes = sizes::broadcast, .Type = TypeRule::Select},

      // Element-wise, not linear.
      {.Op = op::Abs, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Acos, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Acosh, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Angle, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::AsString, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Asin, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Asinh, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Atan, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Atanh, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselI0, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselI0e, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselI1, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselI1e, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselJ0, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselJ1, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselK0, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselK0e, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselK1, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselK1e, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselY0, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::BesselY1, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Bucketize, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Ceil, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::ComplexAbs, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Cos, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Cosh, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Dawsn, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Digamma, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Elu, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Erf, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Erfc, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Erfinv, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Exp, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Expint, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Expm1, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::FakeQuantWithMinMaxArgs,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::Floor, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::FresnelCos, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::FresnelSin, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Inv, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Invert, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::IsFinite, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::IsInf, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::IsNan, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::LeakyRelu, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Lgamma, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Log, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Log1p, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::LogicalNot, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Ndtri, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::PopulationCount,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::Reciprocal, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Relu, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Relu6, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Rint, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Round, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Rsqrt, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Selu, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Sigmoid, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Sign, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Sin, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Sinh, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Softplus, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Softsign, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Spence, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Sqrt, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Square, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::StringToHashBucketFast,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StringToNumber,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::DecodeBase64,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::EncodeBase64,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StaticRegexFullMatch,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StaticRegexReplace,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StringLength,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StringLower,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StringStrip,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StringToHashBucket,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StringToHashBucketStrong,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::StringUpper,
       .Sizes = sizes::same,
       .Type = TypeRule::NonLinear},
      {.Op = op::Tan, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Tanh, .Sizes = sizes::same, .Type = TypeRule::NonLinear},
      {.Op = op::Atan2, .Sizes = sizes::broadcast, .Type = TypeRule::NonLinear},
      {.Op = op::Betainc,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::BitwiseAnd,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::BitwiseOr,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::BitwiseXor,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::ClipByValue,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Complex,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Equal, .Sizes = sizes::broadcast, .Type = TypeRule::NonLinear},
      {.Op = op::FakeQuantWithMinMaxVars,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::FloorDiv,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::NonLinear,
       .Is = trait::ComparesSizes},
      {.Op = op::FloorMod,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::NonLinear},
      {.Op = op::Greater,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::GreaterEqual,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Igamma,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::IgammaGradA,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Igammac,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::LeftShift,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Less, .Sizes = sizes::broadcast, .Type = TypeRule::NonLinear},
      {.Op = op::LessEqual,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::LogicalAnd,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::LogicalOr,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Maximum,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::NonLinear,
       .Is = trait::ComparesSizes},
      {.Op = op::Minimum,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::NonLinear,
       .Is = trait::ComparesSizes},
      {.Op = op::Mod,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::NonLinear},
      {.Op = op::NextAfter,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::NotEqual,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Polygamma,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Pow, .Sizes = sizes::broadcast, .Type = TypeRule::NonLinear},
      {.Op = op::RandomGammaGrad,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::RightShift,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::SquaredDifference,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Substr,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::TruncateDiv,
       .Sizes = sizes::broadcast,
       .Values = values::arithmetic,
       .Type = TypeRule::NonLinear,
       .Is = trait::ComparesSizes},
      {.Op = op::TruncateMod,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Xdivy, .Sizes = sizes::broadcast, .Type = TypeRule::NonLinear},
      {.Op = op::Xlog1py,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::Xlogy, .Sizes = sizes::broadcast, .Type = TypeRule::NonLinear},
      {.Op = op::Zeta, .Sizes = sizes::broadcast, .Type = TypeRule::NonLinear},
      {.Op = op::StringJoin,
       .Sizes = sizes::broadcast,
       .Type = TypeRule::NonLinear},
      {.Op = op::ApproximateEqual,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::NonLinear},

      // Gradients of element-wise ops: linear in the incoming gradient.
      {.Op = op::ReluGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::Relu6Grad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::LeakyReluGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::EluGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::SeluGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::SoftplusGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::SoftsignGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::FakeQuantWithMinMaxArgsGradient,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearFirst},
      {.Op = op::SigmoidGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearSecond},
      {.Op = op::TanhGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearSecond},
      {.Op = op::SqrtGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearSecond},
      {.Op = op::RsqrtGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearSecond},
      {.Op = op::InvGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearSecond},
      {.Op = op::ReciprocalGrad,
       .Sizes = sizes::sameAll,
       .Type = TypeRule::LinearSecond},
  };
  return Rules;
}

} // namespace graft
