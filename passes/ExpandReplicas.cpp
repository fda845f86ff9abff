//===- passes/ExpandReplicas.cpp - expand-replicas --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The lowering for in-graph replication, always the last pass: writes N copies
// of every per-replica node, replica i's on device i.
//
//     x/split = _ToReplicas(x)        x/split = Split(dim, x) num_split=2
//     y = MatMul*(x/split, w)    →    y = MatMul(x/split, w) @.../CPU:0
//                                     replica_1/y = MatMul(x/split:1,
//                                     w/replica_1)
//
// Nothing is cloned in memory: the program stays as it is, and the writer
// multiplies it (lib/lower/expand/Expand.h).
//
// Relies on: a finished program, which check-replication proves.
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"
#include "lib/lower/expand/Contexts.h"
#include "lib/lower/expand/Expand.h"
#include "lib/ops/ProgramOps.h"
#include "lib/pass/Pass.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class ExpandReplicas final : public PassBase<ExpandReplicas> {
public:
  static constexpr PassInfo Info = {
      "expand-replicas", "Write N copies of every per-replica node",
      "Lowers the program to a plain TensorFlow graph with one copy of each\n"
      "per-replica node on each device of the mesh."};

  Effect effect() const override { return Effect::Lowers; }
  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

/// Returns true if \p N is a node of the program that forwards its input.
static bool passesOn(const Graph &G, NodeId N) {
  return G.node(N).Flags & NF_ElidePrimary || G.isOp(N, ToReplicasOp) ||
         G.isOp(N, FromReplicasOp) || G.isOp(N, ScaleOp);
}

/// Returns true if the chain of forwarding nodes from \p N ends at a node that
/// is written. A cycle of forwarding nodes has no end.
static bool isGrounded(const Graph &G, NodeId N) {
  for (NodeId Steps = 0; Steps < G.size(); ++Steps) {
    if (!passesOn(G, N))
      return true;
    if (G.dataInputs(N).empty())
      return false;
    if (!(G.node(N).Flags & NF_ElidePrimary))
      return true;
    N = G.input(N, 0).Node;
  }
  return false;
}

/// Returns the source of the inserted node \p N if the type of \p N is not
/// known.
static std::optional<Endpoint> untypedSource(const Graph &G, NodeId N) {
  const Node &This = G.node(N);
  if (This.Kind == Inserted::No || This.Flags & NF_ElidePrimary ||
      This.NumData == 0 || G.typeAttr(N, "T") != DT_INVALID)
    return std::nullopt;
  return G.input(N, 0);
}

PassResult ExpandReplicas::run(Module &M, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  Mesh Devices = readMesh(G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  if (Devices.Devices.empty()) {
    Diags.error(G.name(Devices.Node), "has no devices");
    return PassResult::Failure;
  }
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    if (G.isOp(N, ReduceOp) || G.isOp(N, GatherOp)) {
      Diags.error(G.name(N), "is a reduction that is not lowered; run "
                             "insert-collectives before expand-replicas");
      return PassResult::Failure;
    }
    if (auto E = untypedSource(G, N)) {
      Diags.error(
          originName(G, E->Node),
          formatv("the type of output {0} of op {1} is not known, so it cannot "
                  "be sent between replicas, or to an unreplicated node",
                  E->Port, G.opName(E->Node))
              .str());
      return PassResult::Failure;
    }
    if (!isGrounded(G, N)) {
      Diags.error(G.name(N), "forwards its input but has no input");
      return PassResult::Failure;
    }
    if (G.isPerReplica(N) || G.isOp(N, FromReplicasOp))
      continue;
    for (Endpoint E : G.dataInputs(N))
      if (G.isPerReplica(E.Node)) {
        Diags.error(G.name(N), "is unreplicated but reads '" +
                                   G.name(E.Node).str() +
                                   "', which is per-replica; run merge-fetches "
                                   "before expand-replicas");
        return PassResult::Failure;
      }
  }
  M.Lowered = std::make_unique<ReplicaExpander>(G, Devices);
  lowerContexts(M);
  Statistics["replicas"] = Devices.replicas();
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(ExpandReplicas)

} // namespace graft
