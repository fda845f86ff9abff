//===- passes/AssignStrategy.cpp - assign-strategy --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What happens to each variable is decided here and written on it as the
// attribute `_graft_policy`; every later pass only reads it there.
//
//     w = VarHandleOp()  →  w = VarHandleOp() _graft_policy="mirrored"
//
//   all-reduce   mirrored: a copy per replica, gradients are all-reduced
//   ps           shared: one variable, gradients are added, one update
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

using namespace llvm;

namespace graft {
namespace {

constexpr PassOption Options[] = {
    {"strategy", "`all-reduce` (mirrored variables) or `ps` (shared variables)",
     "all-reduce"},
};

class AssignStrategy final : public PassBase<AssignStrategy> {
public:
  static constexpr PassInfo Info = {
      "assign-strategy", "Decide what happens to each variable",
      "Writes a policy on every variable: `mirrored` under the strategy\n"
      "`all-reduce`, `shared` under `ps`. A variable that has a policy keeps "
      "it.",
      Options};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

PassResult AssignStrategy::run(Module &M, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  StringRef Strategy = option("strategy");
  if (Strategy != "all-reduce" && Strategy != "ps") {
    std::string Near = nearest(Strategy, {"all-reduce", "ps"});
    Diags.error("", ("unknown strategy '" + Strategy + "'" +
                     (Near.empty() ? Twine("; use all-reduce or ps")
                                   : "; did you mean '" + Near + "'?"))
                        .str());
    return PassResult::Failure;
  }
  StringRef Policy = Strategy == "ps" ? "shared" : "mirrored";
  bool Changed = false;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !isVariableOp(G.opName(N)) || G.hasAttr(N, PolicyAttr))
      continue;
    G.setStringAttr(N, PolicyAttr, Policy);
    ++Statistics["variables"];
    Changed = true;
  }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(AssignStrategy)

} // namespace graft
