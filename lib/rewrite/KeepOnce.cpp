//===- lib/rewrite/KeepOnce.cpp - computes unproved nodes once ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/KeepOnce.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/PerOp.h"
#include "lib/infer/batch/LocalSizes.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/TensorNames.h"
#include "lib/program/forms/EntrySlice.h"
#include "lib/program/forms/SeedOffset.h"
#include "lib/rewrite/Fetches.h"
#include "lib/rewrite/Merges.h"
#include "lib/rewrite/OnceCut.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {
namespace {

/// Restores the value of a constant, or the element shape of an array, that the
/// input graph has.
void restoreSizes(Graph &G, NodeId N) {
  auto Was = G.attr(N, OriginalAttr);
  if (!Was)
    return;
  StringRef Key =
      G.isOp(N, op::Const) ? StringRef("value") : statedShape(G.opName(N));
  G.setAttr(N, Key, std::string(*Was));
  G.removeAttr(N, OriginalAttr);
}

/// Updates the local sizes in the constant \p N after nodes became
/// unreplicated. Makes a size global again if it was per-replica only because
/// of these nodes. Returns false if \p N already holds the right sizes.
bool updateSizes(Graph &G, NodeId N, const DimAnalysis &Dims,
                 unsigned Replicas) {
  auto Original = G.attr(N, OriginalAttr);
  if (!Original || Dims.batchAxis({N, 0}) >= 0)
    return false;
  std::string Bytes(*Original);
  auto Was = tensorValue(Bytes), Now = constValue(G, N);
  auto Sizes = Dims.value({N, 0});
  if (Was && Now && Sizes && Was->Shape.Dims == Now->Shape.Dims &&
      Was->Ints.size() == Sizes->size() && Now->Ints.size() == Sizes->size()) {
    bool IsLocal = false;
    auto Local = Was->Ints;
    for (size_t I = 0; I < Local.size(); ++I) {
      int64_t Times = timesLarger(Dims.table(), (*Sizes)[I], Replicas);
      if (Local[I] % Times != 0)
        return false;
      Local[I] /= Times;
      IsLocal |= Times != 1;
    }
    if (Local == Now->Ints)
      return false;
    if (IsLocal) {
      SmallVector<int64_t, 1> Shape(Was->Shape.Dims.begin(),
                                    Was->Shape.Dims.end());
      G.setAttr(N, "value", encodeIntTensor(Was->Type, Shape, Local));
      return true;
    }
  }
  restoreSizes(G, N);
  return true;
}

/// Updates the local sizes in all constants. Returns true if any changed.
bool updateSizes(Graph &G, const ProgramFacts &Facts) {
  bool Any = false;
  unsigned Replicas = readMesh(G).replicas();
  for (NodeId N : Facts.Order)
    if (G.node(N).Count == Copies::PerReplica && G.isOp(N, op::Const))
      Any |= updateSizes(G, N, Facts.Dims, Replicas);
  if (Any)
    G.markModified();
  return Any;
}

/// Removes each `_output_shapes` that contradicts local shapes, since
/// TensorFlow checks that both agree. Rows that are now split from an
/// unreplicated node have a per-replica size.
void dropStaleShapes(Graph &G, const ProgramFacts &Facts) {
  auto IsStale = [&](const ShapeValue &Told, ArrayRef<DimId> Sizes) {
    if (Told.UnknownRank || Told.Dims.size() != Sizes.size())
      return false;
    for (size_t I = 0; I < Sizes.size(); ++I)
      if (Told.Dims[I] >= 0 && !Facts.Dims.table().isSame(Sizes[I]))
        return true;
    return false;
  };
  for (NodeId N : Facts.Order) {
    if (G.node(N).Count != Copies::PerReplica)
      continue;
    auto Told = G.shapeListAttr(N, "_output_shapes");
    for (uint32_t Port = 0; Told && Port < Told->size(); ++Port)
      if (auto Sizes = Facts.Dims.shape({N, Port});
          Sizes && IsStale((*Told)[Port], *Sizes)) {
        G.removeAttr(N, "_output_shapes");
        break;
      }
  }
}

/// Removes merges whose operand no longer differs between replicas, because
/// nodes before it became unreplicated. Returns true if there were any.
bool dropStaleMerges(Graph &G, const ProgramFacts &Facts) {
  bool Any = false;
  for (NodeId N : Facts.Order)
    if (G.node(N).Kind == Inserted::Merge && combinesReplicas(G, N) &&
        !G.hasAttr(N, AssumedAttr) &&
        G.stringAttr(N, CombineAttr) == combine::Sum &&
        Facts.Types.natural(G.input(N, 0)).isPlain()) {
      G.replaceUses({N, 0}, G.input(N, 0));
      G.remove(N);
      Any = true;
    }
  if (Any)
    G.markModified();
  return Any;
}

/// Returns true if sync-batch-norm passes statistics to \p N, a fused batch
/// norm or its gradient. The results of \p N then differ from the results of
/// the same node in the input graph.
bool takesStatistics(const Graph &G, NodeId N) {
  return G.opName(N).starts_with(op::FusedBatchNorm) &&
         G.boolAttr(N, "is_training") == false && G.node(N).NumData > 4 &&
         G.node(G.input(N, 4).Node).Kind == Inserted::Definition;
}

/// Renames \p N and returns its old name. In the output, a name of the input
/// graph must refer to the same value or not exist.
std::string takeName(Graph &G, NodeId N) {
  std::string Name = G.name(N).str();
  G.setStringAttr(N, OriginAttr, Name);
  G.rename(N, G.uniqueName(Name + "/given"));
  return Name;
}

/// Removes colocation with the names \p Gone, which no longer exist.
void forgetColocation(Graph &G, const StringSet<> &Gone) {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    auto Names = G.stringListAttr(N, "_class");
    SmallVector<StringRef, 2> Left;
    if (!Names)
      continue;
    for (StringRef Name : *Names)
      if (StringRef With = Name;
          !With.consume_front("loc:@") || !Gone.contains(With))
        Left.push_back(Name);
    if (Left.size() == Names->size())
      continue;
    if (Left.empty())
      G.removeAttr(N, "_class");
    else
      G.setAttr(N, "_class", encodeStringListAttr(Left));
  }
}

/// One iteration: makes the nodes in TypeAnalysis::kept() unreplicated.
class OnceRewriter {
public:
  OnceRewriter(Graph &G, const ProgramFacts &Facts, const TypeAnalysis &Types,
               std::vector<SharedLoop> &Loops)
      : G(G), Facts(Facts), Types(Types), Loops(Loops), IsKept(G.size()) {
    for (NodeId N : Types.kept().Nodes)
      IsKept[N] = true;
    for (const Demand &D : Types.demands())
      if (D.Kind == Demand::Gather && Types.natural(D.Source).Whole)
        ReadsWhole.insert({D.User, D.Index});
  }

  void run();

private:
  struct Edge {
    NodeId User;
    unsigned Index;
    Endpoint From;
  };

  Endpoint whole(NodeId User, Endpoint E);
  std::optional<Endpoint> merged(Endpoint E, ReplicationType Type) const;
  Endpoint rows(Endpoint E, int Axis);
  void dropMerges(NodeId N);
  void dropUnused(NodeId N);
  void takeNameBack(NodeId N);

  Graph &G;
  const ProgramFacts &Facts;
  const TypeAnalysis &Types;
  std::vector<SharedLoop> &Loops;
  std::vector<bool> IsKept;
  DenseSet<std::pair<NodeId, unsigned>> ReadsWhole;
  DenseMap<std::pair<NodeId, uint32_t>, Endpoint> Merged, Split;
};

/// Finds a node that concatenates the shards of \p E, of type \p Type.
std::optional<Endpoint> OnceRewriter::merged(Endpoint E,
                                             ReplicationType Type) const {
  std::optional<Endpoint> Found;
  if (!Type.isSharded() || Type.K != 0)
    return Found;
  G.forEachUse(E.Node, [&](Use U) {
    if (G.node(U.User).Kind == Inserted::Merge &&
        G.input(U.User, U.Index) == E &&
        G.stringAttr(U.User, CombineAttr) == combine::Concat &&
        G.intAttr(U.User, "axis") == Type.Axis &&
        !G.hasAttr(U.User, AssumedAttr) && (!Found || U.User < Found->Node))
      Found = Endpoint{U.User, 0};
  });
  return Found;
}

/// Returns the global value of \p E, a per-replica tensor that \p User reads.
Endpoint OnceRewriter::whole(NodeId User, Endpoint E) {
  const Node &From = G.node(E.Node);
  if (From.Kind == Inserted::Split)
    return splitSource(G, E.Node, E.Port);
  // The seed without the replica index yields the single-device sample.
  if (From.Kind == Inserted::Definition && G.isOp(E.Node, op::AddV2) &&
      isSeededDraw(G.opName(User)))
    return G.input(E.Node, 0);
  // If local and global sizes agree, merge-fetches combines the value later.
  ReplicationType Type = Types.natural(E);
  if ((!Type.isSharded() && !Type.Symbolic) ||
      Facts.Vars.variableOf(E) != NoNode)
    return E;
  auto [It, New] = Merged.try_emplace({E.Node, E.Port});
  if (!New)
    return It->second;
  auto Powers = Type.Symbolic ? Types.sizePowers(E) : std::nullopt;
  if (Powers && any_of(*Powers, [](int64_t P) { return P != 0; }))
    return It->second = insertSizes(G, E, *Powers, originName(G, E.Node));
  if (Type.Symbolic)
    Type = Types.number(E);
  // An earlier iteration may have merged this tensor.
  if (auto Before = merged(E, Type))
    return It->second = *Before;
  return It->second =
             insertMerge(G, E, Type, originName(G, E.Node), /*Picked=*/false);
}

/// Returns the per-replica shard of \p E.
Endpoint OnceRewriter::rows(Endpoint E, int Axis) {
  auto [It, New] = Split.try_emplace({E.Node, E.Port});
  if (!New)
    return It->second;
  // A node may have many outputs: name the split without a search.
  std::string Name = (G.name(E.Node) + "/split").str();
  if (E.Port != 0)
    Name += "_" + std::to_string(E.Port);
  return It->second = {insertSplit(G, Name, E, Axis), 0};
}

/// Removes merges of the copies of \p N, and scales of the merged values.
void OnceRewriter::dropMerges(NodeId N) {
  SmallVector<std::pair<NodeId, Endpoint>, 4> Gone;
  G.forEachUse(N, [&](Use U) {
    if (G.isData(U) && G.node(U.User).Kind == Inserted::Merge &&
        combinesReplicas(G, U.User))
      Gone.push_back({U.User, G.input(U.User, U.Index)});
  });
  for (size_t I = 0; I < Gone.size(); ++I) {
    auto [Merge, Value] = Gone[I];
    G.forEachUse(Merge, [&](Use U) {
      if (G.isData(U) && G.node(U.User).Kind == Inserted::Scale)
        Gone.push_back({U.User, Value});
    });
  }
  for (auto [Node, Value] : Gone)
    G.replaceUses({Node, 0}, Value);
  for (auto [Node, Value] : reverse(Gone))
    G.remove(Node);
}

/// Removes \p N if it splits an unreplicated value and no node reads it.
void OnceRewriter::dropUnused(NodeId N) {
  if (G.isLive(N) && G.node(N).Kind == Inserted::Split && !G.hasUses(N) &&
      isKeptOnce(G, G.input(N, 0).Node))
    G.remove(N);
}

/// Restores the name of a feed if its merged value has that name.
void OnceRewriter::takeNameBack(NodeId N) {
  auto Origin = G.stringAttr(N, OriginAttr);
  if (!Origin || !(G.node(N).Flags & NF_LocalName) || G.find(*Origin) != NoNode)
    return;
  std::string Name = Origin->str();
  G.removeAttr(N, OriginAttr);
  G.rename(N, Name);
  G.node(N).NameSplit = 0;
  G.node(N).Flags &= ~NF_LocalName;
}

void OnceRewriter::run() {
  std::vector<Edge> In;
  std::vector<std::pair<Edge, int>> Out; // with the axis of the shard
  StringSet<> Gone;
  // An unreplicated loop reads the rows of all replicas, so its condition needs
  // no shared copy.
  dropLoops(G, Loops,
            [&](const SharedLoop &Its) { return IsKept[Its.Decided.User]; });
  std::vector<NodeId> Nodes = Types.kept().Nodes;
  erase_if(Nodes, [&](NodeId N) { return !G.isLive(N); });
  for (NodeId N : Nodes) {
    for (unsigned I = 0; I < G.node(N).NumData; ++I)
      if (Endpoint E = G.input(N, I); G.isPerReplica(E.Node) && !IsKept[E.Node])
        In.push_back({N, I, E});
    G.forEachUse(N, [&](Use U) {
      if (U.Index < G.node(U.User).NumData && G.isPerReplica(U.User) &&
          !IsKept[U.User] && G.input(U.User, U.Index).Node == N &&
          !ReadsWhole.contains({U.User, U.Index})) {
        Endpoint E = G.input(U.User, U.Index);
        if (auto Axis = Types.wholeAxis(E); Axis && *Axis >= 0)
          Out.push_back({{U.User, U.Index, E}, *Axis});
      }
    });
  }
  for (NodeId N : Nodes) {
    G.node(N).Count = Copies::Once;
    G.setBoolAttr(N, OnceAttr, true);
    if (takesStatistics(G, N))
      Gone.insert(takeName(G, N));
    restoreSizes(G, N);
    dropMerges(N);
    takeNameBack(N);
  }
  if (!Gone.empty())
    forgetColocation(G, Gone);
  for (const Edge &E : In)
    if (Endpoint To = whole(E.User, E.From); To != E.From)
      G.setInput(E.User, E.Index, To);
  for (const auto &[E, Axis] : Out)
    G.setInput(E.User, E.Index, rows(E.From, Axis));
  for (const Edge &E : In)
    dropUnused(E.From.Node);
  G.markModified();
}

/// Returns true if \p Op can read the initial state of a recurrence.
bool beginsWith(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases(op::Enter, op::RefEnter, op::While, op::StatelessWhile, true)
      .Cases(op::Mul, op::MatMul, op::ConcatV2, op::Identity, true)
      .Default(false);
}

/// Returns the only reader of \p E, or NoNode.
NodeId onlyReader(const Graph &G, Endpoint E) {
  NodeId Found = NoNode;
  bool Several = false;
  G.forEachUse(E.Node, [&](Use U) {
    if (!G.isData(U) || G.input(U.User, U.Index) == E)
      Several |= std::exchange(Found, U.User) != NoNode || !G.isData(U);
  });
  return Several ? NoNode : Found;
}

/// Returns true if the loop only adds to the value of \p Enter. A gradient has
/// such loops, which sum the results of all iterations.
bool beginsSum(const Graph &G, NodeId Enter) {
  auto Next = [&](Endpoint E, StringRef Op) {
    NodeId N = onlyReader(G, E);
    return N != NoNode && G.isOp(N, Op) ? N : NoNode;
  };
  if (!G.isOp(Enter, op::Enter))
    return false;
  NodeId Merge = Next({Enter, 0}, op::Merge);
  NodeId Switch = Merge == NoNode ? NoNode : Next({Merge, 0}, op::Switch);
  NodeId Sum = Switch == NoNode ? NoNode : onlyReader(G, {Switch, 1});
  if (Sum == NoNode || (!G.isOp(Sum, op::Add) && !G.isOp(Sum, op::AddV2)))
    return false;
  NodeId Again = Next({Sum, 0}, op::NextIteration);
  return Again != NoNode && onlyReader(G, {Again, 0}) == Merge;
}

/// Returns a flag for each node: true if it is computed from a variable.
std::vector<bool> ofVariables(const Graph &G, const ProgramFacts &Facts) {
  std::vector<bool> Result(G.size());
  for (NodeId N : Facts.Order)
    Result[N] =
        Facts.Vars.variableOf({N, 0}) != NoNode ||
        any_of(G.dataInputs(N), [&](Endpoint E) { return Result[E.Node]; });
  return Result;
}

/// Returns true if an op combines \p Zeros with rows that were concatenated on
/// each replica. Zeros fit any concatenation order, but a tensor that users
/// feed instead has the order of the whole batch.
static bool meetsJoinedRows(const Graph &G, const ProgramFacts &Facts,
                            NodeId Zeros) {
  SmallVector<NodeId, 8> Work{Zeros};
  bool Meets = false;
  for (size_t I = 0; I < Work.size() && I < 16 && !Meets; ++I)
    G.forEachUse(Work[I], [&](Use U) {
      if (!G.isData(U))
        return;
      Meets |= Facts.Types.natural({U.User, 0}).isJoined();
      StringRef Op = G.opName(U.User);
      if (Op == op::Enter || Op == op::Merge || Op == op::Switch ||
          Op == op::Identity)
        Work.push_back(U.User);
    });
  return Meets;
}

/// Finds computed tensors, with a row for each example, that users replace by
/// feeds. First, zeros that begin recurrences: arithmetic with zeros is only
/// useful if users feed another state, such as the final state of the previous
/// step. Second, vectors from variables at which a gradient stops
/// (StopGradient): users feed an earlier action.
std::vector<NodeId> fedTensors(const Graph &G, const ProgramFacts &Facts) {
  std::vector<NodeId> Found;
  enum : uint8_t { Other, Fills, Stops };
  PerOp Roles(G, [](StringRef Op, const OpDef *) {
    return Op == op::Fill ? Fills : Op == op::StopGradient ? Stops : Other;
  });
  if (!Roles.any())
    return Found;
  std::vector<bool> OfVariable;
  auto IsOfVariable = [&](NodeId N) {
    if (OfVariable.empty())
      OfVariable = ofVariables(G, Facts);
    return OfVariable[N];
  };
  for (NodeId N : Facts.Order) {
    const Node &This = G.node(N);
    if (Roles[This] == Other || This.Count != Copies::PerReplica ||
        This.Kind != Inserted::No || G.inputs(N).size() != This.NumData ||
        !isFloating(G.outputType({N, 0})))
      continue;
    ReplicationType Type = Facts.Types.natural({N, 0});
    auto Shape = Facts.Dims.shape({N, 0});
    if (!Type.isSharded() || !Shape || Shape->size() < 2)
      continue;
    if (Roles[This] == Stops) {
      // Skips a StopGradient of the factor of a normalization, which has only
      // one number for each row.
      if (Shape->size() == 2 && Facts.Dims.table().isKnown((*Shape)[1]) &&
          !Facts.Dims.table().isOne((*Shape)[1]) && IsOfVariable(N))
        Found.push_back(N);
      continue;
    }
    if (!Type.Zero)
      continue;
    bool Any = false, All = true;
    G.forEachUse(N, [&](Use U) {
      Any = true;
      All &=
          G.isData(U) && beginsWith(G.opName(U.User)) && !beginsSum(G, U.User);
    });
    if (Any && All && !meetsJoinedRows(G, Facts, N))
      Found.push_back(N);
  }
  if (Found.empty())
    return Found;
  // A run cannot feed a node in a loop.
  if (std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G))
    erase_if(Found, [&](NodeId N) { return !Loops->nest(N).empty(); });
  return Found;
}

/// Returns true if a value of the program may have an unknown type.
bool mayBeUnrelated(const Graph &G, const ProgramFacts &Facts,
                    bool LocalBatchNorm) {
  auto IsLocalBatchNorm = [](auto Assumption) {
    return Assumption.second & AssumesLocalBatchNorm;
  };
  if ((!LocalBatchNorm &&
       any_of(Facts.Types.assumptions(), IsLocalBatchNorm)) ||
      !Facts.Types.unprovedWrites().empty() ||
      !Facts.Dims.conflicts().empty() || !Facts.Types.localEffects().empty())
    return true;
  for (NodeId N : Facts.Order) {
    if (G.node(N).NumData > 1 && Facts.Dims.sumsByOneRow(G, N, G.input(N, 1)))
      return true;
    for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
      if (ReplicationType X = Facts.Types.natural({N, Port});
          X.isVarying() || X.isJoined())
        return true;
  }
  return false;
}

/// Returns the nodes of the tensors \p Fetched.
std::vector<NodeId> wantedNodes(const Graph &G, ArrayRef<std::string> Fetched) {
  std::vector<NodeId> Wanted;
  std::unique_ptr<LoopInfo> Loops;
  if (any_of(Fetched, [&](StringRef Name) { return isPattern(G, Name); }))
    Loops = LoopInfo::find(G);
  for (const std::string &Name : Fetched) {
    if (isPattern(G, Name)) {
      for (Endpoint E : fetchesLike(G, Name, Loops.get()))
        Wanted.push_back(E.Node);
    } else if (auto E = G.findEndpoint(Name); E && !E->isControl()) {
      Wanted.push_back(E->Node);
    }
  }
  return Wanted;
}

/// Finds the nodes to compute once, and the border between these nodes and the
/// per-replica nodes.
class OnceFinder {
public:
  OnceFinder(Module &M, ArrayRef<std::string> Fetched, bool LocalBatchNorm,
             std::vector<SharedLoop> Loops,
             function_ref<void(const ProgramFacts &)> Gather,
             DiagnosticEngine &Diags)
      : M(M), G(M.graph()), Wanted(wantedNodes(G, Fetched)),
        LocalBatchNorm(LocalBatchNorm), Loops(std::move(Loops)), Gather(Gather),
        Diags(Diags) {}

  KeptOnce run();

private:
  TypeAnalysis keeping(const ProgramFacts &Facts, ArrayRef<NodeId> Fed,
                       ArrayRef<NodeId> Moved = {}) const {
    KeepOptions Options{Wanted, Fed, Moved, LocalBatchNorm};
    return TypeAnalysis(G, Facts.Order, Facts.Dims, Facts.Vars, &Options);
  }
  bool gatherRows(const ProgramFacts &Facts);
  void settle();
  bool fix(const ProgramFacts &Facts, ArrayRef<NodeId> Moved,
           const TypeAnalysis::KeptNodes &Kept, DenseSet<NodeId> &Fixed) const;
  void moveCut();

  Module &M;
  Graph &G;
  std::vector<NodeId> Wanted;
  bool LocalBatchNorm;
  std::vector<SharedLoop> Loops;
  function_ref<void(const ProgramFacts &)> Gather;
  DiagnosticEngine &Diags;
  unsigned Turn = 0;
  KeptOnce Result;
};

/// Gathers rows for ops whose output has one row for each gathered row. An
/// example is Unique, which returns an index for each row. Without the gather,
/// the inferred size of the output would be the size of a shard and wrongly
/// match other shards. Returns true if there was such a node.
bool OnceFinder::gatherRows(const ProgramFacts &Facts) {
  auto GivesRows = [&](NodeId N) {
    return any_of(seq(0u, Facts.Dims.numOutputs(N)), [&](uint32_t Port) {
      ReplicationType Type = Facts.Types.natural({N, Port});
      return !Type.isSharded() && !Type.isUnrelated() && !Type.Symbolic &&
             Facts.Dims.batchAxis({N, Port}) >= 0;
    });
  };
  auto IsGather = [](const Demand &D) { return D.Kind == Demand::Gather; };
  if (none_of(Facts.Types.demands(), [&](const Demand &D) {
        return IsGather(D) && GivesRows(D.User);
      }))
    return false;
  // Gathers for all demands, because readers of such an output may gather rows,
  // too.
  Gather(Facts);
  G.markModified();
  return true;
}

/// Makes nodes of unknown type unreplicated until no more are found. Each
/// iteration changes sizes, which may reveal more such nodes.
void OnceFinder::settle() {
  static constexpr unsigned MaxTurns = 32;
  for (; Turn < MaxTurns; ++Turn) {
    const ProgramFacts &Facts = programFacts(M);
    if (Turn > 0 && (updateSizes(G, Facts) || dropStaleMerges(G, Facts) ||
                     dropLoops(G, Loops, [&](const SharedLoop &Its) {
                       return !Facts.Types.type(G.input(Its.Decided)).isTrue();
                     })))
      continue;
    std::vector<NodeId> Fed;
    if (Turn == 0)
      Fed = fedTensors(G, Facts);
    if (Fed.empty() && !mayBeUnrelated(G, Facts, LocalBatchNorm)) {
      if (!Result.Any || !gatherRows(Facts))
        return;
      continue;
    }
    TypeAnalysis Types = keeping(Facts, Fed);
    const TypeAnalysis::KeptNodes &Kept = Types.kept();
    if (Diags.wantsRemarks())
      for (const auto &[N, Why] : Kept.Refused)
        Diags.remark("once", originName(G, N),
                     "cannot be computed once: " + Why);
    if (Kept.Nodes.empty()) {
      if ((!Result.Any && Facts.Dims.conflicts().empty()) || !gatherRows(Facts))
        return;
      continue;
    }
    Result.Any = true;
    for (NodeId N : Fed)
      if (is_contained(Kept.Nodes, N)) {
        G.setBoolAttr(N, FedAttr, true);
        if (Diags.wantsRemarks())
          Diags.remark("feed", originName(G, N),
                       "is computed once, so a run that feeds this tensor "
                       "feeds the rows of all replicas");
      }
    for (const auto &[N, Why] : Kept.Causes) {
      Result.Causes.push_back({originName(G, N).str(), Why});
      if (Diags.wantsRemarks())
        Diags.remark("once", originName(G, N),
                     "is computed once, on the whole batch: " + Why);
    }
    OnceRewriter(G, Facts, Types, Loops).run();
  }
}

/// Returns the connected components of \p Nodes, each in node order.
std::vector<std::vector<NodeId>> partsOf(const Graph &G,
                                         ArrayRef<NodeId> Nodes) {
  EquivalenceClasses<NodeId> Classes;
  for (NodeId N : Nodes)
    Classes.insert(N);
  DenseSet<NodeId> All(Nodes.begin(), Nodes.end());
  for (NodeId N : Nodes)
    for (Endpoint E : G.dataInputs(N))
      if (All.contains(E.Node))
        Classes.unionSets(E.Node, N);
  MapVector<NodeId, std::vector<NodeId>> Parts;
  for (NodeId N : Nodes)
    Parts[Classes.getLeaderValue(N)].push_back(N);
  std::vector<std::vector<NodeId>> Result;
  for (auto &[Leader, Part] : Parts)
    Result.push_back(std::move(Part));
  return Result;
}

/// Adds to \p Fixed the nodes of \p Moved that cannot become unreplicated, or
/// only together with nodes outside of \p Moved. Returns true if it added any.
bool OnceFinder::fix(const ProgramFacts &Facts, ArrayRef<NodeId> Moved,
                     const TypeAnalysis::KeptNodes &Kept,
                     DenseSet<NodeId> &Fixed) const {
  DenseSet<NodeId> IsMoved(Moved.begin(), Moved.end());
  size_t Before = Fixed.size();
  auto Fix = [&](NodeId N) {
    if (IsMoved.contains(N))
      Fixed.insert(N);
  };
  for (const auto &[N, Why] : Kept.Refused)
    Fix(N);
  for (NodeId N : Kept.Nodes)
    if (!IsMoved.contains(N)) {
      for (Endpoint E : G.dataInputs(N))
        Fix(E.Node);
      G.forEachUse(N, [&](Use U) { Fix(U.User); });
    }
  if (Fixed.size() != Before)
    return true;
  // No edge joins Moved to the other nodes that would become unreplicated:
  // their sizes are the reason. So each connected part of Moved is tried by
  // itself.
  static constexpr unsigned MaxParts = 8;
  std::vector<std::vector<NodeId>> Parts = partsOf(G, Moved);
  for (size_t I = 0; I < Parts.size(); ++I)
    if (Parts.size() == 1 || I >= MaxParts ||
        keeping(Facts, {}, Parts[I]).kept().Nodes != Parts[I])
      Fixed.insert(Parts[I].begin(), Parts[I].end());
  return Fixed.size() != Before;
}

/// Moves the border of unreplicated nodes so that fewer bytes are sent. A node
/// stays per-replica if it would make further nodes unreplicated, since the cut
/// did not count the cost of these nodes.
void OnceFinder::moveCut() {
  static constexpr unsigned MaxTries = 8;
  DenseSet<NodeId> Fixed;
  for (unsigned Try = 0; Try < MaxTries; ++Try) {
    const ProgramFacts &Facts = programFacts(M);
    std::vector<NodeId> Moved = cheaperOnce(G, Facts, Fixed);
    if (Moved.empty())
      return;
    TypeAnalysis Types = keeping(Facts, {}, Moved);
    if (const auto &Kept = Types.kept(); Kept.Nodes != Moved) {
      if (!fix(Facts, Moved, Kept, Fixed))
        return;
      continue;
    }
    if (Diags.wantsRemarks())
      for (NodeId N : Moved)
        Diags.remark("once", originName(G, N),
                     "is computed once, on the whole batch: devices then "
                     "exchange fewer bytes");
    OnceRewriter(G, Facts, Types, Loops).run();
    settle();
    return;
  }
}

KeptOnce OnceFinder::run() {
  settle();
  if (!Result.Any)
    return Result;
  moveCut();
  dropStaleShapes(G, programFacts(M));
  return std::move(Result);
}

} // namespace

KeptOnce keepOnce(Module &M, ArrayRef<std::string> Fetched, bool LocalBatchNorm,
                  std::vector<SharedLoop> Loops,
                  function_ref<void(const ProgramFacts &)> Gather,
                  DiagnosticEngine &Diags) {
  return OnceFinder(M, Fetched, LocalBatchNorm, std::move(Loops), Gather, Diags)
      .run();
}

} // namespace graft
