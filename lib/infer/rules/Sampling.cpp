//===- lib/infer/rules/Sampling.cpp - sampled classes -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The candidates of a sampled softmax, and accidental hits.
//
// Accidental hits are the sampled classes that are also labels of a row. On a
// replica they are a sparse matrix with a row per local row.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Infers the sizes of the sampled candidates, and of the expected counts of
/// the true classes and of the candidates.
static void candidates(SizeContext &C) {
  C.passShape(1, C.inRun(0));
  if (auto Count = C.intAttr("num_sampled")) {
    C.setShape(0, C.number(0, *Count));
    C.setShape(2, C.number(0, *Count));
  }
}

} // namespace sizes

/// Returns true if \p E and \p Rows have equally many local rows along axis 0.
static bool hasRowsOf(const TypeContext &C, Endpoint E, Endpoint Rows) {
  auto S = C.sizeOf(E, 0);
  return S && S->B == 1 && S->R == 0 && S->Ragged == 0 &&
         S == C.sizeOf(Rows, 0);
}

void types::hits(TypeContext &C) {
  ReplicationType Labels = C.plain(0), Sampled = C.plain(1);
  if (Labels.isVarying() || Sampled.isVarying())
    return C.setAll(C.varyingLike(Labels.isVarying() ? Labels : Sampled));
  if (Labels.isReplicated() && Sampled.isReplicated())
    return C.setAll(ReplicationType::replicated());
  ReplicationType Type =
      C.varying("has row indices that are local to one replica");
  bool Fits = Labels.isSharded() && !Labels.isJoined() && Labels.Axis == 0 &&
              Sampled.isReplicated() && hasRowsOf(C, C.input(0), C.input(0));
  if (!Fits)
    return C.setAll(Type);
  C.setAll(Type, LocalIndices::HitValues);
  C.set(0, Type, LocalIndices::HitRows);
}

/// Types a SparseToDense that converts accidental hits to dense local rows.
bool types::wholeIndices(TypeContext &C) {
  ReplicationType First = C.operand(0);
  if (!C.isOp(op::SparseToDense))
    return false;
  if (First.isRowIndices() || First.Indices == LocalIndices::EntryIndices)
    return sparseToDenseIndices(C);
  if (First.Indices != LocalIndices::HitIndices)
    return false;
  ReplicationType Values = C.operand(2);
  if (Values.Indices != LocalIndices::HitValues ||
      Values.Cause != First.Cause || !C.isSize(1) ||
      C.localAxis(C.out()) != 0 ||
      !hasRowsOf(C, C.out(), C.G.input(First.Cause, 0)) ||
      C.rank(C.out()) != 2 || !C.plain(3).isReplicated())
    return false;
  C.setAll(ReplicationType::sharded(0));
  return true;
}

namespace {

constexpr OpRule Candidates = {.Sizes = sizes::candidates,
                               .Type = types::whole,
                               .LocalIndices = types::wholeIndices,
                               .SizeOperands = AnyInteger,
                               .ComparedOperands = AllOperands};

} // namespace

ArrayRef<OpRule> families::sampling() {
  static const OpRule Rules[] = {
      entry(op::AllCandidateSampler, Candidates),
      entry(op::FixedUnigramCandidateSampler, Candidates),
      entry(op::LearnedUnigramCandidateSampler, Candidates),
      entry(op::LogUniformCandidateSampler, Candidates),
      entry(op::ThreadUnsafeUnigramCandidateSampler, Candidates),
      entry(op::UniformCandidateSampler, Candidates),
      {.Op = op::ComputeAccidentalHits, .Type = types::hits},
  };
  return Rules;
}

} // namespace graft
