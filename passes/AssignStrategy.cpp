//===- passes/AssignStrategy.cpp - assign-strategy --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What happens to each variable is decided here and kept on it (in text, the
// attribute `_graft_policy`); every later pass only reads it there.
//
//     w = VarHandleOp()  →  w = VarHandleOp() _graft_policy="mirrored"
//
//   all-reduce   mirrored: a copy per replica, gradients are all-reduced
//   ps           shared: one variable, gradients are added, one update
//
// A variable whose VariableDef says how it is synchronized, or how the values
// of replicas are aggregated, has that instead (docs/Policies.md).
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"
#include "lib/pass/Pass.h"
#include "lib/pass/PerOp.h"
#include "lib/strategy/VariableRules.h"

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
      "`all-reduce`, `shared` under `ps`, or what its VariableDef asks for. A\n"
      "variable that has a policy keeps it.",
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
  Policy Plan = Strategy == "ps" ? Policy::Shared : Policy::Mirrored;
  PerOp IsVariable(
      G, [](StringRef Op, const OpDef *) { return isVariableOp(Op); });
  uint64_t *Variables = nullptr;
  uint64_t Revision = G.revision();
  if (!applyDeclaredRules(M, Plan, Diags))
    return PassResult::Failure;
  bool Changed = G.revision() != Revision;
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (!IsVariable[This] || This.isDead() || This.Plan != Policy::None ||
        (This.Flags & NF_MayHaveGraft && G.hasAttr(N, PolicyAttr)))
      continue;
    G.setPolicy(N, Plan);
    count(Variables, "variables");
    Changed = true;
  }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(AssignStrategy)

} // namespace graft
