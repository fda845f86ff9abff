//===- lib/infer/rules/Sampling.cpp - sampled classes -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The candidates of a sampled softmax, and which of them are labels.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// The candidates that a sampler draws, and how often it is expected to draw
/// the true classes, and them.
static void candidates(SizeContext &C) {
  C.passShape(1, C.inRun(0));
  if (auto Count = C.intAttr("num_sampled")) {
    C.setShape(0, C.number(0, *Count));
    C.setShape(2, C.number(0, *Count));
  }
}

} // namespace sizes

ArrayRef<OpRule> families::sampling() {
  static constexpr OpRule Rules[] = {
      // Rows by index.
      {.Op = op::AllCandidateSampler,
       .Sizes = sizes::candidates,
       .Type = TypeRule::Whole},
      {.Op = op::FixedUnigramCandidateSampler,
       .Sizes = sizes::candidates,
       .Type = TypeRule::Whole},
      {.Op = op::LearnedUnigramCandidateSampler,
       .Sizes = sizes::candidates,
       .Type = TypeRule::Whole},
      {.Op = op::LogUniformCandidateSampler,
       .Sizes = sizes::candidates,
       .Type = TypeRule::Whole},
      {.Op = op::ThreadUnsafeUnigramCandidateSampler,
       .Sizes = sizes::candidates,
       .Type = TypeRule::Whole},
      {.Op = op::UniformCandidateSampler,
       .Sizes = sizes::candidates,
       .Type = TypeRule::Whole},
      {.Op = op::ComputeAccidentalHits, .Type = TypeRule::Hits},
  };
  return Rules;
}

} // namespace graft
