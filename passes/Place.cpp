//===- passes/Place.cpp - place ---------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Devices and colocation. The copies of a per-replica node get their replica's
// device when they are written; here the rest is settled:
//
//   - nodes that were inserted and exist once go to the device of replica 0;
//   - a per-replica node that the input colocates with a node that exists once
//     would drag every replica to one device: the colocation is dropped, and
//     kept only for what uses that node's variable in place.
//
//     g = MatMul*(x, y) _class=["loc:@step"]   →   g = MatMul*(x, y)
//
// Relies on: copies decided.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

using namespace llvm;

namespace graft {
namespace {

class Place final : public PassBase<Place> {
public:
  static constexpr PassInfo Info = {
      "place",
      "Settle devices and colocation",
      "Places inserted nodes and drops colocation that would put replicas on\n"
      "one device.",
      {}};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

PassResult Place::run(Module &M, DiagnosticEngine &) {
  Graph &G = M.graph();
  Mesh Devices = readMesh(G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  bool Changed = false;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    const Node &This = G.node(N);
    if (This.Count == Copies::Once && This.Kind != Inserted::No &&
        This.Kind != Inserted::Mesh && G.device(N).empty()) {
      G.setDevice(N, Devices.Devices[0]);
      Changed = true;
    }
    bool OnReplica = This.Count == Copies::PerReplica &&
                     !(This.Flags & NF_FixedDevice) &&
                     This.Flags & NF_MayHaveClass;
    if (!OnReplica)
      continue;
    auto Classes = G.stringListAttr(N, "_class");
    if (!Classes)
      continue;
    SmallVector<StringRef, 2> Kept;
    for (StringRef Class : *Classes) {
      StringRef Target = Class;
      NodeId With = Target.consume_front("loc:@") ? G.find(Target) : NoNode;
      if (With == NoNode || G.node(With).Count == Copies::PerReplica)
        Kept.push_back(Class);
    }
    if (Kept.size() == Classes->size())
      continue;
    ++Statistics["colocations dropped"];
    Changed = true;
    if (Kept.empty())
      G.removeAttr(N, "_class");
    else
      G.setAttr(N, "_class", encodeStringListAttr(Kept));
  }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(Place)

} // namespace graft
