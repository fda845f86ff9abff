//===- lib/infer/graph/References.cpp - the memory of variables -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/References.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

bool passesMemoryOn(StringRef Op) {
  static constexpr StringLiteral Ops[] = {
      op::Identity,      op::IdentityN,     op::Switch,
      op::Merge,         op::Enter,         op::Exit,
      op::NextIteration, op::Reshape,       op::Squeeze,
      op::ExpandDims,    op::StopGradient,  op::PreventGradient,
      op::Bitcast,       op::CheckNumerics, op::EnsureShape,
      op::Slice,         op::StridedSlice,  op::Split,
      op::SplitV,        op::Unpack,        op::PlaceholderWithDefault};
  return is_contained(Ops, Op);
}

} // namespace graft
