//===- passes/PlaceDraws.cpp - place-draws ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Decides which replicas draw random numbers. If a sample has a row for each
// example, every replica draws the rows of its shard. Stateful ops draw
// different numbers on each replica anyway. But a stateless op is a function of
// its seed. The pass adds the replica index to the seed, so that replicas draw
// different numbers:
//
//     d = StatelessRandomUniform*(shape, seed)
//   →
//     i = _ToReplicas(Range(0, N, 1)) axis=0
//     d = StatelessRandomUniform*(shape, AddV2*(seed, i))
//
// A sample without such rows (the offset of a crop, the noise of a schedule) is
// the same for the whole batch. If a per-replica random op reads global values
// only, it becomes unreplicated, with the seed of the input:
//
//     d = RandomUniform*(Shape*(w))     →     d = RandomUniform(Shape*(w))
//
// In a loop of version 1 such an op stays per-replica: an unreplicated op would
// not be in the loop's frame.
//
// Relies on: lib/infer/types/Types.h, whose rule for random ops expects both
// edits.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/PerOp.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/io/Module.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "lib/program/forms/SeedOffset.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

class PlaceDraws final : public PassBase<PlaceDraws> {
public:
  static constexpr PassInfo Info = {
      "place-draws", "Decide on which replicas random ops draw",
      "Gives stateless random ops a different seed on each replica where they\n"
      "draw for rows of the batch, and makes draws for the whole batch\n"
      "unreplicated."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  Endpoint replicaIndex(unsigned Type);
  Endpoint add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
               const AttrRun &Attrs, Copies Count);
  void offsetSeed(NodeId N, unsigned Index);

  Graph *G = nullptr;
  unsigned Replicas = 1;
  NodeId MeshNode = NoNode;
  std::vector<std::pair<unsigned, Endpoint>> Indices; ///< By type.
};

Endpoint PlaceDraws::add(const Twine &Name, StringRef Op,
                         ArrayRef<Endpoint> Inputs, const AttrRun &Attrs,
                         Copies Count) {
  NodeId N = G->insertNode(
      Name.str(), Op, Inputs, MeshNode, Attrs,
      Op == ToReplicasOp ? Inserted::Split : Inserted::Definition, Count);
  return {N, 0};
}

/// Returns the number of the replica, as a vector of one element.
Endpoint PlaceDraws::replicaIndex(unsigned Type) {
  for (auto &[Known, Index] : Indices)
    if (Known == Type)
      return Index;
  // Not every Range kernel supports unsigned types.
  if (Type != DT_INT32 && Type != DT_INT64) {
    AttrRun Attrs;
    Attrs.type("SrcT", DT_INT64).type("DstT", Type).boolean("Truncate", false);
    Endpoint Index = add("graft/replica_index_cast", op::Cast,
                         replicaIndex(DT_INT64), Attrs, Copies::PerReplica);
    Indices.push_back({Type, Index});
    return Index;
  }
  auto Number = [&](const Twine &Name, int64_t Value) {
    AttrRun Attrs;
    Attrs.type("dtype", Type).raw("value", encodeIntTensor(Type, {}, Value));
    return add(Name, op::Const, {}, Attrs, Copies::Once);
  };
  Endpoint Bounds[] = {Number("graft/replicas/start", 0),
                       Number("graft/replicas/limit", Replicas),
                       Number("graft/replicas/delta", 1)};
  Endpoint All = add("graft/replicas", op::Range, Bounds,
                     AttrRun().type("Tidx", Type), Copies::Once);
  Endpoint Index =
      add("graft/replica_index", ToReplicasOp, All,
          AttrRun().type("T", Type).integer("axis", 0), Copies::PerReplica);
  Indices.push_back({Type, Index});
  return Index;
}

void PlaceDraws::offsetSeed(NodeId N, unsigned Index) {
  Endpoint Seed = G->input(N, Index);
  unsigned Type = G->outputType(Seed);
  Endpoint Offset = replicaIndex(Type);
  Endpoint Own = add(G->name(N) + "/seed", op::AddV2, {Seed, Offset},
                     AttrRun().type("T", Type), Copies::PerReplica);
  G->node(Own.Node).Device = G->node(N).Device;
  G->node(Own.Node).After = N;
  G->setInput(N, Index, Own);
  ++Statistics["seeds of replicas"];
}

PassResult PlaceDraws::run(Module &M, DiagnosticEngine &) {
  G = &M.graph();
  enum : uint8_t { Other, Stateful, Seeded };
  bool Loops = false;
  PerOp Roles(*G, [&](StringRef Op, const OpDef *) {
    Loops |= Op == op::Enter || Op == op::RefEnter;
    return !isRandomOp(Op) ? Other : isSeededDraw(Op) ? Seeded : Stateful;
  });
  if (!Roles.any())
    return PassResult::Unchanged;
  Mesh Devices = readMesh(*G);
  Replicas = Devices.replicas();
  MeshNode = Devices.Node;
  if (Replicas < 2)
    return PassResult::Unchanged;
  SmallVector<NodeId, 16> Draws;
  for (NodeId N = 0; N < G->size(); ++N)
    if (Roles[G->node(N)] != Other && G->isLive(N) && G->node(N).NumData != 0 &&
        G->isPerReplica(N))
      Draws.push_back(N);
  if (Draws.empty())
    return PassResult::Unchanged;
  ProgramFacts &Facts = programFacts(M);
  bool Changed = false;
  SmallVector<NodeId, 4> Rows;
  for (NodeId N : Draws) {
    // All inputs are global values, and none has a per-replica size.
    if (all_of(G->dataInputs(N),
               [&](Endpoint E) { return Facts.Types.type(E).isTrue(); })) {
      if (Roles[G->node(N)] == Stateful && !Loops) {
        G->node(N).Count = Copies::Once;
        G->markModified();
        ++Statistics["drawn once"];
        Changed = true;
      }
    } else if (Roles[G->node(N)] == Seeded) {
      Rows.push_back(N);
    }
  }
  for (NodeId N : Rows) {
    offsetSeed(N, drawOperands(G->opName(N)).Seed);
    Changed = true;
  }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(PlaceDraws)

} // namespace graft
