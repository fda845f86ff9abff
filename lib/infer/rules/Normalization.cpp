//===- lib/infer/rules/Normalization.cpp - normalization and losses -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization, softmax and cross entropy. A cross entropy has one loss
// per row.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/graph/Walk.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void batchNorm(SizeContext &C) {
  Dims X = C.in(0), S = C.in(1);
  if (X)
    C.setShape(0, *X);
  for (unsigned Port = 1; S && Port < std::min(C.numOutputs(), 5u); ++Port)
    C.setShape(Port, *S);
}

static void batchNormGrad(SizeContext &C) {
  Dims G0 = C.in(0), X = C.in(1), S = C.in(2);
  if (G0 && X)
    C.sameShapes(*G0, *X);
  if (X)
    C.setShape(0, *X);
  for (unsigned Port = 1; S && Port < 3; ++Port)
    C.setShape(Port, *S);
}

/// Infers the shapes of a loss per row and of the gradient of the logits. Dense
/// labels are broadcast with the logits.
template <bool Sparse> static void crossEntropy(SizeContext &C) {
  Dims X = C.in(0), L = C.in(1);
  if (!X || X->size() != 2)
    return;
  DimList List(X->begin(), X->end());
  if (L && Sparse && L->size() == 1)
    C.same(List[0], (*L)[0]);
  for (size_t I = 0; L && !Sparse && L->size() == 2 && I < 2; ++I)
    List[I] = C.broadcast(List[I], (*L)[I]);
  C.setShape(0, List[0]);
  C.setShape(1, List);
}

} // namespace sizes

namespace {

/// Returns true if the batch axis is the channel axis of a batch norm. Example:
/// a batch norm that computes a layer norm has statistics per row.
bool rowsAreChannels(const TypeContext &C, const ReplicationType &X,
                     ArrayRef<ReplicationType> PerChannel) {
  int Rank = C.rank(C.input(C.opName().contains("Grad") ? 1 : 0));
  bool First = C.stringAttr("data_format").value_or("NHWC") == "NCHW";
  return X.isSharded() && Rank > 1 && X.Axis == (First ? 1 : Rank - 1) &&
         all_of(PerChannel, [](const ReplicationType &C) {
           return C.isSharded() && C.Axis == 0;
         });
}

/// Returns true if operand \p I is a matrix with a single row, which the op
/// broadcasts.
bool isOneRow(const TypeContext &C, unsigned I) {
  auto Shape = C.shape(I);
  return Shape && Shape->size() == 2 && C.D.table().isOne(Shape->front());
}

/// Returns true if operand \p I of a batch norm gradient is an output that the
/// forward op in training mode keeps for the gradient.
bool isKept(const TypeContext &C, unsigned I) {
  auto Value = [&](Endpoint E) { return through(C.G, E, op::Identity); };
  Endpoint E = Value(C.input(I));
  StringRef Op = C.G.opName(E.Node);
  return E.Port == I && Op.starts_with(op::FusedBatchNorm) &&
         !Op.starts_with(op::FusedBatchNormGrad) &&
         C.G.boolAttr(E.Node, "is_training").value_or(true) &&
         Value(C.G.input(E.Node, 0)) == Value(C.input(1));
}

ReplicationType xentType(TypeContext &C) {
  ReplicationType X = C.plain(0), L = C.plain(1);
  if (X.isVarying() || L.isVarying())
    return C.varyingLike(X.isVarying() ? X : L);
  if ((X.isSharded() && X.Axis != 0) || (L.isSharded() && L.Axis != 0))
    return C.varying("operates along the batch axis");
  if (X.isSharded() != L.isSharded() && !isOneRow(C, X.isSharded() ? 1 : 0))
    return C.varying("combines a per-replica shard with a replicated value "
                     "along the batch axis");
  return X.isSharded() || L.isSharded() ? ReplicationType::sharded(0)
                                        : ReplicationType::replicated();
}

} // namespace

namespace types {

static void batchNorm(TypeContext &C) {
  SmallVector<ReplicationType, 5> In;
  for (unsigned I = 0; I < C.numData(); ++I) {
    In.push_back(C.plain(I));
    if (In.back().isVarying())
      return C.setAll(C.varyingLike(In.back()));
  }
  const ReplicationType &X = In[0];
  auto IsReplicated = [](const ReplicationType &T) { return T.isReplicated(); };
  if (all_of(In, IsReplicated))
    return C.setAll(ReplicationType::replicated());
  // The running statistics (inputs 3, 4) are empty in training.
  bool Training = C.G.boolAttr(C.N, "is_training").value_or(true);
  if (rowsAreChannels(C, X,
                      ArrayRef(In).slice(1, Training ? 2 : In.size() - 1))) {
    C.setAll(ReplicationType::sharded(0));
    C.set(0, X);
    C.set(5, C.varying("keeps a tensor of one replica's rows for its gradient"),
          LocalIndices::ForGradient);
    return;
  }
  if (!X.isSharded() || X.Axis != 0 || !all_of(drop_begin(In), IsReplicated))
    return C.setAll(C.varying("normalizes along the batch axis"));
  if (!Training) {
    C.setAll(ReplicationType::replicated());
    C.set(0, ReplicationType::sharded(0));
    return;
  }
  if (C.D.isUneven(C.input(0), 0))
    return C.setAll(C.varying("normalizes a data-dependent number of rows"));
  C.assume(AssumesLocalBatchNorm);
  C.set(0, ReplicationType::sharded(0));
  C.set(1, ReplicationType::partial(1));
  C.set(2, ReplicationType::partial(1));
  for (unsigned Port = 3; Port < C.numResults(); ++Port)
    C.set(Port, C.varying("holds statistics of one replica's rows"));
}

static void batchNormGrad(TypeContext &C) {
  bool Training = C.G.boolAttr(C.N, "is_training").value_or(true);
  ReplicationType Dy = C.numeric(0), X = C.plain(1);
  SmallVector<ReplicationType, 3> PerChannel{C.plain(2)};
  // The statistics must be those of the whole batch, unless the forward op in
  // training mode kept them.
  for (unsigned I = 3; I < 5; ++I)
    if (!Training || !isKept(C, I))
      PerChannel.push_back(C.plain(I));
  SmallVector<ReplicationType, 5> All{Dy, X};
  append_range(All, PerChannel);
  for (const ReplicationType &Type : All)
    if (Type.isVarying())
      return C.setAll(C.varyingLike(Type));
  auto IsReplicated = [](const ReplicationType &T) { return T.isReplicated(); };
  if (Dy.isPartial())
    All[0] = Dy = C.reduced(0);
  bool SameAxis = Dy.isSharded() && X.isSharded() && Dy.Axis == X.Axis;
  C.setAll(ReplicationType::replicated());
  if (SameAxis && rowsAreChannels(C, X, PerChannel)) {
    C.set(0, Dy);
    C.set(1, ReplicationType::sharded(0, Dy.K));
    C.set(2, ReplicationType::sharded(0, Dy.K));
  } else if (SameAxis && C.D.isUneven(C.input(1), X.Axis)) {
    C.setAll(C.varying("normalizes a data-dependent number of rows"));
  } else if (SameAxis && X.Axis == 0 && all_of(PerChannel, IsReplicated)) {
    // The op averages the gradient over the rows of one replica only.
    if (Training && !(C.Assumes & AssumesLocalBatchNorm))
      C.assume(AssumesLocalBatchNorm);
    C.set(0, ReplicationType::sharded(0, Dy.K));
    C.set(1, ReplicationType::partial(Dy.K));
    C.set(2, ReplicationType::partial(Dy.K));
  } else {
    C.setAll(all_of(All, IsReplicated)
                 ? ReplicationType::replicated(Dy.K)
                 : C.varying("normalizes along the batch axis"));
  }
}

static void lastAxis(TypeContext &C) {
  ReplicationType X = C.plain(0);
  int Rank = C.rank(C.out());
  if (X.isSharded() && (Rank < 0 || X.Axis + 1 == Rank))
    X = C.varying("normalizes along the batch axis");
  C.setAll(X);
}

static void xent(TypeContext &C) { C.setAll(xentType(C)); }

void l2Loss(TypeContext &C) {
  ReplicationType X = C.reduced(0);
  if (X.isSharded())
    X = ReplicationType::partial(2 * X.K);
  else
    X.setPower(2 * X.K);
  C.setAll(X);
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule BatchNorm = {.Sizes = sizes::batchNorm,
                              .Type = types::batchNorm,
                              .ComparedOperands = AllOperands};
constexpr OpRule BatchNormGrad = {.Sizes = sizes::batchNormGrad,
                                  .Type = types::batchNormGrad,
                                  .ZerosOf = operands(0),
                                  .ComparedOperands = AllOperands};
constexpr OpRule LastAxis = {
    .Sizes = sizes::same, .Type = types::lastAxis, .Is = KeepsRows};
constexpr OpRule Xent = {.Type = types::xent,
                         .Is = ComparesLengths,
                         .ComparedOperands = operands(0, 1)};

} // namespace

ArrayRef<OpRule> families::normalization() {
  static const OpRule Rules[] = {
      entry(op::FusedBatchNorm, BatchNorm),
      entry(op::FusedBatchNormV2, BatchNorm),
      entry(op::FusedBatchNormV3, BatchNorm),
      entry(op::FusedBatchNormGrad, BatchNormGrad),
      entry(op::FusedBatchNormGradV2, BatchNormGrad),
      entry(op::FusedBatchNormGradV3, BatchNormGrad),
      entry(op::Softmax, LastAxis),
      entry(op::LogSoftmax, LastAxis),
      entry(op::SoftmaxCrossEntropyWithLogits, Xent,
            {.Sizes = sizes::crossEntropy<false>}),
      entry(op::SparseSoftmaxCrossEntropyWithLogits, Xent,
            {.Sizes = sizes::crossEntropy<true>,
             .Looks = indexes(1, 0, IndexUse::LastAxis)}),
  };
  return Rules;
}

} // namespace graft
