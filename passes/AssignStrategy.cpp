//===- passes/AssignStrategy.cpp - assign-strategy --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Decides the strategy of each variable and records it in attributes of the
// variable, which later passes read.
//
//     w = VarHandleOp()  →  w = VarHandleOp() _graft_policy="mirrored"
//
//   all-reduce   mirrored: a copy per replica, gradients are all-reduced
//   ps           shared: one variable, gradients are added, one update
//
// If `all-reduce` or `ps` is the only option, the pass sets only the policy.
// Otherwise (devices, another builder's name, a strategy file) the pass first
// makes a strategy record (lib/strategy/Record.h), which sets more attributes:
//
//     _graft_policy="shared" _graft_partition="0:3,2"
//     _graft_synchronizer="ps,destination=/device:CPU:0"
//     _graft_part_synchronizers=["ps,destination=/device:CPU:0", ...]
//
// If a VariableDef sets the synchronization or aggregation of its variable,
// this setting overrides the strategy (docs/Policies.md).
//
//===----------------------------------------------------------------------===//

#include "lib/graph/PerOp.h"
#include "lib/io/Module.h"
#include "lib/rewrite/ApplyRecord.h"
#include "lib/rewrite/VariableRules.h"
#include "lib/strategy/Builders.h"
#include "lib/strategy/RecordFile.h"
#include "passes/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace graft {
namespace {

class AssignStrategy final
    : public PassBase<AssignStrategy, AssignStrategyOptions> {
public:
  static constexpr PassInfo Info = {
      "assign-strategy", "Decide what happens to each variable",
      "Writes a policy on every variable: `mirrored` under the strategy\n"
      "`all-reduce`, `shared` under `ps`, or what its VariableDef asks for. A\n"
      "variable that has a policy keeps it. Other strategies, and these with\n"
      "other options, write the synchronizer of each variable, and its parts,\n"
      "too."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  PassResult assignPolicy(Module &M, Policy Plan, DiagnosticEngine &Diags);
  Error chooseRecord(const Module &M, const VariableIndex &Vars);

  ResourceSpec Machines;
  StrategyRecord Record;
};

/// Sets the same policy on all variables, without an index of variables.
PassResult AssignStrategy::assignPolicy(Module &M, Policy Plan,
                                        DiagnosticEngine &Diags) {
  Graph &G = M.graph();
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

/// Fills Record and Machines.
Error AssignStrategy::chooseRecord(const Module &M, const VariableIndex &Vars) {
  const std::string &Strategy = *Options.Strategy;
  std::vector<std::string> Devices = Options.Devices;
  bool IsFile = !findBuilder(Strategy);
  if (IsFile) {
    if (Options.Record) {
      Record = *Options.Record;
    } else if (Error E = readRecord(Strategy).moveInto(Record)) {
      return E;
    }
    // A strategy file has the addresses of the machines.
    Machines = resourcesOf(Record.Replicas);
    if (Devices.empty())
      Devices = Machines.replicaDevices();
  }
  if (!Options.Resources->empty()) {
    std::vector<std::string> Notes; // Reported where the flag is read.
    if (Options.Machines) {
      Machines = *Options.Machines;
    } else if (Error E = readResources(*Options.Resources, Notes)
                             .moveInto(Machines)) {
      return E;
    }
    if (Devices.empty())
      Devices = Machines.replicaDevices();
  }
  if (Devices.empty())
    Devices.emplace_back("/device:CPU:0");
  if (Machines.replicaDevices() != Devices)
    Machines = resourcesOf(Devices);
  if (!IsFile) {
    Record = buildStrategy(Strategy,
                           listVariables(M.graph(), Vars, declaredVariables(M)),
                           Machines, Options.forBuilder());
    return Error::success();
  }
  Record.Replicas = Devices;
  if (Error E = resolveDevices(Record, Machines, Strategy))
    return fileError(Strategy, std::move(E));
  return Error::success();
}

PassResult AssignStrategy::run(Module &M, DiagnosticEngine &Diags) {
  const std::string &Strategy = *Options.Strategy;
  if (!findBuilder(Strategy) && !Options.Record && !sys::fs::exists(Strategy)) {
    std::vector<std::string> Names = builderNames();
    Diags.error("", "unknown strategy '" + Strategy + "'" +
                        didYouMean(Strategy, Names,
                                   "; use " + join(Names, ", ") +
                                       " or a strategy file"));
    return PassResult::Failure;
  }
  if (Policy ForAll = Options.forAll(); ForAll != Policy::None)
    return assignPolicy(M, ForAll, Diags);

  Graph &G = M.graph();
  VariableIndex Vars(G);
  if (Error E = chooseRecord(M, Vars)) {
    Diags.error(std::move(E));
    return PassResult::Failure;
  }
  Synchronizer Default = defaultSynchronizer(
      Record, Options.Servers->empty() ? Machines.hostDevices().front()
                                       : Options.Servers->front());
  Policy DefaultPolicy =
      Default.Kind == Synchronizer::PS ? Policy::Shared : Policy::Mirrored;
  uint64_t Revision = G.revision();
  if (!applyDeclaredRules(M, DefaultPolicy, Diags) ||
      !applyRecord(G, Vars, Record, Default, Strategy, Diags))
    return PassResult::Failure;
  if (StringRef File = *Options.Emit; !File.empty())
    M.SideFiles.emplace_back(
        File.str(), printRecord(Record, Machines, File.ends_with(".pbtxt")));
  return G.revision() != Revision ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(AssignStrategy)

} // namespace graft
