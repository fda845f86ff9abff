//===- passes/InsertCollectives.cpp - insert-collectives --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Gives every `_Reduce` and `_Gather` the form that TensorFlow runs.
//
//   add          s = _FromReplicas(g) combine=sum     one AddN
//                s/scale = _Scale(s) power=-1
//                r = Identity*(s/scale)               one on every replica
//
//   collective   c = CollectiveReduce*(g) final_op=Id members on their devices
//                gate = NoOp(^c)                      waits for all members
//                r = Identity*(c, ^gate)              what users read
//
// Adding is cheaper on CPUs, runs in any order and cannot hang; `auto` uses it
// there and between tasks, and collectives on other devices. The gate makes
// whatever reaches one member run all of them: a collective of which a run
// holds only a part blocks for ever. Keys follow the order of names, so they do
// not depend on the order of nodes.
//
// Relies on: shapes that are equal on all replicas, which the types prove. Rows
// of which each replica has another number (uneven) are gathered by adding.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/graph/AttrRun.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"
#include "lib/pass/PerOp.h"
#include "lib/strategy/Cluster.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

constexpr PassOption Options[] = {
    {"reduction", "auto, add or collective", "auto"},
};

constexpr int64_t GroupKey = 1;

class InsertCollectives final : public PassBase<InsertCollectives> {
public:
  static constexpr PassInfo Info = {
      "insert-collectives", "Turn reductions into AddN or collectives",
      "Replaces `_Reduce` and `_Gather` by an addition and identities, or by\n"
      "members of a collective behind a gate.",
      Options};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  /// What the attributes of a reduction say.
  struct Form {
    bool Gather = false;
    unsigned Type = DT_INVALID;
    int64_t Power = 0;
    int64_t Axis = 0;
    StringRef Combine;
    std::optional<int64_t> Assumed;
    bool HasCollective = false; ///< The CPU kernels take it.
  };

  void read(NodeId N);
  void becomeIdentity(NodeId N, ArrayRef<Endpoint> Inputs);
  void add(NodeId N);
  void collective(NodeId N, int64_t InstanceKey);
  StringRef nameOf(NodeId N, StringRef Suffix);

  Graph *G = nullptr;
  unsigned Replicas = 0;
  /// Most reductions have one and the same run of attributes: it is read once
  /// and stripped once.
  StringRef LastAttrs, Stripped;
  Form This;
  SmallString<128> Name;
  std::string Offsets;
  uint64_t *Added = nullptr, *Collectives = nullptr;
};

void InsertCollectives::read(NodeId N) {
  StringRef Run(G->node(N).AttrData, G->node(N).AttrSize);
  bool Gather = G->isOp(N, "_Gather");
  if (!Run.empty() && Run.data() == LastAttrs.data() &&
      Run.size() == LastAttrs.size() && Gather == This.Gather)
    return;
  LastAttrs = Run;
  Stripped = {};
  This.Gather = Gather;
  This.Type = G->typeAttr(N, "T").value_or(DT_INVALID);
  This.Power = G->intAttr(N, "power").value_or(0);
  This.Axis = G->intAttr(N, "axis").value_or(0);
  This.Combine = G->stringAttr(N, "combine").value_or("");
  This.Assumed = G->intAttr(N, AssumedAttr);
  bool Common = This.Type == DT_FLOAT || This.Type == DT_DOUBLE ||
                This.Type == DT_HALF || This.Type == DT_INT32 ||
                This.Type == DT_INT64;
  This.HasCollective =
      Gather ? Common && This.Axis == 0 &&
                   !G->boolAttr(N, "uneven").value_or(false)
             : (Common || This.Type == DT_BFLOAT16) && This.Combine == "sum";
}

StringRef InsertCollectives::nameOf(NodeId N, StringRef Suffix) {
  Name = G->name(N);
  Name += Suffix;
  return Name;
}

/// The reduction's node stays, as what its users read.
void InsertCollectives::becomeIdentity(NodeId N, ArrayRef<Endpoint> Inputs) {
  Node &Reduction = G->node(N);
  if (Stripped.empty()) {
    for (StringRef Key : {"combine", "power", "axis", "uneven"})
      G->removeAttr(N, Key);
    G->removeAttr(N, AssumedAttr);
    Stripped = {Reduction.AttrData, Reduction.AttrSize};
  } else {
    Reduction.AttrData = Stripped.data();
    Reduction.AttrSize = static_cast<uint32_t>(Stripped.size());
  }
  G->setOp(N, "Identity");
  G->setInputs(N, Inputs);
}

void InsertCollectives::add(NodeId N) {
  Inserted Kind = G->node(N).Kind;
  Endpoint Source = G->input(N, 0);
  AttrRun Merge;
  Merge.type("T", This.Type);
  Merge.string("combine", This.Gather ? "concat" : This.Combine);
  if (This.Gather)
    Merge.integer("axis", This.Axis);
  if (This.Assumed)
    Merge.integer(AssumedAttr, *This.Assumed);
  NodeId Result = G->insertNode(nameOf(N, "/all"), "_FromReplicas", Source,
                                Source.Node, Merge);
  G->node(Result).Kind = Kind;
  if (This.Power != 0) {
    AttrRun Scale;
    Scale.type("T", This.Type).integer("power", This.Power);
    Result = G->insertNode(nameOf(N, "/scale"), "_Scale", Endpoint{Result, 0},
                           Result, Scale);
    G->node(Result).Kind = Inserted::Scale;
  }
  becomeIdentity(N, Endpoint{Result, 0});
}

void InsertCollectives::collective(NodeId N, int64_t InstanceKey) {
  Endpoint Source = G->input(N, 0);
  bool Divide = !This.Gather && This.Power == -1 && isFloating(This.Type);
  AttrRun Attrs;
  Attrs.type("T", This.Type);
  Attrs.integer("group_size", Replicas);
  Attrs.integer("group_key", GroupKey);
  Attrs.integer("instance_key", InstanceKey);
  if (This.Gather) {
    // The kernel reads the rows at run time; [0] is what TensorFlow's own
    // callers give for an unknown shape.
    ShapeValue Shape;
    Shape.Dims.push_back(0);
    Attrs.raw("shape", encodeShapeAttr(Shape));
  } else {
    Attrs.string("merge_op", "Add");
    Attrs.string("final_op", Divide ? "Div" : "Id");
    Attrs.raw("subdiv_offsets", Offsets);
  }
  if (This.Assumed)
    Attrs.integer(AssumedAttr, *This.Assumed);
  NodeId Member =
      G->insertNode(nameOf(N, "/member"),
                    This.Gather ? "CollectiveGather" : "CollectiveReduce",
                    Source, Source.Node, Attrs);
  G->node(Member).Kind = G->node(N).Kind;
  G->node(Member).Count = Copies::PerReplica;
  G->node(Member).Flags |= NF_LocalName;
  NodeId Gate = G->insertNode(nameOf(N, "/gate"), "NoOp",
                              Endpoint{Member, ControlPort}, Member, {});
  G->node(Gate).Kind = Inserted::Gate;
  becomeIdentity(N, {Endpoint{Member, 0}, Endpoint{Gate, ControlPort}});
  if (This.Power == 0 || Divide)
    return;
  AttrRun Power;
  Power.type("T", This.Type).integer("power", This.Power);
  NodeId Scale =
      G->insertNode(nameOf(N, "/scale"), "_Scale", Endpoint{N, 0}, N, Power);
  G->replaceUses({N, 0}, {Scale, 0}, Scale);
  G->node(Scale).Kind = Inserted::Scale;
  G->node(Scale).Count = Copies::PerReplica;
}

PassResult InsertCollectives::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  StringRef How = option("reduction");
  if (How != "auto" && How != "add" && How != "collective") {
    Diags.error("", "unknown reduction '" + How.str() +
                        "'; use auto, add or collective");
    return PassResult::Failure;
  }
  Mesh Devices = readMesh(*G);
  Replicas = Devices.replicas();
  PerOp Exchanges(*G, [](StringRef Op, const OpDef *) {
    return Op == "_Reduce" || Op == "_Gather";
  });
  std::vector<NodeId> Found;
  for (NodeId N = 0; N < G->size(); ++N)
    if (Exchanges[G->node(N)] && G->isLive(N))
      Found.push_back(N);
  if (Found.empty())
    return PassResult::Unchanged;
  // Adding needs nothing of the servers of several tasks.
  bool Adds = areOfSeveralTasks(Devices.Devices) ||
              all_of(Devices.Devices, [](const std::string &D) {
                return StringRef(D).contains_insensitive("cpu:");
              });
  bool Add = How == "add" || (How == "auto" && Adds);
  llvm::sort(Found,
             [&](NodeId A, NodeId B) { return G->name(A) < G->name(B); });
  int64_t InstanceKey = 1;
  LastAttrs = Stripped = {};
  Offsets = encodeIntListAttr(int64_t(0));
  for (NodeId N : Found) {
    read(N);
    // What is computed once is no collective: its result is in one place.
    if (Add || !This.HasCollective || G->node(N).Count == Copies::Once) {
      add(N);
      count(Added, "added");
    } else {
      collective(N, InstanceKey++);
      count(Collectives, "collectives");
    }
  }
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(InsertCollectives)

} // namespace graft
