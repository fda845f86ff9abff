//===- passes/InlineFunctions.cpp - inline-functions ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Inlines function calls, and replaces functional conditionals and loops by
// Switch, Merge and the loop ops of version 1, so that all passes see all nodes
// of a step:
//
//     y = PartitionedCall(x, w)    →    y/MatMul = MatMul(x, w)
//                                       y/Relu = Relu(y/MatMul)
//
// TensorFlow does the same before it runs a graph, so the step does not change:
// the result is a normal form of the input. The certificate takes its snapshot
// of the input after this pass; tests compare the normal form with TensorFlow.
// The pass does not inline functions that other ops call (the map function of a
// dataset) or that are marked _noinline. The library stays as it is.
//
// Relies on: nothing; runs before all passes.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"
#include "lib/io/ControlContexts.h"
#include "lib/io/Module.h"
#include "lib/io/inline/Inline.h"
#include "lib/program/TensorNames.h"
#include "passes/Options.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

using namespace llvm;

namespace graft {
namespace {

class InlineFunctions final
    : public PassBase<InlineFunctions, InlineFunctionsOptions> {
public:
  static constexpr PassInfo Info = {
      "inline-functions", "Replace calls of functions by their bodies",
      "Inlines `PartitionedCall` and `StatefulPartitionedCall`, and turns "
      "`If`,\n"
      "`Case` and `While` into control flow of version 1. A call that\n"
      "cannot be inlined is a warning."};

  Effect effect() const override { return Effect::Normalises; }
  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

/// Returns options that keep the tensors of \p Fetch, collections and
/// signatures.
InlineOptions keptNames(const Module &M, ArrayRef<std::string> Fetch) {
  InlineOptions Options;
  Options.Kept = M.declaredNames();
  for (StringRef Name : withoutPatterns(M.graph(), Fetch))
    Options.Kept.insert(Name.split(':').first);
  return Options;
}

PassResult InlineFunctions::run(Module &M, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  if (!mayCall(G))
    return PassResult::Unchanged;
  InlineResult Done = inlineCalls(G, keptNames(M, *Options.Fetch));
  for (const auto &[Node, Message] : Done.Errors)
    Diags.error(Node, Message);
  if (!Done.Errors.empty() || !verifyOutputCounts(G, Diags))
    return PassResult::Failure;
  for (const auto &[N, Why] : Done.Left)
    Diags.unproved("call", G.name(N), "this call is not inlined: " + Why);
  for (auto [What, Count] : {std::pair("calls inlined", Done.Calls),
                             std::pair("conditionals lowered", Done.Branches),
                             std::pair("loops lowered", Done.Loops)})
    if (Count != 0)
      Statistics[What] = Count;
  if (!Done.changed())
    return PassResult::Unchanged;
  if (!verifyTypes(G, Diags) || !verifyDefinitions(G, Diags))
    return PassResult::Failure;
  pruneContexts(M);
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(InlineFunctions)

} // namespace graft
