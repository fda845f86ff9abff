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
  using namespace trait;
  static const OpRule Rules[] = {
      {.Op = op::AudioSummary, .Is = Once},
      {.Op = op::AudioSummaryV2, .Is = Once},
      {.Op = op::EagerPyFunc, .Is = Once},
      {.Op = op::HistogramSummary, .Is = Once},
      {.Op = op::ImageSummary, .Is = Once},
      {.Op = op::MergeSummary, .Is = Once},
      {.Op = op::MergeV2Checkpoints, .Is = Once},
      {.Op = op::Print, .Is = Once},
      {.Op = op::PrintV2, .Is = Once},
      {.Op = op::PyFunc, .Is = Once},
      {.Op = op::PyFuncStateless, .Is = Once},
      {.Op = op::RestoreV2, .Is = Once},
      {.Op = op::SaveV2, .Is = Once},
      {.Op = op::ScalarSummary, .Is = Once},
      {.Op = op::StringFormat, .Is = Once},
      {.Op = op::TensorSummary, .Is = Once},
      {.Op = op::TensorSummaryV2, .Is = Once},
      {.Op = op::WriteFile, .Is = Once},
  };
  return Rules;
}

} // namespace graft
