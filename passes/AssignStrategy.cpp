//===- passes/AssignStrategy.cpp - assign-strategy --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What happens to each variable is decided here and kept on it; every later
// pass only reads it there.
//
//     w = VarHandleOp()  →  w = VarHandleOp() _graft_policy="mirrored"
//
//   all-reduce   mirrored: a copy per replica, gradients are all-reduced
//   ps           shared: one variable, gradients are added, one update
//
// This is all that these two do alone. With devices, or another builder's name
// or a strategy file, a record is made first (lib/strategy/Record.h), which
// says more:
//
//     _graft_policy="shared" _graft_partition="0:3,2"
//     _graft_synchronizer="ps,destination=/device:CPU:0"
//     _graft_part_synchronizers=["ps,destination=/device:CPU:0", ...]
//
// A variable whose VariableDef says how it is synchronized, or how the values
// of replicas are aggregated, has that instead (docs/Policies.md).
//
//===----------------------------------------------------------------------===//

#include "lib/graph/PerOp.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"
#include "lib/rewrite/ApplyRecord.h"
#include "lib/rewrite/VariableRules.h"
#include "lib/strategy/Builders.h"
#include "lib/strategy/RecordFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace graft {
namespace {

constexpr PassOption Options[] = {
    {"strategy",
     "`all-reduce`, `ps`, `ps-load-balancing`, `partitioned-ps`, "
     "`uneven-partitioned-ps`, `partitioned-all-reduce`, "
     "`random-axis-partition-all-reduce`, `parallax`, `auto`, or a strategy "
     "file",
     "all-reduce"},
    {"devices", "The devices of the replicas, separated by ;", ""},
    {"resources", "The machines of the replicas, as a resource_spec.yml", ""},
    {"seed", "Seed of random choices", "0"},
    {"min-shard-size", "Minimum bytes of a part", "262144"},
    {"max-shards", "Maximum number of parts of a variable", "16"},
    {"group-size", "How many variables' gradients are one group", "128"},
    {"spec", "How gradients are all-reduced: `auto`, `nccl` or `ring`", "auto"},
    {"compressor",
     "Compressor of all-reduced gradients: `none`, `fp16`, `fp16-ef`, `bf16` "
     "or `bf16-ef`",
     "none"},
    {"local-replication",
     "Replicas read local copies (proxies) of variables on servers", "false"},
    {"emit", "Write the strategy to this file; text if it ends in .pbtxt", ""},
};

class AssignStrategy final : public PassBase<AssignStrategy> {
public:
  static constexpr PassInfo Info = {
      "assign-strategy", "Decide what happens to each variable",
      "Writes a policy on every variable: `mirrored` under the strategy\n"
      "`all-reduce`, `shared` under `ps`, or what its VariableDef asks for. A\n"
      "variable that has a policy keeps it. Other strategies, and these with\n"
      "other options, write the synchronizer of each variable, and its parts,\n"
      "too.",
      Options};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  PassResult assignPolicy(Module &M, Policy Plan, DiagnosticEngine &Diags);
  Expected<BuilderOptions> builderOptions() const;
  Error chooseRecord(const Module &M, const VariableIndex &Vars);

  ResourceSpec Machines;
  StrategyRecord Record;
};

/// The same for all variables, which takes no look at them.
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

Expected<BuilderOptions> AssignStrategy::builderOptions() const {
  BuilderOptions B;
  auto Fail = [](const Twine &Message) {
    return createStringError(inconvertibleErrorCode(), Message);
  };
  auto Number = [&](StringRef Name, uint64_t Least, auto &Value) -> Error {
    if (option(Name).getAsInteger(10, Value) || Value < Least)
      return Fail(Name + ": '" + option(Name) + "' is not a number from " +
                  Twine(Least) + " on");
    return Error::success();
  };
  if (Error E = Number("seed", 0, B.Seed))
    return E;
  if (Error E = Number("min-shard-size", 1, B.MinShardBytes))
    return E;
  if (Error E = Number("max-shards", 1, B.MaxShards))
    return E;
  if (Error E = Number("group-size", 1, B.GroupSize))
    return E;
  auto Spec = parseSpec(option("spec"));
  if (!Spec)
    return Fail("spec: '" + option("spec") + "' is not auto, nccl or ring");
  B.Spec = *Spec;
  auto Compressor = parseCompressor(option("compressor"));
  if (!Compressor)
    return Fail("compressor: '" + option("compressor") +
                "' is not none, fp16, fp16-ef, bf16 or bf16-ef");
  B.Compressor = *Compressor;
  B.LocalReplication = option("local-replication") == "true";
  return B;
}

/// Fills Record and Machines.
Error AssignStrategy::chooseRecord(const Module &M, const VariableIndex &Vars) {
  Expected<BuilderOptions> Numbers = builderOptions();
  if (!Numbers)
    return Numbers.takeError();
  std::vector<std::string> Devices;
  SmallVector<StringRef, 8> Listed;
  option("devices").split(Listed, ';', -1, false);
  for (StringRef Device : Listed)
    Devices.push_back(Device.str());
  StringRef Strategy = option("strategy");
  bool IsFile = !is_contained(builderNames(), Strategy);
  if (IsFile) {
    Expected<StrategyRecord> Read = readRecord(Strategy);
    if (!Read)
      return Read.takeError();
    Record = std::move(*Read);
    // A file knows the addresses of the machines.
    Machines = resourcesOf(Record.Replicas);
    if (Devices.empty())
      Devices = Machines.replicaDevices();
  }
  if (StringRef File = option("resources"); !File.empty()) {
    std::vector<std::string> Notes; // Who names the file has said them.
    Expected<ResourceSpec> Read = readResources(File, Notes);
    if (!Read)
      return Read.takeError();
    Machines = std::move(*Read);
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
                           Machines, *Numbers);
    return Error::success();
  }
  Record.Replicas = Devices;
  return resolveDevices(Record, Machines, Strategy);
}

PassResult AssignStrategy::run(Module &M, DiagnosticEngine &Diags) {
  StringRef Strategy = option("strategy");
  std::vector<std::string> Names = builderNames();
  if (!is_contained(Names, Strategy) && !sys::fs::exists(Strategy)) {
    Diags.error(
        "", ("unknown strategy '" + Strategy + "'" +
             didYouMean(Strategy, Names,
                        "; use " + join(Names, ", ") + " or a strategy file"))
                .str());
    return PassResult::Failure;
  }
  bool IsPlain = (Strategy == "all-reduce" || Strategy == "ps") &&
                 none_of(Options, [&](const PassOption &O) {
                   return StringRef(O.Name) != "strategy" && isGiven(O.Name);
                 });
  if (IsPlain)
    return assignPolicy(M, Strategy == "ps" ? Policy::Shared : Policy::Mirrored,
                        Diags);

  Graph &G = M.graph();
  VariableIndex Vars(G);
  if (Error E = chooseRecord(M, Vars)) {
    Diags.error("", toString(std::move(E)));
    return PassResult::Failure;
  }
  Synchronizer Default =
      defaultSynchronizer(Record, Machines.hostDevices().front());
  Policy DefaultPolicy =
      Default.Kind == Synchronizer::PS ? Policy::Shared : Policy::Mirrored;
  uint64_t Revision = G.revision();
  if (!applyDeclaredRules(M, DefaultPolicy, Diags) ||
      !applyRecord(G, Vars, Record, Default, Strategy, Diags))
    return PassResult::Failure;
  if (StringRef File = option("emit"); !File.empty())
    M.SideFiles.emplace_back(
        File.str(), printRecord(Record, Machines, File.ends_with(".pbtxt")));
  return G.revision() != Revision ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(AssignStrategy)

} // namespace graft
