//===- test/fuzz/pipeline_fuzzer.cpp - any graph distributed ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The bytes are a graph file, or else choices that make a graph with variables,
// conditionals and functions (support/RandomGraph.h). The pipeline of a
// strategy may refuse the graph if it says why. Otherwise the result is legal,
// and the certificate holds for the written file.
//
//===----------------------------------------------------------------------===//

#include "support/RandomGraph.h"
#include "support/Require.h"

#include "lib/certify/Certify.h"
#include "lib/driver/BuildPipeline.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/pass/PassManager.h"

#include "llvm/ADT/STLExtras.h"

using namespace graft;

namespace {

const PassRegistry &registry() {
  static const PassRegistry Registry = [] {
    PassRegistry R;
    registerAllPasses(R);
    return R;
  }();
  return Registry;
}

std::string text(const DiagnosticEngine &Diags) {
  std::string Text;
  for (const Diagnostic &D : Diags.all())
    if (D.Level == Severity::Error)
      Text += D.Pass + ": " + D.Node + ": " + D.Message + "\n";
  return Text;
}

llvm::Expected<Module> read(llvm::StringRef Bytes, InputKind Kind) {
  return readModule(llvm::MemoryBuffer::getMemBufferCopy(Bytes, "fuzz"),
                    {.Kind = Kind});
}

std::string write(const Module &M) {
  StringSink Sink;
  if (llvm::Error E = writeModule(M, OutputFormat::Binary, Sink))
    require(false, "writing a result: " + llvm::toString(std::move(E)));
  return std::move(Sink.Text);
}

/// Runs one pipeline on \p Bytes, which are a legal graph.
void distribute(llvm::StringRef Bytes, InputKind Kind,
                const StrategyOptions &Options) {
  auto M = llvm::cantFail(read(Bytes, Kind));
  DiagnosticEngine Diags;
  require(verifyModule(M, Diags), "a graph is legal: " + text(Diags));
  M.graph().markVerified();
  // Pipelines get only graphs that TensorFlow imports.
  DiagnosticEngine Ignored;
  if (!verifyImport(M, Ignored))
    return;
  PassManager Manager;
  std::string Text = buildPipeline(Options).str();
  auto Parsed = Pipeline::parse(Text, registry());
  requireSuccess(Parsed.takeError(), "a pipeline");
  require(Parsed->str() == Text, "a pipeline is printed as it is parsed");
  Manager.add(std::move(*Parsed));
  if (!Manager.run(M, Diags, {})) {
    require(Diags.hasErrors(), "a refusal has a reason");
    return;
  }
  require(verifyModule(M, Diags), "a program is legal: " + text(Diags));
  std::string Written = write(M);
  auto Again = read(Written, M.Kind);
  if (!Again)
    return require(false,
                   "a result is read: " + llvm::toString(Again.takeError()));
  bool IsLegal = verifyModule(*Again, Diags, &M) && verifyImport(*Again, Diags);
  require(IsLegal, "a result is legal: " + text(Diags));
  Module Input;
  requireSuccess(Input.graph().parse(M.graphBytes()),
                 "reading the input again");
  bool Holds = Options.To == Lowering::Tpu ||
               certify::check(Input, Again->graph(), Diags);
  require(Holds, "a result is certified: " + text(Diags));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  llvm::StringRef Bytes(reinterpret_cast<const char *>(Data), Size);
  // The last bytes choose the pipeline, those of a file as well.
  unsigned Way = Size == 0 ? 0 : Data[Size - 1];
  unsigned Name = Size < 2 ? 0 : Data[Size - 2];
  static const std::vector<std::string> Names = [] {
    // This strategy writes a file for each process; the check is of one file.
    std::vector<std::string> Names = strategyNames();
    llvm::erase(Names, "ipu-multi-worker");
    return Names;
  }();
  StrategyOptions Options(Names[Name % Names.size()]);
  Options.Replicas = 2 + Way % 2;
  Options.DeviceType = Options.To == Lowering::Tpu ? "" : "CPU";
  // Variables of random graphs are small.
  Options.Assign.MinShardSize = 8;
  Options.Collectives.How =
      Way & 4 ? ReductionKind::Add : ReductionKind::Collective;
  Options.CheckCopies = Way & 8;
  if (Way & 16)
    Options.BatchNorm.emplace();
  Options.Reduce.NoGradientSlots = (Way & 32) != 0;
  auto M = read(Bytes, InputKind::Auto);
  if (M) {
    DiagnosticEngine Diags;
    if (M->graph().size() <= 2000 && verifyModule(*M, Diags))
      distribute(Bytes, InputKind::Auto, Options);
    return 0;
  }
  llvm::consumeError(M.takeError());
  fuzz::Choices C(Data, Size);
  tensorflow::GraphDef G = fuzz::randomGraph(C);
  distribute(G.SerializeAsString(), InputKind::GraphDef, Options);
  return 0;
}
