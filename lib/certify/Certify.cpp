//===- lib/certify/Certify.cpp - is an output good? -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/Certify.h"

#include "lib/certify/compare/Certificate.h"
#include "lib/certify/compare/LateUseCheck.h"
#include "lib/certify/fold/Fold.h"
#include "lib/certify/partition/PartitionCheck.h"
#include "lib/certify/partition/PartitionLike.h"
#include "lib/certify/tpu/Spread.h"
#include "lib/certify/workers/AsyncCheck.h"
#include "lib/certify/workers/ReplicaFiles.h"
#include "lib/certify/workers/WorkersCheck.h"
#include "lib/infer/graph/LateUses.h"
#include "lib/infer/graph/ReadOrder.h"
#include "lib/io/inline/Inline.h"
#include "lib/program/JoinedBatches.h"
#include "lib/program/Program.h"
#include "lib/support/Glob.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft::certify {

/// Repeats on the input \p G the edits that precede the passes: inlines calls,
/// orders reads and joins batches as in the graph from which \p Outputs were
/// made.
static void normalise(Graph &G, ArrayRef<const Graph *> Outputs) {
  inlineCalls(G, {.Kept = {}, .Like = Outputs.front()});
  if (any_of(Outputs, [](const Graph *Out) { return hasOrderedReads(*Out); })) {
    orderReads(G, findOpenReads(G));
    readAgain(G, findLateUses(G).Known);
  }
  joinLike(G, *Outputs.front());
}

bool check(Module &Input, const Graph &Output, DiagnosticEngine &Diags,
           Claim What) {
  Graph &G = Input.graph();
  normalise(G, &Output);
  if (readMesh(Output).Node != NoNode && stampedReplicas(Output) == 0)
    return partitionLike(Input, Output, Diags) &&
           certifyProgram(G, Output, Diags) && checkLateUses(Output, Diags);
  if (What == Claim::Step && isTpuForm(Output) && !isTpuForm(G)) {
    if (!partitionLike(Input, Output, Diags))
      return false;
    std::unique_ptr<Graph> All = spreadComputation(Output, G, Diags);
    return All && certifyLowered(G, *All, Diags, true) &&
           checkLateUses(*All, Diags);
  }
  bool Parts = !newPartitions(G, Output).empty();
  if (What == Claim::Parts && !Parts)
    return true;
  // Without replicas, partitioned variables are the only possible change.
  if (Parts && (What == Claim::Parts || countReplicas(Output, G) == 0))
    return checkPartition(InputGraph(G), Output, Diags);
  return partitionLike(Input, Output, Diags) &&
         certifyLowered(G, Output, Diags) && checkLateUses(Output, Diags);
}

bool checkFetched(const Graph &Output, ArrayRef<std::string> Fetched,
                  DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  for (StringRef Name : Fetched) {
    StringRef Of = Name.split(':').first;
    NodeId N = Output.find(Of);
    if (N == NoNode ? !Glob::is(Name)
                    : Output.node(N).Count == Copies::PerReplica &&
                          Output.node(N).Flags & NF_LocalName)
      Diags.error(Of, "is fetched, but the output has no node with its name");
  }
  return Diags.errorCount() == Before;
}

bool isByItself(const Graph &Output) { return isAsync(Output); }

int64_t mayBeAhead(const Graph &Output) { return aheadOf(Output); }

bool check(Module &Input, ArrayRef<const Graph *> Outputs,
           const Declared &Names, DiagnosticEngine &Diags) {
  bool Async = any_of(Outputs, [](const Graph *G) { return isAsync(*G); });
  if (Outputs.size() == 1 && !Async) {
    int64_t Workers = std::max(workersOf(*Outputs.front()),
                               replicaWorkersOf(*Outputs.front()));
    if (Workers <= 1)
      return check(Input, *Outputs.front(), Diags);
    Diags.error("", formatv("only the file of one of {0} workers is given; "
                            "give one file of each worker",
                            Workers));
    return false;
  }
  Graph &G = Input.graph();
  StringSet<> Ends;
  for (NodeId N = 0; N < G.size(); ++N)
    if (!G.hasUses(N))
      Ends.insert(G.name(N));
  normalise(G, Outputs);
  if (!partitionLike(Input, *Outputs.front(), Diags))
    return false;
  if (any_of(Outputs,
             [](const Graph *G) { return replicaWorkersOf(*G) != 0; })) {
    std::unique_ptr<Graph> P = programOfReplicaFiles(G, Outputs, Diags);
    return P && certifyProgram(G, *P, Diags) && checkLateUses(*P, Diags);
  }
  std::unique_ptr<Graph> All;
  if (Async) {
    StringSet<> Runs = Ends;
    for (StringRef Name : Names.Runs.keys())
      Runs.insert(Name);
    // The parts of a trained variable are trained, too.
    StringSet<> Trained = Names.Trained;
    for (NodeId N = 0; N < G.size(); ++N)
      if (auto Slice = G.stringAttr(N, SliceAttr))
        if (Names.Trained.contains(Slice->split(' ').first))
          Trained.insert(G.name(N));
    All = chiefOfAsync(G, {Names.Local, Trained, Runs}, Outputs, Diags);
  } else {
    All = joinWorkers(G, Ends, Outputs, Diags);
  }
  return All && certifyLowered(G, *All, Diags) && checkLateUses(*All, Diags);
}

bool check(const InputGraph &Input, const Graph &Output,
           DiagnosticEngine &Diags, Claim What) {
  return What == Claim::Parts ? checkPartition(Input, Output, Diags)
                              : certifyProgram(Input, Output, Diags) &&
                                    checkLateUses(Output, Diags);
}

} // namespace graft::certify
