//===- lib/infer/facts/RepeatedRows.cpp - steps of any number of rows -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/RepeatedRows.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/Program.h"
#include "lib/program/forms/Accumulator.h"
#include "lib/program/forms/EntrySlice.h"
#include "lib/program/forms/LengthGather.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

namespace {

enum Role : uint8_t {
  Plain,
  Split,
  Merge,
  Scaled,
  Exchange, ///< A collective.
  Kept,     ///< May keep the first rows that a collective gathered.
  Slice,    ///< Slices the entries of a replica's rows.
  Take,     ///< Takes a sum from an accumulator.
  Branch,   ///< Returns one of its inputs.
  Leave,    ///< Returns a value of the last iteration of a loop.
  Default,  ///< Returns its input unless a run feeds it.
};

Role roleOf(StringRef Op) {
  return StringSwitch<Role>(Op)
      .Case(ToReplicasOp, Split)
      .Case(FromReplicasOp, Merge)
      .Case(ScaleOp, Scaled)
      .Cases(op::CollectiveReduce, op::CollectiveGather, ReduceOp, GatherOp,
             Exchange)
      .Case(op::SparseSlice, Slice)
      .Case(op::StridedSlice, Kept)
      .Case(op::AccumulatorTakeGradient, Take)
      .Cases(op::Merge, op::RefMerge, Branch)
      .Cases(op::Exit, op::RefExit, Leave)
      .Case(op::PlaceholderWithDefault, Default)
      .Default(Plain);
}

} // namespace

RepeatedRows::RepeatedRows(const Graph &G, const ProgramFacts &Facts, bool Plan)
    : G(G), Facts(Facts), Plan(Plan) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Roles.push_back(roleOf(G.opNameOf(Op)));
  States.assign(G.size(), 0);
  Loops = LoopInfo::find(G, Facts.Order);
  if (Conditions::any(G))
    When = std::make_unique<Conditions>(G, Facts.Order);
  findSources();
  if (Sources.empty())
    return;
  if (Sources.size() > MaxSources) {
    refuse(Sources.front().Node, "is one of more than " + Twine(MaxSources) +
                                     " tensors that are split");
    return;
  }
  // Loops and arrays may pass a state on against the order of nodes.
  constexpr unsigned MaxRounds = 16;
  size_t OfSources = Obstacles.size();
  for (unsigned Round = 0; Round < MaxRounds; ++Round) {
    // Keep only the needs of kind Equal: sets of sources that met in the last
    // round count as one set in this round.
    erase_if(Needs, [](const Need &Each) { return Each.Kind != Need::Equal; });
    Obstacles.resize(OfSources);
    std::vector<State> Before = Loops ? States : std::vector<State>();
    for (NodeId N : Facts.Order)
      States[N] = visit(N);
    if (Before == States || !Loops)
      return;
  }
  refuse(Sources.front().Node, "is read by loops that have no fixpoint");
}

/// Returns the size of axis \p Axis of \p E. Returns nothing if it has no such
/// axis.
static std::optional<DimId> sizeAt(const DimAnalysis &Dims, Endpoint E,
                                   int64_t Axis) {
  auto Shape = Dims.shape(E);
  return Shape && Axis >= 0 && Axis < int64_t(Shape->size())
             ? std::optional((*Shape)[static_cast<size_t>(Axis)])
             : std::nullopt;
}

/// Returns true if \p Split splits rows whose number is not known by
/// definition. A fact may imply the number, but the op that states the fact may
/// not run.
bool RepeatedRows::isOpen(NodeId Split) const {
  auto Rows = sizeAt(Facts.Dims, G.input(Split, 0),
                     G.intAttr(Split, "axis").value_or(0));
  return !Rows || !Facts.Dims.origins().isFixed(*Rows);
}

bool RepeatedRows::hasNumber(unsigned S) const {
  const Source &Of = Sources[S];
  auto Rows = sizeAt(Facts.Dims, {Of.Node, 0}, Of.Rest.Axis);
  return Rows && Facts.Dims.table().number(*Rows) != UnknownSize;
}

/// Returns the source that \p N, a split or a scaled number, reads in a written
/// program. Returns nothing if it reads none.
std::optional<RepeatedRows::Source> RepeatedRows::readSource(NodeId N) const {
  if (G.node(N).NumData != 2)
    return std::nullopt;
  auto Lookup = rowLookup(G, G.input(N, 1));
  auto Rest =
      Lookup ? rowRest(G, Lookup->Rest, Facts.Dims.replicas()) : std::nullopt;
  if (!Rest)
    return std::nullopt;
  Source S;
  S.Node = N;
  S.Rest = *Rest;
  S.RestAt = Lookup->Rest;
  return S;
}

/// Returns the source that \p N is in a plan. Returns nothing if it is none.
std::optional<RepeatedRows::Source> RepeatedRows::planSource(NodeId N) const {
  Endpoint Of = G.input(N, 0);
  Source S;
  S.Node = N;
  S.Rest.Of = Of;
  S.Rest.Replicas = Facts.Dims.replicas();
  if (Roles[G.node(N).Op] == Scaled) {
    S.Rest.Axis = -1;
    if (!G.isPerReplica(N) || G.isPerReplica(Of.Node) ||
        !G.opName(Of.Node).starts_with(op::Placeholder))
      return std::nullopt;
    return S;
  }
  S.Rest.Axis = G.intAttr(N, "axis").value_or(0);
  // A split of an inserted Definition node returns replica indices, not rows.
  if (!isOpen(N) || G.node(Of.Node).Kind == Inserted::Definition)
    return std::nullopt;
  return S;
}

/// Stores the number of rows of \p S, a split.
void RepeatedRows::countRows(Source &S) {
  auto Size =
      sizeAt(Facts.Dims, {S.Node, 0}, G.intAttr(S.Node, "axis").value_or(0));
  auto Rows = Size ? Facts.Dims.table().sym(*Size) : std::nullopt;
  if (!Rows || Rows->B != 1 || Rows->R != 0 || Rows->Ragged != 0 ||
      !Facts.Dims.table().isOfSplit(*Rows) || Rows->C < 1) {
    refuse(S.Node, "splits an axis whose size is not a multiple of the batch "
                   "size");
    return;
  }
  const SizeOrigins &Origins = Facts.Dims.origins();
  S.Rows = Rows->Rows;
  S.Times = Rows->C;
  S.Origin = Origins.of(*Size);
  // Rows belong together in groups of Rows->C only by definition. If a fact
  // implies the factor, a group is one row.
  int64_t Unit =
      Origins.settled(S.Origin) == Origins.settled(SizeOrigins::originOf(*Rows))
          ? Rows->C
          : 1;
  if (Plan)
    S.Rest.Unit = Unit;
  else if (isOwn(S) && S.Rest.Unit != Unit)
    refuse(S.Node, "counts its rows in groups of a wrong size");
}

/// Returns true if \p S takes n from the tensor that its node splits or scales,
/// not from another tensor.
bool RepeatedRows::isOwn(const Source &S) const {
  bool IsSplit = Roles[G.node(S.Node).Op] == Split;
  return S.Rest.Of == G.input(S.Node, 0) &&
         S.Rest.Axis == (IsSplit ? G.intAttr(S.Node, "axis").value_or(0) : -1);
}

/// Returns the source whose n a plan uses for \p S, a split. A tensor that is
/// computed once from a feed is split like the feed, unless a run may feed this
/// tensor or a tensor between the two. Prefers a feed with as many rows as the
/// tensor. Otherwise the tensor may have a multiple of the rows of the feed,
/// such as the words of all sentences. Any source is right, because the split
/// fails unless the shards of the source divide the rows of the tensor.
std::optional<unsigned> RepeatedRows::feedOf(const Source &S) {
  std::optional<unsigned> Other;
  for (unsigned I = 0; I < std::min<size_t>(Sources.size(), MaxSources); ++I) {
    const Source &Feed = Sources[I];
    if (Feed.Rest.Axis < 0 || !runsWith({Feed.Node, 0}, {S.Node, 0}))
      continue;
    NodeId Start = Feed.Rest.Of.Node;
    auto [It, New] = Behind.try_emplace(Start);
    if (New) {
      It->second.resize(G.size());
      walkUsers(G, {Start}, Along::All, It->second, [&](NodeId N) {
        return N == Start || Roles[G.node(N).Op] != Default;
      });
    }
    if (!It->second[S.Node])
      continue;
    if (Feed.Rows == S.Rows)
      return I;
    if (!Other)
      Other = I;
  }
  return Other;
}

/// Returns true if \p S splits a computed tensor and not a feed. Returns false
/// for a data-dependent number of rows, which has its own n like the rows of a
/// feed.
bool RepeatedRows::isComputed(const Source &S) const {
  NodeId Of = S.Rest.Of.Node;
  auto Rows = sizeAt(Facts.Dims, S.Rest.Of, S.Rest.Axis);
  return !(Rows && Facts.Dims.table().isRagged(*Rows)) &&
         !G.dataInputs(Of).empty() && !readsBatch(G, Of) &&
         !G.hasAttr(S.Node, RowsAttr);
}

/// Maps the node of \p S to the source \p Known. Without \p Known, adds \p S as
/// a new source.
void RepeatedRows::addSource(const Source &S, std::optional<unsigned> Known) {
  SourceOf[S.Node] = Known.value_or(static_cast<unsigned>(Sources.size()));
  if (!Known)
    Sources.push_back(S);
}

void RepeatedRows::findSources() {
  std::vector<Source> Others, Computed;
  std::vector<NodeId> Joined;
  for (NodeId N : Facts.Order) {
    uint8_t Is = Roles[G.node(N).Op];
    if (Is != Split && Is != Scaled)
      continue;
    auto S = Plan ? planSource(N) : readSource(N);
    if (!S || (Is == Scaled && !isOwn(*S)))
      continue;
    size_t Refused = Obstacles.size();
    if (Is == Split)
      countRows(*S);
    if (!isOwn(*S))
      Others.push_back(*S);
    else if (Plan && Is == Split && Obstacles.size() == Refused &&
             isComputed(*S))
      Computed.push_back(*S);
    else // Splits with the same number of rows have the same n.
      addSource(*S, Plan ? std::nullopt : sourceAt(S->RestAt));
  }
  // All feeds are known now.
  for (const Source &S : Computed) {
    auto Feed = feedOf(S);
    if (Feed)
      Joined.push_back(S.Node);
    addSource(S, Feed);
  }
  Behind.clear();
  if (!Joined.empty()) {
    OfJoined.resize(G.size());
    walkUsers(G, std::move(Joined), Along::Data, OfJoined);
  }
  for (const Source &S : Others)
    if (auto Known = sourceAt(S.RestAt);
        Known && runsWith({Sources[*Known].Node, 0}, {S.Node, 0}))
      SourceOf[S.Node] = *Known;
}

/// Returns true if all outputs of \p N are known to be global values.
bool RepeatedRows::isTrue(NodeId N) const {
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
    ReplicationType Type = Facts.Types.natural({N, Port});
    if (!Type.isTrue() && !(Type.Zero && !Type.isSharded()))
      return false;
  }
  return true;
}

std::optional<unsigned> RepeatedRows::sourceAt(Endpoint Rest) const {
  auto It = find_if(Sources, [&](const Source &S) { return S.RestAt == Rest; });
  return It == Sources.end()
             ? std::nullopt
             : std::optional(static_cast<unsigned>(It - Sources.begin()));
}

unsigned RepeatedRows::sourceIn(State S) const {
  return static_cast<unsigned>(countr_zero(S & ~(Each | Even))) - 1;
}

std::optional<int64_t> RepeatedRows::rowsOf(NodeId Merge, unsigned S,
                                            int64_t Axis) const {
  auto Size = sizeAt(Facts.Dims, G.input(Merge, 0), Axis);
  const Source &Of = Sources[S];
  if (!Size || Of.Rest.Axis < 0)
    return std::nullopt;
  auto Rows = Facts.Dims.table().sym(*Size);
  if (!Rows || Rows->B != 1 || Rows->R != 0 || Rows->Ragged != 0 ||
      Rows->Rows != Of.Rows)
    return std::nullopt;
  // Two feeds have equally many rows only where an op states it. A written file
  // may not show which feed defines the rows. So a plan accepts a value only if
  // it depends on no other feed.
  NodeId N = G.input(Merge, 0).Node;
  bool IsKnown =
      !Plan || (States[N] == only(S) && (OfJoined.empty() || !OfJoined[N]));
  if (!IsKnown || !(Facts.Dims.origins().of(*Size) == Of.Origin))
    return std::nullopt;
  int64_t Times = Rows->C * Of.Rest.Unit;
  return Times % Of.Times == 0 ? std::optional(Times / Of.Times) : std::nullopt;
}

/// Returns the innermost loop in which the results of \p N are, or 0.
uint32_t RepeatedRows::frameOf(NodeId N) const {
  uint32_t Frame = Loops->frame(N);
  return Roles[G.node(N).Op] == Leave && Frame != 0 ? Loops->around(Frame)
                                                    : Frame;
}

/// Returns true if \p Value has a value only in branches in which \p Extra has
/// one, too.
bool RepeatedRows::isUnder(Endpoint Value, Endpoint Extra) {
  // A copy, since the next call may move the sets.
  SmallVector<uint32_t, 8> Those;
  if (When)
    append_range(Those, When->choices(Extra));
  if (Those.empty())
    return true;
  ArrayRef<uint32_t> These = When->choices(Value);
  return all_of(Those, [&](uint32_t C) { return is_contained(These, C); });
}

/// Returns true if \p Extra has a value whenever \p Value has one, in the same
/// iteration of the same loop.
bool RepeatedRows::runsWith(Endpoint Extra, Endpoint Value) {
  return (!Loops || frameOf(Extra.Node) == frameOf(Value.Node)) &&
         isUnder(Value, Extra);
}

/// Returns the source in \p S whose rows are known whenever \p Value, an
/// operand or the result of \p N, has a value.
unsigned RepeatedRows::sourceFor(NodeId N, Endpoint Value, State S) {
  for (unsigned I = 0; I < Sources.size(); ++I)
    if (S & only(I) && runsWith({Sources[I].Node, 0}, Value))
      return I;
  refuse(N, "needs the number of rows of a tensor of another branch or loop");
  return sourceIn(S);
}

void RepeatedRows::need(Need::KindTy Kind, NodeId N, int Index, State S,
                        int Power) {
  Endpoint Value =
      Index < 0 ? Endpoint{N, 0} : G.input(N, static_cast<unsigned>(Index));
  Needs.push_back({Kind, N, Index, sourceFor(N, Value, S), 0, Power});
}

/// Returns true if the rows of the split \p Split are known in the place where
/// \p N, a Merge or an Exit, returns its value.
bool RepeatedRows::isKnownBehind(NodeId Split, NodeId N) {
  if (Loops) {
    uint32_t Frame = frameOf(N);
    while (Frame != frameOf(Split) && Frame != 0)
      Frame = Loops->around(Frame);
    if (Frame != frameOf(Split))
      return false;
  }
  // A Merge has a value if one of its inputs has.
  return all_of(G.dataInputs(N),
                [&](Endpoint E) { return isUnder(E, {Split, 0}); });
}

/// Returns the state of \p N, a Merge or an Exit. The rows of a tensor of one
/// branch are not known behind the branch. So a number or a sum that follows
/// these rows is multiplied by its share inside the branch.
RepeatedRows::State RepeatedRows::leave(NodeId N) {
  State All = 0, Known = Each;
  for (Endpoint E : G.dataInputs(N))
    All |= States[E.Node];
  for (unsigned K = 0; K < Sources.size(); ++K)
    if (All & only(K) && isKnownBehind(Sources[K].Node, N))
      Known |= only(K);
  if (all_of(G.dataInputs(N), [&](Endpoint E) {
        State S = States[E.Node];
        return S == 0 || S & Known;
      }))
    return join(N);
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    Endpoint E = G.input(N, I);
    State S = stateOf(N, E);
    if (S == 0 || S & Each)
      continue;
    std::optional<int> Share = shareOf(E);
    if (!Share || (*Share != 0 && !isFloating(G.outputType(E))))
      return refuse(N, "returns a value that depends on the rows of a tensor "
                       "that is split inside of a branch or a loop");
    if (*Share != 0)
      need(Need::Share, N, static_cast<int>(I), S, *Share);
  }
  return Each;
}

/// Returns the state of \p E, which \p N reads. Reports a sum that is not yet
/// multiplied by n/N.
RepeatedRows::State RepeatedRows::stateOf(NodeId N, Endpoint E) {
  State S = States[E.Node];
  if (!(S & Raw))
    return S;
  bool IsShare =
      Roles[G.node(N).Op] == Scaled && G.intAttr(N, ShareAttr).value_or(0) != 0;
  bool Forwards =
      G.node(N).Kind != Inserted::No && G.opName(N).starts_with(op::Identity);
  if (!IsShare && !Forwards)
    need(Need::Share, E.Node, -1, S & ~Raw);
  return IsShare || Forwards ? S : S & ~Raw;
}

RepeatedRows::State RepeatedRows::visit(NodeId N) {
  switch (Roles[G.node(N).Op]) {
  case Split:
    return split(N);
  case Merge:
    return merge(N);
  case Scaled:
    return scale(N);
  case Exchange:
    return exchange(N);
  case Kept: {
    State S = States[G.input(N, 0).Node];
    if (keptMember(G, N) == NoNode || !(S & Raw))
      return join(N);
    return isTrue(N) ? 0 : S & ~Raw;
  }
  case Slice: {
    State S = join(N);
    if (rowsSliced(G, N, 0) == NoNode || S == 0 || S & Each)
      return S;
    NodeId Before = rowsBefore(G, N);
    Endpoint Number = G.input(Before, 1);
    if (!G.isOp(Number.Node, op::FloorMod) ||
        !isNumberOfShards(G.input(Number.Node, 1), S,
                          G.outputType(G.input(Before, 0))))
      need(Need::Modulo, Before, 1, S);
    return S;
  }
  case Take: {
    NodeId Put = putOf(G, N);
    return Put == NoNode ? 0
                         : sumOf(N, States[G.input(Put, 2).Node],
                                 Facts.Types.natural(G.input(Put, 2)));
  }
  case Branch:
  case Leave:
    return leave(N);
  default:
    return join(N);
  }
}

RepeatedRows::State RepeatedRows::split(NodeId N) {
  auto It = SourceOf.find(N);
  NodeId Of = G.input(N, 0).Node;
  if (stateOf(N, G.input(N, 0)) != 0)
    return refuse(N, "splits a value that depends on the number of shards");
  if (It == SourceOf.end()) {
    if (G.node(Of).Kind == Inserted::Definition)
      return 0;
    // The split fails unless N divides the rows.
    return Each | Even;
  }
  if (Plan)
    need(Need::Repeat, N, 0, only(It->second));
  return only(It->second);
}

/// Returns the state of \p N, the sum over all replicas of a value of type \p
/// Type and state \p S.
RepeatedRows::State RepeatedRows::sumOf(NodeId N, State S,
                                        ReplicationType Type) {
  int K = Type.K + (Type.isReplicated() ? 1 : 0);
  if (auto Assumed = G.intAttr(N, AssumedAttr))
    K = static_cast<int>(*Assumed);
  // Each shard is in a mean equally often.
  if (S == 0 || S & Each || K == 1 || (Type.Zero && K == 0))
    return K == 0 ? 0 : Each;
  if (!Plan)
    return S | Raw;
  need(Need::Share, N, -1, S);
  return K == 0 ? 0 : S;
}

/// Returns the state of \p N, a collective that gives each replica the values
/// of all replicas.
RepeatedRows::State RepeatedRows::exchange(NodeId N) {
  Endpoint E = G.input(N, 0);
  State S = stateOf(N, E);
  if (S == 0)
    return 0;
  if (G.isOp(N, op::CollectiveGather) && !(S & Each) &&
      !isLengthGatherOp(G, E.Node)) {
    if (!Plan)
      return S | Raw;
    Needs.push_back({Need::Keep, N, -1, sourceFor(N, {N, 0}, S)});
    return isTrue(N) ? 0 : S;
  }
  bool IsGather = G.isOp(N, op::CollectiveGather) || G.isOp(N, GatherOp);
  std::optional<int> Share = IsGather ? std::nullopt : shareOf(E);
  bool IsMean = Share == 0;
  if (!(S & Each) && Share == 1 && G.isOp(N, op::CollectiveReduce) &&
      !isFloating(G.outputType(E))) {
    // An integer term times n/N may be a fraction. So the sum is multiplied
    // instead, behind the barrier.
    if (!Plan)
      return S | Raw;
    G.forEachUse(N, [&](Use U) {
      if (G.isData(U))
        need(Need::Share, U.User, -1, S);
    });
    return isTrue(N) ? 0 : S;
  }
  if (!(S & Each) && !IsMean) {
    // A barrier follows the sum, so each term is multiplied by its share.
    if (!Plan || !Share || !isFloating(G.outputType(E)))
      return refuse(N, "is a " + G.opName(N) +
                           ", for which each replica must have a different "
                           "shard");
    need(Need::Share, N, 0, S, *Share);
  }
  return isTrue(N) ? 0 : Each;
}

RepeatedRows::State RepeatedRows::merge(NodeId N) {
  Endpoint E = G.input(N, 0);
  // The merge of an inserted check only counts rows.
  if (G.node(E.Node).Kind == Inserted::Check)
    return 0;
  State S = stateOf(N, E);
  ReplicationType Type = Facts.Types.number(E);
  StringRef How = G.stringAttr(N, CombineAttr).value_or("");
  if (How == combine::Sum)
    return sumOf(N, S, Type);
  if (G.node(N).NumData == 2 && !runsWith(G.input(N, 1), E))
    return refuse(N, "takes its number of rows from a tensor of another "
                     "branch");
  if (How == combine::Concat && S != 0 && !(S & Each) &&
      (Plan || G.node(N).NumData != 2)) {
    unsigned Source = sourceFor(N, {N, 0}, S);
    for (unsigned I = 0; I < Sources.size(); ++I)
      if (S & only(I) && runsWith({Sources[I].Node, 0}, {N, 0}) &&
          rowsOf(N, I, G.intAttr(N, "axis").value_or(0)))
        Source = I;
    Needs.push_back({Need::Keep, N, -1, Source});
  }
  return isTrue(N) ? 0 : S;
}

RepeatedRows::State RepeatedRows::scale(NodeId N) {
  Endpoint E = G.input(N, 0);
  State S = stateOf(N, E);
  int64_t Share = G.intAttr(N, ShareAttr).value_or(0);
  ReplicationType Result = Facts.Types.natural({N, 0});
  if (auto It = SourceOf.find(N); It != SourceOf.end()) {
    if (Plan)
      need(Need::Factor, N, 0, only(It->second));
    return only(It->second);
  }
  // A plan may not know that the value is zero.
  ReplicationType Value = Facts.Types.number(E);
  if (!Plan && S == 0 && Value.Zero && Value.isReplicated())
    return 0;
  bool HasFactor = G.node(N).NumData == 2;
  if (HasFactor) {
    if (!runsWith(G.input(N, 1), E))
      return refuse(N, "scales by the rows of a tensor of another branch");
    auto Lookup = rowLookup(G, G.input(N, 1));
    auto Source = Lookup ? sourceAt(Lookup->Rest) : std::nullopt;
    if (!Source || !(S & only(*Source)) || S & Each)
      return refuse(N, "scales by the number of shards of a feed on which its "
                       "value does not depend");
  }
  if (Share != 0) {
    bool IsSum = S & Raw;
    if (!HasFactor || (IsSum ? 1 : shareOf(E)) != Share)
      return refuse(N, "does not scale its value by the right power of the "
                       "number of shards");
    return !IsSum ? Each : isTrue(N) ? 0 : S & ~Raw;
  }
  if (S == 0)
    return isTrue(N) ? 0 : Each;
  // N^-1 times a mean is a term of a sum over N replicas.
  if (!(S & Each) && !HasFactor && Result.isPartial() && shareOf(E) == 0)
    return Each;
  if (!(S & Each) && !HasFactor)
    need(Need::Factor, N, 0, S);
  return isTrue(N) ? 0 : S;
}

/// Returns the e for which \p E * (n/N)^e is the value, or the term of the sum,
/// that N replicas with different shards would compute. Returns nothing if
/// there is no such e.
std::optional<int> RepeatedRows::shareOf(Endpoint E) const {
  ReplicationType Type = Facts.Types.number(E);
  if (Type.isPartial() && Type.Op == Combine::Sum)
    return 1 - Type.K;
  return Type.isReplicated() ? std::optional(-Type.K) : std::nullopt;
}

/// Returns the node that must wait for a check on the values that \p N
/// combines. This is \p N, or if \p N is in a loop, an Enter whose users all
/// depend on \p N. Prefers an Enter that \p Waits accepts. Returns NoNode if
/// there is no such Enter.
NodeId RepeatedRows::placeBefore(NodeId N,
                                 function_ref<bool(NodeId)> Waits) const {
  if (!Loops || !Loops->isInLoop(N))
    return N;
  auto IsInside = [&](NodeId M) { return Loops->isInLoop(M); };
  DenseSet<NodeId> Above, Below;
  walkInputs(G, {N}, Along::Data, Above, IsInside);
  walkUsers(G, {N}, Along::Data, Below, IsInside);
  NodeId First = NoNode;
  for (NodeId Each : Loops->nest(N)) {
    if (!Above.contains(Each) || !G.isOp(Each, op::Enter) ||
        Loops->around(Loops->frame(Each)) != 0)
      continue;
    bool AreBelow = G.hasUses(Each) && !G.anyUse(Each, [&](Use U) {
      return !Above.contains(U.User) || !Below.contains(U.User);
    });
    if (!AreBelow)
      continue;
    if (Waits(Each))
      return Each;
    if (First == NoNode)
      First = Each;
  }
  return First;
}

/// Returns true if \p E, of type \p Type, is the n of a source in \p S.
bool RepeatedRows::isNumberOfShards(Endpoint E, State S, unsigned Type) const {
  auto Lookup = rowLookup(G, E);
  if (!Lookup || G.attr(Lookup->Table, "value") !=
                     scaleTable(Facts.Dims.replicas(), Type, 1, 0))
    return false;
  auto Source = sourceAt(Lookup->Rest);
  return Source && S & only(*Source);
}

/// Returns true if \p N waits for a check that sources in \p A and \p B have
/// the same n. If a set has Each, all its shards differ, so its n is N.
bool RepeatedRows::waits(NodeId N, State A, State B) const {
  auto IsNumberOf = [&](Endpoint E, State S) {
    if (!(S & Each))
      return isNumberOfShards(E, S, DT_INT32);
    return G.isOp(E.Node, op::Const) &&
           G.attr(E.Node, "value") ==
               encodeIntTensor(DT_INT32, {}, int64_t(Facts.Dims.replicas()));
  };
  return any_of(G.controlInputs(N), [&](Endpoint Gate) {
    return G.node(Gate.Node).Kind == Inserted::Gate &&
           any_of(G.controlInputs(Gate.Node), [&](Endpoint E) {
             if (!G.isOp(E.Node, op::Assert) || G.node(E.Node).NumData == 0)
               return false;
             NodeId Same = G.input(E.Node, 0).Node;
             return G.isOp(Same, op::Equal) && G.node(Same).NumData == 2 &&
                    ((IsNumberOf(G.input(Same, 0), A) &&
                      IsNumberOf(G.input(Same, 1), B)) ||
                     (IsNumberOf(G.input(Same, 0), B) &&
                      IsNumberOf(G.input(Same, 1), A)));
           });
  });
}

/// Returns true if an op needs the sources in \p Sets to have equally many
/// rows.
bool RepeatedRows::haveOneNumber(ArrayRef<State> Sets) const {
  std::optional<uint16_t> Rows;
  for (State S : Sets)
    for (unsigned I = 0; I < Sources.size(); ++I) {
      // Skip a fed number: it is a source only because an op requires it to be
      // a row count.
      if (!(S & only(I)) || Roles[G.node(Sources[I].Node).Op] == Scaled)
        continue;
      if (Rows && *Rows != Sources[I].Rows)
        return false;
      Rows = Sources[I].Rows;
    }
  return true;
}

/// Lets \p N combine values of the sources \p Sets, after a check that the
/// sources have the same n. Returns false if this is impossible.
bool RepeatedRows::meet(NodeId N, ArrayRef<State> Sets) {
  if (Roles[G.node(N).Op] == Branch)
    return false;
  if (any_of(Sets,
             [](State S) { return S & Raw || (S & Each && !(S & Even)); }))
    return false;
  // Move sets with Each to the end, so that the first set has a source.
  SmallVector<State, 4> All(Sets);
  llvm::stable_sort(All,
                    [](State A, State B) { return !(A & Each) && B & Each; });
  for (State S : ArrayRef(All).drop_front()) {
    NodeId Place =
        placeBefore(N, [&](NodeId Enter) { return waits(Enter, S, All[0]); });
    if (Place == NoNode)
      return false;
    Need Wait{Need::Equal, Place, -1, sourceIn(All[0]),
              S & Each ? AllShards : sourceIn(S)};
    if (!waits(Place, S, All[0]) && !is_contained(Needs, Wait))
      Needs.push_back(Wait);
  }
  return true;
}

/// Adds \p S to the states of the arrays and stacks that \p N uses.
RepeatedRows::State RepeatedRows::hold(NodeId N, State S) {
  for (NodeId Handle : Loops->handlesUsedBy(G, N)) {
    State &Was = Held[Handle];
    if (Was != 0 && S != 0 && !(Was & S))
      return refuse(N, "writes to an array or a stack that holds values of "
                       "another feed");
    S = Was |= S;
  }
  return isTrue(N) ? 0 : S;
}

/// Returns the state of a node that combines no replicas.
RepeatedRows::State RepeatedRows::join(NodeId N) {
  // Most nodes follow one set of sources, or none.
  State Only = 0;
  bool IsOne = !Facts.Types.anyStates();
  for (Endpoint E : G.dataInputs(N)) {
    State S = States[E.Node];
    IsOne &= S == 0 || ((Only == 0 || S == Only) && !(S & Raw));
    Only |= S;
  }
  return IsOne ? resultOf(N, Only) : joinSets(N);
}

/// Returns the state of the results of \p N, whose operands have state \p S.
RepeatedRows::State RepeatedRows::resultOf(NodeId N, State S) {
  // The result of a write (a flow) is no element, so it gets the state of the
  // array or stack.
  if (Loops && !Loops->handlesUsedBy(G, N).empty())
    return hold(N, S);
  return S == 0 || isTrue(N) ? 0 : S;
}

/// Returns the state of \p N, whose operands have several states.
RepeatedRows::State RepeatedRows::joinSets(NodeId N) {
  const Node &This = G.node(N);
  bool IsUpdate = Facts.Vars.isUpdate(G, N);
  unsigned NumVars = IsUpdate ? Facts.Vars.update(G, N).NumVars : 0;
  bool UsesState = Facts.Types.usesState(N);
  SmallVector<State, 4> Sets;
  State All = 0;
  // If all values are numbers or terms of sums, each can follow N instead of n.
  bool AreTerms = true, AreMeans = true;
  for (unsigned I = 0; I < This.NumData; ++I) {
    Endpoint E = G.input(N, I);
    State S = stateOf(N, E);
    // Zeros follow n only if their sizes do.
    if (S == 0 || (Facts.Types.type(E).Zero && Facts.Dims.isPlain(E)))
      continue;
    std::optional<int> Share = shareOf(E);
    // The copies of the variable hold the terms of N replicas.
    if (UsesState && IsUpdate && I >= NumVars && !(S & Each) && Share) {
      if (*Share != 0)
        need(Need::Share, N, static_cast<int>(I), S, *Share);
      S = Each;
    }
    AreMeans &= S & Each || Share == 0;
    AreTerms &=
        S & Each || Share == 0 || (Share && isFloating(G.outputType(E)));
    All |= S;
    // Merge into S each set that overlaps with S. The sets are disjoint, so a
    // merged set overlaps with no other set.
    for (State Set : Sets)
      if (Set & S)
        S |= Set;
    erase_if(Sets, [&](State Set) { return Set & S; });
    Sets.push_back(S);
  }
  if (UsesState)
    return Each;
  if (All & Raw)
    return All;
  State Result = All;
  if (Sets.size() > 1) {
    if (AreTerms &&
        (AreMeans || All & Each || !haveOneNumber(Sets) || !meet(N, Sets))) {
      for (unsigned I = 0; I < This.NumData; ++I) {
        Endpoint E = G.input(N, I);
        State S = States[E.Node];
        if (S != 0 && !(S & Each) && shareOf(E).value_or(0) != 0)
          need(Need::Share, N, static_cast<int>(I), S, *shareOf(E));
      }
      Result = Each;
    } else if (!AreTerms && !meet(N, Sets)) {
      return refuse(N, "combines values of feeds that may have different "
                       "numbers of rows");
    }
  }
  return resultOf(N, Result);
}

} // namespace graft
