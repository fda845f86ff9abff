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
// Inside one process adding is cheaper on CPUs, runs in any order and cannot
// hang; `auto` uses it there and collectives on other devices. The gate makes
// whatever reaches one member run all of them: a collective of which a run
// holds only a part blocks for ever. Keys follow the order of names, so they do
// not depend on the order of nodes.
//
// Relies on: shapes that are equal on all replicas, which the types prove.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

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
  void becomeIdentity(NodeId N, ArrayRef<Endpoint> Inputs);
  void add(NodeId N);
  void collective(NodeId N, int64_t InstanceKey);
  bool hasCollective(NodeId N) const;

  Graph *G = nullptr;
  unsigned Replicas = 0;
};

/// Types that the CPU kernels of the collectives take.
bool InsertCollectives::hasCollective(NodeId N) const {
  unsigned Type = G->typeAttr(N, "T").value_or(DT_INVALID);
  bool Common = Type == DT_FLOAT || Type == DT_DOUBLE || Type == DT_HALF ||
                Type == DT_INT32 || Type == DT_INT64;
  if (G->isOp(N, "_Gather"))
    return Common && G->intAttr(N, "axis").value_or(0) == 0;
  return (Common || Type == DT_BFLOAT16) &&
         G->stringAttr(N, "combine") == StringRef("sum");
}

/// The reduction's node stays, as what its users read.
void InsertCollectives::becomeIdentity(NodeId N, ArrayRef<Endpoint> Inputs) {
  for (StringRef Key : {"combine", "power", "axis"})
    G->removeAttr(N, Key);
  G->removeAttr(N, AssumedAttr);
  G->setOp(N, "Identity");
  G->setInputs(N, Inputs);
}

void InsertCollectives::add(NodeId N) {
  bool Gather = G->isOp(N, "_Gather");
  Inserted Kind = G->node(N).Kind;
  Endpoint Source = G->input(N, 0);
  unsigned Type = G->typeAttr(N, "T").value_or(DT_INVALID);
  std::string Name = G->name(N).str();
  int64_t Power = G->intAttr(N, "power").value_or(0);
  NodeId All = G->addNode(G->uniqueName(Name + "/all"), "_FromReplicas", Source,
                          Source.Node);
  G->setTypeAttr(All, "T", Type);
  G->setStringAttr(All, "combine",
                   Gather ? StringRef("concat") : *G->stringAttr(N, "combine"));
  if (Gather)
    G->setIntAttr(All, "axis", G->intAttr(N, "axis").value_or(0));
  if (G->boolAttr(N, AssumedAttr).value_or(false))
    G->setBoolAttr(All, AssumedAttr, true);
  G->node(All).Kind = Kind;
  NodeId Result = All;
  if (Power != 0) {
    Result = G->addNode(G->uniqueName(Name + "/scale"), "_Scale",
                        Endpoint{All, 0}, All);
    G->setTypeAttr(Result, "T", Type);
    G->setIntAttr(Result, "power", Power);
    G->node(Result).Kind = Inserted::Scale;
  }
  becomeIdentity(N, Endpoint{Result, 0});
}

void InsertCollectives::collective(NodeId N, int64_t InstanceKey) {
  bool Gather = G->isOp(N, "_Gather");
  Endpoint Source = G->input(N, 0);
  unsigned Type = G->typeAttr(N, "T").value_or(DT_INVALID);
  std::string Name = G->name(N).str();
  int64_t Power = G->intAttr(N, "power").value_or(0);
  bool Divide = !Gather && Power == -1 && isFloating(Type);
  NodeId Member = G->addNode(G->uniqueName(Name + "/member"),
                             Gather ? "CollectiveGather" : "CollectiveReduce",
                             Source, Source.Node);
  G->setTypeAttr(Member, "T", Type);
  G->setIntAttr(Member, "group_size", Replicas);
  G->setIntAttr(Member, "group_key", GroupKey);
  G->setIntAttr(Member, "instance_key", InstanceKey);
  if (Gather) {
    // The kernel reads the rows at run time; [0] is what TensorFlow's own
    // callers give for an unknown shape.
    ShapeValue Shape;
    Shape.Dims.push_back(0);
    G->setAttr(Member, "shape", encodeShapeAttr(Shape));
  } else {
    G->setStringAttr(Member, "merge_op", "Add");
    G->setStringAttr(Member, "final_op", Divide ? "Div" : "Id");
    G->setAttr(Member, "subdiv_offsets", encodeIntListAttr(int64_t(0)));
  }
  if (G->boolAttr(N, AssumedAttr).value_or(false))
    G->setBoolAttr(Member, AssumedAttr, true);
  G->node(Member).Kind = G->node(N).Kind;
  G->node(Member).Count = Copies::PerReplica;
  G->node(Member).Flags |= NF_LocalName;
  NodeId Gate = G->addNode(G->uniqueName(Name + "/gate"), "NoOp",
                           Endpoint{Member, ControlPort}, Member);
  G->node(Gate).Kind = Inserted::Gate;
  becomeIdentity(N, {Endpoint{Member, 0}, Endpoint{Gate, ControlPort}});
  if (Power == 0 || Divide)
    return;
  NodeId Scale = G->addNode(G->uniqueName(Name + "/scale"), "_Scale", {}, N);
  G->replaceUses({N, 0}, {Scale, 0});
  G->setInputs(Scale, Endpoint{N, 0});
  G->setTypeAttr(Scale, "T", Type);
  G->setIntAttr(Scale, "power", Power);
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
  SmallVector<NodeId, 16> Found;
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && (G->isOp(N, "_Reduce") || G->isOp(N, "_Gather")))
      Found.push_back(N);
  if (Found.empty())
    return PassResult::Unchanged;
  bool OnCpu = all_of(Devices.Devices, [](const std::string &D) {
    return StringRef(D).contains_insensitive("cpu:");
  });
  bool Add = How == "add" || (How == "auto" && OnCpu);
  llvm::sort(Found,
             [&](NodeId A, NodeId B) { return G->name(A) < G->name(B); });
  int64_t InstanceKey = 1;
  for (NodeId N : Found) {
    // What is computed once is no collective: its result is in one place.
    if (Add || !hasCollective(N) || G->node(N).Count == Copies::Once) {
      add(N);
      ++Statistics["added"];
    } else {
      collective(N, InstanceKey++);
      ++Statistics["collectives"];
    }
  }
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(InsertCollectives)

} // namespace graft
