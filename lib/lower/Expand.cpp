//===- lib/lower/Expand.cpp - in-graph replication --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The pieces of the output and their order; how one node is rendered is in
// ExpandNode.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/Expand.h"

#include "lib/graph/DeviceName.h"
#include "lib/support/Wire.h"

#include <cstring>

using namespace llvm;

namespace graft {

std::string mergeDevices(StringRef Of, StringRef Device) {
  auto Node = DeviceName::parse(Of), Replica = DeviceName::parse(Device);
  if (Of.empty() || !Node || !Replica)
    return Device.str();
  if (!Replica->Job.empty() || Replica->Task)
    return Device.str();
  Node->Type = Replica->Type;
  Node->Index = Replica->Index;
  return Node->str();
}

ReplicaExpander::ReplicaExpander(const Graph &G, Mesh M)
    : G(G), Devices(std::move(M.Devices)), Order(G.order()) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    RandomOps.push_back(isRandomOp(Name));
    VariableOps.push_back(isVariableOp(Name));
    const OpDef *Def = G.opDefOf(Op);
    Rewrites.push_back(!Def || RandomOps.back() || Def->attr("frame_name") ||
                       Def->attr("shared_name"));
    Program.push_back(Name == MeshOp            ? MeshNode
                      : Name == "_ToReplicas"   ? Split
                      : Name == "_FromReplicas" ? Merge
                      : Name == "_Scale"        ? Scale
                                                : Plain);
  }
  // Type and index come from the replica, job and task from the node.
  for (uint32_t D = 0; D < G.numDevices(); ++D) {
    std::vector<std::string> Row;
    Row.reserve(Devices.size());
    for (const std::string &Device : Devices)
      Row.push_back(mergeDevices(G.deviceName(D), Device));
    DeviceTable.push_back(std::move(Row));
  }
}

StringRef ReplicaExpander::deviceOf(NodeId N, unsigned Replica) const {
  const Node &This = G.node(N);
  if (This.Count == Copies::Once || This.Flags & NF_FixedDevice)
    return G.device(N);
  return DeviceTable[This.Device][Replica];
}

std::string ReplicaExpander::copyName(NodeId N, unsigned Replica) const {
  Rendering Out;
  appendName(Out, N, Replica);
  return Out.Bytes;
}

/// Seeds are numbers, not text: such copies are rendered one by one.
bool ReplicaExpander::stampable(NodeId N) const {
  return !RandomOps[G.node(N).Op];
}

void ReplicaExpander::renderOnce(NodeId N, Rendering &Out) {
  switch (Program[G.node(N).Op]) {
  case MeshNode:
    return;
  case Split:
    renderSplit(N, Out);
    return;
  case Merge:
    renderMerge(N, Out);
    return;
  default:
    renderCopy(N, 0, Out);
  }
}

void ReplicaExpander::renderCopy(NodeId N, unsigned Replica, Rendering &Out) {
  const Node &This = G.node(N);
  Context C{N, Replica, This.Count == Copies::PerReplica, &Out};
  if (Program[This.Op] == Scale) {
    renderScale(C);
    return;
  }
  if (This.RawData && !C.PerReplica && !(This.Flags & NF_Modified)) {
    // Untouched, but names in it may have moved: those of inputs, and those of
    // nodes that it is colocated with.
    bool AsRead =
        !(This.Flags & NF_MayHaveClass) && all_of(G.inputs(N), [&](Endpoint E) {
          const Node &Source = G.node(E.Node);
          return Source.Count == Copies::Once && Source.Kind == Inserted::No;
        });
    if (AsRead) {
      Out.Bytes += '\x0a';
      wire::appendVarint(Out.Bytes, This.RawSize);
      Out.Bytes.append(This.RawData, This.RawSize);
      return;
    }
  }
  static thread_local Rendering Body;
  Body.clear();
  nameField(C, Body, "");
  wire::appendBytes(Body.Bytes, 2, G.opName(N));
  for (Endpoint E : G.dataInputs(N))
    dataInput(C, Body, E);
  for (Endpoint E : G.controlInputs(N))
    controlInput(C, Body, E.Node);
  if (This.Flags & NF_Led && C.PerReplica && Replica == 0)
    for (unsigned I = 1; I < Devices.size(); ++I)
      inputField(Body, N, I, ControlPort);
  deviceField(C, Body);
  attrFields(C, Body);
  finishNode(C, Body);
}

template <typename Fn>
void ReplicaExpander::forEachPiece(Fn F, bool OnlySizes) {
  auto Count = static_cast<unsigned>(Devices.size());
  Rendering Out;
  for (NodeId N : Order) {
    const Node &This = G.node(N);
    Out.clear();
    if (This.Count == Copies::Once || isSplit(N)) {
      renderOnce(N, Out);
      F(Out.Bytes, 1);
      continue;
    }
    if (!(This.Flags & NF_ElidePrimary)) {
      renderCopy(N, 0, Out);
      F(Out.Bytes, 1);
    }
    bool Stamps = stampable(N);
    for (unsigned R = 1; R < Count;) {
      Out.clear();
      renderCopy(N, R, Out);
      F(Out.Bytes, 1);
      // The copies whose number and device are as long as this one's.
      size_t DeviceSize = deviceOf(N, R).size();
      std::string Number = std::to_string(R);
      unsigned Last = R;
      for (; Stamps && Last + 1 < Count; ++Last) {
        std::string Next = std::to_string(Last + 1);
        if (Next.size() != Number.size() ||
            deviceOf(N, Last + 1).size() != DeviceSize)
          break;
        if (OnlySizes)
          continue;
        for (uint32_t At : Out.Digits)
          std::memcpy(Out.Bytes.data() + At, Next.data(), Next.size());
        for (uint32_t At : Out.Devices)
          std::memcpy(Out.Bytes.data() + At, deviceOf(N, Last + 1).data(),
                      DeviceSize);
        F(Out.Bytes, 1);
      }
      if (OnlySizes)
        F(Out.Bytes, Last - R);
      R = Last + 1;
    }
  }
}

uint64_t ReplicaExpander::size() {
  uint64_t Total = 0;
  forEachPiece([&](const std::string &Bytes,
                   unsigned Times) { Total += Bytes.size() * Times; },
               /*OnlySizes=*/true);
  return Total;
}

uint64_t ReplicaExpander::sizeBound() {
  // Every name in a node grows by a copy's prefix at most, and so does the
  // node's own; what is inserted brings a few constants.
  constexpr uint64_t Prefix = 24, Extra = 1024;
  uint64_t Total = 0, LongestDevice = 0, LongestName = 0;
  for (const std::string &Device : Devices)
    LongestDevice = std::max<uint64_t>(LongestDevice, Device.size());
  for (NodeId N : Order)
    LongestName = std::max<uint64_t>(LongestName, G.node(N).NameSize);
  for (NodeId N : Order) {
    const Node &This = G.node(N);
    uint64_t One = This.NameSize + This.AttrSize + This.NumInputs * 8 +
                   Prefix * (This.NumInputs + 4) + LongestDevice +
                   G.device(N).size() + 64;
    for (Endpoint E : G.inputs(N))
      One += G.node(E.Node).NameSize;
    if (This.Kind != Inserted::No)
      One += Extra + 2 * (LongestName + Prefix);
    uint64_t Times =
        This.Count == Copies::PerReplica || Program[This.Op] != Plain
            ? Devices.size()
            : 1;
    // A led node, a gate and a merge name every copy once more.
    Total += One * Times;
    if (This.Flags & NF_Led || This.Count == Copies::Once)
      Total += Devices.size() * (LongestName + Prefix) *
               (This.Flags & NF_Led ? 1 : This.NumInputs);
  }
  return Total;
}

void ReplicaExpander::write(ByteSink &Sink) {
  forEachPiece([&](const std::string &Bytes, unsigned) { Sink.write(Bytes); },
               /*OnlySizes=*/false);
}

} // namespace graft
