//===- lib/infer/batch/Feeds.cpp - feeds that hold the batch ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/Feeds.h"

#include "lib/graph/Axis.h"
#include "lib/graph/Walk.h"
#include "lib/infer/batch/FeedRanks.h"
#include "lib/infer/batch/SparseFeeds.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/program/TensorNames.h"
#include "lib/support/Glob.h"

#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace llvm;

namespace graft {
namespace {

class Chooser {
public:
  Chooser(const Graph &G, unsigned Replicas, bool Defaults,
          DiagnosticEngine &Diags)
      : G(G), Replicas(Replicas), Defaults(Defaults), Diags(Diags) {}

  bool run(ArrayRef<std::string> Rules);

  std::vector<Feed> Feeds;

private:
  void collect();
  std::vector<bool> reaching(
      function_ref<bool(NodeId)> Is,
      function_ref<bool(NodeId)> IsCut = [](NodeId) { return false; }) const;
  std::vector<bool> training() const;
  Feed *find(StringRef Name);
  bool named(ArrayRef<std::string> Rules);
  bool named(StringRef Name, StringRef How, int Batch, int Rule = -1);
  bool allNamed(StringRef Pattern, StringRef How, int Batch);
  bool onlySets(Endpoint Feed) const;
  bool isOnlyFor(Endpoint Feed, function_ref<bool(NodeId)> Is) const;
  bool fromStatic(std::vector<Feed *> Candidates);
  using Split = std::pair<Feed *, int>; ///< A feed and the axis of its split.
  /// Static feeds, by their first dimension.
  using ByRows = std::map<DimId, std::vector<Feed *>>;
  std::optional<DimAnalysis> suppose(ArrayRef<NodeId> Order,
                                     ArrayRef<Split> Set, const ByRows &Classes,
                                     bool InVariables = false) const;
  std::vector<Split> related(ArrayRef<NodeId> Order, const ByRows &Classes);
  bool canSplit(ArrayRef<Split> Found) const;
  std::vector<Split> apart(ArrayRef<NodeId> Order, ByRows Classes,
                           const std::vector<bool> &Training);
  std::vector<Split> behindOne(ArrayRef<NodeId> Order, const ByRows &Classes);
  std::vector<Split> openAxes(ArrayRef<NodeId> Order, const ByRows &Classes,
                              const std::vector<bool> &Training) const;
  void behindTime();
  void beforeDefaults();
  void besideDefaults();
  std::vector<std::string> feedNames() const;
  bool meetsRows(const DimAnalysis &Dims, Endpoint Feed) const;
  std::vector<Split> mostWork(ArrayRef<NodeId> Order, const ByRows &Classes,
                              const std::vector<bool> &Training,
                              bool InVariables) const;

  const Graph &G;
  unsigned Replicas;
  bool Defaults; ///< Set if feeds that only compute a default are not split.
  DiagnosticEngine &Diags;
};

/// Collects the placeholders, and the tensors that the step reads from queues
/// and iterators. A read that only fills a queue, an iterator or a table is a
/// stage of the input pipeline and no feed.
void Chooser::collect() {
  enum : uint8_t { Other, Placeholder, Read, MayRead, Fills, Updates };
  SmallVector<uint8_t, 64> Roles;
  bool AnyFills = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    const OpDef *Def = G.opDefOf(Op);
    Roles.push_back(Name.starts_with(op::Placeholder) ? Placeholder
                    : isBatchRead(Name)               ? Read
                    : Name == op::OptionalGetValue || Name == op::IdentityN
                        ? MayRead
                    : fillsPipeline(Name)                           ? Fills
                    : Def && Def->update().Kind != UpdateKind::None ? Updates
                                                                    : Other);
    AnyFills |= Roles.back() == Fills;
  }
  std::vector<bool> Filling, Stepping;
  if (AnyFills) {
    auto RoleIs = [&](uint8_t Role) {
      return [&, Role](NodeId N) { return Roles[G.node(N).Op] == Role; };
    };
    Filling = reaching(RoleIs(Fills));
    Stepping = reaching(RoleIs(Updates));
  }
  for (NodeId N = 0; N < G.size(); ++N) {
    uint8_t Role = Roles[G.node(N).Op];
    if (Role == Read || Role == MayRead)
      Role = readsBatch(G, N) ? Read : Other;
    if ((Role != Placeholder && Role != Read) || !G.isLive(N) || !G.hasUses(N))
      continue;
    if (AnyFills && Filling[N] && !Stepping[N])
      continue;
    if (Role == Placeholder) {
      Feeds.push_back({{N, 0}, -1});
      continue;
    }
    for (uint32_t Port : readOutputs(G, N))
      Feeds.push_back({{N, Port}, -1});
  }
}

/// Returns the nodes with a data path to a node that \p Is accepts. The path
/// must not contain a node that \p IsCut accepts.
std::vector<bool> Chooser::reaching(function_ref<bool(NodeId)> Is,
                                    function_ref<bool(NodeId)> IsCut) const {
  std::vector<bool> Result(G.size());
  std::vector<NodeId> First;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && Is(N) && !IsCut(N))
      for (Endpoint E : G.dataInputs(N))
        First.push_back(E.Node);
  walkInputs(G, std::move(First), Along::Data, Result,
             [&](NodeId N) { return !IsCut(N); });
  return Result;
}

/// Returns the nodes with a data path to the gradient of a variable. If there
/// is no gradient, paths to any update count. If there is no update, returns
/// all nodes.
std::vector<bool> Chooser::training() const {
  auto KindOf = [&](NodeId N) {
    const OpDef *Def = G.opDef(N);
    return Def ? Def->update().Kind : UpdateKind::None;
  };
  auto Any = [](const std::vector<bool> &Set) {
    return any_of(Set, [](bool Is) { return Is; });
  };
  std::vector<bool> Result =
      reaching([&](NodeId N) { return KindOf(N) == UpdateKind::Apply; });
  if (!Any(Result))
    Result = reaching([&](NodeId N) { return KindOf(N) != UpdateKind::None; });
  if (!Any(Result))
    Result.assign(G.size(), true);
  return Result;
}

std::vector<std::string> Chooser::feedNames() const {
  std::vector<std::string> Names;
  Names.reserve(Feeds.size());
  for (const Feed &F : Feeds)
    Names.push_back(feedName(G, F.At));
  return Names;
}

/// Returns the end of a message on the unknown feed \p Name of a graph with the
/// feeds \p Known.
static std::string suggestFeed(StringRef Name,
                               const std::vector<std::string> &Known) {
  std::string All = Known.empty() ? "; no tensor is fed"
                                  : "; the feeds are " + listText(Known);
  return didYouMean(Name, Known, All);
}

/// Returns the feed called \p Name, which may be any tensor of the graph.
Feed *Chooser::find(StringRef Name) {
  auto E = G.findEndpoint(Name);
  if (!E || E->isControl()) {
    std::vector<std::string> Known = feedNames();
    Name.consume_back(":0");
    Diags.error("", ("--feed: the graph has no tensor '" + Name + "'" +
                     suggestFeed(Name, Known))
                        .str());
    return nullptr;
  }
  if (G.outputType(E->Node, E->Port) == DT_INVALID ||
      G.outputType(E->Node, E->Port) == DT_RESOURCE ||
      G.isRefOutput(E->Node, E->Port)) {
    Diags.error(
        G.name(E->Node),
        formatv("--feed: output {0} is not a tensor that can be fed", E->Port));
    return nullptr;
  }
  auto It = find_if(Feeds, [&](const Feed &F) { return F.At == *E; });
  if (It != Feeds.end())
    return &*It;
  Feeds.push_back({*E, -1});
  return &Feeds.back();
}

bool Chooser::named(ArrayRef<std::string> Rules) {
  for (const auto &[I, Text] : enumerate(Rules)) {
    auto [Names, How] = StringRef(Text).split('=');
    SmallVector<StringRef, 2> Each;
    Names.split(Each, '+');
    int Rule = static_cast<int>(I), Batch = Each.size() > 1 ? Rule : -1;
    for (StringRef Name : Each)
      if (isPattern(G, Name) ? !allNamed(Name, How, Batch)
                             : !named(Name, How, Batch, Rule))
        return false;
  }
  return true;
}

/// Applies \p How to the feeds that match \p Pattern. Unlike a name, a pattern
/// matches only feeds, since no step feeds all tensors with a common prefix.
bool Chooser::allNamed(StringRef Pattern, StringRef How, int Batch) {
  Glob Like(Pattern);
  std::vector<std::string> Known = feedNames(), Meant;
  for (const auto &[F, Name] : zip(Feeds, Known))
    if (Like.matches(Name) || Like.matches(G.name(F.At.Node)))
      Meant.push_back(Name);
  if (Meant.empty())
    Diags.error("", ("--feed: the graph has no feed like '" + Pattern + "'" +
                     suggestFeed(Pattern, Known))
                        .str());
  return !Meant.empty() &&
         all_of(Meant, [&](StringRef Name) { return named(Name, How, Batch); });
}

bool Chooser::named(StringRef Name, StringRef How, int Batch, int Rule) {
  Feed *F = find(Name);
  if (!F)
    return false;
  F->Named = true;
  // A run may feed a computed tensor and not the feeds before it, so the tensor
  // is a group of its own.
  bool IsComputed =
      !G.dataInputs(F->At.Node).empty() && !readsBatch(G, F->At.Node);
  F->Batch = Batch < 0 && IsComputed ? Rule : Batch;
  StringRef Axis = How;
  F->Sparse = How == "sparse";
  if (How == "copy" || F->Sparse) {
    F->Axis = -1;
  } else if (How.empty() || How == "split") {
    F->Axis = 0;
  } else if (!Axis.consume_front("split(") || !Axis.consume_back(")") ||
             Axis.getAsInteger(10, F->Axis) || F->Axis < 0) {
    Diags.error("", ("--feed: '" + How +
                     "' is not a way to feed; use split, split(AXIS), copy or "
                     "sparse")
                        .str());
    return false;
  }
  auto Shape = sourceShape(G, F->At);
  bool HasRank = Shape && !Shape->UnknownRank;
  int64_t Rank = HasRank ? int64_t(Shape->Dims.size()) : MaxRank;
  if (F->Axis >= 0 && !axisIn(F->Axis, Rank)) {
    Diags.error(
        G.name(F->At.Node),
        formatv("--feed: axis {0} does not exist: {1} {2} axes", F->Axis,
                HasRank ? "the feed has" : "no tensor has more than", Rank));
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Feeds of unknown size
//===----------------------------------------------------------------------===//

/// Returns true if \p Feed only sets variables. Examples are a feed that loads
/// one weight, a vector of all weights, and the feed of unknown size with which
/// Keras resets a metric.
bool Chooser::onlySets(Endpoint Feed) const {
  static constexpr StringLiteral TakesPart[] = {
      op::Identity, op::Reshape, op::Slice,   op::StridedSlice, op::Split,
      op::SplitV,   op::Unpack,  op::Squeeze, op::ExpandDims,   op::Cast};
  DenseSet<NodeId> Parts;
  bool Sets = false, Other = false;
  walkFrom({Feed.Node}, Parts, [&](NodeId N, std::vector<NodeId> &Next) {
    G.forEachUse(N, [&](Use U) {
      if (Other || !G.isData(U) || (N == Feed.Node && G.input(U) != Feed))
        return;
      const OpDef *Def = G.opDef(U.User);
      if (Def && Def->update().Kind == UpdateKind::Assign)
        Sets = true;
      else if (!is_contained(TakesPart, G.opName(U.User)))
        Other = true;
      else
        Next.push_back(U.User);
    });
  });
  return Sets && !Other;
}

/// Returns true if \p Feed has readers and \p Is accepts all of them.
bool Chooser::isOnlyFor(Endpoint Feed, function_ref<bool(NodeId)> Is) const {
  bool Any = false, Other = false;
  G.forEachUse(Feed.Node, [&](Use U) {
    if (!G.isData(U) || G.input(U.User, U.Index) != Feed)
      return;
    Any = true;
    Other |= !Is(U.User);
  });
  return Any && !Other;
}

//===----------------------------------------------------------------------===//
// Static feeds
//===----------------------------------------------------------------------===//

/// Returns the number of elements of all tensors with a batch axis among the
/// outputs of the nodes in \p Of.
static double elementsOfBatch(const DimAnalysis &Dims, ArrayRef<NodeId> Order,
                              const std::vector<bool> &Of) {
  double Elements = 0;
  for (NodeId N : Order)
    for (uint32_t Port = 0; Of[N] && Port < Dims.numOutputs(N); ++Port)
      if (Dims.batchAxis({N, Port}) >= 0) {
        double Count = 1;
        auto Shape = Dims.shape({N, Port});
        for (DimId D : *Shape)
          if (int64_t Number = Dims.table().number(D); Number != UnknownSize)
            Count *= static_cast<double>(Number);
        Elements += Count;
      }
  return Elements;
}

/// Returns the only axis of \p Shape that holds rows of one replica, or -1.
static int rowsAxis(const DimAnalysis &Dims, ArrayRef<DimId> Shape) {
  int Axis = -1;
  for (size_t I = 0; I < Shape.size(); ++I) {
    auto S = Dims.table().sym(Shape[I]);
    if (!S || !S->isLocal() || S->B != 1)
      continue;
    if (Axis >= 0)
      return -1;
    Axis = static_cast<int>(I);
  }
  return Axis;
}

/// Chooses static feeds to split. If other feeds are split, the inferred sizes
/// show which static feeds have the same rows. If training uses no split feed,
/// chooses the static feeds whose split distributes most of the step. Example:
/// in a Keras model that reads a data set, the only split feeds may be Input
/// layers, which no step feeds.
bool Chooser::fromStatic(std::vector<Feed *> Candidates) {
  DimOptions Options;
  Options.Unpatched = true;
  std::vector<NodeId> Order = topologicalOrder(G);
  for (Feed &F : Feeds)
    if (F.Axis >= 0)
      Options.Suppose.push_back({F.At, static_cast<unsigned>(F.Axis)});
  bool AnySplit = !Options.Suppose.empty();
  std::vector<bool> Training = training();
  DimAnalysis Dims(G, Order, Options);
  ByRows Classes;
  for (Feed *F : Candidates) {
    auto Shape = Dims.shape(F->At);
    if (!Shape || Shape->empty())
      continue;
    if (AnySplit)
      F->Axis = rowsAxis(Dims, *Shape);
    if (F->Axis < 0)
      Classes[Dims.table().find((*Shape)[0])].push_back(F);
  }
  bool SplitTrains = any_of(Feeds, [&](const Feed &F) {
    return F.Axis >= 0 && (F.Named || Training[F.At.Node]);
  });
  if (AnySplit)
    erase_if(Classes, [&](const auto &Class) {
      return none_of(Class.second,
                     [&](const Feed *F) { return Training[F->At.Node]; });
    });
  if (Classes.empty())
    return true;
  if (SplitTrains) {
    for (auto [F, Axis] : related(Order, Classes))
      F->Axis = Axis;
    for (auto [F, Axis] : apart(Order, Classes, Training))
      F->Axis = Axis;
    return true;
  }
  if (!AnySplit)
    if (auto Behind = behindOne(Order, Classes); !Behind.empty()) {
      for (auto [F, Axis] : Behind)
        F->Axis = Axis;
      return true;
    }
  if (!AnySplit)
    if (auto Open = openAxes(Order, Classes, Training); !Open.empty()) {
      for (auto [F, Axis] : Open)
        F->Axis = Axis;
      return true;
    }
  if (Classes.size() == 1 && !AnySplit) {
    for (Feed *F : Classes.begin()->second)
      F->Axis = 0;
    return true;
  }
  std::vector<Split> Chosen =
      mostWork(Order, Classes, Training, /*InVariables=*/false);
  // Allow a variable with a batch axis only if otherwise nothing is split.
  if (Chosen.empty() && !AnySplit)
    Chosen = mostWork(Order, Classes, Training, /*InVariables=*/true);
  if (Chosen.empty() && !AnySplit) {
    Diags
        .error(G.name(Candidates.front()->At.Node),
               "it is not clear which feeds hold the batch: their first "
               "dimensions are not known to be equal; name them with "
               "--feed=NAME=split")
        // The step still runs on a single device.
        .Id = "unproved";
    return false;
  }
  for (auto [F, Axis] : Chosen)
    F->Axis = Axis;
  return true;
}

/// Infers the sizes under the assumption that the axes of \p Set are batch
/// axes. Returns nothing if the sizes contradict the assumption, if a feed has
/// two batch axes, or if a variable has a batch axis and \p InVariables is not
/// set.
std::optional<DimAnalysis> Chooser::suppose(ArrayRef<NodeId> Order,
                                            ArrayRef<Split> Set,
                                            const ByRows &Classes,
                                            bool InVariables) const {
  DimOptions Options;
  Options.Unpatched = true;
  for (auto [F, Axis] : Set)
    Options.Suppose.push_back({F->At, static_cast<unsigned>(Axis)});
  DimAnalysis Supposed(G, Order, Options);
  auto Follows = [&](DimId D) { return Supposed.table().followsRows(D); };
  bool Mixes = !InVariables && any_of(Order, [&](NodeId N) {
    return isVariableOp(G.opName(N)) && Supposed.batchAxis({N, 0}) >= 0;
  });
  auto FollowsTwice = [&](const Feed *F) {
    auto Shape = Supposed.shape(F->At);
    return Shape && count_if(*Shape, Follows) > 1;
  };
  for (const auto &[Dim, Members] : Classes)
    Mixes |= any_of(Members, FollowsTwice);
  for (auto [F, Axis] : Set)
    Mixes |= FollowsTwice(F);
  if (Mixes || !Supposed.conflicts().empty())
    return std::nullopt;
  return Supposed;
}

/// The maximum number of classes of feeds to try, with one inference each.
static constexpr size_t MaxClasses = 12;

/// Returns the feeds of \p Classes whose row count is a multiple or a divisor
/// of the rows of split feeds, so that they are split as well. Example: an RL
/// policy over sequences reads the observations of all steps, and the states
/// before the first step. The number of these states is a constant.
std::vector<Chooser::Split> Chooser::related(ArrayRef<NodeId> Order,
                                             const ByRows &Classes) {
  std::vector<Split> Base, Found;
  for (Feed &F : Feeds)
    if (F.Axis >= 0)
      Base.push_back({&F, F.Axis});
  std::vector<Split> Grown = Base;
  std::optional<DimAnalysis> Dims;
  size_t Tried = 0;
  for (const auto &[Dim, Members] : Classes) {
    if (++Tried > MaxClasses)
      break;
    std::vector<Split> Both = Grown;
    for (Feed *F : Members)
      Both.push_back({F, 0});
    if (auto Supposed = suppose(Order, Both, Classes)) {
      Grown = std::move(Both);
      Dims.emplace(std::move(*Supposed));
    }
  }
  if (!Dims)
    return {};
  // Two row counts are related if they are the same symbolic size, or if one
  // reshape uses both. Equal constants prove nothing.
  const DimTable &Table = Dims->table();
  IntEqClasses Meet(static_cast<unsigned>(Table.size()));
  for (NodeId N : Order) {
    if (!G.isOp(N, op::Reshape))
      continue;
    SmallVector<DimId, 4> Rows;
    for (Endpoint E : {Endpoint{N, 0}, G.input(N, 0)})
      for (DimId D : Dims->shape(E).value_or(ArrayRef<DimId>()))
        if (auto S = Table.sym(D); S && S->isLocal())
          Rows.push_back(Table.find(D));
    for (DimId D : Rows)
      Meet.join(Rows.front(), D);
  }
  auto RowsOf = [&](Split Of) {
    return Meet.findLeader(Table.find((*Dims->shape(Of.first->At))[Of.second]));
  };
  std::set<unsigned> Rows;
  for (Split Of : Base)
    if (auto Shape = Dims->shape(Of.first->At);
        Shape && size_t(Of.second) < Shape->size())
      Rows.insert(RowsOf(Of));
  for (const auto &[Dim, Members] : Classes)
    for (Feed *F : Members)
      if (int Axis = rowsAxis(*Dims, *Dims->shape(F->At));
          Axis >= 0 && Rows.count(RowsOf({F, Axis})))
        Found.push_back({F, Axis});
  bool Divides = all_of(Found, [&](Split Of) {
    int64_t Rows = sourceShape(G, Of.first->At)->Dims[Of.second];
    return Rows < 0 || Rows % Replicas == 0;
  });
  // If the other feeds are not split, the sizes may contradict each other.
  append_range(Base, Found);
  bool Good =
      Divides && (Base.size() == Grown.size() || suppose(Order, Base, Classes));
  return Good ? Found : std::vector<Split>();
}

/// Returns true if each replica gets equally many rows of \p Found.
bool Chooser::canSplit(ArrayRef<Split> Found) const {
  return all_of(Found, [&](Split Of) {
    int64_t Rows = sourceShape(G, Of.first->At)->Dims[Of.second];
    return Rows < 0 || Rows % Replicas == 0;
  });
}

/// Returns the feeds of \p Classes that hold a second batch, such as the feeds
/// of a second network, and whose split distributes most of the work. No tensor
/// that depends on both batches may have a batch axis.
std::vector<Chooser::Split> Chooser::apart(ArrayRef<NodeId> Order,
                                           ByRows Classes,
                                           const std::vector<bool> &Training) {
  erase_if(Classes, [](const auto &Class) {
    return any_of(Class.second, [](const Feed *F) { return F->Axis >= 0; });
  });
  // Without updates, all nodes count as training.
  if (Classes.empty() || all_of(Training, [](bool Is) { return Is; }))
    return {};
  std::vector<Split> Found = mostWork(Order, Classes, Training, false), All;
  std::vector<bool> OfSplit(G.size()), OfFound(G.size());
  for (Feed &F : Feeds)
    if (F.Axis >= 0) {
      All.push_back({&F, F.Axis});
      OfSplit[F.At.Node] = true;
    }
  for (Split Of : Found) {
    All.push_back(Of);
    OfFound[Of.first->At.Node] = true;
  }
  auto Both = Found.empty() || !canSplit(Found) ? std::nullopt
                                                : suppose(Order, All, Classes);
  if (!Both)
    return {};
  for (NodeId N : Order) {
    for (Endpoint E : G.dataInputs(N)) {
      OfSplit[N] = OfSplit[N] || OfSplit[E.Node];
      OfFound[N] = OfFound[N] || OfFound[E.Node];
    }
    for (uint32_t Port = 0;
         OfSplit[N] && OfFound[N] && Port < Both->numOutputs(N); ++Port)
      if (Both->batchAxis({N, Port}) >= 0)
        return {};
  }
  return Found;
}

/// Returns, as the batch axis of each feed, the first axis after the leading
/// axes of size 1. Example: axis 1 of [1, 32, 8]. In an export for one of
/// several devices, axis 0 may be an axis over devices. Returns nothing if a
/// feed has no leading axis of size 1, or if the batch axes differ in size.
std::vector<Chooser::Split> Chooser::behindOne(ArrayRef<NodeId> Order,
                                               const ByRows &Classes) {
  std::vector<Split> Found;
  std::optional<int64_t> Rows;
  for (const auto &[Dim, Members] : Classes)
    for (Feed *F : Members) {
      auto Shape = sourceShape(G, F->At);
      int Axis = 0;
      while (size_t(Axis) + 1 < Shape->Dims.size() && Shape->Dims[Axis] == 1)
        ++Axis;
      if (Axis == 0 || Shape->Dims[Axis] <= 1 ||
          Rows.value_or(Shape->Dims[Axis]) != Shape->Dims[Axis])
        return {};
      Rows = Shape->Dims[Axis];
      Found.push_back({F, Axis});
    }
  return suppose(Order, Found, Classes) ? Found : std::vector<Split>();
}

/// Returns, for feeds that begin with a known size, the only axis of unknown
/// size, as in `[features, batch]`. Each feed that training uses must have such
/// an axis, and the sizes must allow the split. More often the first axis is
/// the batch axis. So returns nothing if a split of the first axis distributes
/// as much of the step. Half as much is enough if N divides the size of the
/// first axis. The axis of unknown size may be time steps, and a split along
/// time steps also distributes tensors of positions.
std::vector<Chooser::Split>
Chooser::openAxes(ArrayRef<NodeId> Order, const ByRows &Classes,
                  const std::vector<bool> &Training) const {
  std::vector<Split> Open, First;
  for (const auto &[Dim, Members] : Classes)
    for (Feed *F : Members) {
      auto Shape = sourceShape(G, F->At);
      ArrayRef<int64_t> Sizes = Shape->Dims;
      const auto *At = find_if(Sizes, [](int64_t Size) { return Size < 0; });
      if (count_if(Sizes, [](int64_t Size) { return Size < 0; }) == 1)
        Open.push_back({F, static_cast<int>(At - Sizes.begin())});
      else if (Training[F->At.Node])
        return {};
      First.push_back({F, 0});
    }
  if (none_of(Open, [&](Split Of) { return Training[Of.first->At.Node]; }))
    return {};
  auto Supposed = suppose(Order, Open, Classes);
  if (!Supposed)
    return {};
  if (Classes.size() > 1)
    First = mostWork(Order, Classes, Training, /*InVariables=*/false);
  auto Else = First.empty() ? std::nullopt : suppose(Order, First, Classes);
  if (!Else)
    return Open;
  double ByFirst = elementsOfBatch(*Else, Order, Training),
         ByOpen = elementsOfBatch(*Supposed, Order, Training);
  bool IsNear = canSplit(First) && 2 * ByFirst >= ByOpen;
  return IsNear || ByFirst >= ByOpen ? std::vector<Split>() : Open;
}

/// Splits feeds along axis 1 if a loop reads them row by row and a split along
/// axis 1 distributes most of the work. Axis 0 must have an unknown size, and
/// is assumed to be time steps. Axis 1 must have the same known size in all
/// feeds.
void Chooser::behindTime() {
  bool AnyArrays = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    AnyArrays |= G.opNameOf(Op) == op::TensorArrayScatterV3;
  std::vector<Split> Time, Batch;
  std::optional<int64_t> Rows;
  for (Feed &F : Feeds) {
    if (F.Axis < 0)
      continue;
    auto Shape = sourceShape(G, F.At);
    if (!AnyArrays || F.Named || !Shape || Shape->Dims.size() < 2 ||
        Shape->Dims[1] <= 1 || Shape->Dims[1] % Replicas != 0 ||
        Rows.value_or(Shape->Dims[1]) != Shape->Dims[1])
      return;
    Rows = Shape->Dims[1];
    Time.push_back({&F, 0});
    Batch.push_back({&F, 1});
  }
  if (Time.empty())
    return;
  std::vector<NodeId> Order = topologicalOrder(G);
  auto ByTime = suppose(Order, Time, {});
  auto Walks = [&](NodeId N) {
    return G.isOp(N, op::TensorArrayScatterV3) &&
           ByTime->batchAxis(G.input(N, 2)) == 0;
  };
  if (!ByTime || none_of(Order, Walks))
    return;
  auto ByRows = suppose(Order, Batch, {});
  if (!ByRows)
    return;
  std::vector<bool> Training = training();
  if (elementsOfBatch(*ByRows, Order, Training) >
      2 * elementsOfBatch(*ByTime, Order, Training))
    for (auto [F, Axis] : Batch)
      F->Axis = Axis;
}

/// Stops splitting feeds that are only read to compute the default of a split
/// feed. A caller can feed that split feed, a PlaceholderWithDefault, with the
/// batch instead.
void Chooser::beforeDefaults() {
  std::vector<bool> IsCut(G.size());
  bool AnyMade = false;
  for (const Feed &F : Feeds)
    if (F.Axis >= 0 && G.isOp(F.At.Node, op::PlaceholderWithDefault)) {
      IsCut[F.At.Node] = true;
      AnyMade |= !G.isOp(G.input(F.At.Node, 0).Node, op::Const);
    }
  if (!AnyMade)
    return;
  std::vector<bool> GoesOn = reaching([&](NodeId N) { return !G.hasUses(N); },
                                      [&](NodeId N) { return IsCut[N]; });
  for (Feed &F : Feeds)
    if (!F.Named && !GoesOn[F.At.Node])
      F.Axis = -1;
}

/// Returns true if an elementwise op combines \p Feed, or a tensor computed
/// from it by elementwise or size-preserving ops, with an operand that has a
/// batch axis in \p Dims.
bool Chooser::meetsRows(const DimAnalysis &Dims, Endpoint Feed) const {
  auto IsAsLarge = [&](NodeId N) {
    auto Its = Dims.shape(Feed), Result = Dims.shape({N, 0});
    return G.node(N).NumData == 1 && Its && Result &&
           equal(*Its, *Result, [&](DimId A, DimId B) {
             return Dims.table().find(A) == Dims.table().find(B);
           });
  };
  SmallVector<NodeId, 8> Work{Feed.Node};
  SmallSet<NodeId, 16> Seen;
  bool Meets = false;
  while (!Work.empty() && !Meets) {
    NodeId N = Work.pop_back_val();
    G.forEachUse(N, [&](Use U) {
      bool IsElementwise =
          (ruleOf(G.opName(U.User)).Is & trait::Elementwise) != 0;
      if (!G.isData(U) || !(IsElementwise || IsAsLarge(U.User)) ||
          !Seen.insert(U.User).second)
        return;
      Work.push_back(U.User);
      Meets |= any_of(G.dataInputs(U.User), [&](Endpoint E) {
        return E.Node != N && !Seen.contains(E.Node) && Dims.batchAxis(E) >= 0;
      });
    });
  }
  return Meets;
}

/// Handles split feeds with a default whose row count is not divisible by the
/// number of replicas. If the default has one row that is broadcast over the
/// rows of other feeds, each replica reads the whole feed. Otherwise warns that
/// a step fails if nothing is fed.
void Chooser::besideDefaults() {
  DimOptions Options;
  Options.Unpatched = true;
  SmallVector<std::pair<Feed *, int64_t>, 2> Found;
  std::vector<NodeId> Order;
  std::optional<DimAnalysis> Plain;
  for (Feed &F : Feeds) {
    if (F.Axis < 0)
      continue;
    if (!F.Named && G.isOp(F.At.Node, op::PlaceholderWithDefault)) {
      if (!Plain)
        Plain.emplace(G, Order = topologicalOrder(G), Options);
      auto Shape = Plain->shape(G.input(F.At.Node, 0));
      int64_t Rows = Shape && size_t(F.Axis) < Shape->size()
                         ? Plain->table().number((*Shape)[F.Axis])
                         : UnknownSize;
      if (Rows != UnknownSize && Rows % Replicas != 0) {
        Found.push_back({&F, Rows});
        continue;
      }
    }
    Options.Suppose.push_back({F.At, static_cast<unsigned>(F.Axis)});
  }
  if (Found.empty())
    return;
  DimAnalysis Dims(G, Order, Options);
  for (auto [F, Rows] : Found) {
    if (Rows == 1 && meetsRows(Dims, F->At)) {
      F->Axis = -1;
      continue;
    }
    Diags.warning(
        "feed", G.name(F->At.Node),
        formatv(
            "has a default of {0} row{1}, not divisible by {2} replicas, so a "
            "step without this feed fails; feed it, or give --feed={3}=copy",
            Rows, Rows == 1 ? "" : "s", Replicas, feedName(G, F->At)));
  }
}

/// Returns the feeds whose split distributes most of the work before an update,
/// or none if two sets of feeds are equally good. The feeds of one class have
/// the same first dimension. Classes whose first dimension is the same number
/// are split together, as far as the sizes allow. The choice affects speed
/// only: the step is correct with any set.
std::vector<Chooser::Split> Chooser::mostWork(ArrayRef<NodeId> Order,
                                              const ByRows &Classes,
                                              const std::vector<bool> &Training,
                                              bool InVariables) const {
  struct Choice {
    std::vector<Split> Feeds;
    double Work;
  };
  auto Suppose = [&](ArrayRef<Split> Set) -> std::optional<Choice> {
    auto Supposed = suppose(Order, Set, Classes, InVariables);
    if (!Supposed)
      return std::nullopt;
    // The inferred sizes may show that further feeds have rows of the batch.
    Choice C{{}, elementsOfBatch(*Supposed, Order, Training)};
    for (const auto &[Dim, Members] : Classes)
      for (Feed *F : Members)
        if (int Axis = rowsAxis(*Supposed, *Supposed->shape(F->At)); Axis >= 0)
          C.Feeds.push_back({F, Axis});
    return C;
  };
  std::vector<Choice> Alone;
  for (const auto &[Dim, Members] : Classes)
    if (Alone.size() < MaxClasses)
      if (auto C = Suppose(to_vector(
              map_range(Members, [](Feed *F) { return std::pair(F, 0); }))))
        Alone.push_back(std::move(*C));
  llvm::stable_sort(
      Alone, [](const Choice &A, const Choice &B) { return A.Work > B.Work; });
  auto RowsOf = [&](const Choice &C) {
    auto [F, Axis] = C.Feeds.front();
    return sourceShape(G, F->At)->Dims[Axis];
  };
  std::set<int64_t> Seen;
  std::vector<Split> Best;
  double Most = -1;
  for (const Choice &First : Alone) {
    if (First.Feeds.empty() || !Seen.insert(RowsOf(First)).second)
      continue;
    Choice Grown = First;
    for (const Choice &Next : Alone) {
      if (Next.Feeds.empty() || RowsOf(Next) != RowsOf(First) ||
          is_contained(Grown.Feeds, Next.Feeds.front()))
        continue;
      std::vector<Split> Both = Grown.Feeds;
      append_range(Both, Next.Feeds);
      if (auto C = Suppose(Both))
        Grown = std::move(*C);
    }
    if (Grown.Work > Most ||
        (Grown.Work == Most && Grown.Feeds.size() > Best.size()))
      Best = Grown.Feeds;
    else if (Grown.Work == Most && Grown.Feeds.size() == Best.size())
      Best.clear();
    Most = std::max(Most, Grown.Work);
  }
  return Best;
}

bool Chooser::run(ArrayRef<std::string> Rules) {
  collect();
  if (!named(Rules))
    return false;
  findSparseFeeds(G, Feeds);
  findRaggedFeeds(G, Feeds);
  std::vector<Feed *> Static;
  for (Feed &F : Feeds) {
    auto Shape = sourceShape(G, F.At);
    if (F.Named || F.Sparse ||
        (Shape && !Shape->UnknownRank && Shape->Dims.empty()) || onlySets(F.At))
      continue;
    if (!Shape || Shape->UnknownRank) {
      // A feed of unknown rank is assumed to be a scalar, and graft warns of
      // the guess. It does not warn of a fed string, which may be the name of a
      // file to restore, or of the feed of a histogram, which accepts any
      // shape.
      F.Scalar = isScalarFeed(G, F.At);
      F.Guessed = !F.Scalar &&
                  !isOnlyFor(F.At,
                             [&](NodeId User) {
                               return G.isOp(User, op::HistogramSummary);
                             }) &&
                  (G.outputType(F.At.Node, F.At.Port) != DT_STRING ||
                   isBatchRead(G.opName(F.At.Node)));
    } else if (Shape->Dims[0] < 0) {
      // A vector is no batch if each of its elements is read at a constant
      // index. An example is a vector of rates.
      bool IsList = Shape->Dims.size() == 1 && isOnlyFor(F.At, [&](NodeId N) {
                      return takesElement(G, {N, 0});
                    });
      F.Axis = IsList ? -1 : 0;
    } else {
      Static.push_back(&F);
    }
  }
  behindTime();
  if (!Static.empty() && !fromStatic(Static))
    return false;
  if (Defaults)
    beforeDefaults();
  besideDefaults();
  // If the examples are constants, no feed is split, but variables can still be
  // placed.
  if (all_of(Feeds, [&](const Feed &F) {
        auto Shape = sourceShape(G, F.At);
        return !F.Named && Shape && !Shape->UnknownRank && Shape->Dims.empty();
      })) {
    Diags.unproved("no-batch", "",
                   "no feed, queue or iterator holds a batch: only variables "
                   "are distributed over the replicas");
    return true;
  }
  if (none_of(Feeds, [](const Feed &F) { return F.Axis >= 0 || F.Sparse; })) {
    Diags
        .error("", "no feed holds a batch, so there is nothing to split over "
                   "replicas; name a feed of rows with --feed=NAME=split")
        .Id = "no-batch";
    return false;
  }
  return true;
}

} // namespace

void warnOfRanks(const Graph &G, ArrayRef<Feed> Feeds,
                 DiagnosticEngine &Diags) {
  for (const Feed &F : Feeds)
    if (F.Guessed)
      Diags.unproved("feed", G.name(F.At.Node),
                     "the rank of this feed is not known, so graft treats it "
                     "as a scalar, which every replica reads; give --feed=" +
                         feedName(G, F.At) +
                         "=split if it has rows of the batch, or =copy if not");
}

std::optional<std::vector<Feed>> chooseFeeds(const Graph &G,
                                             ArrayRef<std::string> Rules,
                                             unsigned Replicas, bool Defaults,
                                             DiagnosticEngine &Diags) {
  Chooser C(G, Replicas, Defaults, Diags);
  if (!C.run(Rules)) {
    warnOfRanks(G, C.Feeds, Diags);
    return std::nullopt;
  }
  return std::move(C.Feeds);
}

} // namespace graft
