//===- lib/infer/rules/SourceRules.cpp - rules for batch reads --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What comes from a queue, an iterator or a feed.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

/// What is read once is the true value. Where every replica reads for itself
/// the step is that of all their batches together.
void TypeRules::source() {
  if (G.node(N).Count == Copies::Once) {
    setAll(RType::replicated());
    return;
  }
  auto Axes = ownBatchAxes(G, N);
  for (unsigned Port = 0; Port < D.numOutputs(N); ++Port)
    set(Port, Axes && Port < Axes->size() && (*Axes)[Port] >= 0
                  ? RType::sharded(static_cast<int>((*Axes)[Port]))
                  : varying("every replica takes its own element"));
}

} // namespace graft
