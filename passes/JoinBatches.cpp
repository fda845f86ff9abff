//===- passes/JoinBatches.cpp - join-batches --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes the batch of a step from several elements of an iterator, one for each
// replica. At the end of the iterator, a step takes the elements that are left.
//
//     r = IteratorGetNext(i)    →    r/element = IteratorGetNext(i)
//                                    r/element_1/value = (the next, or no rows)
//                                    r = ConcatV2(r/element, r/element_1/value)
//
// The step is then the single-device step on the concatenation, which replicate
// splits and repeat-rows repeats like any other batch. The elements keep the
// order of the iterator. So element i of one iterator still belongs to element
// i of another iterator. The certificate takes its snapshot of the input after
// this pass: --batch=per-replica asks for this step. Tests compare it with
// TensorFlow.
//
// The number of rows of an element must be unknown, and all other axes static.
// The pass changes no read if the graph has another read of a queue or an
// iterator.
//
// Relies on: inlined functions (inline-functions).
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/BatchSources.h"
#include "lib/io/Module.h"
#include "lib/program/JoinedBatches.h"
#include "passes/Options.h"

using namespace llvm;

namespace graft {
namespace {

class JoinBatches final : public PassBase<JoinBatches, JoinBatchesOptions> {
public:
  static constexpr PassInfo Info = {
      "join-batches", "Let a step take several elements of an iterator",
      "Concatenates the next elements of an iterator, one for each replica. "
      "At\n"
      "the end, a step takes the elements that are left."};

  Effect effect() const override { return Effect::Normalises; }

  PassResult run(Module &M, DiagnosticEngine &Diags) override {
    Graph &G = M.graph();
    std::vector<NodeId> Reads = findJoinableReads(G);
    for (NodeId N : Reads) {
      joinElements(G, N, Options.Elements);
      Diags.remark("batch", G.name(N),
                   "each step takes the next element for each replica; the "
                   "step is the single-device step on all of them together, so "
                   "a mean over the batch is over all their rows");
    }
    Statistics["reads joined"] = Reads.size();
    return Reads.empty() ? PassResult::Unchanged : PassResult::Changed;
  }
};

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(JoinBatches)

} // namespace graft
