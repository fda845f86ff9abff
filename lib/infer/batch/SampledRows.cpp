//===- lib/infer/batch/SampledRows.cpp - rows of the batch and others -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A loss with sampled classes looks up the weights of the labels and of the
// sampled classes by one op, and then slices the result:
//
//     all = ConcatV2(labels, sampled)    [B + S]
//     rows = GatherV2(w, all)            [B + S, d]
//     true = Slice(rows, 0, B), others = Slice(rows, B, -1)
//
// The concatenation has more rows than the batch, so it cannot be split.
// Therefore these nodes, the nodes that compute their sizes, and the gradient
// of the lookup are unreplicated and work on the whole batch. The sampler is
// unreplicated because it samples classes for the whole batch. The slice that
// holds the rows of the batch is split. Users of the slices stay per-replica.
//
//     all = ConcatV2(_FromReplicas(labels), sampled)
//     true/split = _ToReplicas(true)
//
// Correctness does not rely on these choices: if an unreplicated node cannot
// read a global value, the pass merge-fetches reports it.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/SampledRows.h"
#include "lib/graph/Walk.h"
#include "lib/ops/ProgramOps.h"

#include "lib/graph/AttrRun.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {
namespace {

enum class Role : uint8_t {
  Other,
  Samples,
  LooksUp,
  Joins,
  TakesPart,
  Measures,   ///< Returns sizes of a tensor.
  Calculates, ///< Computes sizes if all inputs are sizes.
  Is,         ///< A constant.
  Pads,
  /// Computes rows from rows. Ops that are Calculates or Joins do so, too.
  Carries,
};

Role roleOf(StringRef Op) {
  if (Op.ends_with("CandidateSampler"))
    return Role::Samples;
  return StringSwitch<Role>(Op)
      .Cases(op::Gather, op::GatherV2, op::ResourceGather, Role::LooksUp)
      .Case(op::ConcatV2, Role::Joins)
      .Cases(op::Slice, op::StridedSlice, op::Split, op::SplitV,
             Role::TakesPart)
      .Cases(op::Shape, op::ShapeN, op::Size, op::VariableShape, Role::Measures)
      .Cases(op::Pack, op::Reshape, op::ExpandDims, op::Squeeze, op::Cast,
             op::Identity, Role::Calculates)
      .Cases(op::Add, op::AddV2, op::Sub, op::Mul, op::FloorDiv, op::Maximum,
             op::Minimum, Role::Calculates)
      .Case(op::Prod, Role::Calculates)
      .Case(op::Const, Role::Is)
      .Case(op::Pad, Role::Pads)
      .Cases(op::AddN, op::Neg, op::RealDiv, Role::Carries)
      .Default(Role::Other);
}

class SampledRows {
public:
  SampledRows(Graph &G, const VariableIndex &Vars,
              function_ref<void(Endpoint)> Split)
      : G(G), Vars(Vars), Split(Split) {
    for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
      Roles.push_back(roleOf(G.opNameOf(Op)));
      Samples |= Roles.back() == Role::Samples;
      LooksUp |= Roles.back() == Role::LooksUp;
      Joins |= Roles.back() == Role::Joins;
    }
  }
  void run();

private:
  Role role(NodeId N) const { return Roles[G.node(N).Op]; }
  void findRoots();
  bool joinsOthers(NodeId N) const;
  bool isOnce(NodeId N) const { return Once.contains(N); }
  void follow(NodeId N);
  void takeGradients();
  bool carriesPadded(NodeId N, unsigned Depth);
  bool isSize(NodeId N, DenseSet<NodeId> &Seen, bool &OfBatch);
  bool takeSizes();
  Endpoint whole(Endpoint E);
  void keep();

  Graph &G;
  const VariableIndex &Vars;
  function_ref<void(Endpoint)> Split;
  std::vector<Role> Roles; ///< By op.
  bool Samples = false, LooksUp = false, Joins = false;
  std::optional<DimAnalysis> Dims;
  SmallVector<NodeId, 2> Roots; ///< Nodes that concatenate indices.
  SmallVector<NodeId, 2> Samplers;
  SetVector<NodeId> Once;
  SetVector<NodeId> Sizes;       ///< The nodes of Once that compute sizes.
  SmallVector<Endpoint, 4> Rows; ///< The tensors to split.
  DenseMap<NodeId, bool> Padded;
  DenseMap<std::pair<NodeId, uint32_t>, Endpoint> Merged;
};

/// Finds the samplers, and the nodes that concatenate indices for lookups.
void SampledRows::findRoots() {
  SetVector<NodeId> Found;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (G.node(N).isDead())
      continue;
    if (role(N) == Role::Samples)
      Samplers.push_back(N);
    if (role(N) != Role::LooksUp || !Joins)
      continue;
    NodeId From = through(G, G.input(N, 1), op::Identity, op::Cast).Node;
    if (role(From) == Role::Joins)
      Found.insert(From);
  }
  Roots = Found.takeVector();
}

/// Returns true if \p N concatenates vectors along axis 0, and only some of
/// them have rows of the batch.
bool SampledRows::joinsOthers(NodeId N) const {
  unsigned Count = G.node(N).NumData - 1;
  auto Axis = Dims->numbers(G.input(N, Count));
  if (!Axis || Axis->size() != 1 || ((*Axis)[0] != 0 && (*Axis)[0] != -1))
    return false;
  bool Any = false, Others = false;
  for (unsigned I = 0; I < Count; ++I) {
    auto Shape = Dims->shape(G.input(N, I));
    if (!Shape || Shape->size() != 1)
      return false;
    (Dims->batchAxis(G.input(N, I)) == 0 ? Any : Others) = true;
  }
  return Any && Others;
}

/// Marks \p Root and its direct and indirect users, up to the slices of its
/// parts.
void SampledRows::follow(NodeId Root) {
  DenseSet<NodeId> Seen;
  walkFrom({Root}, Seen, [&](NodeId N, std::vector<NodeId> &Next) {
    if (Vars.isUpdate(G, N) || G.opDef(N) == nullptr || !Once.insert(N))
      return;
    // A real scalar is a sum over rows, such as a norm. Its users are not
    // marked.
    auto Shape = Dims->shape({N, 0});
    if (Shape && Shape->empty() && isFloating(G.outputType(N, 0)))
      return;
    bool IsPart = role(N) == Role::TakesPart && !Dims->value({N, 0});
    for (unsigned Port = 0; IsPart && Port < Dims->numOutputs(N); ++Port)
      if (Dims->batchAxis({N, Port}) == 0)
        Rows.push_back({N, Port});
    if (IsPart)
      return;
    G.forEachUse(N, [&](Use U) {
      if (U.Index < G.node(U.User).NumData)
        Next.push_back(U.User);
    });
  });
}

/// Marks \p N and the nodes before it, back to the Pad ops. Each Pad extends
/// the gradient of a part by zeros to the rows of all parts. Returns false if
/// \p N depends on no Pad.
bool SampledRows::carriesPadded(NodeId N, unsigned Depth) {
  auto [It, New] = Padded.try_emplace(N, false);
  if (!New || Depth > 16)
    return It->second;
  Role Is = role(N);
  bool Any = Is == Role::Pads;
  if ((Is == Role::Carries || Is == Role::Calculates || Is == Role::Joins) &&
      isFloating(G.outputType(N, 0)))
    for (Endpoint E : G.dataInputs(N))
      Any |= carriesPadded(E.Node, Depth + 1);
  if (Any)
    Once.insert(N);
  return Padded[N] = Any;
}

/// Marks the nodes that compute gradients for marked indices.
void SampledRows::takeGradients() {
  // The loop adds nodes to Once.
  size_t Next = 0;
  while (Next < Once.size()) {
    NodeId N = Once[Next++];
    if (G.opName(N).starts_with("UnsortedSegment") &&
        isOnce(G.input(N, 1).Node))
      carriesPadded(G.input(N, 0).Node, 0);
    G.forEachUse(N, [&](Use U) {
      UpdateDef Update = Vars.update(G, U.User);
      if (Update.Kind == UpdateKind::None || int(U.Index) != Update.Indices)
        return;
      for (Endpoint E : G.dataInputs(U.User).drop_front(Update.NumVars))
        carriesPadded(E.Node, 0);
    });
  }
}

/// Returns true if \p N computes only sizes. Sets \p OfBatch if a size is a
/// batch size. \p Seen are the visited nodes.
bool SampledRows::isSize(NodeId N, DenseSet<NodeId> &Seen, bool &OfBatch) {
  if (!Seen.insert(N).second)
    return true;
  switch (role(N)) {
  case Role::Is:
    return true;
  case Role::Measures:
    for (Endpoint E : G.dataInputs(N))
      OfBatch |= Dims->batchAxis(E) >= 0;
    return true;
  case Role::Joins:
  case Role::TakesPart:
  case Role::Calculates:
    if (isOnce(N)) {
      OfBatch = true;
      return true;
    }
    if (unsigned Type = G.outputType(N, 0);
        Type != DT_INT32 && Type != DT_INT64)
      return false;
    for (Endpoint E : G.dataInputs(N))
      if (!isSize(E.Node, Seen, OfBatch))
        return false;
    return true;
  default:
    return false;
  }
}

/// Marks the nodes that compute batch sizes for marked nodes. Returns false if
/// an unmarked node uses these sizes, because it needs per-replica sizes.
bool SampledRows::takeSizes() {
  for (size_t I = 0; I < Once.size(); ++I)
    for (Endpoint E : G.dataInputs(Once[I])) {
      DenseSet<NodeId> Seen;
      bool OfBatch = false;
      if (isOnce(E.Node) || role(E.Node) == Role::Is ||
          !isSize(E.Node, Seen, OfBatch) || !OfBatch)
        continue;
      Once.insert(E.Node);
      Sizes.insert(E.Node);
    }
  return none_of(Sizes, [&](NodeId N) {
    return G.anyUse(N, [&](Use U) {
      return U.Index < G.node(U.User).NumData && !isOnce(U.User);
    });
  });
}

/// Returns the global value of \p E, of which each replica has a shard.
Endpoint SampledRows::whole(Endpoint E) {
  if (G.node(E.Node).Kind == Inserted::Split)
    return G.input(E.Node, 0);
  auto [It, New] = Merged.try_emplace({E.Node, E.Port});
  if (!New)
    return It->second;
  AttrRun Attrs;
  Attrs.type("T", G.outputType(E.Node, E.Port))
      .string(CombineAttr, "concat")
      .integer("axis", Dims->batchAxis(E));
  NodeId N = G.insertNode((G.name(E.Node) + "/merged").str(), FromReplicasOp, E,
                          E.Node, Attrs);
  G.node(N).Kind = Inserted::Merge;
  return It->second = {N, 0};
}

void SampledRows::keep() {
  // Nodes that measure, concatenate or sample rows of the batch read the rows
  // of all replicas.
  SmallVector<std::tuple<NodeId, unsigned, Endpoint>, 8> Reads;
  for (NodeId N : Once) {
    bool ReadsRows = role(N) == Role::Joins || role(N) == Role::Samples ||
                     role(N) == Role::Measures;
    for (unsigned I = 0; I < G.node(N).NumData; ++I) {
      Endpoint E = G.input(N, I);
      if (isOnce(E.Node))
        Reads.push_back({N, I, E});
      else if (ReadsRows && Dims->batchAxis(E) >= 0)
        Reads.push_back({N, I, whole(E)});
    }
    G.setBoolAttr(N, OnceAttr, true);
  }
  for (Endpoint E : Rows)
    Split(E);
  for (auto [N, I, E] : Reads)
    G.setInput(N, I, E);
}

void SampledRows::run() {
  if (!Samples && !(LooksUp && Joins))
    return;
  findRoots();
  if (Samplers.empty() && Roots.empty())
    return;
  DimOptions Options;
  Options.Unpatched = true;
  std::vector<NodeId> Order = topologicalOrder(G);
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  Dims.emplace(G, Order, Options);
  auto IsInside = [&](NodeId N) { return Loops && Loops->isInLoop(N); };
  for (NodeId N : Roots)
    if (!IsInside(N) && joinsOthers(N))
      follow(N);
  takeGradients();
  if (any_of(Once, IsInside) || !takeSizes()) {
    Once.clear();
    Rows.clear();
  }
  for (NodeId N : Samplers)
    if (!IsInside(N) && Dims->batchAxis(G.input(N, 0)) == 0) {
      Once.insert(N);
      Rows.push_back({N, 1});
    }
  keep();
}

} // namespace

void keepSampledOnce(Graph &G, const VariableIndex &Vars,
                     function_ref<void(Endpoint)> Split) {
  SampledRows(G, Vars, Split).run();
}

} // namespace graft
