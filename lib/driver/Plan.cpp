//===- lib/driver/Plan.cpp - the flag --plan --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Plan.h"

#include "lib/driver/Report.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/inline/Inline.h"
#include "lib/io/read/Read.h"
#include "lib/strategy/Plan.h"

using namespace llvm;

namespace graft {

static cl::opt<std::string>
    Plan("plan", cl::ValueOptional, cl::value_desc("yaml"),
         cl::cat(distributionCategory()),
         cl::desc("Print what a step of each strategy is predicted to cost on "
                  "these machines: as a table, or as YAML. Nothing is written "
                  "without -o"));

Expected<std::optional<PlanFormat>> choosePlan(bool HasPasses) {
  if (!given(Plan))
    return std::nullopt;
  if (!Plan.empty())
    if (Error E = checkWord("--plan", Plan, {"yaml"}))
      return E;
  if (HasPasses)
    return failure("--plan and --passes: give only one");
  if (!namesMachines())
    return failure("--plan needs --resources, --replicas or --devices");
  return Plan.empty() ? PlanFormat::Table : PlanFormat::Yaml;
}

Expected<std::string> printPlan(PlanFormat Format,
                                const StrategyOptions &Strategy,
                                MemoryBufferRef Input, InputKind Kind) {
  Expected<Module> M = readModule(
      MemoryBuffer::getMemBuffer(Input, /*RequiresNullTerminator=*/false),
      {.Kind = Kind});
  if (!M)
    return M.takeError();
  DiagnosticEngine Diags;
  if (verifyModule(*M, Diags))
    // What functions hold counts too.
    for (const auto &[Node, Message] : inlineCalls(M->graph()).Errors)
      Diags.error(Node, Message);
  if (Diags.hasErrors())
    return failure(M->FileName + ": " + diagnosticText(Diags.all().front()));
  const Graph &G = M->graph();
  std::vector<VariableRow> Variables =
      listVariables(G, VariableIndex(G), declaredVariables(*M));
  if (Variables.empty())
    return failure("--plan: the graph trains no variable");
  ResourceSpec Machines =
      Strategy.Assign.Machines
          ? *Strategy.Assign.Machines
          : resourcesOf(
                Strategy.devices(Strategy.InputChoosesDevices && namesGpu(G)));
  std::vector<PlanRow> Rows =
      makePlan(Variables, Machines, Strategy.Assign.forBuilder());
  return Format == PlanFormat::Yaml ? planYaml(Rows, Variables, Machines)
                                    : planText(Rows, Variables, Machines);
}

} // namespace graft
