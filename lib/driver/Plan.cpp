//===- lib/driver/Plan.cpp - the flag --plan --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Plan.h"

#include "lib/driver/RecordFlags.h"
#include "lib/driver/Report.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/inline/Inline.h"
#include "lib/io/read/Read.h"
#include "lib/strategy/Plan.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {

static cl::opt<std::string>
    Plan("plan", cl::ValueOptional, cl::value_desc("yaml"),
         cl::cat(distributionCategory()),
         cl::desc("Print what a step of each strategy is predicted to cost on "
                  "these machines: as a table, or as YAML. Nothing is written "
                  "without -o"));

Expected<std::optional<PlanRequest>> choosePlan(const OtherOptions &Other) {
  if (!given(Plan))
    return std::nullopt;
  if (!Plan.empty())
    if (Error E = checkWord("--plan", Plan, {"yaml"}))
      return E;
  if (Other.HasPasses)
    return failure("--plan and --passes: give only one");
  Expected<ResourceSpec> Machines = distributionMachines(Other);
  if (!Machines)
    return Machines.takeError();
  StrategyOptions S;
  if (Error E = checkRecordFlags(S))
    return E;
  PlanRequest Request{std::move(*Machines), {}, {}, Plan == "yaml"};
  BuilderOptions &B = Request.Options;
  auto Number = [](const std::string &Text, auto &Value) {
    if (!Text.empty())
      to_integer(Text, Value);
  };
  Number(S.Seed, B.Seed);
  Number(S.MinShardSize, B.MinShardBytes);
  Number(S.MaxShards, B.MaxShards);
  Number(S.GroupSize, B.GroupSize);
  B.LocalReplication = !S.LocalReplication.empty();
  B.Compressor = parseCompressor(S.Compressor).value_or(B.Compressor);
  return Request;
}

Expected<std::string> printPlan(const PlanRequest &Request,
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
  bool OnGpus = Request.MachinesOnGpus && namesGpu(G);
  const ResourceSpec &Machines =
      OnGpus ? *Request.MachinesOnGpus : Request.Machines;
  std::vector<PlanRow> Rows = makePlan(Variables, Machines, Request.Options);
  return Request.Yaml ? planYaml(Rows, Variables, Machines)
                      : planText(Rows, Variables, Machines);
}

} // namespace graft
