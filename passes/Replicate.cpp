//===- passes/Replicate.cpp - replicate -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes the graph a replicated program: a mesh, the slices of the batch, the
// sizes that are the batch, and which nodes exist once per replica. No node is
// cloned.
//
//     x = Placeholder()               x = Placeholder()
//     y = MatMul(x, w)           →    x/split = _ToReplicas(x) axis=0
//                                     y = MatMul*(x/split, w)
//
// Which feeds are split: those named with --feed; else those whose axis 0 is
// unknown or the same dimension as a split feed's; else, when all are static,
// the dimension that most feeds share. Everything else is read by all replicas
// alike. In a graph with a static batch, the elements of shape constants that
// are the batch become the rows of one replica, and data constants as long as
// the batch are split.
//
// Relies on: symbolic dimensions (lib/analysis/Dims.h). Variables and their
// updates stay once; mirror-variables and share-variables decide them.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

constexpr PassOption Options[] = {
    {"replicas", "Number of replicas", ""},
    {"device-type", "Replica i runs on /device:TYPE:i", "GPU"},
    {"devices", "The device of each replica, separated by ;", ""},
    {"feed", "NAME=split|split(AXIS)|copy, separated by ;", ""},
};

class Replicate final : public PassBase<Replicate> {
public:
  static constexpr PassInfo Info = {
      "replicate", "Split the batch and say which nodes exist per replica",
      "Adds the mesh, inserts `_ToReplicas` after the feeds that hold the\n"
      "batch, makes batch-sized constants local and marks every node that\n"
      "depends on a slice as per-replica.",
      Options};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  /// A feed, and the axis that is split or -1.
  struct Feed {
    NodeId Node;
    int Axis;
    bool Named = false;
  };

  bool refuseDistributed();
  bool makeMesh();
  bool chooseFeeds();
  bool namedFeeds();
  bool staticFeeds(std::vector<Feed *> Candidates);
  void splitFeeds();
  bool localiseConstants();
  void split(NodeId Source, uint32_t Port, int Axis);
  void dropStaleShapes();

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  std::vector<std::string> Devices;
  std::vector<Feed> Feeds;
  std::vector<NodeId> Seeds;
  int64_t StaticBatch = UnknownSize;
};

/// A graph that somebody distributed already cannot be replicated once more.
bool Replicate::refuseDistributed() {
  for (NodeId N = 0; N < G->size(); ++N) {
    if (!G->isLive(N))
      continue;
    StringRef Op = G->opName(N), Name = G->name(N);
    if (Op == MeshOp ||
        (G->node(N).Flags & NF_MayHaveGraft && G->hasAttr(N, StampAttr))) {
      Diags->error(Name, "the graph is already replicated by graft; start from "
                         "the single-device graph");
      return false;
    }
    if (Op.starts_with("Collective") || Op.starts_with("Nccl") ||
        Op.starts_with("TPUReplicate") || Op.starts_with("Horovod") ||
        Op == "CrossReplicaSum" || Op.ends_with("ConditionalAccumulator")) {
      Diags->error(Name, ("the graph is already distributed: it has op " + Op +
                          "; start from the single-device graph")
                             .str());
      return false;
    }
    size_t Digits = Name.starts_with("replica_")
                        ? Name.find_first_not_of("0123456789", 8)
                        : StringRef::npos;
    if (Digits != StringRef::npos && Digits > 8 && Name[Digits] == '/') {
      Diags->error(Name, "the graph already has replicas: this name is that of "
                         "a copy; start from the single-device graph");
      return false;
    }
    // Variables on several devices of a kind are copies or parts.
    if (isVariableOp(Op)) {
      auto [Kind, Index] = G->device(N).rsplit(':');
      unsigned I = 0;
      if (!Kind.empty() && !Index.getAsInteger(10, I) && I > 0) {
        Diags->error(Name, ("the variable is placed on " + G->device(N) +
                            ": the graph is already distributed")
                               .str());
        return false;
      }
    }
  }
  return true;
}

bool Replicate::makeMesh() {
  StringRef List = option("devices");
  if (!List.empty()) {
    SmallVector<StringRef, 8> Parts;
    List.split(Parts, ';', -1, false);
    for (StringRef D : Parts)
      Devices.push_back(D.str());
  } else {
    Expected<unsigned> Count = unsignedOption("replicas");
    if (!Count || *Count == 0) {
      consumeError(Count.takeError());
      Diags->error("", "give the number of replicas, for example "
                       "replicate{replicas=4}");
      return false;
    }
    for (unsigned I = 0; I < *Count; ++I)
      Devices.push_back(
          ("/device:" + option("device-type") + ":" + Twine(I)).str());
  }
  NodeId N = G->addNode(G->uniqueName("graft/mesh"), MeshOp, {}, NoNode);
  std::vector<StringRef> Names(Devices.begin(), Devices.end());
  G->setIntAttr(N, "replicas", static_cast<int64_t>(Devices.size()));
  G->setAttr(N, "devices", encodeStringListAttr(Names));
  G->node(N).Kind = Inserted::Mesh;
  return true;
}

bool Replicate::namedFeeds() {
  SmallVector<StringRef, 8> Rules;
  option("feed").split(Rules, ';', -1, false);
  for (StringRef Rule : Rules) {
    auto [Name, How] = Rule.split('=');
    Name.consume_back(":0");
    auto It =
        find_if(Feeds, [&](const Feed &F) { return G->name(F.Node) == Name; });
    if (It == Feeds.end()) {
      std::vector<std::string> Known;
      Known.reserve(Feeds.size());
      for (const Feed &F : Feeds)
        Known.push_back(G->name(F.Node).str());
      std::string Near = nearest(Name, Known);
      Diags->error("", ("--feed: the graph has no feed '" + Name + "'" +
                        (Near.empty() ? "" : "; did you mean '" + Near + "'?"))
                           .str());
      return false;
    }
    It->Named = true;
    StringRef Axis = How;
    if (How == "copy") {
      It->Axis = -1;
    } else if (How.empty() || How == "split") {
      It->Axis = 0;
    } else if (!Axis.consume_front("split(") || !Axis.consume_back(")") ||
               Axis.getAsInteger(10, It->Axis) || It->Axis < 0) {
      Diags->error("",
                   ("--feed: '" + How +
                    "' is not a way to feed; use split, split(AXIS) or copy")
                       .str());
      return false;
    }
    auto Shape = G->shapeAttr(It->Node, "shape");
    if (It->Axis >= 0 && Shape && !Shape->UnknownRank &&
        size_t(It->Axis) >= Shape->Dims.size()) {
      Diags->error(Name,
                   formatv("--feed: axis {0} does not exist: the feed has "
                           "{1} axes",
                           It->Axis, Shape->Dims.size()));
      return false;
    }
  }
  return true;
}

/// All candidates are static: the dimension that most of them begin with.
bool Replicate::staticFeeds(std::vector<Feed *> Candidates) {
  DimOptions Options;
  Options.Unpatched = true;
  std::vector<NodeId> Order = topologicalOrder(*G);
  DimAnalysis Dims(*G, Order, Options);
  std::map<DimId, std::vector<Feed *>> Classes;
  std::vector<Feed *> Split;
  for (Feed &F : Feeds)
    if (F.Axis >= 0)
      Split.push_back(&F);
  for (Feed *F : Candidates)
    if (auto Shape = Dims.shape({F->Node, 0}); Shape && !Shape->empty())
      Classes[Dims.table().find((*Shape)[0])].push_back(F);
  if (!Split.empty()) {
    // The dimension of what is split already.
    for (Feed *F : Split)
      if (auto Shape = Dims.shape({F->Node, 0}))
        for (Feed *Other : Classes[Dims.table().find((*Shape)[F->Axis])])
          Other->Axis = 0;
    return true;
  }
  size_t Most = 0;
  for (auto &[Dim, Members] : Classes)
    Most = std::max(Most, Members.size());
  std::vector<std::vector<Feed *>> Best;
  for (auto &[Dim, Members] : Classes)
    if (Members.size() == Most)
      Best.push_back(Members);
  // A tie: suppose each in turn to be the batch and see which other feeds it
  // reaches through products of sizes.
  std::vector<Feed *> Chosen = Best.front();
  bool Clear = Best.size() == 1;
  for (size_t I = 0; Best.size() > 1 && I < Best.size() && I < 8; ++I) {
    Options.Suppose = {Best[I].front()->Node, 0};
    DimAnalysis Supposed(*G, Order, Options);
    std::vector<Feed *> Reached;
    for (Feed *F : Candidates)
      if (auto Shape = Supposed.shape({F->Node, 0}); Shape && !Shape->empty())
        if (auto S = Supposed.table().sym((*Shape)[0]); S == Sym{1, 1, 0})
          Reached.push_back(F);
    if (Reached.size() < Chosen.size() || Reached == Chosen)
      continue;
    Clear = Reached.size() > Chosen.size();
    Chosen = Reached;
  }
  if (!Clear) {
    Diags->error(G->name(Candidates.front()->Node),
                 "which feeds hold the batch is not clear: their first "
                 "dimensions are not known to be one; name them with "
                 "--feed=NAME=split");
    return false;
  }
  for (Feed *F : Chosen)
    F->Axis = 0;
  return true;
}

bool Replicate::chooseFeeds() {
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && G->hasUses(N) &&
        (G->opName(N).starts_with("Placeholder")))
      Feeds.push_back({N, -1});
  if (!namedFeeds())
    return false;
  std::vector<Feed *> Static;
  for (Feed &F : Feeds) {
    auto Shape = G->shapeAttr(F.Node, "shape");
    if (F.Named || (Shape && !Shape->UnknownRank && Shape->Dims.empty()))
      continue;
    if (!Shape || Shape->UnknownRank) {
      // Nothing is known of it: a value that restores a file name, say.
      if (G->outputType(F.Node, 0) != DT_STRING)
        Diags->unproved("feed", G->name(F.Node),
                        "the rank of this feed is not known, so it is read "
                        "whole by every replica; name it with --feed=" +
                            G->name(F.Node).str() + "=split or =copy");
    } else if (Shape->Dims[0] < 0) {
      F.Axis = 0;
    } else {
      Static.push_back(&F);
    }
  }
  if (!Static.empty() && !staticFeeds(Static))
    return false;
  if (none_of(Feeds, [](const Feed &F) { return F.Axis >= 0; })) {
    Diags->error("",
                 "no feed holds a batch, so there is nothing to spread over "
                 "replicas; name it with --feed=NAME=split");
    return false;
  }
  return true;
}

void Replicate::split(NodeId Source, uint32_t Port, int Axis) {
  NodeId N = G->addNode(G->uniqueName((G->name(Source) + "/split").str()),
                        "_ToReplicas", {}, Source);
  G->replaceUses({Source, Port}, {N, 0});
  G->setInputs(N, {{Source, Port}});
  G->setTypeAttr(N, "T", G->outputType(Source, Port));
  G->setIntAttr(N, "axis", Axis);
  Node &New = G->node(N);
  New.Kind = Inserted::Split;
  New.Count = Copies::PerReplica;
  Seeds.push_back(N);
  ++Statistics["splits"];
}

void Replicate::splitFeeds() {
  for (const Feed &F : Feeds) {
    if (F.Axis < 0) {
      Diags->remark("feed", G->name(F.Node), "every replica reads it whole");
      continue;
    }
    split(F.Node, 0, F.Axis);
    Diags->remark("feed", G->name(F.Node),
                  formatv("split along axis {0} over {1} replicas", F.Axis,
                          Devices.size()));
  }
}

bool Replicate::localiseConstants() {
  // A batch of unknown size is no number anywhere. (A constant that pins it
  // down nevertheless is caught by the certificate.)
  if (all_of(Seeds, [&](NodeId Seed) {
        auto Shape = G->shapeAttr(G->input(Seed, 0).Node, "shape");
        return !Shape || Shape->UnknownRank ||
               Shape->Dims[*G->intAttr(Seed, "axis")] < 0;
      }))
    return true;
  DimOptions Options;
  Options.Unpatched = true;
  std::vector<NodeId> Order = topologicalOrder(*G);
  DimAnalysis Dims(*G, Order, Options);
  const DimTable &Table = Dims.table();
  int64_t Replicas = static_cast<int64_t>(Devices.size());
  for (NodeId Seed : Seeds)
    if (auto Shape = Dims.shape({Seed, 0})) {
      int64_t Rows = Table.number((*Shape)[*G->intAttr(Seed, "axis")]);
      if (Rows == UnknownSize)
        continue;
      StaticBatch = Rows;
      if (Rows % Replicas != 0) {
        Diags->error(G->name(G->input(Seed, 0).Node),
                     formatv("a batch of {0} rows is not divisible by {1} "
                             "replicas",
                             Rows, Replicas));
        return false;
      }
    }
  for (const DimAnalysis::Conflict &C : Dims.conflicts()) {
    Diags->error(G->name(C.Node),
                 "two sizes meet here that the batch tells apart (" +
                     Dims.describe(C.A) + " and " + Dims.describe(C.B) +
                     "): which of them is the batch is not clear; name the "
                     "feeds with --feed");
    return false;
  }
  if (StaticBatch == UnknownSize)
    return true;
  for (NodeId N : Order) {
    if (isVariableOp(G->opName(N)) && Dims.batchAxis({N, 0}) >= 0) {
      Diags->error(G->name(N), "the variable has a row for each example of the "
                               "batch, which cannot be split");
      return false;
    }
    if (!G->isOp(N, "Const"))
      continue;
    if (int Axis = Dims.batchAxis({N, 0}); Axis >= 0) {
      split(N, 0, Axis);
      continue;
    }
    auto Value = Dims.value({N, 0});
    if (!Value || !Dims.isSymbolic({N, 0}))
      continue;
    auto Tensor = constValue(*G, N);
    if (!Tensor)
      continue;
    bool Local = false;
    for (size_t I = 0; I < Value->size(); ++I) {
      auto S = Table.sym((*Value)[I]);
      for (int P = 0; S && P < S->globalPower(); ++P) {
        Tensor->Ints[I] /= Replicas;
        Local = true;
      }
    }
    if (!Local)
      continue;
    G->setAttr(N, OriginalAttr, *G->attr(N, "value"));
    SmallVector<int64_t, 1> Shape(Tensor->Shape.Dims.begin(),
                                  Tensor->Shape.Dims.end());
    G->setAttr(N, "value", encodeIntTensor(Tensor->Type, Shape, Tensor->Ints));
    G->node(N).Count = Copies::PerReplica;
    Seeds.push_back(N);
    ++Statistics["constants made local"];
    Diags->remark("constant", G->name(N),
                  "holds the size of the batch, now that of one replica");
  }
  return true;
}

/// `_output_shapes` of a static batch would contradict the split graph, which
/// TensorFlow checks when it imports one.
void Replicate::dropStaleShapes() {
  if (StaticBatch == UnknownSize)
    return;
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && G->node(N).Count == Copies::PerReplica)
      G->removeAttr(N, "_output_shapes");
}

PassResult Replicate::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  if (!refuseDistributed() || !makeMesh() || !chooseFeeds())
    return PassResult::Failure;
  splitFeeds();
  if (!localiseConstants())
    return PassResult::Failure;
  std::vector<NodeId> Order = topologicalOrder(*G);
  VariableIndex Vars(*G, Order);
  if (!spreadCopies(*G, Vars, Seeds)) {
    Diags->error(G->name(G->input(Seeds.front(), 0).Node),
                 "nothing depends on the feeds that are split; name others "
                 "with --feed=NAME=split");
    return PassResult::Failure;
  }
  dropStaleShapes();
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(Replicate)

} // namespace graft
