//===- passes/Place.cpp - place ---------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Decides devices and colocation of unreplicated nodes. The copies of a
// per-replica node get their replica's device when they are written. The rules:
//
//   - An inserted unreplicated node is placed on the device of replica 0, or on
//     the host if that device is a TPU. If variables have destinations and all
//     users of the node are on one device, by name or by colocation, the node
//     is placed there.
//   - The input may colocate a per-replica node with an unreplicated node, or
//     with a node whose copies are all on one device. TensorFlow would then
//     place every copy on that device. So the colocation is dropped, except on
//     nodes that use the variable of the other node in place.
//   - An unreplicated node is placed with the node that it is colocated with,
//     which may be copy 0 of a per-replica node or a merged value, and with
//     copy 0 of a variable that it uses in place. A stateful node does not
//     move: its colocation is dropped instead.
//   - A per-replica lookup stays where its table is.
//   - An unreplicated node is in the task of replica 0 unless it names another
//     task or is placed with a variable. A constant that only one server reads,
//     and a node that waits only for one server, are on that server. Without
//     this rule, TensorFlow would put a node without a device into the first
//     task by name, which may be a server. A node on /cpu:0 might be in another
//     task than its source.
//   - A shard that a Pack reads several times is first copied to its replica's
//     device. The shard is one output of a Split for all replicas. TensorFlow's
//     arithmetic optimizer loses the output number when it turns the Pack into
//     a Tile.
//
//     g = MatMul*(x, y) _class=["loc:@step"]   →   g = MatMul*(x, y)
//
// Relies on: the numbers of copies of all nodes.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/AttrWire.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/PerOp.h"
#include "lib/io/Module.h"
#include "lib/lower/expand/Expand.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/rewrite/Reductions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace llvm;

namespace graft {
namespace {

class Place final : public PassBase<Place> {
public:
  static constexpr PassInfo Info = {
      "place", "Decide devices and colocation",
      "Places inserted nodes, drops colocation that would put replicas on one\n"
      "device, and copies a shard that a Pack reads several times to the\n"
      "device of its replica."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

/// Returns true if a per-replica node may stay colocated with \p With.
static bool stays(const Graph &G, NodeId With) {
  return With == NoNode ||
         (G.isPerReplica(With) && !(G.node(With).Flags & NF_FixedDevice));
}

/// Drops the colocations of \p N for which \p Stays is false. Returns true if
/// there were any.
static bool dropClasses(Graph &G, NodeId N, function_ref<bool(NodeId)> Stays) {
  if (NodeId With = G.colocatedWith(N); With != NoNode && Stays(With))
    return false;
  return G.keepClasses(N, [&](StringRef Name) {
    return !Name.consume_front(ClassPrefix) || Stays(G.find(Name));
  });
}

/// Decides the devices of nodes. TensorFlow puts nodes on one device if they
/// are colocated, directly or through other nodes.
class Placement {
public:
  Placement(Graph &G, const Mesh &Devices)
      : G(G), Devices(Devices), Host(hostDevice(Devices.Devices[0])),
        HasHost(Host != Devices.Devices[0]), AnyDevice(HasHost) {
    if (auto First = DeviceName::parse(Host);
        First && !First->Job.empty() && First->Task)
      Task = First;
  }

  void placeOnce(NodeId N);
  void placeCopies(NodeId N);
  /// Places nodes whose devices depend on the devices of other nodes.
  void finish();

  unsigned Dropped = 0; ///< Nodes that lost a colocation.
  bool Changed = false;

private:
  /// Returns the device of \p N or, if \p N has copies, of copy 0.
  std::string device(NodeId N) const {
    const Node &This = G.node(N);
    return This.Count == Copies::Once || This.Flags & NF_FixedDevice
               ? G.device(N).str()
               : mergeDevices(G.device(N), Devices.Devices[0]);
  }
  bool agree(NodeId N, NodeId With) {
    const Node &Other = G.node(With);
    bool Copied =
        Other.Count != Copies::Once && !(Other.Flags & NF_FixedDevice);
    // Comparing names is slow, and there are few devices.
    auto [It, New] =
        Agree.try_emplace({G.node(N).Device, 2 * Other.Device + Copied});
    if (New)
      It->second = canBeOneDevice(G.device(N), device(With));
    return It->second;
  }
  bool moveWithVariables(NodeId N);
  bool isAlone(NodeId N) const;
  void giveTask(NodeId N);
  bool mayMove(NodeId N) const;
  NodeId next(NodeId N) const;
  void settle(NodeId N);
  bool join(NodeId N, NodeId With);
  void keepGroups();
  uint32_t deviceInTheEnd(NodeId N) const;
  void placeWithUsers();
  uint32_t serverOf(NodeId N) const;
  void placeWithServers();

  Graph &G;
  const Mesh &Devices;
  std::string Host;
  std::optional<DeviceName> Task; ///< The task of replica 0, if devices name
                                  ///< it.
  bool HasHost;                   ///< Set if replica 0 is not on its host.
  bool AnyDevice;         ///< Set if an unreplicated node may have to move.
  bool HasShared = false; ///< Set if a variable is shared, maybe with a
                          ///< destination.
  std::vector<NodeId> Placed, WithClass; ///< Unreplicated nodes.
  std::vector<NodeId> Given; ///< Nodes without a device, moved to Task.
  /// For the devices of a node and of the node that it is colocated with: set
  /// if both can be one device. The second key also encodes if the latter node
  /// has copies.
  DenseMap<std::pair<uint32_t, uint32_t>, bool> Agree;
  /// By device: the same device in Task; empty if it already has a task.
  DenseMap<uint32_t, std::string> WithTask;
  /// By node: the last node in its chain of colocations.
  DenseMap<NodeId, NodeId> Root;
  /// Nodes that have to be on one device. GroupDevice maps a leader to the
  /// device.
  EquivalenceClasses<NodeId> Groups;
  DenseMap<NodeId, std::string> GroupDevice;
};

/// Moves \p N to copy 0 of a variable that it uses in place.
bool Placement::moveWithVariables(NodeId N) {
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    NodeId Pick = G.input(N, I).Node;
    const Node &This = G.node(Pick);
    if (!(This.Flags & NF_ElidePrimary) || This.Count != Copies::Once ||
        This.NumData == 0 ||
        (!G.isRefInput(N, I) && G.typeAttr(Pick, "T") != DT_RESOURCE))
      continue;
    NodeId Var = G.input(Pick, 0).Node;
    if (agree(N, Var))
      continue;
    G.setDevice(N, device(Var));
    return true;
  }
  return false;
}

/// Returns true if TensorFlow may place \p N independently of other nodes.
bool Placement::isAlone(NodeId N) const {
  if (G.node(N).Flags & NF_MayHaveClass)
    return false;
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    Endpoint E = G.input(N, I);
    // Tables and iterators are in the task of replica 0, too.
    if (G.isRefInput(N, I) ||
        (G.outputType(E) == DT_RESOURCE &&
         (G.node(E.Node).NumData != 0 || isVariableOp(G.opName(E.Node)))))
      return false;
  }
  return true;
}

/// Adds the task of replica 0 to the device of \p N, if it names no task.
void Placement::giveTask(NodeId N) {
  if (!Task || (G.node(N).Device == 0 && !isAlone(N)))
    return;
  auto [It, New] = WithTask.try_emplace(G.node(N).Device);
  if (New) {
    auto First = DeviceName::parse(Host), Its = DeviceName::parse(G.device(N));
    if (First && Its && !First->Job.empty() && Its->Job.empty() && !Its->Task) {
      Its->Job = First->Job;
      Its->Replica = First->Replica;
      Its->Task = First->Task;
      It->second = Its->str();
    }
  }
  if (It->second.empty())
    return;
  if (G.node(N).Device == 0)
    Given.push_back(N);
  G.setDevice(N, It->second);
  Changed = true;
}

/// Returns true if \p N may be on any device.
bool Placement::mayMove(NodeId N) const {
  const OpDef *Def = G.opDef(N);
  if (!Def || Def->isStateful() || G.node(N).Flags & NF_FixedDevice)
    return false;
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    Endpoint E = G.input(N, I);
    if (G.isRefInput(N, I) || G.outputType(E) == DT_RESOURCE)
      return false;
  }
  return true;
}

/// Returns the node that \p N is directly colocated with, or \p N itself.
NodeId Placement::next(NodeId N) const {
  const Node &This = G.node(N);
  if (This.Count != Copies::Once || This.Kind != Inserted::No ||
      !(This.Flags & NF_MayHaveClass))
    return N;
  if (NodeId With = G.colocatedWith(N); With != NoNode)
    return With;
  if (auto List = G.stringListAttr(N, "_class"))
    for (StringRef Name : *List)
      if (Name.consume_front(ClassPrefix))
        if (NodeId With = G.find(Name); With != NoNode)
          return With;
  return N;
}

/// Moves \p N and the nodes that it is colocated with to one device, or drops
/// the colocation.
void Placement::settle(NodeId N) {
  // The usual case: N is colocated with one node, which is colocated with no
  // third node, and their devices agree.
  if (NodeId With = G.colocatedWith(N);
      With != NoNode && !(G.node(With).Flags & NF_MayHaveClass) &&
      agree(N, With))
    return;
  SmallVector<NodeId, 4> Path;
  NodeId End = N;
  for (NodeId With; !Root.count(End); End = With) {
    With = next(End);
    // A node in a cycle of colocations does not move.
    Root[End] = End;
    if (With == End)
      break;
    Path.push_back(End);
  }
  for (NodeId Each : reverse(Path)) {
    NodeId Its = Root.lookup(next(Each));
    if (!agree(Each, Its) && mayMove(Each)) {
      G.setDevice(Each, device(Its));
      Changed = true;
    }
    Dropped += dropClasses(G, Each, [&](NodeId With) {
      return With == NoNode || (agree(Each, With) && agree(Each, Its));
    });
    Root[Each] = next(Each) == Each ? Each : Its;
  }
}

/// Unites the groups of \p N and \p With. Returns false if the group would have
/// two devices.
bool Placement::join(NodeId N, NodeId With) {
  NodeId A = Groups.getOrInsertLeaderValue(N),
         B = Groups.getOrInsertLeaderValue(With);
  if (A == B)
    return true;
  auto DeviceOf = [&](NodeId Leader) {
    auto It = GroupDevice.find(Leader);
    return It == GroupDevice.end() ? device(Leader) : It->second;
  };
  std::string Ours = DeviceOf(A), Theirs = DeviceOf(B);
  if (!canBeOneDevice(Ours, Theirs))
    return false;
  if (auto Both = DeviceName::parse(Ours), Other = DeviceName::parse(Theirs);
      Both && Other) {
    if (Both->Job.empty())
      Both->Job = Other->Job;
    if (Both->Type.empty())
      Both->Type = Other->Type;
    for (auto Part :
         {&DeviceName::Replica, &DeviceName::Task, &DeviceName::Index})
      if (!((*Both).*Part))
        (*Both).*Part = (*Other).*Part;
    Ours = Both->str();
  }
  Groups.unionSets(A, B);
  GroupDevice[Groups.getLeaderValue(A)] = std::move(Ours);
  return true;
}

/// Drops colocations that would make a group with two devices. TensorFlow uses
/// one device for all nodes that are colocated, directly or not, and for all
/// nodes that use one handle or reference.
void Placement::keepGroups() {
  // The usual case: all unreplicated nodes have one device.
  SmallDenseSet<uint32_t> Seen;
  SmallVector<StringRef, 4> Names = {Devices.Devices[0]};
  bool Several = false;
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.Device == 0 || This.isDead() || This.Count != Copies::Once ||
        !Seen.insert(This.Device).second)
      continue;
    Several |= any_of(Names, [&](StringRef Other) {
      return !canBeOneDevice(G.device(N), Other);
    });
    Names.push_back(G.device(N));
  }
  if (!Several)
    return;
  PerOp UsesInPlace(G, [](StringRef, const OpDef *Def) {
    return Def && any_of(Def->inputs(), [](const ArgDef &Arg) {
             return Arg.IsRef || Arg.Type == DT_RESOURCE || Arg.Type == 0;
           });
  });
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (!UsesInPlace[This] || This.isDead() || This.Count != Copies::Once)
      continue;
    for (unsigned I = 0; I < This.NumData; ++I)
      if (Endpoint E = G.input(N, I);
          G.node(E.Node).Count == Copies::Once &&
          (G.isRefInput(N, I) || G.outputType(E) == DT_RESOURCE))
        join(N, E.Node);
  }
  for (NodeId N : WithClass)
    Dropped += dropClasses(
        G, N, [&](NodeId With) { return With == NoNode || join(N, With); });
}

/// Keeps all copies of a lookup on the device of its table, which is
/// unreplicated.
static bool keepWithTables(Graph &G) {
  PerOp IsLookup(G, [](StringRef Op, const OpDef *) {
    return Op.starts_with(op::LookupTableFind);
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

/// Adds a device copy of a shard that a Pack reads several times. TensorFlow's
/// arithmetic optimizer does not see through the copy.
static bool bringPackedSlices(Graph &G) {
  PerOp IsPack(G, [](StringRef Op, const OpDef *) { return Op == op::Pack; });
  DenseMap<NodeId, NodeId> Brought; // By split.
  for (NodeId N = 0, End = G.size(); IsPack.any() && N < End; ++N) {
    const Node &This = G.node(N);
    if (!IsPack[This] || This.isDead() || This.NumData < 2 ||
        This.Count != Copies::PerReplica)
      continue;
    Endpoint Slice = G.input(N, 0);
    if (G.node(Slice.Node).Kind != Inserted::Split ||
        !G.isPerReplica(Slice.Node) ||
        any_of(G.dataInputs(N), [&](Endpoint E) { return E != Slice; }))
      continue;
    auto [It, New] = Brought.try_emplace(Slice.Node, NoNode);
    if (New) {
      AttrRun Attrs;
      Attrs.type("T", G.outputType(Slice));
      SmallString<128> Name(G.name(Slice.Node));
      Name += "/Identity";
      It->second = G.insertNode(Name, op::Identity, Slice, Slice.Node, Attrs,
                                Inserted::Identity, Copies::PerReplica);
    }
    for (unsigned I = 0, Last = G.node(N).NumData; I < Last; ++I)
      G.setInput(N, I, {It->second, 0});
  }
  return !Brought.empty();
}

/// Returns the device of \p N. If \p N has no device, returns the device of the
/// node that it is colocated with.
uint32_t Placement::deviceInTheEnd(NodeId N) const {
  DenseSet<NodeId> Seen;
  while (G.node(N).Device == 0 && Seen.insert(N).second)
    if (NodeId With = next(N); G.node(With).Count == Copies::Once)
      N = With;
  return G.node(N).Device;
}

/// Moves inserted nodes, each after its users, to the device of their users:
/// gradients are summed, and rows concatenated, where the variable is.
void Placement::placeWithUsers() {
  // The users of a gate or a check wait for it and read no value.
  auto IsCheck = [&](NodeId N) {
    return G.node(N).Kind == Inserted::Gate ||
           G.node(N).Kind == Inserted::Check;
  };
  auto Move = [&](NodeId N) {
    uint32_t Device = 0;
    bool Several = false;
    G.forEachUse(N, [&](Use U) {
      const Node &User = G.node(U.User);
      if ((U.Index >= User.NumData && !IsCheck(N)) ||
          User.Count != Copies::Once)
        return;
      uint32_t Its = deviceInTheEnd(U.User);
      Several |= Device != 0 && Its != 0 && Device != Its;
      Device = Its != 0 ? Its : Device;
    });
    if (Device == 0 || Several || Device == G.node(N).Device)
      return false;
    G.setDevice(N, G.deviceName(Device).str());
    return true;
  };
  // A user may precede its source in Placed.
  std::vector<NodeId> Work = Placed;
  DenseSet<NodeId> Mine(Placed.begin(), Placed.end());
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    if (Move(N))
      for (Endpoint E : G.inputs(N))
        if (Mine.contains(E.Node))
          Work.push_back(E.Node);
  }
}

/// Returns the device of \p N, or of the variable that \p N uses in place, if
/// the device is in another task than replica 0. Otherwise returns 0.
uint32_t Placement::serverOf(NodeId N) const {
  if (G.node(N).Count != Copies::Once)
    return 0;
  uint32_t Device = deviceInTheEnd(N);
  for (unsigned I = 0; Device == 0 && I < G.node(N).NumData; ++I)
    if (Endpoint E = G.input(N, I);
        (G.isRefInput(N, I) || G.outputType(E) == DT_RESOURCE) &&
        G.node(E.Node).Count == Copies::Once)
      Device = deviceInTheEnd(E.Node);
  auto Its =
      Device == 0 ? std::nullopt : DeviceName::parse(G.deviceName(Device));
  return Its && !Its->Job.empty() && Its->Task &&
                 (Its->Job != Task->Job || Its->Task != Task->Task)
             ? Device
             : 0;
}

/// Moves a constant that only one server reads, and a node that waits only for
/// one server, to that server. This saves a message between tasks.
void Placement::placeWithServers() {
  DenseSet<NodeId> Mine(Given.begin(), Given.end());
  auto Move = [&](NodeId N) {
    uint32_t Device = 0;
    bool Good = mayMove(N);
    auto With = [&](NodeId Other) {
      uint32_t Its = Good ? serverOf(Other) : 0;
      Good &= Its != 0 && (Device == 0 || Device == Its);
      Device = Its;
    };
    if (G.isOp(N, op::NoOp))
      for (Endpoint E : G.inputs(N))
        With(E.Node);
    else if (G.isOp(N, op::Const))
      G.forEachUse(N, [&](Use U) { With(U.User); });
    if (!Good || Device == 0 || Device == G.node(N).Device)
      return;
    G.setDevice(N, G.deviceName(Device).str());
    Changed = true;
  };
  // A node may wait for a node that follows it in Given.
  std::vector<NodeId> Work = Given;
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    uint32_t Was = G.node(N).Device;
    Move(N);
    if (G.node(N).Device != Was)
      G.forEachUse(N, [&](Use U) {
        if (Mine.contains(U.User))
          Work.push_back(U.User);
      });
  }
}

void Placement::placeOnce(NodeId N) {
  const Node &This = G.node(N);
  // Device 0 means no device.
  if (This.Kind == Inserted::No || This.Kind == Inserted::Mesh) {
    if (This.Kind == Inserted::No)
      giveTask(N);
    AnyDevice |= This.Device != 0;
    Changed |= This.Device != 0 && moveWithVariables(N);
  } else if (This.Device == 0) {
    G.setDevice(N, Host);
    Placed.push_back(N);
    Changed = true;
  }
  if (This.Flags & NF_MayHaveClass)
    WithClass.push_back(N);
  HasShared |= This.Plan == Policy::Shared;
}

void Placement::placeCopies(NodeId N) {
  const Node &This = G.node(N);
  if (This.Flags & NF_FixedDevice)
    return;
  // A split is one node for all replicas, and a TPU runs only its computation.
  if (This.Kind == Inserted::Split && HasHost) {
    G.setDevice(N, Host);
    G.node(N).Flags |= NF_FixedDevice;
    Changed = true;
  } else if (This.Flags & NF_MayHaveClass) {
    Dropped += dropClasses(G, N, [&](NodeId With) { return stays(G, With); });
  }
}

void Placement::finish() {
  if (HasShared && anySynchronizer(G, [&](NodeId N, const Synchronizer &S) {
        return G.node(N).Plan == Policy::Shared && !S.Destination.empty();
      })) {
    placeWithUsers();
    if (Task)
      placeWithServers();
  }
  // No node moves if only copies have devices.
  if (AnyDevice)
    for (NodeId N : WithClass)
      settle(N);
  if (AnyDevice && !WithClass.empty())
    keepGroups();
  Changed |= Dropped != 0;
}

PassResult Place::run(Module &M, DiagnosticEngine &) {
  Graph &G = M.graph();
  Mesh Devices = readMesh(G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  bool Changed = keepWithTables(G);
  Placement Nodes(G, Devices);
  for (NodeId N = 0; N < G.size(); ++N)
    if (!G.node(N).isDead())
      G.node(N).Count == Copies::Once ? Nodes.placeOnce(N)
                                      : Nodes.placeCopies(N);
  Nodes.finish();
  // TensorFlow's optimizers do not change the computation of a TPU.
  bool Packs = hostDevice(Devices.Devices[0]) == Devices.Devices[0] &&
               bringPackedSlices(G);
  if (Nodes.Dropped != 0)
    Statistics["colocations dropped"] += Nodes.Dropped;
  return Changed || Nodes.Changed || Packs ? PassResult::Changed
                                           : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(Place)

} // namespace graft
