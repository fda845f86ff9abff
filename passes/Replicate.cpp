//===- passes/Replicate.cpp - replicate -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes the graph a replicated program. Adds the mesh and the splits of feeds,
// turns batch sizes into sizes of a shard, and decides which nodes are
// per-replica. No node is cloned.
//
//     x = Placeholder()               x = Placeholder()
//     y = MatMul(x, w)           →    x/split = _ToReplicas(x) axis=0
//                                     y = MatMul*(x/split, w)
//
// Feeds are placeholders, and tensors that the step reads from queues and
// iterators. These ops stay unreplicated: one read returns the global batch.
// The pass splits the feeds named with --feed. Otherwise it splits feeds whose
// axis 0 has an unknown size or the size of a split feed. If all feeds of the
// training step have static sizes, it splits the feeds that distribute the most
// work. All replicas read the other feeds whole. A tensor that --feed names and
// that depends on the batch is merged first, so that a fed value is the global
// value. If the batch size is static, it becomes the size of a shard in shape
// constants, and data constants of that length are split.
//
// With batch=per-replica, every replica reads its own batch from the queue or
// iterator, see lib/infer/batch/OwnBatch.h, unless join-batches made one batch
// of several elements.
//
// The file is long because each refusal has its own message.
//
// Relies on: symbolic dimensions (lib/infer/sizes/Dims.h). Variables and their
// updates stay unreplicated. mirror-variables and share-variables decide later
// if variables get copies.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/PerOp.h"
#include "lib/graph/Walk.h"
#include "lib/infer/batch/FeedRanks.h"
#include "lib/infer/batch/Feeds.h"
#include "lib/infer/batch/FullBatch.h"
#include "lib/infer/batch/OwnBatch.h"
#include "lib/infer/batch/SampledRows.h"
#include "lib/infer/batch/SparseFeeds.h"
#include "lib/infer/batch/SpreadCopies.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/io/Module.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/EntrySlice.h"
#include "lib/rewrite/FedSizes.h"
#include "lib/rewrite/LocalConstants.h"
#include "lib/rewrite/Merges.h"
#include "lib/rewrite/RowVariables.h"
#include "passes/Options.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

class Replicate final : public PassBase<Replicate, ReplicateOptions> {
public:
  static constexpr PassInfo Info = {
      "replicate", "Split the batch and say which nodes exist per replica",
      "Adds the mesh, inserts `_ToReplicas` after the feeds that hold the\n"
      "batch, makes batch-sized constants local and marks every node that\n"
      "depends on a slice as per-replica."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool refuseDistributed();
  bool refuseHandles();
  bool makeMesh();
  NodeId onlyReader(Endpoint E) const;
  bool prepares(NodeId N, Endpoint E, std::optional<size_t> Axes) const;
  bool laysOut(NodeId N, Endpoint E, SmallVectorImpl<int64_t> &Row) const;
  Endpoint lastPreparation(const Feed &F, SmallVectorImpl<int64_t> &Row) const;
  void splitFeeds();
  bool mergeNamed(const VariableIndex &Vars);
  bool settleSizes(const VariableIndex &Vars);
  bool localizeConstants(const DimAnalysis &Dims, ArrayRef<NodeId> Splits);
  bool refuseOnceInLoops(const VariableIndex &Vars);
  void split(NodeId Source, uint32_t Port, int Axis, int Batch = -1);
  void dropStaleShapes();

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  std::vector<std::string> Devices;
  std::string Scope; ///< See copyScope.
  std::vector<Feed> Feeds;
  std::vector<NodeId> Seeds;
  std::vector<NodeId> Reads; ///< Nodes that read a batch for each replica.
  bool StaticBatch = false;  ///< Set if the batch size is a static
                             ///< number somewhere.
  bool AnyCopies = false;    ///< Set if a node depends on a split.
};

/// Refuses a graph that is distributed already.
bool Replicate::refuseDistributed() {
  enum : uint8_t { Plain, IsMesh, Distributed, Variable };
  PerOp Roles(*G, [](StringRef Op, const OpDef *) {
    if (Op == MeshOp)
      return IsMesh;
    if (Op.starts_with("Collective") || Op.starts_with("Nccl") ||
        Op.starts_with("TPUReplicate") || Op.starts_with("Horovod") ||
        Op == op::CrossReplicaSum || Op.ends_with(op::ConditionalAccumulator))
      return Distributed;
    return isVariableOp(Op) ? Variable : Plain;
  });
  std::map<std::string, unsigned> IndexOf; // By kind of device.
  for (NodeId N = 0; N < G->size(); ++N) {
    const Node &This = G->node(N);
    if (This.isDead())
      continue;
    uint8_t Role = Roles[This];
    StringRef Name = G->name(N);
    if (Role == IsMesh ||
        (This.Flags & NF_MayHaveGraft && G->hasAttr(N, StampAttr))) {
      Diags->error(Name, "the graph is already replicated by graft; start from "
                         "the single-device graph");
      return false;
    }
    if (Role == Distributed) {
      Diags->error(Name, ("the graph is already distributed: it has op " +
                          G->opName(N) + "; start from the single-device graph")
                             .str());
      return false;
    }
    // Variables on several devices of one kind are copies or the parts of a
    // model.
    if (Role == Variable && This.Device != 0) {
      auto [Kind, Index] = G->device(N).rsplit(':');
      unsigned I = 0;
      if (!Kind.empty() && !Index.getAsInteger(10, I) &&
          IndexOf.try_emplace(Kind.str(), I).first->second != I) {
        std::string First = (Kind + ":" + Twine(IndexOf[Kind.str()])).str();
        Diags->error(
            Name, ("the variable is placed on " + G->device(N) +
                   ", but other variables are on " + First +
                   "; graft replicates only a model on one device; place all "
                   "variables on one device, for example with --device-map=" +
                   G->device(N) + "=" + First)
                      .str());
        return false;
      }
    }
  }
  return true;
}

/// Returns an op that uses the handle \p N, directly or through Identities.
/// Prefers a read or an update of a variable. Returns NoNode if no op uses the
/// handle.
static NodeId takerOf(const Graph &G, NodeId N) {
  NodeId Found = NoNode;
  SmallVector<NodeId, 4> Work{N};
  while (!Work.empty()) {
    NodeId At = Work.pop_back_val();
    for (Use U : G.uses(At)) {
      if (!G.isData(U))
        continue;
      const OpDef *Op = G.opDef(U.User);
      if (G.isOp(U.User, op::Identity))
        Work.push_back(U.User);
      else if (Op && (Op->readsVariable() || U.Index < Op->update().NumVars))
        return U.User;
      else if (Found == NoNode)
        Found = U.User;
    }
  }
  return Found;
}

/// Refuses feeds that are handles of variables. No session can feed a handle,
/// and the graph would not show that its readers and writers use one variable.
bool Replicate::refuseHandles() {
  NodeId First = NoNode;
  unsigned More = 0;
  for (NodeId N = 0; N < G->size(); ++N) {
    if (!G->isLive(N) || !G->isOp(N, op::Placeholder) ||
        G->typeAttr(N, "dtype") != unsigned(DT_RESOURCE))
      continue;
    NodeId Taker = takerOf(*G, N);
    const OpDef *Op = Taker == NoNode ? nullptr : G->opDef(Taker);
    bool IsVariable =
        Op && (Op->readsVariable() || Op->update().Kind != UpdateKind::None);
    if (IsVariable) {
      if (First == NoNode)
        First = N;
      else
        ++More;
    } else if (Taker != NoNode && !Options.Handles) {
      Diags->error(
          G->name(N),
          ("is a resource handle that is fed from outside to op " +
           G->opName(Taker) +
           ", as in the graph of a concrete function; give the SavedModel of "
           "the function (tf.saved_model.save), or of one that takes tensors")
              .str());
      return false;
    }
  }
  if (First == NoNode)
    return true;
  StringRef Name = G->name(First);
  Diags->error(
      Name,
      ("is a variable handle that is fed from outside" +
       (More == 0 ? "" : ", like " + utostr(More) + " more") +
       ", as in the graph of a concrete function; give the SavedModel of the "
       "function (tf.saved_model.save), or name the variable of each handle "
       "with "
       "--capture=" +
       Name + "=VARIABLE_NAME")
          .str());
  return false;
}

bool Replicate::makeMesh() {
  Devices = Options.Devices;
  if (Devices.empty()) {
    if (Options.Replicas == 0) {
      Diags->error("", "give the number of replicas, for example "
                       "replicate{replicas=4}");
      return false;
    }
    for (unsigned I = 0; I < Options.Replicas; ++I)
      Devices.push_back(
          ("/device:" + *Options.DeviceType + ":" + Twine(I)).str());
  }
  std::string Word = freeCopyWord(*G);
  NodeId N = G->addNode(G->uniqueName("graft/mesh"), MeshOp, {}, NoNode);
  std::vector<StringRef> Names(Devices.begin(), Devices.end());
  G->setIntAttr(N, "replicas", static_cast<int64_t>(Devices.size()));
  G->setAttr(N, "devices", encodeStringListAttr(Names));
  if (Word != UsualCopyWord)
    G->setStringAttr(N, CopyWordAttr, Word);
  Scope = copyScope(Word).str();
  G->node(N).Kind = Inserted::Mesh;
  return true;
}

void Replicate::split(NodeId Source, uint32_t Port, int Axis, int Batch) {
  NodeId N = insertSplit(*G, G->name(Source) + "/split", {Source, Port}, Axis);
  if (Batch >= 0)
    G->setIntAttr(N, RowsAttr, Batch);
  G->replaceUses({Source, Port}, {N, 0}, N);
  Seeds.push_back(N);
  ++Statistics["splits"];
}

/// Returns true if \p N is an Identity of \p E, or an elementwise op of \p E
/// and constants of rank at most \p Axes: `images / 255`. Without \p Axes only
/// an Identity counts.
bool Replicate::prepares(NodeId N, Endpoint E,
                         std::optional<size_t> Axes) const {
  if (G->isOp(N, op::Identity))
    return G->inputs(N).size() == 1;
  if (!Axes || !(ruleOf(G->opName(N)).Is & trait::Elementwise) ||
      G->inputs(N).size() != G->node(N).NumData ||
      G->numOutputs(N).value_or(0) != 1 ||
      G->outputType(N, 0) != G->outputType(E))
    return false;
  auto IsShared = [&](Endpoint Of) {
    auto Value =
        G->isOp(Of.Node, op::Const) ? constValue(*G, Of.Node) : std::nullopt;
    return Value && !Value->Shape.UnknownRank &&
           Value->Shape.Dims.size() <= *Axes;
  };
  ArrayRef<Endpoint> Operands = G->dataInputs(N);
  return any_of(Operands, [&](Endpoint Of) { return Of != E; }) &&
         all_of(Operands, [&](Endpoint Of) { return Of == E || IsShared(Of); });
}

/// Returns the number of elements of a row with the sizes \p Row, if it is
/// known.
static std::optional<int64_t> elementsOf(ArrayRef<int64_t> Row) {
  int64_t Elements = 1;
  for (int64_t Size : Row)
    if (Size <= 0 || MulOverflow(Elements, Size, Elements))
      return std::nullopt;
  return Elements;
}

/// Returns true if \p N reshapes each row of \p E, which has the sizes \p Row:
/// `tf.reshape(images, [-1, 28, 28, 1])`. Instead of -1 the number of rows may
/// be a computed scalar. Then \p Row receives the new sizes.
bool Replicate::laysOut(NodeId N, Endpoint E,
                        SmallVectorImpl<int64_t> &Row) const {
  if (!G->isOp(N, op::Reshape) || G->inputs(N).size() != 2 ||
      G->input(N, 0) != E)
    return false;
  NodeId Shape = G->input(N, 1).Node;
  SmallVector<int64_t, 4> Sizes;
  auto Take = [&](NodeId Of) {
    auto Value = G->isOp(Of, op::Const) ? constValue(*G, Of) : std::nullopt;
    if (Value && Value->HasInts)
      append_range(Sizes, Value->Ints);
    return Value && Value->HasInts;
  };
  if (G->isOp(Shape, op::Pack)) {
    ArrayRef<Endpoint> Parts = G->dataInputs(Shape);
    if (!all_of(Parts.drop_front(),
                [&](Endpoint Part) { return Take(Part.Node); }) ||
        Sizes.size() + 1 != Parts.size())
      return false;
  } else {
    if (!Take(Shape) || Sizes.empty() || Sizes[0] != -1)
      return false;
    Sizes.erase(Sizes.begin());
  }
  auto Elements = elementsOf(Row);
  if (!Elements || elementsOf(Sizes) != Elements)
    return false;
  Row.assign(Sizes.begin(), Sizes.end());
  return true;
}

/// Returns the only node that reads \p E if this node has users. Otherwise
/// returns NoNode.
NodeId Replicate::onlyReader(Endpoint E) const {
  NodeId Found = NoNode;
  bool Other = false;
  G->forEachUse(E.Node, [&](Use U) {
    if (!G->isData(U) || G->input(U.User, U.Index) != E)
      return;
    Other |= Found != NoNode && Found != U.User;
    Found = U.User;
  });
  return Other || Found == NoNode || !G->hasUses(Found) ? NoNode : Found;
}

/// Returns the last node of the chain that prepares the feed \p F. Users may
/// feed that node instead: in `x = tf.placeholder(..) / 255`, only the quotient
/// has a name. \p Row receives the sizes of its rows, if these are known.
Endpoint Replicate::lastPreparation(const Feed &F,
                                    SmallVectorImpl<int64_t> &Row) const {
  if (F.Named || !*Options.Prepared)
    return F.At;
  // The number of axes after the split axis.
  std::optional<size_t> Axes;
  if (G->opName(F.At.Node).starts_with(op::Placeholder))
    if (auto Shape = sourceShape(*G, F.At)) {
      Axes = !Shape->UnknownRank && F.Axis >= 0 &&
                     static_cast<size_t>(F.Axis) < Shape->Dims.size()
                 ? Shape->Dims.size() - F.Axis - 1
                 : 0;
      if (*Axes > 0 && F.Axis == 0)
        Row.assign(Shape->Dims.begin() + 1, Shape->Dims.end());
    }
  Endpoint Last = F.At;
  for (;;) {
    NodeId Next = onlyReader(Last);
    if (Next == NoNode)
      return Last;
    if (F.Axis == 0 && G->isOp(Next, op::Reshape) &&
        G->isOp(G->input(Next, 1).Node, op::Const) && laysOut(Next, Last, Row))
      Axes = Row.size();
    else if (!prepares(Next, Last, Axes))
      return Last;
    Last = {Next, 0};
  }
}

void Replicate::splitFeeds() {
  std::vector<Feed> Laid;
  for (const Feed &F : Feeds) {
    SmallVector<int64_t, 4> Row;
    Endpoint Last = lastPreparation(F, Row);
    if (F.Axis >= 0) {
      // A Reshape to a computed number of rows, such as that of another feed,
      // is a further feed. Replicas compute it, since they know the number of
      // rows.
      if (NodeId N = onlyReader(Last);
          N != NoNode && !Row.empty() && laysOut(N, Last, Row))
        Laid.push_back({{N, 0}, 0, /*Named=*/true});
      split(Last.Node, Last.Port, F.Axis, F.Batch);
    } else {
      ++Statistics["feeds that are whole"];
      // A named feed may be a tensor that the step computes. This tensor is
      // computed once, so that every replica reads the fed value.
      if (F.Named && !F.Sparse && !sourceShape(*G, F.At))
        G->setBoolAttr(F.At.Node, OnceAttr, true);
    }
    // Declare the shape, so that TensorFlow refuses a feed that is no scalar.
    if (F.Scalar && G->opName(F.At.Node).starts_with(op::Placeholder) &&
        G->hasAttr(F.At.Node, "shape"))
      G->setAttr(F.At.Node, "shape", encodeShapeAttr({}));
    if (!Diags->wantsRemarks())
      continue;
    if (F.Sparse) {
      Diags->remark(
          "feed", feedName(*G, F.At),
          F.InRows ? "a component of a sparse tensor: every replica reads the "
                     "entries of its rows"
                   : formatv("a component of a {0} tensor: ops on it are "
                             "unreplicated, and the dense rows that they give "
                             "are split",
                             F.Ragged ? "ragged" : "sparse")
                         .str());
      continue;
    }
    if (F.Axis < 0) {
      Diags->remark("feed", feedName(*G, F.At),
                    F.Scalar ? "a scalar, which every replica reads"
                             : "every replica reads the whole value");
      continue;
    }
    std::string Text = formatv("split along axis {0} over {1} replicas", F.Axis,
                               Devices.size());
    auto Shape = sourceShape(*G, F.At);
    for (size_t I = 1; !F.Named && Shape && I < Shape->Dims.size(); ++I)
      if (Shape->Dims[I] < 0 && int(I) != F.Axis) {
        Text += formatv("; axis {0} is unknown{1}: if that is the batch, give "
                        "--feed={2}=split({0})",
                        I, Shape->Dims[F.Axis] < 0 ? " too" : "",
                        feedName(*G, F.At));
        break;
      }
    Diags->remark("feed", feedName(*G, F.At), Text);
  }
  for (const Feed &F : Laid)
    split(F.At.Node, 0, 0);
  append_range(Feeds, Laid);
}

/// Merges each tensor that --feed names and replicas compute. The merged rows
/// of all replicas get the name and are split again.
///
///     h = Tanh(x/split)               replica/h = Tanh*(x/split)
///     h/split = _ToReplicas(h)   →    h = _FromReplicas(replica/h) concat
///                                     h/split = _ToReplicas(h)
bool Replicate::mergeNamed(const VariableIndex &Vars) {
  auto IsNamed = [&](const Feed &F) {
    return F.Named && F.Axis >= 0 && !sourceShape(*G, F.At);
  };
  if (none_of(Feeds, IsNamed))
    return true;
  std::vector<NodeId> Work = Seeds;
  Work.insert(Work.end(), Reads.begin(), Reads.end());
  AnyCopies = spreadCopies(*G, Vars, std::move(Work));
  for (const Feed &F : Feeds) {
    if (!IsNamed(F) || G->node(F.At.Node).Count == Copies::Once)
      continue;
    NodeId N = F.At.Node;
    std::string Name = G->name(N).str();
    if (auto Outputs = G->numOutputs(N); !Outputs || *Outputs != 1) {
      Diags->error(Name, "--feed: this is one of several outputs of an op that "
                         "depends on the batch, so it cannot be fed");
      return false;
    }
    G->setStringAttr(N, OriginAttr, Name);
    G->rename(N, G->uniqueName(Scope + "/" + Name));
    G->node(N).NameSplit = static_cast<uint32_t>(Scope.size());
    G->node(N).Flags |= NF_LocalName;
    AttrRun Attrs;
    Attrs.type("T", G->outputType(N, 0))
        .string(CombineAttr, combine::Concat)
        .integer("axis", F.Axis);
    NodeId Merged = G->insertNode(Name, FromReplicasOp, Endpoint{N, 0}, N,
                                  Attrs, Inserted::Merge);
    for (Use U : G->uses(N))
      if (G->node(U.User).Kind == Inserted::Split && U.Index == 0)
        G->setInput(U.User, 0, {Merged, 0});
  }
  return true;
}

/// Refuses feeds whose rows depend on all other rows (an adjacency matrix), and
/// replaces batch sizes in constants.
bool Replicate::settleSizes(const VariableIndex &Vars) {
  // A batch that each replica reads for itself has the sizes of the input.
  bool HoldsRows = !Seeds.empty() && mayHoldRows(*G, Seeds);
  FullBatch Full(*G, Feeds);
  bool MayBeFull = !Seeds.empty() && Full.mayBe();
  std::vector<NodeId> Fed;
  if (!Seeds.empty())
    Fed = fedSizes(*G);
  if (!HoldsRows && !MayBeFull && Fed.empty()) {
    warnOfRanks(*G, Feeds, *Diags);
    return true;
  }
  DimOptions Options;
  Options.Unpatched = true;
  auto Dims = std::make_unique<DimAnalysis>(*G, topologicalOrder(*G), Options);
  if (MayBeFull && Full.refuse(*Dims, *Diags))
    return false;
  warnOfRanks(*G, Feeds, *Diags);
  // Only _ToReplicas has a batch axis. Other seeds slice the entries of a
  // SparseTensor, which have no such axis.
  std::vector<NodeId> Splits;
  copy_if(Seeds, std::back_inserter(Splits),
          [&](NodeId N) { return G->isOp(N, ToReplicasOp); });
  FedSizes Sizes(*G, Fed);
  std::vector<NodeId> Shares = Sizes.share(Dims, Options, *Diags);
  append_range(Seeds, Shares);
  Statistics["sizes shared"] += Shares.size();
  if (HoldsRows) {
    // Splits the variables that hold rows. Their row counts are known after
    // that, so the sizes are inferred again.
    RowVariables Rows(*G, Vars, *Dims);
    if (std::vector<NodeId> Read = Rows.split(); !Read.empty()) {
      append_range(Seeds, Read);
      append_range(Splits, Read);
      Statistics["variables split"] += Read.size();
      AnyCopies = spreadCopies(*G, Vars, Seeds);
      Rows.merge();
      Dims = std::make_unique<DimAnalysis>(*G, topologicalOrder(*G), Options);
    }
    if (!localizeConstants(*Dims, Splits))
      return false;
  }
  Sizes.check(Shares, Devices.size());
  return true;
}

/// Replaces batch sizes in constants by the size of a shard. \p Splits are the
/// nodes that split the batch.
bool Replicate::localizeConstants(const DimAnalysis &Dims,
                                  ArrayRef<NodeId> Splits) {
  auto Split = [&](NodeId N, int Axis) { split(N, 0, Axis); };
  LocalConstants Constants(*G, Dims, Devices.size(), Split, *Diags);
  if (!Constants.run(topologicalOrder(*G), Splits))
    return false;
  StaticBatch = Constants.isStatic();
  if (ArrayRef<NodeId> Local = Constants.local(); !Local.empty()) {
    append_range(Seeds, Local);
    Statistics["constants made local"] += Local.size();
  }
  return true;
}

/// Drops `_output_shapes` that contradict the split graph, because TensorFlow
/// checks them at import. If the batch size is static, these are the shapes of
/// per-replica nodes. If each replica reads its own batch, these are the shapes
/// of all nodes that depend on a batch: an unreplicated node has the rows of
/// all replicas, and a later pass may make any node unreplicated.
void Replicate::dropStaleShapes() {
  for (NodeId N = 0; StaticBatch && N < G->size(); ++N)
    if (G->isLive(N) && G->isPerReplica(N))
      G->removeAttr(N, "_output_shapes");
  BitVector Seen(G->size());
  walkUsers(*G, {Reads.begin(), Reads.end()}, Along::Data, Seen, [&](NodeId N) {
    if (!is_contained(Reads, N))
      G->removeAttr(N, "_output_shapes");
    return true;
  });
}

/// Refuses a node that must be unreplicated but is in a loop that every replica
/// runs.
bool Replicate::refuseOnceInLoops(const VariableIndex &Vars) {
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(*G);
  if (!Loops)
    return true;
  for (NodeId First : Loops->nests())
    for (NodeId N : Loops->nest(First))
      if (Vars.isOnce(*G, N) && any_of(Loops->nest(First), [&](NodeId Other) {
            return G->isPerReplica(Other);
          })) {
        Diags
            ->error(G->name(N), ("op " + G->opName(N) +
                                 " runs once for the whole batch and is in a "
                                 "loop that every replica runs by itself; "
                                 "move it out of the loop")
                                    .str())
            .Id = "unproved";
        return false;
      }
  return true;
}

PassResult Replicate::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  if (!refuseDistributed() || !refuseHandles() || !makeMesh())
    return PassResult::Failure;
  if (Options.Once)
    return PassResult::Changed;
  declareRanks(*G, D);
  auto Chosen =
      chooseFeeds(*G, *Options.Feed, static_cast<unsigned>(Devices.size()),
                  *Options.Defaults, D);
  if (!Chosen)
    return PassResult::Failure;
  Feeds = std::move(*Chosen);
  bool Own = Options.Batch == BatchSource::PerReplica;
  if (Own) {
    auto Given = giveOwnBatches(*G, Feeds, D);
    if (!Given)
      return PassResult::Failure;
    Reads = std::move(*Given);
    Own = !Reads.empty();
  }
  std::vector<SparseFeed> InRows;
  if (!Own && Devices.size() > 1)
    InRows = sparseFeedsInRows(*G, Feeds);
  splitFeeds();
  for (const SparseFeed &F : InRows)
    append_range(Seeds, insertEntrySlice(*G, feedName(*G, F.Values), F.Indices,
                                         F.Values, F.Shape, F.OfShape,
                                         Devices.size()));
  Statistics["sparse feeds split"] += InRows.size();
  VariableIndex Vars(*G);
  for (auto [Rows, Axis] : keepSparseOnce(*G, Vars, Feeds))
    split(Rows.Node, Rows.Port, Axis);
  keepSampledOnce(*G, Vars, [&](Endpoint E) { split(E.Node, E.Port, 0); });
  if (!mergeNamed(Vars) || !settleSizes(Vars))
    return PassResult::Failure;
  Vars.extend(*G);
  if (Own) {
    Seeds.insert(Seeds.end(), Reads.begin(), Reads.end());
    AnyCopies |= spreadCopies(*G, Vars, Seeds);
    if (!checkOwnBatches(*G, Vars, Reads, D))
      return PassResult::Failure;
  }
  bool Spreads =
      any_of(Feeds, [](const Feed &F) { return F.Axis >= 0 || F.Sparse; });
  if (!spreadCopies(*G, Vars, Seeds) && !AnyCopies && (Spreads || Own)) {
    if (Reads.empty() && Seeds.empty()) {
      auto First = find_if(Feeds, [](const Feed &F) { return F.Sparse; });
      Diags
          ->error(G->name(First->At.Node),
                  "every feed is read as a component of a sparse tensor, and "
                  "no op computes dense rows from them, so no tensor can be "
                  "split over the replicas; name a feed of rows with "
                  "--feed=NAME=split")
          .Id = "no-batch";
      return PassResult::Failure;
    }
    NodeId First = Reads.empty() ? G->input(Seeds.front(), 0).Node : Reads[0];
    Diags->error(G->name(First),
                 "nothing depends on the feeds that are split; name others "
                 "with --feed=NAME=split");
    return PassResult::Failure;
  }
  if (!refuseOnceInLoops(Vars))
    return PassResult::Failure;
  dropStaleShapes();
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(Replicate)

} // namespace graft
