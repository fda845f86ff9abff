//===- lib/driver/WorkerFiles.cpp - a file for each worker ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/WorkerFiles.h"

#include "lib/driver/OutputCheck.h"
#include "lib/driver/Picture.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/read/Read.h"
#include "lib/program/Program.h"
#include "passes/Options.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

std::string workerPath(StringRef Output, unsigned Worker) {
  auto [Before, After] = Output.split("%d");
  return Before.size() == Output.size()
             ? Output.str()
             : (Before + Twine(Worker) + After).str();
}

/// Returns the names of input nodes that a user can run: nodes without users,
/// and nodes that collections, signatures and fetches name.
static std::vector<std::string> namesOf(const Module &M, const Graph &Input,
                                        const StrategyOptions &S) {
  const Graph &G = M.graph();
  StringSet<> Named = M.declaredNames();
  for (StringRef Fetch : S.Fetches)
    Named.insert(Fetch.split(':').first);
  std::vector<std::string> Names;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || (G.isPerReplica(N) && G.node(N).Kind != Inserted::No))
      continue;
    NodeId Was = Input.find(G.name(N));
    // With Async, an update may wait for a node that has no users in the input.
    // A session can still run this node.
    if (Was != NoNode && (!G.hasUses(N) || Named.contains(G.name(N)) ||
                          (S.Async && !Input.hasUses(Was))))
      Names.push_back(G.name(N).str());
  }
  return Names;
}

/// Returns the nodes that copy the value of a variable to copies or proxies.
static std::vector<std::string> refreshesOf(const Graph &G) {
  std::vector<std::string> Names;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && (G.node(N).Kind == Inserted::Refresh ||
                        G.node(N).Kind == Inserted::Proxy))
      Names.push_back(G.name(N).str());
  return Names;
}

/// Returns the pass that makes the graph of one worker from the proved graph.
/// \p Cut has the options for any worker.
static std::unique_ptr<Pass> lowering(const StrategyOptions &S,
                                      CutWorkersOptions Cut, unsigned Worker) {
  Cut.Worker = Worker;
  if (!S.Async)
    return createCutWorkersPass(Cut);
  AssignWorkersOptions Assign;
  Assign.Tasks = *Cut.Tasks;
  Assign.Names = *Cut.Names;
  Assign.Worker = Worker;
  if (!S.Share.Servers->empty())
    Assign.Server = S.Share.Servers->front();
  // Nodes without a device get only the type CPU: other device types do not
  // have every op.
  if (S.DeviceType == "CPU")
    Assign.DeviceType = S.DeviceType;
  Assign.Staleness = S.Staleness;
  return createAssignWorkersPass(Assign);
}

void sayAsync(const StrategyOptions &S, DiagnosticEngine &Diags) {
  std::string Ahead =
      S.Staleness == 0
          ? ""
          : formatv(", at most {0} steps ahead of the slowest", S.Staleness)
                .str();
  Diags.setPass("assign-workers");
  Diags.unproved(
      "asynchronous", "",
      formatv("each of {0} workers runs the step on its own rows and "
              "updates the variables independently of the "
              "others{1}: a step may read older values of a "
              "variable than those that it updates, and no "
              "single-device run gives the same result",
              S.Tasks.size(), Ahead));
  Diags.setPass("");
}

Error writeWorkerFiles(const Module &M, const StrategyOptions &S,
                       StringRef Output, const WriteOptions &Options,
                       const DrawingOptions &Drawing, bool Verify,
                       DiagnosticEngine &Diags) {
  StringSink All;
  if (Error E = writeModule(M, OutputFormat::Binary, All))
    return E;
  auto Bytes = [&] {
    return MemoryBuffer::getMemBuffer(All.Text, M.FileName, false);
  };
  CutWorkersOptions Cut;
  Cut.Tasks = S.Tasks;
  Graph Input;
  if (Error E = Input.parse(M.graphBytes()))
    return E;
  Cut.Names = namesOf(M, Input, S);
  Cut.Refreshes = refreshesOf(M.graph());
  if (!S.Share.Servers->empty())
    Cut.Server = S.Share.Servers->front();
  Mesh Replicas = readMesh(M.graph());
  Cut.Devices = Replicas.Devices;
  Cut.Word = Replicas.Word;
  std::vector<unsigned> Workers;
  std::vector<std::string> Paths;
  for (unsigned I = 0; I < S.Tasks.size(); ++I)
    if (!S.OnlyWorker || *S.OnlyWorker == I) {
      Workers.push_back(I);
      Paths.push_back(workerPath(Output, I));
    }
  auto Write = [&](unsigned Worker, ByteSink &Sink) -> Error {
    auto Part = readModule(Bytes(), {.Kind = M.Kind,
                                     .Form = ReadOptions::Encoding::Binary,
                                     .MetaGraph = M.MetaGraphIndex});
    if (!Part)
      return Part.takeError();
    std::unique_ptr<Pass> Lower = lowering(S, Cut, Worker);
    Diags.setPass(Lower->info().Name);
    bool Good = Lower->run(*Part, Diags) != PassResult::Failure &&
                verifyModule(*Part, Diags) && verifyImport(*Part, Diags);
    Diags.setPass("");
    if (!Good)
      return createStringError(
          inconvertibleErrorCode(),
          formatv("there is no graph for worker {0}", Worker));
    if (Options.Format != OutputFormat::Dot)
      return writeModule(*Part, Options.Format, Sink);
    Expected<std::string> Picture = pictureText(*Part, Drawing);
    if (!Picture)
      return Picture.takeError();
    Sink.write(*Picture);
    return Error::success();
  };
  // The certificate needs the graphs of all workers. The bytes that it checks
  // are the bytes that are written.
  std::vector<std::string> Texts;
  auto Give = [&](unsigned Worker, ByteSink &Sink) -> Error {
    if (Texts.empty())
      return Write(Worker, Sink);
    Sink.write(Texts[Worker]);
    return Error::success();
  };
  if (Verify) {
    for (unsigned I = 0; I < S.Tasks.size(); ++I) {
      StringSink Text;
      if (Error E = Write(I, Text))
        return E;
      Texts.push_back(std::move(Text.Text));
    }
    if (Error E = checkWorkers(M, Texts, Options.Format, Diags))
      return E;
  }
  if (Output == "-" || Options.Format == OutputFormat::None)
    return writeFile(Output, Options, [&](ByteSink &Sink) {
      return Give(Workers.front(), Sink);
    });
  return writeFiles(Paths, Options,
                    [&](function_ref<ByteSink &()> Next) -> Error {
                      for (unsigned Worker : Workers)
                        if (Error E = Give(Worker, Next()))
                          return E;
                      return Error::success();
                    });
}

} // namespace graft
