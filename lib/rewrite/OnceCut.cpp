//===- lib/rewrite/OnceCut.cpp - the border of unreplicated nodes ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flow network has a node for each node of the graph that may be on either
// side of the cut. It has two nodes for each tensor, because a tensor is sent
// once, however many nodes read it:
//
//     reader ──∞──> gather ──bytes──> maker     a reader is computed once, the
//                                               maker on each replica
//     maker ──bytes──> split ──∞──> reader      the maker is computed once
//     node ──work──> sink                       the node is computed once
//
// Nodes that must be computed once are the source. Nodes that must be
// replicated are the sink. Only near nodes take part: the work on their path to
// the border costs less than the current cut.
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/OnceCut.h"

#include "lib/graph/PerOp.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/OpRule.h"
#include "lib/program/Program.h"
#include "lib/program/forms/EntrySlice.h"
#include "lib/rewrite/Spread.h"
#include "lib/rewrite/Work.h"
#include "lib/support/MinCut.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <queue>

using namespace llvm;

namespace graft {
namespace {

/// Operations of a device while one byte is sent between devices: 12 GB/s
/// (LinkSpeeds) against 100 billion memory-bound operations per second.
constexpr double OperationsPerByte = 8;
/// The maximum share of the work that may become unreplicated.
constexpr double MostWork = 0.01;
/// The maximum number of near nodes, the nearest first.
constexpr size_t MostNear = 4096;

class OnceCut {
public:
  OnceCut(const Graph &G, const ProgramFacts &Facts,
          const DenseSet<NodeId> &Fixed)
      : G(G), Facts(Facts), Fixed(Fixed),
        Work(G, Facts.Dims, WorkCounter::AllRows), WorkOfRow(G, Facts.Dims),
        Replicas(readMesh(G).replicas()),
        MayMove(G,
                [](StringRef Op, const OpDef *Def) {
                  uint32_t Not = trait::Draws | trait::Opaque | trait::Once |
                                 trait::Handle | trait::ReadsSource;
                  return Def && !Def->isStateful() &&
                         Def->update().Kind == UpdateKind::None &&
                         !(traitsOf(Op) & Not) && !isVariableOp(Op) &&
                         !isProgramOp(Op) && !Op.contains("Switch") &&
                         !Op.starts_with("FusedBatchNorm");
                }),
        Loops(LoopInfo::find(G, Facts.Order)) {
    if (Conditions::any(G))
      When = std::make_unique<Conditions>(G, Facts.Order);
  }

  std::vector<NodeId> find();

private:
  struct Tensor {
    SetVector<NodeId> Readers; ///< Only nodes of Inside.
    bool IsSplit = false;      ///< Set if replicas read their shards of it.
  };

  bool isSplit(Endpoint E, const ReplicationType &Type) const;
  bool canMove(NodeId N) const;
  Endpoint made(Endpoint E) const;
  template <typename Fn> void forEachReader(NodeId N, Fn F) const;
  double workOf(NodeId N) const;
  double gatherBytes(Endpoint E) const;
  double splitBytes(Endpoint E, const Tensor &T) const;
  template <typename Fn> void addReader(NodeId Reader, Fn Counts);
  void addTensors(ArrayRef<NodeId> Nodes);
  void collect();
  std::vector<NodeId> cut(double PerOperation) const;

  const Graph &G;
  const ProgramFacts &Facts;
  const DenseSet<NodeId> &Fixed;
  WorkCounter Work, WorkOfRow;
  unsigned Replicas;
  PerOp MayMove;
  std::unique_ptr<LoopInfo> Loops;
  std::unique_ptr<Conditions> When;

  std::vector<NodeId> Once; ///< Nodes that are computed once already.
  std::vector<NodeId> Near; ///< Nodes that may be on either side.
  DenseSet<NodeId> Inside;  ///< The nodes of Once and Near.
  MapVector<std::pair<NodeId, uint32_t>, Tensor> Tensors;
};

/// Returns true if the local values of \p E are shards that a split can make.
bool OnceCut::isSplit(Endpoint E, const ReplicationType &Type) const {
  auto Axis = Facts.Types.wholeAxis(E);
  return Type.isSharded() && !Type.isJoined() && Axis && *Axis == Type.Axis;
}

/// Returns true if \p N may be computed either once or on each replica. It must
/// have no side effect. Its operands and outputs must be sharded or equal on
/// all replicas: a partial sum, such as the gradient of a variable, is neither.
bool OnceCut::canMove(NodeId N) const {
  const Node &This = G.node(N);
  if (This.Count != Copies::PerReplica || This.Kind != Inserted::No ||
      This.NumData == 0 || !MayMove[This] || Fixed.contains(N) ||
      (Loops && Loops->isInLoop(N)) || (When && !When->of(N).empty()))
    return false;
  // A user who feeds a tensor that is merged and split again feeds all rows.
  if (G.anyUse(N, [&](Use U) {
        return G.node(U.User).Kind == Inserted::Merge &&
               G.anyUse(U.User, [&](Use Next) {
                 return G.node(Next.User).Kind == Inserted::Split;
               });
      }))
    return false;
  unsigned Outputs = Facts.Dims.numOutputs(N);
  for (uint32_t Port = 0; Port < Outputs; ++Port) {
    ReplicationType Type = Facts.Types.natural({N, Port});
    if (!Type.isTrue() && !isSplit({N, Port}, Type))
      return false;
  }
  for (Endpoint E : G.dataInputs(N)) {
    ReplicationType Type = Facts.Types.type(E);
    bool IsRows = Type.isSharded() && !Type.isJoined();
    if (Facts.Vars.variableOf(E) != NoNode ||
        (Loops && Loops->handleOf(E) != NoNode) ||
        (!IsRows && !Type.isReplicated()))
      return false;
  }
  return Outputs != 0;
}

/// Returns the tensor of the input graph from which splits, merges and scales
/// compute \p E.
Endpoint OnceCut::made(Endpoint E) const {
  if (G.node(E.Node).Kind == Inserted::Split)
    return splitSource(G, E.Node, E.Port);
  while (G.node(E.Node).Kind == Inserted::Merge ||
         G.node(E.Node).Kind == Inserted::Scale)
    E = G.input(E.Node, 0);
  return E;
}

/// Calls \p F(node) for each node of the input graph that reads data of \p N,
/// directly, through merges and scales, or through a split.
template <typename Fn> void OnceCut::forEachReader(NodeId N, Fn F) const {
  G.forEachUse(N, [&](Use U) {
    if (!G.isData(U))
      return;
    Inserted Kind = G.node(U.User).Kind;
    bool IsMerged = G.node(N).Kind != Inserted::No;
    if (Kind == Inserted::Merge || Kind == Inserted::Scale ||
        (Kind == Inserted::Split && !IsMerged))
      forEachReader(U.User, F);
    else if (Kind != Inserted::Split)
      F(U.User);
  });
}

/// Returns the operations of \p N: at least one for each element of the sharded
/// tensors that it reads.
double OnceCut::workOf(NodeId N) const {
  double Read = 0;
  for (Endpoint E : G.dataInputs(N))
    if (Facts.Types.type(E).isSharded())
      Read += Work.elements(E);
  return std::max(Work.operations(N), Read);
}

/// Returns the bytes that are sent if an unreplicated node on the device of
/// replica 0 reads \p E; 0 unless \p E is sharded.
double OnceCut::gatherBytes(Endpoint E) const {
  if (!G.isPerReplica(E.Node) || !Facts.Types.type(E).isSharded())
    return 0;
  return Work.bytes(E) * (Replicas - 1) / Replicas;
}

/// Returns the bytes that are sent if \p E is computed once and replicas read
/// it.
double OnceCut::splitBytes(Endpoint E, const Tensor &T) const {
  bool IsRows = T.IsSplit || Facts.Types.type(E).isSharded();
  return Work.bytes(E) * (Replicas - 1) / (IsRows ? Replicas : 1);
}

/// Records \p Reader as a reader of its operands. Skips an operand if \p Counts
/// returns false for the node that computes it.
template <typename Fn> void OnceCut::addReader(NodeId Reader, Fn Counts) {
  for (Endpoint E : G.dataInputs(Reader))
    if (Endpoint From = made(E); Counts(From.Node)) {
      Tensor &T = Tensors[{From.Node, From.Port}];
      T.Readers.insert(Reader);
      T.IsSplit |= G.node(E.Node).Kind == Inserted::Split;
    }
}

/// Adds the tensors that \p Nodes compute or read, and their other readers.
void OnceCut::addTensors(ArrayRef<NodeId> Nodes) {
  for (NodeId N : Nodes)
    Inside.insert(N);
  DenseSet<NodeId> Done;
  for (NodeId N : Nodes) {
    addReader(N, [](NodeId) { return true; });
    forEachReader(N, [&](NodeId Reader) {
      if (!Inside.contains(Reader) && G.isPerReplica(Reader) &&
          Done.insert(Reader).second)
        addReader(Reader, [&](NodeId From) { return Inside.contains(From); });
    });
  }
}

/// Finds the near nodes, the nearest first: the work on their path to the
/// border costs less than the current cut.
void OnceCut::collect() {
  for (NodeId N : Facts.Order)
    if (isKeptOnce(G, N))
      Once.push_back(N);
  addTensors(Once);
  double Now = 0;
  for (const auto &[Made, T] : Tensors) {
    Endpoint E{Made.first, Made.second};
    if (!Inside.contains(E.Node))
      Now += gatherBytes(E);
    else if (any_of(T.Readers, [&](NodeId N) { return !Inside.contains(N); }))
      Now += splitBytes(E, T);
  }
  using Entry = std::pair<double, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> Due;
  DenseSet<NodeId> Seen(Once.begin(), Once.end());
  auto VisitAround = [&](NodeId N, double Way) {
    auto Visit = [&](NodeId Next) {
      if (Seen.insert(Next).second && canMove(Next))
        Due.push({Way + workOf(Next), Next});
    };
    for (Endpoint E : G.dataInputs(N))
      if (Endpoint From = made(E); gatherBytes(From) > 0)
        Visit(From.Node);
    forEachReader(N, Visit);
  };
  for (NodeId N : Once)
    VisitAround(N, 0);
  while (!Due.empty() && Near.size() < MostNear) {
    auto [Way, N] = Due.top();
    Due.pop();
    if (Way > Now * OperationsPerByte)
      break;
    Near.push_back(N);
    VisitAround(N, Way);
  }
  addTensors(Near);
}

/// Returns the cheapest cut if an operation costs \p PerOperation.
std::vector<NodeId> OnceCut::cut(double PerOperation) const {
  // Returns X as the capacity of an edge: at least 1, and small enough that a
  // sum of capacities cannot overflow.
  auto Price = [](double X) {
    return std::clamp<int64_t>(std::llround(std::min(X, 1e12)), 1,
                               MinCut::MaxCapacity);
  };
  MinCut Network;
  DenseMap<NodeId, MinCut::Index> At;
  for (NodeId N : Once)
    At[N] = MinCut::Source;
  for (NodeId N : Near) {
    At[N] = Network.addNode();
    Network.addEdge(At[N], MinCut::Sink, Price(workOf(N) * PerOperation));
  }
  auto Place = [&](NodeId N) {
    auto It = At.find(N);
    return It == At.end() ? MinCut::Sink : It->second;
  };
  for (const auto &[Made, T] : Tensors) {
    Endpoint E{Made.first, Made.second};
    MinCut::Index Maker = Place(E.Node);
    if (double Bytes = gatherBytes(E); Bytes > 0) {
      MinCut::Index Gather = Network.addNode();
      Network.addEdge(Gather, Maker, Price(Bytes * OperationsPerByte));
      for (NodeId Reader : T.Readers)
        if (MinCut::Index To = Place(Reader); To != MinCut::Sink)
          Network.addEdge(To, Gather, MinCut::Infinite);
    }
    if (Maker == MinCut::Sink)
      continue;
    MinCut::Index Split = Network.addNode();
    Network.addEdge(Maker, Split, Price(splitBytes(E, T) * OperationsPerByte));
    for (NodeId Reader : T.Readers)
      if (MinCut::Index To = Place(Reader); To != MinCut::Source)
        Network.addEdge(Split, To, MinCut::Infinite);
  }
  std::vector<bool> IsOnce = Network.solve();
  std::vector<NodeId> Moved;
  for (NodeId N : Near)
    if (IsOnce[At[N]])
      Moved.push_back(N);
  llvm::sort(Moved);
  return Moved;
}

std::vector<NodeId> OnceCut::find() {
  collect();
  if (Near.empty())
    return {};
  Spread Now = spreadOf(G, Facts, /*IsWanted=*/true);
  double Most = MostWork * (Now.Split + Now.Once);
  // Raise the price of work until the cut moves little enough.
  for (double PerOperation = 1; PerOperation < 1e9; PerOperation *= 2) {
    std::vector<NodeId> Moved = cut(PerOperation);
    double Sum = 0;
    for (NodeId N : Moved)
      Sum += WorkOfRow.operations(N);
    if (Sum <= Most)
      return Moved;
  }
  return {};
}

} // namespace

std::vector<NodeId> cheaperOnce(const Graph &G, const ProgramFacts &Facts,
                                const DenseSet<NodeId> &Fixed) {
  return OnceCut(G, Facts, Fixed).find();
}

} // namespace graft
