//===- passes/CountOps.cpp - count-ops --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Counts nodes by op, as a statistic of the pass. Counts before and after
// another pass show its effect.
//
//     x = MatMul(a, b)   →   2 MatMul
//     y = MatMul(x, b)       1 Relu
//     z = Relu(y)
//
// Relies on: nothing. A per-replica node counts once.
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

using namespace llvm;

namespace graft {
namespace {

class CountOps final : public PassBase<CountOps> {
public:
  static constexpr PassInfo Info = {
      "count-ops", "Count the nodes of each op",
      "Gives the number of nodes of each op to `--pass-statistics`."};

  PassResult run(Module &M, DiagnosticEngine & /*Diags*/) override {
    const Graph &G = M.graph();
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N))
        ++Statistics[G.opName(N).str()];
    return PassResult::Unchanged;
  }
};

} // namespace

GRAFT_DEFINE_PASS(CountOps)

} // namespace graft
