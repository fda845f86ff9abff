//===- passes/MergeFetches.cpp - merge-fetches ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Merges each local value that is used outside of the replicas into its global
// value, which gets the original name. This holds for fetches, results that no
// node reads, and inputs of unreplicated ops.
//
//     loss = Mean*(x/split, i)         replica/loss = Mean*(x/split, i)
//     ScalarSummary(tag, loss)    →    loss/merged =
//                                          _FromReplicas(replica/loss)
//                                      loss = _Scale(loss/merged) power=-1
//                                      ScalarSummary(tag, loss)
//
// Replicated values are read from replica 0, partial values are combined, and
// sharded rows are concatenated. A node whose local value is not the global one
// loses its name: copy i is `replica_<i>/<name>`, so that a fetch of an
// undeclared name fails instead of returning a shard.
//
// lib/rewrite/Fetches.h finds the fetched tensors. The file is long because
// values and names move together: which node gets a name depends on all merges.
//
// Relies on: replication types; the reductions of insert-reductions.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/rewrite/Fetches.h"
#include "lib/rewrite/Merges.h"
#include "lib/rewrite/ReducedWrites.h"
#include "passes/Options.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

class MergeFetches final : public PassBase<MergeFetches, MergeFetchesOptions> {
public:
  static constexpr PassInfo Info = {
      "merge-fetches", "Give fetches and unreplicated ops the global value",
      "Inserts `_FromReplicas` wherever a value leaves the replicas and moves\n"
      "the original name to the merged value."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool hasNoValue(Endpoint E, ReplicationType Type) const;
  bool mergeForOnce(const Fetches &Found);
  bool mergeFetched(const Fetches &Found);
  bool usesSplitFeed(const Fetches &Found) const;
  bool nameLocals(const Fetches &Found, NodeId End);
  void warnLost(NodeId N);
  bool isGlobalName(NodeId N) const;
  Endpoint merge(Endpoint E, bool Picked);
  void nameMerged(NodeId N);
  void refuseVarying(Endpoint E, StringRef What);
  bool refuseWithoutValue(Endpoint E, NodeId User);

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  const ProgramFacts *Facts = nullptr;
  /// For lookups only, because its order is not deterministic.
  DenseMap<std::pair<NodeId, uint32_t>, Endpoint> Merged;
  std::set<NodeId> Causes; ///< Origins that a message named.
  std::string Scope;       ///< See copyScope.
  uint64_t *MergedCount = nullptr;
};

/// Warns about the unread result \p N of unknown size: it may combine a
/// constant of the whole batch's size with the rows of one replica. TensorFlow
/// then refuses to load the graph, even if \p N never runs.
void MergeFetches::warnLost(NodeId N) {
  ReplicationType Type = Facts->Types.number({N, 0});
  if (Type.Cause != NoNode && !Causes.insert(Type.Cause).second)
    return;
  Diagnostic &D = Diags->unproved(
      "size", originName(*G, N),
      "no node reads this result, and its size is not known: if constants give "
      "it the size of the whole batch, TensorFlow does not load the graph; "
      "export the graph without this node, or with an unknown batch size");
  if (Type.Cause != NoNode)
    D.Notes.push_back(
        {originName(*G, Type.Cause).str(), Facts->Types.reason(Type.Cause)});
}

/// Returns true if all outputs of copy 0 are global values.
bool MergeFetches::isGlobalName(NodeId N) const {
  for (uint32_t Port = 0; Port < Facts->Dims.numOutputs(N); ++Port)
    if (!Facts->Types.number({N, Port}).isTrue())
      return false;
  return true;
}

void MergeFetches::refuseVarying(Endpoint E, StringRef What) {
  ReplicationType Type = Facts->Types.number(E);
  bool New = Type.Cause == NoNode || Causes.insert(Type.Cause).second;
  if (hasNoAggregate(*G, *Facts, E)) {
    if (New)
      Diags->error(G->name(Type.Cause),
                   ("Could not convert from `tf.VariableAggregation` "
                    "VariableAggregation.NONE to `tf.distribute.ReduceOp` "
                    "type: " +
                    What + " reads this variable outside of the step")
                       .str());
    return;
  }
  if (!New)
    return;
  Diagnostic &D = Diags->error(
      originName(*G, E.Node),
      (What + " needs the value of the single-device step, but it is not "
              "proved how the replicas' values combine to it")
          .str());
  D.Id = "unproved";
  if (Type.Cause != NoNode)
    D.Notes.push_back(
        {originName(*G, Type.Cause).str(), Facts->Types.reason(Type.Cause)});
}

/// Returns the global value of a per-replica tensor, as an unreplicated node.
Endpoint MergeFetches::merge(Endpoint E, bool Picked) {
  auto [It, New] = Merged.try_emplace({E.Node, E.Port});
  if (!New)
    return It->second;
  ReplicationType Type = Facts->Types.number(E);
  std::string Name = originName(*G, E.Node).str();
  Endpoint Value;
  if (unsigned Blocks = Facts->Types.blocks(E))
    Value = insertBlocks(*G, E, Facts->Types.natural(E), Blocks, Name);
  else if (Type.isVarying() && hasWholeSizes(*Facts, E))
    Value = insertSizes(*G, E, *Facts->Types.sizePowers(E), Name);
  else
    Value = insertMerge(*G, E, Type, Name, Picked);
  count(MergedCount, "merged");
  return It->second = Value;
}

/// Moves the name of \p N to the merged values of its outputs.
void MergeFetches::nameMerged(NodeId N) {
  std::string Name = G->name(N).str();
  SmallVector<Endpoint, 2> Values;
  for (uint32_t Port = 0; Port < Facts->Dims.numOutputs(N); ++Port) {
    auto It = Merged.find({N, Port});
    if (It == Merged.end())
      break;
    Values.push_back(It->second);
  }
  G->setStringAttr(N, OriginAttr, Name);
  // The scope follows the name of a variable: `v/read` becomes
  // `v/replica/read`.
  size_t Split = G->node(N).NameSplit;
  if (G->node(N).Plan == Policy::Replicated || Split >= Name.size())
    Split = 0;
  std::string Local = Name;
  Local.insert(Split, Split == 0 ? Scope + "/" : "/" + Scope);
  Split += Scope.size() + (Split == 0 ? 0 : 1);
  G->node(N).Plan = Policy::None;
  G->rename(N, G->uniqueName(Local));
  G->node(N).NameSplit = static_cast<uint32_t>(Split);
  G->node(N).Flags |= NF_LocalName;
  if (Values.size() == 1 && Facts->Dims.numOutputs(N) == 1) {
    G->rename(Values[0].Node, Name);
    return;
  }
  if (Values.empty())
    return;
  NodeId All = G->addNode(Name, op::IdentityN, Values, N);
  std::string Types;
  for (Endpoint E : Values)
    Types += static_cast<char>(G->outputType(E));
  G->setAttr(All, "T", encodeTypeListAttr(Types));
  G->node(All).Kind = Inserted::Identity;
}

/// Returns true if no global value of \p E, of type \p Type, is known.
bool MergeFetches::hasNoValue(Endpoint E, ReplicationType Type) const {
  return Type.isVarying() && !hasWholeSizes(*Facts, E) &&
         Facts->Types.blocks(E) == 0 &&
         (!Facts->Types.isByPolicy(Type) || hasNoAggregate(*G, *Facts, E));
}

/// Refuses \p E, an input of \p User, if it has no global value.
bool MergeFetches::refuseWithoutValue(Endpoint E, NodeId User) {
  bool Refused = hasNoValue(E, Facts->Types.number(E));
  if (Refused)
    refuseVarying(E, ("'" + G->name(User) + "'").str());
  return Refused;
}

/// Merges per-replica inputs of unreplicated ops. Returns true if there were
/// any.
bool MergeFetches::mergeForOnce(const Fetches &Found) {
  bool Any = false;
  for (NodeId User : Facts->Order) {
    // An Assert has no output to merge, but it could fail on one replica
    // although it does not fail on a single device.
    if (G->isPerReplica(User) && G->isOp(User, op::Assert))
      refuseWithoutValue(G->input(User, 0), User);
    if (G->isPerReplica(User) || combinesReplicas(*G, User))
      continue;
    for (unsigned I = 0; I < G->node(User).NumData; ++I) {
      Endpoint E = G->input(User, I);
      if (!G->isPerReplica(E.Node))
        continue;
      if (refuseWithoutValue(E, User))
        continue;
      ReplicationType Type = Facts->Types.number(E);
      if (Diags->wantsRemarks() && Facts->Vars.isUpdate(*G, User) &&
          Type.isPartial())
        Diags
            ->remark("reduction", originName(*G, E.Node),
                     formatv("{0} is reduced: {1} over the replicas, for '{2}'",
                             Type.str(), Type.K == 1 ? "mean" : "sum",
                             G->name(User)))
            .Facts = {
            {"type", Type.str()},
            {"scale", int64_t(-Type.K)},
            {"for", G->name(User).str()},
            {"variables",
             originNames(*G, variablesWritten(*G, Facts->Vars, User))}};
      G->setInput(User, I, merge(E, Found.isPicked(E)));
      Any = true;
    }
  }
  return Any;
}

/// Merges fetches. Returns true if there were any.
bool MergeFetches::mergeFetched(const Fetches &Found) {
  bool Any = false;
  for (const auto &[Tensor, Named] : Found.tensors()) {
    Endpoint E{Tensor.first, Tensor.second};
    if (!G->isPerReplica(E.Node))
      continue;
    ReplicationType Type = Facts->Types.number(E);
    bool Picked = Found.isPicked(E);
    if (Facts->Vars.variableOf(E) != NoNode || (Type.isTrue() && !Picked))
      continue;
    if (hasNoValue(E, Type)) {
      // Only a fetch that the user named, or a fetch of a variable without
      // aggregation, must have a global value.
      if (Named || hasNoAggregate(*G, *Facts, E))
        refuseVarying(E, "this fetch");
      continue;
    }
    merge(E, Picked);
    if (!Type.isVarying() && Diags->wantsRemarks())
      Diags->remark("fetch", G->name(E.Node), Type.str() + " is merged");
    Any = true;
  }
  return Any;
}

/// Renames the nodes before \p End whose local value is not the global value.
/// Returns true if there were any.
bool MergeFetches::nameLocals(const Fetches &Found, NodeId End) {
  bool Any = false;
  std::vector<std::string> Gone;
  for (NodeId N = 0; N < End; ++N) {
    if (!G->isLive(N) || !G->isPerReplica(N) ||
        G->node(N).Flags & NF_LocalName || G->node(N).Kind == Inserted::Split ||
        Facts->Types.readsUnaggregated(N))
      continue;
    // Few nodes are merged, so look up merges last.
    if (isGlobalName(N) && !(Found.isPicked({N, 0}) && Merged.count({N, 0})))
      continue;
    bool IsMerged = Merged.count({N, 0});
    bool IsInput = G->node(N).Kind == Inserted::No;
    if (IsInput && IsMerged)
      nameMerged(N);
    else
      G->node(N).Flags |= NF_LocalName;
    if (IsInput && !IsMerged && Diags->wantsRemarks())
      Gone.push_back(G->name(N).str());
    G->markModified();
    Any = true;
  }
  if (!Gone.empty())
    Diags
        ->remark(
            "local", Gone.front(),
            formatv("is local to a replica, so its name does not exist in the "
                    "output; the same holds for {0} more nodes of the input; "
                    "name the tensors that you need with --fetch=NAME",
                    Gone.size() - 1))
        .Facts = {{"names", Gone}};
  return Any;
}

/// Returns true if a fetch, or a value that the step writes, depends on a feed
/// that is split.
bool MergeFetches::usesSplitFeed(const Fetches &Found) const {
  std::vector<NodeId> From;
  for (NodeId N : Facts->Order) {
    if (G->node(N).Kind == Inserted::Split)
      From.push_back(G->input(N, 0).Node);
    else if (G->isPerReplica(N) || isMarkedOnce(*G, N))
      From.push_back(N);
  }
  BitVector Uses(G->size());
  walkUsers(*G, std::move(From), Along::Data, Uses);
  return any_of(Found.tensors(),
                [&](const auto &T) { return Uses[T.first.first]; }) ||
         any_of(Facts->Order, [&](NodeId N) {
           return Facts->Vars.isUpdate(*G, N) && Uses[N];
         });
}

PassResult MergeFetches::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  Mesh Devices = readMesh(*G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  Scope = copyScope(Devices.Word).str();
  unsigned Errors = D.errorCount();
  Facts = &programFacts(M);
  Fetches Found(*G, *Facts, Options.Pick);
  if (!Found.addNamed(M, *Options.Fetch, D))
    return PassResult::Failure;
  Found.addSinks();
  if (Options.Forward)
    Found.addForward();
  NodeId End = G->size();
  auto Named = find_if(Found.tensors(), [](const auto &T) { return T.second; });
  // With one replica, or if the whole step is computed once, the feed is the
  // whole batch.
  auto IsSplit = [&](NodeId N) {
    return G->isLive(N) && G->node(N).Kind == Inserted::Split;
  };
  bool IsUseless = Devices.Devices.size() > 1 &&
                   Named != Found.tensors().end() &&
                   any_of(Facts->Order, IsSplit) && !usesSplitFeed(Found);
  bool Changed = mergeForOnce(Found);
  Changed |= mergeFetched(Found);
  for (NodeId N : Found.lost())
    warnLost(N);
  if (D.errorCount() != Errors)
    return PassResult::Failure;
  if (IsUseless) {
    D.error(G->name(Named->first.first),
            "no fetch depends on a feed that is split; name other fetches with "
            "--fetch=NAME, or other feeds with --feed=NAME=split");
    return PassResult::Failure;
  }
  Changed |= nameLocals(Found, End);
  // adoptFacts() cannot be used with blocks: the parts of a block have other
  // sizes than the block.
  bool HasBlocks = any_of(seq(End, G->size()), [&](NodeId N) {
    return G->node(N).Kind == Inserted::Blocks;
  });
  if (Changed && !HasBlocks)
    adoptFacts(M);
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(MergeFetches)

} // namespace graft
