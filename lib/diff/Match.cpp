//===- lib/diff/Match.cpp - the same nodes in two graphs --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/diff/Match.h"

#include "lib/diff/Attributes.h"
#include "lib/infer/graph/Topology.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

#include <deque>
#include <utility>

using namespace llvm;

namespace graft {
namespace {

/// The last steps of SplitMix64 (Steele, Lea, Flood 2014). The two top bits are
/// never set, because DenseMap reserves keys there.
uint64_t mix(uint64_t A, uint64_t B) {
  uint64_t X = A * 0x9e3779b97f4a7c15 + B + 0x9e3779b97f4a7c15;
  X = (X ^ (X >> 30)) * 0xbf58476d1ce4e5b9;
  X = (X ^ (X >> 27)) * 0x94d049bb133111eb;
  return (X ^ (X >> 31)) >> 2;
}

/// One of the graphs, with its hashes by node.
struct Side {
  explicit Side(const Graph &G);

  const Graph &G;
  std::vector<NodeId> Order; ///< Topological.
  std::vector<uint64_t> Op;
  std::vector<uint64_t> Behind; ///< A hash of a node and its ancestors.
  std::vector<uint64_t> Before; ///< A hash of a node and its descendants.
  std::vector<uint64_t> Color;

  /// Mixes into the color of each node the colors of its neighbors.
  void refine();
  size_t countColors() const;
};

Side::Side(const Graph &G)
    : G(G), Order(topologicalOrder(G)), Op(G.size()), Behind(G.size()),
      Before(G.size()), Color(G.size()) {
  Attributes Attrs(G);
  std::vector<uint64_t> Ops;
  Ops.reserve(G.numOps());
  for (uint32_t I = 0; I < G.numOps(); ++I)
    Ops.push_back(xxh3_64bits(G.opNameOf(I)));
  for (NodeId N : Order)
    Op[N] =
        mix(Ops[G.node(N).Op], mix(Attrs.hash(N), uint64_t(G.node(N).Count)));
  // A back edge of a loop adds only the hash of the op at its other end.
  std::vector<bool> Done(G.size());
  for (NodeId N : Order) {
    uint64_t Hash = Op[N], Controls = 0;
    for (Endpoint E : G.inputs(N)) {
      uint64_t Source = Done[E.Node] ? Behind[E.Node] : Op[E.Node];
      if (E.isControl())
        Controls += mix(Source, ~uint64_t(0));
      else
        Hash = mix(Hash, mix(Source, E.Port));
    }
    Behind[N] = mix(Hash, Controls);
    Done[N] = true;
  }
  Done.assign(G.size(), false);
  for (NodeId N : reverse(Order)) {
    uint64_t Sum = 0;
    G.forEachUse(N, [&](Use U) {
      Endpoint E = G.input(U);
      uint64_t User = Done[U.User] ? Before[U.User] : Op[U.User];
      // The position of a control input does not matter.
      Sum += mix(User, E.isControl() ? ~uint64_t(0) : mix(U.Index, E.Port));
    });
    Before[N] = mix(Op[N], Sum);
    Done[N] = true;
  }
  for (NodeId N : Order)
    Color[N] = mix(Behind[N], Before[N]);
}

void Side::refine() {
  std::vector<uint64_t> New(G.size());
  for (NodeId N : Order) {
    uint64_t Hash = Color[N], Sum = 0;
    for (Endpoint E : G.inputs(N)) {
      if (E.isControl())
        Sum += mix(Color[E.Node], 1);
      else
        Hash = mix(Hash, Color[E.Node]);
    }
    G.forEachUse(N, [&](Use U) {
      Sum += mix(Color[U.User], G.isData(U) ? 2 + uint64_t(U.Index) : 0);
    });
    New[N] = mix(Hash, Sum);
  }
  Color = std::move(New);
}

size_t Side::countColors() const {
  DenseSet<uint64_t> Colors;
  Colors.reserve(static_cast<unsigned>(Order.size()));
  for (NodeId N : Order)
    Colors.insert(Color[N]);
  return Colors.size();
}

class Matcher {
public:
  Matcher(const Graph &A, const Graph &B) : A(A), B(B) {
    Result.InB.assign(A.size(), NoNode);
    Result.InA.assign(B.size(), NoNode);
  }

  Matching run();

private:
  bool isFree(NodeId InA, NodeId InB) const {
    return Result.InB[InA] == NoNode && Result.InA[InB] == NoNode;
  }
  void pair(NodeId InA, NodeId InB) {
    Result.InB[InA] = InB;
    Result.InA[InB] = InA;
    Due.emplace_back(InA, InB);
  }
  void byColor();
  /// Pairs the nodes that have equal keys; ignores a key of 0.
  template <typename Fn> void byKey(Fn Key, bool Backwards);
  void among(ArrayRef<NodeId> OfA, ArrayRef<NodeId> OfB);
  /// Returns a hash of the inputs of \p N, as nodes of the second graph; 0 if
  /// an input has no pair.
  uint64_t readsOf(const Side &S, NodeId N) const;
  /// Pairs the neighbors of pairs if they have the same op or, if \p OfColor,
  /// the same color.
  void byEdges(bool OfColor = false);
  void byName();
  using PlaceMap = SmallDenseMap<uint64_t, NodeId, 8>;
  /// Returns the unpaired users and control inputs of \p N by a hash of op and
  /// position. NoNode stands for several nodes with one hash.
  static PlaceMap onlyOnes(const Graph &G, NodeId N, ArrayRef<NodeId> Other);

  Side A, B;
  Matching Result;
  bool AnyOfEqual = false;                   ///< Pair equal nodes in any way.
  std::deque<std::pair<NodeId, NodeId>> Due; ///< Pairs to visit.
};

template <typename Fn> void Matcher::byKey(Fn Key, bool Backwards) {
  DenseMap<uint64_t, unsigned> Groups;
  std::vector<std::pair<SmallVector<NodeId, 1>, SmallVector<NodeId, 1>>> Found;
  auto Take = [&](const Side &S, ArrayRef<NodeId> Other, bool IsA) {
    for (NodeId N : S.Order) {
      uint64_t Of = Other[N] == NoNode ? Key(S, N) : 0;
      if (Of == 0)
        continue;
      auto [It, New] = Groups.try_emplace(Of, unsigned(Found.size()));
      if (New)
        Found.emplace_back();
      auto &Group = Found[It->second];
      (IsA ? Group.first : Group.second).push_back(N);
    }
  };
  Take(A, Result.InB, true);
  Take(B, Result.InA, false);
  // Pair nodes in topological order of the first graph or, if Backwards, in the
  // reverse order.
  if (Backwards)
    std::reverse(Found.begin(), Found.end());
  for (auto &[OfA, OfB] : Found)
    if (OfA.size() == 1 && OfB.size() == 1)
      pair(OfA[0], OfB[0]);
  for (auto &[OfA, OfB] : Found)
    if (!OfA.empty() && !OfB.empty() && OfA.size() + OfB.size() > 2)
      among(OfA, OfB);
}

uint64_t Matcher::readsOf(const Side &S, NodeId N) const {
  uint64_t Hash = 1;
  for (Endpoint E : S.G.dataInputs(N)) {
    NodeId Source = &S == &A ? Result.InB[E.Node] : E.Node;
    if (Source == NoNode)
      return 0;
    Hash = mix(Hash, mix(Source, E.Port));
  }
  return Hash;
}

/// Pairs nodes of \p OfA and \p OfB, all of which have the same key.
void Matcher::among(ArrayRef<NodeId> OfA, ArrayRef<NodeId> OfB) {
  // Several nodes with the same inputs are paired later, by their users.
  struct Alike {
    NodeId InA = NoNode, InB = NoNode;
    unsigned CountA = 0, CountB = 0;
  };
  DenseMap<uint64_t, Alike> ByReads;
  auto Count = [&](const Side &S, ArrayRef<NodeId> Nodes, NodeId Alike::*Last,
                   unsigned Alike::*Number) {
    for (NodeId N : Nodes)
      if (!S.G.dataInputs(N).empty()) {
        Alike &Those = ByReads[readsOf(S, N)];
        Those.*Last = N;
        ++(Those.*Number);
      }
  };
  Count(A, OfA, &Alike::InA, &Alike::CountA);
  Count(B, OfB, &Alike::InB, &Alike::CountB);
  for (NodeId N : OfA)
    if (auto It = ByReads.find(readsOf(A, N));
        It != ByReads.end() && It->first != 0 && It->second.InA == N &&
        It->second.CountA == 1 && It->second.CountB == 1)
      pair(N, It->second.InB);
  DenseSet<NodeId> Left;
  for (NodeId M : OfB)
    if (Result.InA[M] == NoNode)
      Left.insert(M);
  for (NodeId N : OfA)
    if (NodeId M = B.G.find(A.G.name(N));
        Result.InB[N] == NoNode && M != NoNode && Left.erase(M))
      pair(N, M);
  if (!AnyOfEqual)
    return;
  const NodeId *Next = OfB.begin();
  for (NodeId N : OfA) {
    if (Result.InB[N] != NoNode)
      continue;
    Next = std::find_if(Next, OfB.end(),
                        [&](NodeId M) { return Result.InA[M] == NoNode; });
    if (Next == OfB.end())
      return;
    pair(N, *Next);
  }
}

/// Pairs nodes of equal color. Any two nodes of a color may become a pair: this
/// choice then decides on the pairs of their neighbors.
void Matcher::byColor() {
  constexpr unsigned MostRounds = 32;
  size_t Colors = A.countColors();
  for (unsigned Round = 0; Round < MostRounds; ++Round) {
    A.refine();
    B.refine();
    size_t Now = A.countColors();
    if (Now == std::exchange(Colors, Now))
      break;
  }
  DenseMap<uint64_t, SmallVector<NodeId, 1>> OfB;
  for (NodeId M : reverse(B.Order))
    OfB[B.Color[M]].push_back(M);
  DenseMap<uint64_t, unsigned> InA;
  for (NodeId N : A.Order)
    ++InA[A.Color[N]];
  // Unique colors first: their pairs decide on the pairs of their neighbors.
  for (bool Ones : {true, false})
    for (NodeId N : A.Order) {
      auto It = OfB.find(A.Color[N]);
      if (Result.InB[N] != NoNode || It == OfB.end() ||
          Ones != (It->second.size() == 1 && InA[A.Color[N]] == 1))
        continue;
      SmallVector<NodeId, 1> &Others = It->second;
      if (NodeId M = B.G.find(A.G.name(N));
          M != NoNode && isFree(N, M) && B.Color[M] == A.Color[N]) {
        pair(N, M);
      } else {
        while (!Others.empty() && Result.InA[Others.back()] != NoNode)
          Others.pop_back();
        if (Others.empty())
          continue;
        pair(N, Others.back());
      }
      byEdges(/*OfColor=*/true);
    }
}

Matcher::PlaceMap Matcher::onlyOnes(const Graph &G, NodeId N,
                                    ArrayRef<NodeId> Other) {
  PlaceMap Found;
  auto Add = [&](NodeId At, uint64_t Place) {
    if (Other[At] != NoNode)
      return;
    auto [It, New] =
        Found.try_emplace(mix(xxh3_64bits(G.opName(At)), Place), At);
    if (!New && It->second != At)
      It->second = NoNode;
  };
  enum : uint64_t { WaitsFor, WaitedFor, Reads };
  for (Endpoint E : G.controlInputs(N))
    Add(E.Node, WaitsFor);
  G.forEachUse(N, [&](Use U) {
    Add(U.User, G.isData(U) ? mix(Reads + U.Index, G.input(U).Port)
                            : uint64_t(WaitedFor));
  });
  return Found;
}

void Matcher::byEdges(bool OfColor) {
  auto MayBe = [&](NodeId N, NodeId M) {
    return isFree(N, M) && (OfColor ? A.Color[N] == B.Color[M]
                                    : A.G.opName(N) == B.G.opName(M));
  };
  for (; !Due.empty(); Due.pop_front()) {
    auto [InA, InB] = Due.front();
    size_t Both =
        std::min(A.G.dataInputs(InA).size(), B.G.dataInputs(InB).size());
    for (unsigned I = 0; I < Both; ++I) {
      Endpoint Of = A.G.input(InA, I), Now = B.G.input(InB, I);
      if (Of.Port == Now.Port && MayBe(Of.Node, Now.Node))
        pair(Of.Node, Now.Node);
    }
    PlaceMap Ones = onlyOnes(A.G, InA, Result.InB);
    if (Ones.empty())
      continue;
    PlaceMap Others = onlyOnes(B.G, InB, Result.InA);
    SmallVector<std::pair<NodeId, NodeId>, 8> Found;
    for (auto [Place, N] : Ones)
      if (auto It = Others.find(Place);
          N != NoNode && It != Others.end() && It->second != NoNode)
        Found.emplace_back(N, It->second);
    // Sort the pairs, because the order of hashes is arbitrary.
    sort(Found);
    for (auto [N, M] : Found)
      if (MayBe(N, M))
        pair(N, M);
  }
}

void Matcher::byName() {
  for (NodeId N : A.Order)
    if (NodeId M = B.G.find(A.G.name(N)); M != NoNode && isFree(N, M))
      pair(N, M);
}

Matching Matcher::run() {
  byColor();
  // Nodes without inputs all have equal ancestors, and nodes without users all
  // have equal descendants. So these hashes are not used for them.
  auto Behind = [](const Side &S, NodeId N) {
    return S.G.dataInputs(N).empty() ? 0 : S.Behind[N];
  };
  auto Before = [](const Side &S, NodeId N) {
    return S.G.hasUses(N) ? S.Before[N] : 0;
  };
  byKey(Behind, /*Backwards=*/false);
  byKey(Before, /*Backwards=*/true);
  byEdges();
  byName();
  byEdges();
  AnyOfEqual = true;
  byKey(
      [&](const Side &S, NodeId N) {
        uint64_t Reads = readsOf(S, N);
        return Reads == 0 ? 0 : mix(S.Op[N], Reads);
      },
      /*Backwards=*/false);
  byEdges();
  return std::move(Result);
}

} // namespace

Matching matchNodes(const Graph &A, const Graph &B) {
  return Matcher(A, B).run();
}

} // namespace graft
