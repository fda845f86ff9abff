//===- lib/infer/batch/SampledRows.cpp - rows of the batch and others -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A loss with sampled classes looks up the weights of the labels and those of
// the sampled classes in one go, and takes the two apart again:
//
//     all = ConcatV2(labels, sampled)    [B + S]
//     rows = GatherV2(w, all)            [B + S, d]
//     true = Slice(rows, 0, B), others = Slice(rows, B, -1)
//
// What is as long as the batch and some more cannot be split. So all of this
// exists once, for the whole batch, with the sizes that it takes and with the
// gradient of the lookup. The sampler does so too: the classes that it draws
// are those of the whole batch. The rows that are the batch are split; what is
// computed of them, and of the others, is per-replica as ever.
//
//     all = ConcatV2(_FromReplicas(labels), sampled)
//     true/split = _ToReplicas(true)
//
// Nothing here has to be right for a result to be: what exists once reads true
// values, or merge-fetches says that it does not.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/SampledRows.h"
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
  Measures,   ///< Gives sizes of a tensor.
  Calculates, ///< Gives sizes when it reads sizes.
  Is,         ///< Number, without inputs.
  Pads,
  Carries, ///< Rows, as those that calculate and join do.
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
  SmallVector<NodeId, 2> Roots; ///< What joins.
  SmallVector<NodeId, 2> Samplers;
  SetVector<NodeId> Once;
  SetVector<NodeId> Sizes;       ///< Those of Once that others take sizes from.
  SmallVector<Endpoint, 4> Rows; ///< To be split.
  DenseMap<NodeId, bool> Padded;
  DenseMap<std::pair<NodeId, uint32_t>, Endpoint> Merged;
};

/// Samplers, and what joins indices that are looked up.
void SampledRows::findRoots() {
  SetVector<NodeId> Found;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (G.node(N).isDead())
      continue;
    if (role(N) == Role::Samples)
      Samplers.push_back(N);
    if (role(N) != Role::LooksUp || !Joins)
      continue;
    NodeId From = G.input(N, 1).Node;
    while (G.isOp(From, op::Identity) || G.isOp(From, op::Cast))
      From = G.input(From, 0).Node;
    if (role(From) == Role::Joins)
      Found.insert(From);
  }
  Roots = Found.takeVector();
}

/// Whether \p N joins vectors along axis 0: those of the batch and others.
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

/// Marks \p Root and what is made of it, up to its parts.
void SampledRows::follow(NodeId Root) {
  SmallVector<NodeId, 16> Work{Root};
  while (!Work.empty()) {
    NodeId N = Work.pop_back_val();
    if (Vars.isUpdate(G, N) || G.opDef(N) == nullptr || !Once.insert(N))
      continue;
    // A number that sums up, such as a norm, is what anyone may read.
    auto Shape = Dims->shape({N, 0});
    if (Shape && Shape->empty() && isFloating(G.outputType(N, 0)))
      continue;
    bool IsPart = role(N) == Role::TakesPart && !Dims->value({N, 0});
    for (unsigned Port = 0; IsPart && Port < Dims->numOutputs(N); ++Port)
      if (Dims->batchAxis({N, Port}) == 0)
        Rows.push_back({N, Port});
    if (IsPart)
      continue;
    G.forEachUse(N, [&](Use U) {
      if (U.Index < G.node(U.User).NumData)
        Work.push_back(U.User);
    });
  }
}

/// Marks what leads from the gradients of parts, which are padded with zeros to
/// the rows of all parts, to \p N. False if there is no such thing.
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

/// Marks the gradients that go with indices that are marked.
void SampledRows::takeGradients() {
  // More are marked meanwhile.
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

/// Whether \p N gives nothing but sizes, \p OfBatch among them. What is in
/// \p Seen was asked before.
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

/// Marks what gives sizes of the batch to what is marked. False if others take
/// them as well, who need those of a replica.
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

/// All rows of \p E, of which each replica has some.
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
  // What measures, or joins, the rows of the batch reads those of all replicas.
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
