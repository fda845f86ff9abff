//===- lib/driver/Plan.cpp - the flag --plan --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Plan.h"

#include "lib/driver/BuildPipeline.h"
#include "lib/driver/Report.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/inline/Inline.h"
#include "lib/io/read/Read.h"
#include "lib/pass/PassManager.h"
#include "lib/strategy/Plan.h"

using namespace llvm;

namespace graft {

static Choice Plan(
    "plan", {"yaml", "json"}, cl::ValueOptional, cl::value_desc("how"),
    cl::cat(distributionCategory()),
    cl::desc(
        "Print the predicted cost of a step of each strategy on these "
        "machines, as a table, yaml or json. Without -o nothing is written"));

Expected<std::optional<PlanFormat>> choosePlan(bool HasPasses) {
  if (!given(Plan))
    return std::nullopt;
  if (!Plan.empty())
    if (Error E = Plan.check())
      return E;
  if (HasPasses)
    return usageError("--plan and --passes: give only one");
  if (!namesMachines())
    return usageError("--plan needs --resources, --replicas or --devices");
  return Plan.empty()     ? PlanFormat::Table
         : Plan == "json" ? PlanFormat::Json
                          : PlanFormat::Yaml;
}

/// Returns the bytes that are gathered in a step, according to \p Diags.
static JoinedBytes joinedBytes(const DiagnosticEngine &Diags) {
  JoinedBytes Joined;
  for (const Diagnostic &D : Diags.all())
    if (D.Id == "spread")
      for (const auto &[Key, Value] : D.Facts)
        if (double *To = Key == "bytes"       ? &Joined.PerStep
                         : Key == "row-bytes" ? &Joined.PerRow
                                              : nullptr)
          *To = static_cast<double>(std::get<int64_t>(Value));
  return Joined;
}

static ResourceSpec machinesOf(const StrategyOptions &Strategy, bool OnGpus) {
  return Strategy.Assign.Machines ? *Strategy.Assign.Machines
                                  : resourcesOf(Strategy.devices(OnGpus));
}

/// Returns the bytes that are gathered in a step of \p M. Runs the passes up to
/// insert-reductions on \p M. Returns zeros if these passes fail: a plan is an
/// estimate and writes no graph.
static JoinedBytes joinedBytes(Module &M, const StrategyOptions &Strategy,
                               bool OnGpus) {
  Pipeline Early;
  Pipeline All = buildPipeline(Strategy, OnGpus);
  for (std::unique_ptr<Pass> &P : All.Passes) {
    bool IsLast = StringRef(P->info().Name) == "insert-reductions";
    Early.add(std::move(P));
    if (IsLast)
      break;
  }
  PassManager Manager;
  Manager.add(std::move(Early));
  DiagnosticEngine Diags;
  return Manager.run(M, Diags, {}) ? joinedBytes(Diags) : JoinedBytes();
}

Expected<std::string> printPlan(PlanFormat Format,
                                const StrategyOptions &Strategy,
                                MemoryBufferRef Input,
                                const ReadOptions &Read) {
  Expected<Module> M = readModule(
      MemoryBuffer::getMemBuffer(Input, /*RequiresNullTerminator=*/false),
      Read);
  if (!M)
    return M.takeError();
  DiagnosticEngine Diags;
  if (verifyModule(*M, Diags))
    // Ops inside functions count too.
    for (const auto &[Node, Message] : inlineCalls(M->graph()).Errors)
      Diags.error(Node, Message);
  if (Diags.hasErrors())
    return fileError(M->FileName,
                     createStringError(inconvertibleErrorCode(),
                                       diagnosticText(Diags.all().front())));
  const Graph &G = M->graph();
  std::vector<VariableRow> Variables =
      listVariables(G, VariableIndex(G), declaredVariables(*M));
  if (Variables.empty())
    return fileError(M->FileName,
                     createStringError(inconvertibleErrorCode(),
                                       "the graph trains no variable"));
  bool OnGpus = Strategy.InputChoosesDevices && devicesOf(G).HasGpu;
  ResourceSpec Machines = machinesOf(Strategy, OnGpus);
  JoinedBytes Joined = joinedBytes(*M, Strategy, OnGpus);
  std::vector<PlanRow> Rows =
      makePlan(Variables, Machines, Strategy.Assign.forBuilder(), Joined);
  switch (Format) {
  case PlanFormat::Yaml:
    return planYaml(Rows, Variables, Machines, Joined);
  case PlanFormat::Json:
    return planJson(Rows, Variables, Machines, Joined);
  case PlanFormat::Table:
    break;
  }
  return planText(Rows, Variables, Machines, Joined);
}

StepPlan planSteps(ArrayRef<VariableRow> Variables,
                   const StrategyOptions &Strategy, bool OnGpus,
                   const DiagnosticEngine &Diags) {
  StepPlan Plan{.Machines = machinesOf(Strategy, OnGpus),
                .Chosen = *Strategy.Assign.Strategy};
  Plan.Rows = makePlan(Variables, Plan.Machines, Strategy.Assign.forBuilder(),
                       joinedBytes(Diags));
  return Plan;
}

} // namespace graft
