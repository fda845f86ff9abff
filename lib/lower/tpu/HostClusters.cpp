//===- lib/lower/tpu/HostClusters.cpp - host ops of computations *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/tpu/HostClusters.h"

#include "lib/graph/DeviceName.h"
#include "lib/graph/PerOp.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <map>
#include <tuple>

using namespace llvm;

namespace graft {
namespace {

constexpr StringRef CoreType = "TPU_REPLICATED_CORE";

/// Returns the part of \p Id before the first `.` if it is a number.
std::optional<unsigned> rootNumber(StringRef Id) {
  unsigned Number;
  if (Id.split('.').first.getAsInteger(10, Number))
    return std::nullopt;
  return Number;
}

bool isPivot(const Graph &G, NodeId N) {
  return G.hasAttr(N, "_pivot_for_cluster");
}

} // namespace

HostClusters::HostClusters(Graph &G) : G(G), Computations(1), Of(G.size()) {
  StringMap<uint32_t> ByName;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    if (auto Name = G.stringAttr(N, TpuClusterAttr)) {
      auto [It, New] =
          ByName.try_emplace(*Name, static_cast<uint32_t>(Computations.size()));
      if (New)
        Computations.emplace_back().Name = *Name;
      Of[N] = It->second;
    }
    if (G.isOp(N, op::TPUReplicateMetadata))
      Computations[Of[N]].Metadata = N;
    if (auto Id = G.stringAttr(N, HostClusterAttr))
      count(Of[N], *Id);
  }
}

void HostClusters::count(uint32_t C, StringRef Id) {
  if (auto Number = rootNumber(Id))
    Computations[C].NextId = std::max(Computations[C].NextId, *Number + 1);
}

StringRef HostClusters::inputName(NodeId N) const {
  StringRef Name = originName(G, N), Rest = Name;
  if (Of[N] != 0 && Rest.consume_front(Computations[Of[N]].Name) &&
      Rest.consume_front("/"))
    return Rest;
  return Name;
}

bool HostClusters::isScaffold(NodeId N) const {
  StringRef Op = G.opName(N);
  if (Op.starts_with("TPU") || Op == op::CrossReplicaSum)
    return true;
  if (Op == op::Identity)
    return G.hasAttr(N, "_tpu_input_identity") ||
           G.hasAttr(N, "_tpu_output_identity");
  return Op == op::NoOp &&
         (isPivot(G, N) ||
          any_of(G.inputs(N), [&](Endpoint E) { return isPivot(G, E.Node); }));
}

void HostClusters::mark(NodeId N, StringRef Id) {
  G.setStringAttr(N, HostClusterAttr, Id);
  if (Of[N] == 0)
    return;
  for (Endpoint E : G.controlInputs(N)) {
    NodeId Pull = E.Node;
    // An Identity with one input serves only the control edge: any other
    // Identity of an outside tensor also waits for the metadata.
    if (Of[Pull] == Of[N] && G.isOp(Pull, op::Identity) && !isScaffold(Pull) &&
        G.inputs(Pull).size() == 1 && Of[G.input(Pull, 0).Node] != Of[N] &&
        !G.anyUse(Pull, [&](Use U) { return U.User != N; }))
      G.setStringAttr(Pull, HostClusterAttr, Id);
  }
}

bool HostClusters::moveCores(DiagnosticEngine &Diags) {
  // Sorted by computation and id: ids that begin with a number come first.
  std::map<std::tuple<uint32_t, unsigned, std::string>, unsigned> Cores;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || Computations[Of[N]].Metadata == NoNode ||
        !G.device(N).contains(CoreType))
      continue;
    auto Id = G.stringAttr(N, HostClusterAttr);
    auto Device = DeviceName::parse(G.device(N));
    if (!Id || !Device || Device->Type != CoreType || !Device->Index)
      continue;
    unsigned Core = *Device->Index;
    auto [It, New] = Cores.try_emplace(
        {Of[N], rootNumber(*Id).value_or(~0U), Id->str()}, Core);
    if (!New && It->second != Core) {
      Diags.error(G.name(N),
                  "host cluster '" + Id->str() + "' is on cores " +
                      utostr(It->second) + " and " + utostr(Core) +
                      "; mark the ops of each core in a separate run of "
                      "mark-outside-compilation");
      return false;
    }
    Device->Type.clear();
    Device->Index.reset();
    G.setDevice(N, Device->str());
  }
  std::map<NodeId, std::vector<std::string>> Lists;
  for (const auto &[Key, Core] : Cores) {
    const auto &[C, Number, Id] = Key;
    NodeId Metadata = Computations[C].Metadata;
    auto [It, New] = Lists.try_emplace(Metadata);
    if (New)
      if (auto Known = G.stringListAttr(Metadata, "host_compute_core"))
        for (StringRef Text : *Known)
          It->second.push_back(Text.str());
    std::string Text = Id + ":" + utostr(Core);
    if (!is_contained(It->second, Text))
      It->second.push_back(std::move(Text));
  }
  for (const auto &[Metadata, List] : Lists) {
    SmallVector<StringRef, 4> Texts(List.begin(), List.end());
    G.setAttr(Metadata, "host_compute_core", encodeStringListAttr(Texts));
  }
  return true;
}

void warnUnsupportedOps(const Graph &G, DiagnosticEngine &Diags) {
  PerOp Unsupported(G, [](StringRef Op, const OpDef *) {
    return StringSwitch<bool>(Op)
        .Cases(op::AudioSummary, op::AudioSummaryV2, op::HistogramSummary, true)
        .Cases(op::ImageSummary, op::MergeSummary, op::ScalarSummary, true)
        .Cases(op::TensorSummary, op::TensorSummaryV2, op::Print, true)
        .Default(false);
  });
  if (!Unsupported.any())
    return;
  SmallVector<NodeId, 8> Found;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && Unsupported[G.node(N)] && G.hasAttr(N, TpuClusterAttr) &&
        !G.hasAttr(N, HostClusterAttr))
      Found.push_back(N);
  if (Found.empty())
    return;
  constexpr size_t Shown = 5;
  std::string Ops;
  for (NodeId N : ArrayRef(Found).take_front(Shown))
    Ops += (Twine(Ops.empty() ? "'" : ", '") + G.name(N) + "' (" + G.opName(N) +
            ")")
               .str();
  if (Found.size() > Shown)
    Ops += " and " + utostr(Found.size() - Shown) + " more";
  Diags.unproved("unsupported-op", G.name(Found.front()),
                 "no TPU runs " + Ops +
                     ": send such ops to the host with "
                     "mark-outside-compilation{types=" +
                     G.opName(Found.front()).str() + "}");
}

} // namespace graft
