//===- lib/program/Program.cpp - the words of a program ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/Program.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"

#include "llvm/ADT/STLExtras.h"

#include <tuple>

using namespace llvm;

namespace graft {

bool gathersInOrder(ArrayRef<std::string> Devices) {
  auto Place = [](StringRef Device) {
    DeviceName D = DeviceName::parse(Device).value_or(DeviceName());
    return std::tuple(D.Job, D.Replica.value_or(0), D.Task.value_or(0), D.Type,
                      D.Index.value_or(0));
  };
  return is_sorted(
      Devices, [&](StringRef A, StringRef B) { return Place(A) < Place(B); });
}

std::string hostDevice(StringRef Device) {
  auto Name = DeviceName::parse(Device);
  if (!Name || Name->Type != "TPU")
    return Device.str();
  Name->Type = "CPU";
  Name->Index = 0;
  return Name->str();
}

Mesh readMesh(const Graph &G) {
  Mesh M;
  uint32_t Op = 0;
  while (Op < G.numOps() && G.opNameOf(Op) != MeshOp)
    ++Op;
  if (Op == G.numOps())
    return M;
  for (NodeId N = G.size(); N-- > 0;) {
    if (G.node(N).Op != Op || !G.isLive(N))
      continue;
    M.Node = N;
    M.Word = copyWordOn(G, N);
    if (auto Devices = G.stringListAttr(N, "devices"))
      for (StringRef D : *Devices)
        M.Devices.push_back(D.str());
    break;
  }
  return M;
}

bool combinesReplicas(const Graph &G, NodeId N) {
  if (G.node(N).Kind == Inserted::No)
    return false;
  StringRef Op = G.opName(N);
  return Op == FromReplicasOp || Op == ReduceOp || Op == GatherOp;
}

NodeId insertPick(Graph &G, StringRef Name, Endpoint E, NodeId After) {
  AttrRun Attrs;
  Attrs.type("T", G.outputType(E)).string(CombineAttr, combine::Pick);
  return G.insertNode(Name, FromReplicasOp, E, After, Attrs, Inserted::Merge);
}

StringRef originName(const Graph &G, NodeId N) {
  if (G.node(N).Flags & NF_MayHaveGraft)
    if (auto Origin = G.stringAttr(N, OriginAttr))
      return *Origin;
  return G.name(N);
}

} // namespace graft
