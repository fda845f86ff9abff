//===- lib/lower/tpu/HostCycles.cpp - cycles of host clusters ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow turns a host cluster into one node. If a path leaves a cluster and
// comes back, that node would wait for itself.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/tpu/HostClusters.h"
#include "lib/ops/Ops.h"

#include "lib/support/Diagnostics.h"

#include "tensorflow/core/framework/function.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace graft {
namespace {

using Edge = std::pair<uint32_t, uint32_t>;

/// The ops of a graph, their groups and their edges.
struct Ops {
  std::vector<uint32_t> Groups; ///< By op; 0: in none.
  std::vector<Edge> Edges;
  StringMap<uint32_t> Numbers;

  uint32_t group(const Twine &Key) {
    return Numbers
        .try_emplace(Key.str(), static_cast<uint32_t>(Numbers.size()) + 1)
        .first->second;
  }
};

/// Removes vertices without an incoming edge until none is left. Vertices in \p
/// Gone are ignored.
void removeSources(ArrayRef<Edge> Edges, std::vector<bool> &Gone) {
  auto Counts = [&](const Edge &E) {
    return E.first != E.second && !Gone[E.first] && !Gone[E.second];
  };
  std::vector<uint32_t> Start(Gone.size() + 1), Open(Gone.size());
  for (const Edge &E : Edges)
    if (Counts(E)) {
      ++Start[E.first + 1];
      ++Open[E.second];
    }
  for (size_t I = 1; I < Start.size(); ++I)
    Start[I] += Start[I - 1];
  std::vector<uint32_t> Targets(Start.back()), Next(Start), Work;
  for (const Edge &E : Edges)
    if (Counts(E))
      Targets[Next[E.first]++] = E.second;
  for (uint32_t V = 0; V < Gone.size(); ++V)
    if (!Gone[V] && Open[V] == 0)
      Work.push_back(V);
  while (!Work.empty()) {
    uint32_t V = Work.back();
    Work.pop_back();
    Gone[V] = true;
    for (uint32_t I = Start[V]; I < Start[V + 1]; ++I)
      if (--Open[Targets[I]] == 0)
        Work.push_back(Targets[I]);
  }
}

/// Returns an op of a group, and an op on a path from that group to itself.
std::optional<Edge> findCycle(Ops &All) {
  size_t Size = All.Groups.size();
  std::vector<uint32_t> First(All.Numbers.size() + 1, ~0U);
  auto Vertex = [&](uint32_t I) {
    uint32_t Group = All.Groups[I];
    return Group ? First[Group] = std::min(First[Group], I) : I;
  };
  // The first op of a group represents the group.
  std::vector<bool> Gone(Size);
  for (uint32_t I = 0; I < Size; ++I)
    Gone[I] = Vertex(I) != I;
  for (Edge &E : All.Edges)
    E = {Vertex(E.first), Vertex(E.second)};
  removeSources(All.Edges, Gone);
  for (Edge &E : All.Edges)
    std::swap(E.first, E.second);
  removeSources(All.Edges, Gone);
  std::optional<uint32_t> Host, Between;
  for (uint32_t I = 0; I < Size; ++I) {
    if (Gone[I])
      continue;
    if (All.Groups[I] && !Host)
      Host = I;
    else if (!Between || (All.Groups[*Between] && !All.Groups[I]))
      Between = I;
  }
  if (!Host || !Between)
    return std::nullopt;
  return Edge(*Host, *Between);
}

void report(DiagnosticEngine &Diags, const Twine &Host, StringRef Between,
            StringRef Id) {
  Diags.error(Host.str(), "host cluster '" + Id.str() +
                              "' has ops before and after '" + Between.str() +
                              "'; mark the ops after it in a separate run of "
                              "mark-outside-compilation");
}

StringRef idOf(const tensorflow::NodeDef &Node) {
  auto It = Node.attr().find(HostClusterAttr.str());
  return It == Node.attr().end() ? StringRef() : StringRef(It->second.s());
}

} // namespace

bool checkHostCycles(const Graph &G, DiagnosticEngine &Diags) {
  Ops All;
  All.Groups.resize(G.size());
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    if (auto Id = G.stringAttr(N, HostClusterAttr))
      All.Groups[N] =
          All.group(G.stringAttr(N, TpuClusterAttr).value_or("") + "\n" + *Id);
    for (Endpoint E : G.inputs(N))
      if (!G.isOp(E.Node, op::NextIteration))
        All.Edges.push_back({E.Node, N});
  }
  auto Cycle = findCycle(All);
  if (Cycle)
    report(Diags, G.name(Cycle->first), G.name(Cycle->second),
           *G.stringAttr(Cycle->first, HostClusterAttr));
  return !Cycle;
}

bool checkHostCycles(const tensorflow::FunctionDef &Body,
                     DiagnosticEngine &Diags) {
  Ops All;
  StringMap<uint32_t> ByName;
  for (const tensorflow::NodeDef &Node : Body.node_def()) {
    ByName[Node.name()] = static_cast<uint32_t>(All.Groups.size());
    StringRef Id = idOf(Node);
    All.Groups.push_back(Id.empty() ? 0 : All.group(Id));
  }
  for (int I = 0; I < Body.node_def_size(); ++I)
    for (StringRef Input : Body.node_def(I).input()) {
      Input.consume_front("^");
      auto It = ByName.find(Input.split(':').first);
      if (It != ByName.end())
        All.Edges.push_back({It->second, static_cast<uint32_t>(I)});
    }
  auto Cycle = findCycle(All);
  if (Cycle) {
    const tensorflow::NodeDef &Host =
        Body.node_def(static_cast<int>(Cycle->first));
    report(Diags, Body.signature().name() + ":" + Host.name(),
           Body.node_def(static_cast<int>(Cycle->second)).name(), idOf(Host));
  }
  return !Cycle;
}

} // namespace graft
