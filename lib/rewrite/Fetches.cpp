//===- lib/rewrite/Fetches.cpp - tensors that a run may fetch -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Fetches.h"
#include "lib/ops/ProgramOps.h"

#include "lib/io/ModuleVerifier.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/TensorNames.h"

#include "tensorflow/core/framework/variable.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/Sequence.h"

#include <queue>

using namespace llvm;

namespace graft {

bool hasNoAggregate(const Graph &G, const ProgramFacts &Facts, Endpoint E) {
  if (!Facts.Types.anyStates())
    return false;
  ReplicationType Type = Facts.Types.number(E);
  // Rows that a replica looks up in its copy are local to the replica.
  return Type.isVarying() && Type.Cause != NoNode &&
         (G.node(Type.Cause).Plan == Policy::SyncOnRead ||
          (Facts.Types.isByPolicy(Type) && Facts.Dims.batchAxis(E) >= 0));
}

bool hasWholeSizes(const ProgramFacts &Facts, Endpoint E) {
  return Facts.Types.natural(E).Symbolic && Facts.Types.sizePowers(E);
}

Fetches::Fetches(const Graph &G, const ProgramFacts &Facts, bool Picks)
    : G(G), Facts(Facts), Picks(Picks),
      SizeReaders(G,
                  [](StringRef Op, const OpDef *) {
                    return ruleOf(Op).Is & trait::ReadsSizes ||
                           Op == op::OnesLike || Op == op::ZerosLike;
                  }),
      Loops(LoopInfo::find(G, Facts.Order)) {}

bool Fetches::isScalar(Endpoint E) const {
  auto Shape = Facts.Dims.shape(E);
  return Shape && Shape->empty();
}

/// Returns true if \p E is a scalar over all rows, such as a loss: a partial
/// value, or a reduced value that was divided by the row count of one replica.
bool Fetches::sumsUpBatch(Endpoint E) const {
  ReplicationType Type = Facts.Types.natural(E);
  return isScalar(E) &&
         (Type.isPartial() || (Type.isReplicated() && Type.K > 0 &&
                               !Type.Symbolic && isFloating(G.outputType(E))));
}

/// Returns the names that an error message suggests.
static std::vector<std::string> inputNames(const Graph &G) {
  std::vector<std::string> Known;
  Known.reserve(G.numInputNodes());
  for (NodeId N = 0; N < G.numInputNodes(); ++N)
    Known.push_back(G.name(N).str());
  return Known;
}

std::vector<Endpoint> fetchesLike(const Graph &G, StringRef Pattern,
                                  const LoopInfo *Loops) {
  std::vector<Endpoint> Result;
  for (StringRef Name : tensorsLike(G, Pattern)) {
    Endpoint E = *G.findEndpoint(Name);
    unsigned Type = G.outputType(E);
    if (E.Port < G.numOutputs(E.Node).value_or(E.Port + 1) &&
        Type != DT_RESOURCE && Type != DT_VARIANT &&
        !(Loops && Loops->givesInside(E.Node)))
      Result.push_back(E);
  }
  return Result;
}

/// Adds \p E and all earlier outputs of its node. A merged output gets the name
/// of the node only if the earlier outputs are merged too.
void Fetches::addNamed(Endpoint E, bool Alone) {
  Found[{E.Node, E.Port}] |= Alone;
  while (E.Port-- > 0)
    Found.try_emplace({E.Node, E.Port}, false);
}

bool Fetches::addPattern(StringRef Pattern, DiagnosticEngine &Diags) {
  std::vector<Endpoint> Like = fetchesLike(G, Pattern, Loops.get());
  for (Endpoint E : Like)
    if (Facts.Dims.validPort(E))
      addNamed(E, /*Alone=*/false);
  if (!Like.empty())
    return true;
  std::vector<std::string> All = tensorsLike(G, Pattern);
  // Operations are run, not fetched.
  if (any_of(All, [&](StringRef Name) {
        return Facts.Dims.numOutputs(G.findEndpoint(Name)->Node) == 0;
      }))
    return true;
  Diags.error("", All.empty()
                      ? ("--fetch: the graph has no tensor like '" + Pattern +
                         "'" + didYouMean(Pattern, inputNames(G)))
                            .str()
                      : ("--fetch: none of the tensors like '" + Pattern +
                         "', such as '" + All.front() +
                         "', can be fetched: each is in a loop, where it has a "
                         "different value in each iteration, or is a handle, "
                         "or its op has no such output")
                            .str());
  return false;
}

bool Fetches::addNamed(const Module &M, ArrayRef<std::string> Names,
                       DiagnosticEngine &Diags) {
  for (StringRef Name : Names) {
    if (isPattern(G, Name)) {
      if (!addPattern(Name, Diags))
        return false;
      continue;
    }
    auto E = G.findEndpoint(Name);
    if (!E || E->isControl()) {
      Diags.error("", "--fetch: the graph has no tensor '" + Name.str() + "'" +
                          didYouMean(Name, inputNames(G)));
      return false;
    }
    // An operation without outputs is run, not fetched.
    if (E->Port == 0 && Facts.Dims.numOutputs(E->Node) == 0)
      continue;
    if (!Facts.Dims.validPort(*E)) {
      Diags.error(G.name(E->Node),
                  "--fetch: there is no output " + std::to_string(E->Port));
      return false;
    }
    if (isInLoop(E->Node)) {
      Diags.error(G.name(E->Node),
                  "--fetch: this tensor is in a loop, where it has a "
                  "different value in each iteration");
      return false;
    }
    addNamed(*E, /*Alone=*/true);
  }
  const tensorflow::MetaGraphDef *Meta = M.metaGraph();
  if (!Meta)
    return true;
  auto Add = [&](StringRef Name) {
    auto E = G.findEndpoint(Name);
    if (E && !E->isControl() && Facts.Dims.validPort(*E) && !isInLoop(E->Node))
      Found.try_emplace({E->Node, E->Port}, false);
  };
  // The order of protobuf's hash map has no effect, because Found is sorted.
  for (const auto &[Key, Collection] : Meta->collection_def()) {
    for (const std::string &Name : Collection.node_list().value())
      if (Name.find(':') != std::string::npos)
        Add(Name);
    // The initial value of a variable is the same on all replicas.
    tensorflow::VariableDef Variable;
    if (!Picks && holdsVariables(Key))
      for (const std::string &Bytes : Collection.bytes_list().value())
        if (Variable.ParseFromString(Bytes))
          Add(Variable.initial_value_name());
  }
  for (const auto &[Key, Signature] : Meta->signature_def())
    for (const auto &[Output, Info] : Signature.outputs())
      Add(Info.name());
  return true;
}

/// Returns true if the scalar of \p N, which is equal on all replicas, gets a
/// merge although no user named it. A read of a variable needs no merge.
bool Fetches::isWorthPicking(NodeId N) const {
  return Picks && isScalar({N, 0}) && none_of(G.dataInputs(N), [&](Endpoint E) {
           return Facts.Vars.variableOf(E) != NoNode;
         });
}

/// Returns true if a feed with a known number of rows is split.
bool Fetches::hasStaticBatch() const {
  return any_of(seq(NodeId(0), G.size()), [&](NodeId N) {
    if (G.node(N).Kind != Inserted::Split || !G.isLive(N) ||
        !G.isOp(N, ToReplicasOp))
      return false;
    auto Shape = Facts.Dims.shape({N, 0});
    auto Axis = static_cast<size_t>(G.intAttr(N, "axis").value_or(0));
    return Shape && Axis < Shape->size() &&
           Facts.Dims.table().number((*Shape)[Axis]) != UnknownSize;
  });
}

/// Returns true if replicas read the elements of \p E.
bool Fetches::isRead(Endpoint E) const {
  return G.anyUse(E.Node, [&](Use U) {
    return G.input(U) == E && G.isPerReplica(U.User) && !readsSize(U);
  });
}

/// Returns true if \p E may be a loss with an error for each example, which no
/// node sums. The gradient then reads only the size of \p E, to make ones, or
/// another output of the op.
bool Fetches::isLossOfRows(Endpoint E) const {
  return isFloating(G.outputType(E)) && hasValue(E) &&
         (G.anyUse(E.Node,
                   [&](Use U) { return G.input(U) == E && readsSize(U); }) ||
          (E.Port == 0 && Facts.Dims.numOutputs(E.Node) > 1 && !isRead(E)));
}

/// Returns true if a gradient begins with ones in the shape of \p E. The
/// gradient may also read the value of \p E.
bool Fetches::beginsGradient(Endpoint E) const {
  return G.anyUse(E.Node, [&](Use U) {
    if (G.input(U) != E || !readsSize(U))
      return false;
    return G.isOp(U.User, op::OnesLike) || G.anyUse(U.User, [&](Use Size) {
      if (Size.Index != 0 || !G.isOp(Size.User, op::Fill))
        return false;
      auto Value = constValue(G, G.input(Size.User, 1).Node);
      return Value && !Value->AllZero && isFloating(Value->Type);
    });
  });
}

/// Finds the nodes at which inference lost the batch size. Their type and shape
/// are unknown, and an operand is replicated or also lost the batch size.
std::vector<bool> Fetches::findLost() const {
  std::vector<bool> Lost(G.size());
  if (!hasStaticBatch())
    return Lost;
  auto IsOpen = [&](Endpoint E) {
    return Facts.Types.number(E).isVarying() && !Facts.Dims.shape(E) &&
           G.outputType(E) != DT_VARIANT;
  };
  auto MaySay = [&](Endpoint E) {
    auto Shape = Facts.Dims.shape(E);
    return Lost[E.Node] ||
           (Facts.Types.type(E).isReplicated() && (!Shape || !Shape->empty()));
  };
  for (NodeId N : Facts.Order) {
    bool Open = G.isPerReplica(N) &&
                any_of(seq(0u, Facts.Dims.numOutputs(N)),
                       [&](unsigned Port) { return IsOpen({N, Port}); });
    // An op with a type rule has lost the batch size only if an operand is
    // unknown too.
    if (Open && (!ruleOf(G.opName(N)).Type || any_of(G.dataInputs(N), IsOpen)))
      Lost[N] = any_of(G.dataInputs(N), MaySay) || G.isOp(N, op::EnsureShape);
  }
  return Lost;
}

/// Returns true if \p N reads a variable whose copies may differ by policy, or
/// reads all parts of it.
bool Fetches::readsState(NodeId N) const {
  if (Facts.Types.usesState(N))
    return true;
  if (!G.isOp(N, op::Identity))
    return false;
  NodeId Parts = G.input(N, 0).Node;
  return G.isOp(Parts, op::ConcatV2) &&
         all_of(G.dataInputs(Parts).drop_back(),
                [&](Endpoint E) { return Facts.Types.usesState(E.Node); });
}

void Fetches::addSinks() {
  std::vector<bool> IsLost = findLost();
  for (NodeId N : Facts.Order) {
    // A run cannot fetch a tensor of a loop.
    if (isInLoop(N) || !G.isPerReplica(N) || G.node(N).Kind != Inserted::No ||
        G.node(N).Flags & NF_LocalName || Facts.Vars.isUpdate(G, N))
      continue;
    bool Aggregates = !hasNoAggregate(G, Facts, {N, 0});
    if (G.anyUse(N, [&](Use U) {
          return G.isData(U) && G.isPerReplica(U.User) && !readsSize(U);
        })) {
      // A fetch of a variable's read must aggregate all copies. Users also
      // fetch scalars over all rows, such as a loss to which a penalty is
      // added. Such a merge costs nothing unless a run fetches it.
      if ((readsState(N) && Aggregates) ||
          (sumsUpBatch({N, 0}) && Facts.Dims.numOutputs(N) == 1 &&
           G.outputType(N, 0) != DT_VARIANT))
        Found.try_emplace({N, 0}, false);
      // A branch that is not taken has no value.
      for (uint32_t Port = 0;
           Port < Facts.Dims.numOutputs(N) && !G.isOp(N, op::Switch); ++Port)
        if (Endpoint E{N, Port}; !isRead(E) && isLossOfRows(E))
          Found.try_emplace({N, Port}, false);
      continue;
    }
    if (Facts.Vars.variableOf({N, 0}) != NoNode || G.isOp(N, op::Const) ||
        !Aggregates)
      continue;
    if (IsLost[N])
      Lost.push_back(N);
    for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
      if (isResult({N, Port}))
        Found.try_emplace({N, Port}, false);
  }
}

std::vector<std::pair<NodeId, NodeId>>
Fetches::unrelated(ArrayRef<std::string> Names) const {
  BitVector Named(G.size());
  for (StringRef Name : withoutPatterns(G, Names))
    if (auto E = G.findEndpoint(Name); E && !E->isControl())
      Named.set(E->Node);
  std::vector<std::pair<NodeId, NodeId>> Result;
  for (NodeId N : Facts.Order) {
    if (isInLoop(N) || !G.isPerReplica(N) || G.node(N).Kind != Inserted::No ||
        Facts.Vars.isUpdate(G, N) ||
        (!Named[N] && G.anyUse(N, [&](Use U) { return G.isData(U); })))
      continue;
    for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
      ReplicationType Number = Facts.Types.number({N, Port});
      if (!Number.isVarying() || Number.Cause == NoNode ||
          Facts.Types.isByPolicy(Number) || G.outputType(N, Port) == DT_VARIANT)
        continue;
      Result.push_back({N, Number.Cause});
      break;
    }
  }
  return Result;
}

/// Returns true if \p E, which no replica reads, is a result to be merged. A
/// value of unknown type is not merged: it loses its name, and a user who
/// fetches it gets a message.
bool Fetches::isResult(Endpoint E) const {
  ReplicationType Number = Facts.Types.number(E);
  return (isWorthPicking(E.Node) || !Number.isTrue()) &&
         G.outputType(E) != DT_VARIANT &&
         (!Number.isVarying() || Facts.Types.isByPolicy(Number) ||
          Facts.Types.blocks(E) != 0 ||
          // Only sizes that no node reads are merged: there are too many
          // others.
          (hasWholeSizes(Facts, E) &&
           !G.anyUse(E.Node, [&](Use U) { return G.isData(U); })));
}

/// Returns true if the merge of \p E can take its name: the value is proved,
/// sharded or partial, and not a size. An op with more than two outputs splits
/// a value into parts, which users do not fetch.
bool Fetches::hasValue(Endpoint E) const {
  NodeId N = E.Node;
  if (G.node(N).Kind != Inserted::No || G.node(N).Flags & NF_LocalName ||
      Facts.Vars.isUpdate(G, N) || Facts.Types.usesState(N) ||
      Facts.Dims.numOutputs(N) > 2 || isInLoop(N))
    return false;
  // If a replica has one row, such a Sum also removes the batch axis.
  if (G.isOp(N, op::Sum) && G.node(N).NumData > 1 &&
      G.isOp(G.input(N, 1).Node, op::BroadcastGradientArgs))
    return false;
  ReplicationType Type = Facts.Types.number(E);
  unsigned DataType = G.outputType(E);
  bool HoldsRows = !Type.Zero && Type.Order != ReplicationType::AnyOrder;
  return HoldsRows && !Type.isTrue() && !Type.isVarying() && !Type.Symbolic &&
         DataType != DT_VARIANT && DataType != DT_RESOURCE &&
         Facts.Dims.shape(E);
}

/// Adds \p N, and its second output if it has as many axes. A fetch of
/// per-example errors must not wait for the larger second output, their
/// gradient. Returns the number of new tensors.
size_t Fetches::addValues(NodeId N) {
  if (!hasValue({N, 0}))
    return 0;
  size_t New = Found.try_emplace({N, 0}, false).second;
  if (Facts.Dims.numOutputs(N) > 1 && hasValue({N, 1}) &&
      Facts.Dims.shape({N, 0})->size() == Facts.Dims.shape({N, 1})->size())
    New += Found.try_emplace({N, 1}, false).second;
  return New;
}

/// Returns the sizes of an example of \p E if it has two or more, all known.
std::vector<int64_t> Fetches::exampleSizes(Endpoint E) const {
  auto Shape = Facts.Dims.shape(E);
  if (!Shape || Shape->size() < 3)
    return {};
  std::vector<int64_t> Sizes;
  for (DimId D : Shape->drop_front())
    Sizes.push_back(Facts.Dims.table().number(D));
  return all_of(Sizes, [](int64_t Size) { return Size > 0; })
             ? Sizes
             : std::vector<int64_t>();
}

/// Returns true if \p N computes a vector for each example, or examples of the
/// size of a fed example. Such values are the state of a recurrence, an
/// embedding, the output of a layer, or a picture that a generator makes.
bool Fetches::mayBeState(NodeId N) const {
  auto Shape = Facts.Dims.shape({N, 0});
  return Shape && (Shape->size() <= 2 || FedSizes.count(exampleSizes({N, 0})));
}

/// Returns true if only gradients use \p Op. Excludes the gradient op of a
/// convolution's input, because it also computes transposed convolutions.
static bool isGradientOp(StringRef Op) {
  return Op == op::BroadcastGradientArgs || Op == op::ConcatOffset ||
         Op.ends_with("Grad") || Op.contains("GradV") ||
         Op.contains("BackpropFilter");
}

/// Finds nodes that are computed from a gradient.
static BitVector madeOfGradients(const Graph &G, ArrayRef<NodeId> Order,
                                 const PerOp &IsGradient) {
  BitVector Made(G.size());
  for (NodeId N : Order)
    if (IsGradient[G.node(N)] || any_of(G.dataInputs(N), [&](Endpoint E) {
          return Made[E.Node] && G.isPerReplica(E.Node);
        }))
      Made.set(N);
  return Made;
}

void Fetches::addForward() {
  for (NodeId N : Facts.Order)
    if (G.node(N).Kind == Inserted::Split)
      if (auto Sizes = exampleSizes({N, 0}); !Sizes.empty())
        FedSizes.insert(std::move(Sizes));
  BitVector OfGradients = madeOfGradients(
      G, Facts.Order,
      PerOp(G, [](StringRef Op, const OpDef *) { return isGradientOp(Op); }));
  // Weights, and values that depend only on weights, are equal on all replicas.
  BitVector Seen(G.size()), OfVariable(G.size());
  auto IsWeight = [&](Endpoint E) {
    if (!Facts.Types.number(E).isTrue() || isScalar(E))
      return false;
    SmallVector<NodeId, 8> Path = {E.Node};
    while (!Path.empty()) {
      NodeId N = Path.back();
      bool First = !Seen[N];
      Seen.set(N);
      if (First && Facts.Vars.variableOf({N, 0}) != NoNode)
        OfVariable.set(N);
      else if (First)
        for (Endpoint From : G.dataInputs(N))
          if (!Seen[From.Node] && Facts.Types.number(From).isTrue())
            Path.push_back(From.Node);
      if (Path.back() != N)
        continue;
      Path.pop_back();
      if (any_of(G.dataInputs(N),
                 [&](Endpoint From) { return OfVariable[From.Node]; }))
        OfVariable.set(N);
    }
    return bool(OfVariable[E.Node]);
  };
  // Limits the number of merged values. Each costs as many output bytes as a
  // quarter of a node on each replica. The values before the last weight may
  // cost 2 % of the output. MostNames bounds the time in a large graph.
  constexpr size_t LeastNames = 4, MostNames = 512, NodesForName = 16;
  const size_t Most =
      std::min<size_t>(MostNames, LeastNames + G.size() / NodesForName);
  size_t Left = Most, LeftLast = Most / 4;
  size_t LeftAfter = MostNames;
  // First adds values after the last weight, then the nearest values before it.
  std::vector<NodeId> Work, Before;
  BitVector Reached(G.size());
  for (NodeId N : Facts.Order)
    if (Endpoint E{N, 0}; !OfGradients[N] && G.isPerReplica(N) &&
                          beginsGradient(E) && isLossOfRows(E))
      Found.try_emplace({N, 0}, false);
  for (const auto &[Tensor, Named] : Found)
    if (Endpoint E{Tensor.first, Tensor.second};
        !OfGradients[E.Node] && (sumsUpBatch(E) || isLossOfRows(E)))
      Work.push_back(E.Node);
  for (NodeId N : Facts.Order)
    if (isKeptOnce(G, N) && isScalar({N, 0}) &&
        isFloating(G.outputType({N, 0})) && !OfGradients[N])
      Before.push_back(N);
  for (size_t I = 0; I < Work.size(); ++I) {
    NodeId N = Work[I];
    if (Reached[N] || !G.isPerReplica(N))
      continue;
    Reached.set(N);
    if (LeftAfter != 0)
      LeftAfter -= std::min(LeftAfter, addValues(N));
    auto &Next = any_of(G.dataInputs(N), IsWeight) ? Before : Work;
    for (Endpoint E : G.dataInputs(N))
      Next.push_back(E.Node);
  }
  size_t I = 0;
  auto Name = [&](NodeId N, size_t &Left) {
    if (Reached[N] || OfGradients[N])
      return false;
    Reached.set(N);
    if (G.isPerReplica(N) && mayBeState(N))
      Left -= std::min(Left, addValues(N));
    return true;
  };
  for (; I < Before.size() && Left != 0; ++I) {
    NodeId N = Before[I];
    if (Name(N, Left))
      for (Endpoint E : G.dataInputs(N))
        Before.push_back(E.Node);
  }
  if (I == Before.size())
    return;
  // If a loss covers all steps of an unrolled recurrence, the values nearest to
  // the loss would use up all names. So the values that are computed last, such
  // as the final states, get a quarter as many names.
  std::vector<uint32_t> Position(G.size());
  for (auto [Index, N] : enumerate(Facts.Order))
    Position[N] = static_cast<uint32_t>(Index);
  std::priority_queue<std::pair<uint32_t, NodeId>> Last;
  for (NodeId N : ArrayRef(Before).drop_front(I))
    Last.emplace(Position[N], N);
  while (!Last.empty() && LeftLast != 0) {
    NodeId N = Last.top().second;
    Last.pop();
    if (Name(N, LeftLast))
      for (Endpoint E : G.dataInputs(N))
        Last.emplace(Position[E.Node], E.Node);
  }
}

} // namespace graft
