//===- lib/infer/rules/OnceOps.cpp - ops that exist once --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What may exist only once in a step: summaries, prints, files, functions of
// Python.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

ArrayRef<OpRule> families::onceOps() {
  static constexpr OpRule Rules[] = {
      // Ops that may exist only once.
      {.Op = op::AudioSummary, .Is = trait::Once},
      {.Op = op::AudioSummaryV2, .Is = trait::Once},
      {.Op = op::EagerPyFunc, .Is = trait::Once},
      {.Op = op::HistogramSummary, .Is = trait::Once},
      {.Op = op::ImageSummary, .Is = trait::Once},
      {.Op = op::MergeSummary, .Is = trait::Once},
      {.Op = op::MergeV2Checkpoints, .Is = trait::Once},
      {.Op = op::Print, .Is = trait::Once},
      {.Op = op::PrintV2, .Is = trait::Once},
      {.Op = op::PyFunc, .Is = trait::Once},
      {.Op = op::PyFuncStateless, .Is = trait::Once},
      {.Op = op::RestoreV2, .Is = trait::Once},
      {.Op = op::SaveV2, .Is = trait::Once},
      {.Op = op::ScalarSummary, .Is = trait::Once},
      {.Op = op::StringFormat, .Is = trait::Once},
      {.Op = op::TensorSummary, .Is = trait::Once},
      {.Op = op::TensorSummaryV2, .Is = trait::Once},
      {.Op = op::WriteFile, .Is = trait::Once},
  };
  return Rules;
}

} // namespace graft
