//===- test/bench/stages.cpp - nanoseconds per node of each stage -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//     stages FILE [--replicas=N] [--reduction=add|collective] [--benchmark_...]
//
// FILE is a single-device graph (see generate.cpp). The counter `node` is the
// time per node of that graph.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/Certify.h"
#include "lib/driver/BuildPipeline.h"
#include "lib/graph/Verifier.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/lower/expand/Expand.h"
#include "lib/pass/PassManager.h"
#include "lib/pass/Registry.h"

#include <benchmark/benchmark.h>

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace graft;
using llvm::StringRef;

namespace {

class NullSink final : public ByteSink {
public:
  void write(StringRef Bytes) override {
    benchmark::DoNotOptimize(Bytes.data());
    Count += Bytes.size();
  }
  uint64_t Count = 0;
};

[[noreturn]] void fail(llvm::Error E) {
  llvm::errs() << "stages: " << llvm::toString(std::move(E)) << '\n';
  std::exit(1);
}

/// The graph as read, and after each pass of the pipeline.
class Fixture {
public:
  Fixture(std::string File, const StrategyOptions &Options)
      : File(std::move(File)), Input(read()) {
    // All but the check and the lowering.
    Passes = std::move(buildPipeline(Options).Passes);
    Passes.resize(Passes.size() - 2);
    Program = after(Passes.size());
  }

  Module read() const {
    auto M = readModule(File);
    if (!M)
      fail(M.takeError());
    return std::move(*M);
  }

  /// Returns a fresh module after the first \p Count passes.
  Module after(size_t Count) const {
    Module M = read();
    M.keepInput();
    for (size_t I = 0; I < Count; ++I)
      run(M, I);
    return M;
  }

  void run(Module &M, size_t Pass) const {
    graft::Pipeline One;
    One.add(Passes[Pass]->clone());
    PassManager Manager;
    Manager.add(std::move(One));
    DiagnosticEngine Diags;
    Diags.setRemarks(false); // as in a run without --remarks
    if (!Manager.run(M, Diags, Instrumentation()))
      fail(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   name(Pass) + " failed"));
  }

  std::string name(size_t Pass) const { return Passes[Pass]->info().Name; }

  std::string File;
  Module Input;
  std::vector<std::unique_ptr<Pass>> Passes;
  Module Program;
};

void perNode(benchmark::State &State, const Fixture &F) {
  State.counters["node"] = benchmark::Counter(
      F.Input.graph().numLive(), benchmark::Counter::kIsIterationInvariantRate |
                                     benchmark::Counter::kInvert);
}

template <typename Fn>
benchmark::internal::Benchmark *add(const std::string &Name, const Fixture &F,
                                    const Fn &Body) {
  return benchmark::RegisterBenchmark(Name.c_str(),
                                      [&F, Body](benchmark::State &State) {
                                        for (auto Unused : State) // NOLINT
                                          Body(State);
                                        perNode(State, F);
                                      })
      ->Unit(benchmark::kMillisecond);
}

void addStages(const Fixture &F) {
  add("Graph::parse", F, [&](benchmark::State &) {
    Graph G;
    if (llvm::Error E = G.parse(F.Input.graphBytes()))
      fail(std::move(E));
    benchmark::DoNotOptimize(G.numLive());
  });
  add("verifyModule", F, [&](benchmark::State &) {
    DiagnosticEngine Diags;
    benchmark::DoNotOptimize(verifyModule(F.Input, Diags));
  });
  add("topologicalOrder", F, [&](benchmark::State &) {
    benchmark::DoNotOptimize(topologicalOrder(F.Program.graph()).size());
  });
  add("VariableIndex", F, [&](benchmark::State &) {
    VariableIndex Vars(F.Program.graph());
    benchmark::DoNotOptimize(Vars.variables().size());
  });
  add("DimAnalysis", F,
      [&, Order = topologicalOrder(F.Program.graph())](benchmark::State &) {
        DimOptions Options;
        Options.Replicas = readMesh(F.Program.graph()).replicas();
        DimAnalysis Dims(F.Program.graph(), Order, Options);
        benchmark::DoNotOptimize(Dims.totalOutputs());
      });
  add("ProgramFacts", F, [&](benchmark::State &) {
    ProgramFacts Facts(F.Program.graph());
    benchmark::DoNotOptimize(Facts.Types.demands().size());
  });
  add("InputGraph", F, [&](benchmark::State &) {
    InputGraph Picture(F.Input.graph());
    benchmark::DoNotOptimize(Picture.size());
  });
  add("certify", F, [&](benchmark::State &) {
    DiagnosticEngine Diags;
    if (!certify::check(*F.Program.input(), F.Program.graph(), Diags))
      fail(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "the program is not certified"));
  });
  for (size_t I = 0; I < F.Passes.size(); ++I)
    add("pass:" + F.name(I), F,
        [&, I](benchmark::State &State) {
          State.PauseTiming();
          Module M = F.after(I);
          State.ResumeTiming();
          F.run(M, I);
          State.PauseTiming();
          M = Module(); // not part of the pass
          State.ResumeTiming();
        })
        // A fixed number, because making the program takes much longer than the
        // pass: measured time must not decide on it.
        ->Iterations(10);
  Mesh Devices = readMesh(F.Program.graph());
  add("expand:size", F, [&, Devices](benchmark::State &) {
    ReplicaExpander Expander(F.Program.graph(), Devices);
    benchmark::DoNotOptimize(Expander.size());
  });
  add("expand:write", F, [&, Devices](benchmark::State &) {
    ReplicaExpander Expander(F.Program.graph(), Devices);
    NullSink Sink;
    Expander.write(Sink);
    benchmark::DoNotOptimize(Sink.Count);
  });
}

} // namespace

int main(int Argc, char **Argv) {
  StrategyOptions Options;
  Options.Collectives.How = ReductionKind::Collective;
  Options.DeviceType = "CPU";
  Options.Replicas = 8;
  benchmark::Initialize(&Argc, Argv);
  std::string File;
  for (int I = 1; I < Argc; ++I) {
    StringRef Arg = Argv[I];
    if (Arg.consume_front("--reduction="))
      Options.Collectives.How.parse(Arg);
    else if (!Arg.consume_front("--replicas="))
      File = Arg.str();
    else if (Arg.getAsInteger(10, Options.Replicas))
      Options.Replicas = 0;
  }
  if (File.empty() || Options.Replicas == 0) {
    llvm::errs() << "usage: stages FILE [--replicas=N] "
                    "[--reduction=add|collective] [--benchmark_...]\n";
    return 2;
  }
  Fixture F(File, Options);
  addStages(F);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
