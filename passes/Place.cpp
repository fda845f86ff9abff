//===- passes/Place.cpp - place ---------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Devices and colocation. The copies of a per-replica node get their replica's
// device when they are written; here the rest is settled:
//
//   - nodes that were inserted and exist once go to the device of replica 0,
//     or to its host where that is a TPU; where variables have destinations,
//     to the one device that reads them;
//   - a per-replica node that the input colocates with a node that exists once,
//     or whose copies are all on one device, would drag every replica to that
//     device: the colocation is dropped, and kept only for what uses that
//     node's variable in place;
//   - a per-replica lookup stays where its table is.
//
//     g = MatMul*(x, y) _class=["loc:@step"]   →   g = MatMul*(x, y)
//
// Relies on: copies decided.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/graph/AttrWire.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"
#include "lib/pass/PerOp.h"
#include "lib/strategy/Record.h"

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

/// Whether the colocation \p Class of a per-replica node stays.
static bool stays(const Graph &G, StringRef Class) {
  if (!Class.consume_front(ClassPrefix))
    return true;
  NodeId With = G.find(Class);
  return With == NoNode || (G.node(With).Count == Copies::PerReplica &&
                            !(G.node(With).Flags & NF_FixedDevice));
}

/// A lookup runs where its table is, which exists once.
static bool keepWithTables(Graph &G) {
  PerOp IsLookup(G, [](StringRef Op, const OpDef *) {
    return Op.starts_with("LookupTableFind");
  });
  bool Changed = false;
  for (NodeId N = 0; IsLookup.any() && N < G.size(); ++N) {
    Node &This = G.node(N);
    if (IsLookup[This] && !This.isDead() && This.Count == Copies::PerReplica &&
        !(This.Flags & NF_FixedDevice)) {
      This.Flags |= NF_FixedDevice;
      G.markModified();
      Changed = true;
    }
  }
  return Changed;
}

/// Whether a shared variable has a destination.
static bool anyDestination(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.Plan != Policy::Shared || This.isDead() ||
        !(This.Flags & NF_MayHaveGraft))
      continue;
    if (auto Sync = synchronizerOf(G, N); Sync && !Sync->Destination.empty())
      return true;
  }
  return false;
}

/// Moves \p Placed, each after what it reads, to where they are read: the sum
/// of the gradients is made where the variable is.
static void placeWithUsers(Graph &G, ArrayRef<NodeId> Placed) {
  for (NodeId N : reverse(Placed)) {
    uint32_t Device = 0;
    bool Several = false;
    G.forEachUse(N, [&](Use U) {
      const Node &User = G.node(U.User);
      if (U.Index >= User.NumData || User.Count != Copies::Once ||
          User.Device == 0)
        return;
      Several |= Device != 0 && Device != User.Device;
      Device = User.Device;
    });
    if (Device != 0 && !Several && Device != G.node(N).Device)
      G.setDevice(N, G.deviceName(Device).str());
  }
}

PassResult Place::run(Module &M, DiagnosticEngine &) {
  Graph &G = M.graph();
  Mesh Devices = readMesh(G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  bool Changed = keepWithTables(G);
  std::string Host = hostDevice(Devices.Devices[0]);
  uint64_t *Dropped = nullptr;
  bool HasShared = false; // and so, maybe, a destination
  std::vector<NodeId> Placed;
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.Count == Copies::Once) {
      // Device 0 is none.
      if (This.Kind != Inserted::No && This.Kind != Inserted::Mesh &&
          This.Device == 0 && !This.isDead()) {
        G.setDevice(N, Host);
        Placed.push_back(N);
        Changed = true;
      }
      HasShared |= This.Plan == Policy::Shared;
      continue;
    }
    // A split is written once, and a TPU runs nothing but its computation.
    if (This.Kind == Inserted::Split && !This.isDead() &&
        Host != Devices.Devices[0] && !(This.Flags & NF_FixedDevice)) {
      G.setDevice(N, Host);
      G.node(N).Flags |= NF_FixedDevice;
      Changed = true;
    }
    if ((This.Flags & (NF_Dead | NF_FixedDevice | NF_MayHaveClass)) !=
        NF_MayHaveClass)
      continue;
    if (NodeId With = G.colocatedWith(N);
        With != NoNode && G.node(With).Count == Copies::PerReplica &&
        !(G.node(With).Flags & NF_FixedDevice))
      continue;
    auto Class = G.attr(N, "_class");
    auto List =
        Class ? findField(*Class, AttrList, wire::Type::Bytes) : std::nullopt;
    if (!List)
      continue;
    bool AllStay = true;
    wire::Field Item;
    for (wire::Reader R(List->Bytes); R.next(Item);)
      if (Item.Number == ListString)
        AllStay &= stays(G, Item.Bytes);
    if (AllStay)
      continue;
    count(Dropped, "colocations dropped");
    Changed = true;
    SmallVector<StringRef, 2> Kept;
    for (wire::Reader R(List->Bytes); R.next(Item);)
      if (Item.Number == ListString && stays(G, Item.Bytes))
        Kept.push_back(Item.Bytes);
    if (Kept.empty())
      G.removeAttr(N, "_class");
    else
      G.setAttr(N, "_class", encodeStringListAttr(Kept));
  }
  if (HasShared && anyDestination(G))
    placeWithUsers(G, Placed);
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(Place)

} // namespace graft
