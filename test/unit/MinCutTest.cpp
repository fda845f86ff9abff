//===- test/unit/MinCutTest.cpp - the cheapest cut of a network -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/MinCut.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace graft;

namespace {

struct Edge {
  MinCut::Index From, To;
  int64_t Capacity;
};

struct Cut {
  int64_t Cost = 0;
  uint32_t Source = 0; ///< The nodes at the source, as bits.
};

/// Tries all cuts. Returns the smallest of the cheapest.
Cut cheapest(unsigned Nodes, const std::vector<Edge> &Edges) {
  Cut Best{INT64_MAX, 0};
  for (uint32_t Set = 1; Set < 1u << Nodes; ++Set) {
    if (!(Set & 1) || Set & 2)
      continue;
    int64_t Cost = 0;
    for (const Edge &E : Edges)
      if (Set >> E.From & 1 && !(Set >> E.To & 1))
        Cost += E.Capacity;
    // The smallest cheapest cut is a part of all cheapest cuts.
    if (Cost < Best.Cost)
      Best = {Cost, Set};
    else if (Cost == Best.Cost)
      Best.Source &= Set;
  }
  return Best;
}

Cut solved(unsigned Nodes, const std::vector<Edge> &Edges) {
  MinCut Network;
  for (unsigned I = 2; I < Nodes; ++I)
    Network.addNode();
  for (const Edge &E : Edges)
    Network.addEdge(E.From, E.To, E.Capacity);
  std::vector<bool> Stays = Network.solve();
  Cut Found{Network.flow(), 0};
  for (unsigned I = 0; I < Nodes; ++I)
    Found.Source |= uint32_t(Stays[I]) << I;
  return Found;
}

} // namespace

TEST_CASE("a cut is the cheapest of all, and of these the smallest") {
  std::mt19937 Random(1);
  for (unsigned Trial = 0; Trial < 2000; ++Trial) {
    unsigned Nodes = 2 + Random() % 8, Count = Random() % (3 * Nodes);
    int64_t Largest = Trial % 2 ? 3 : 100;
    std::vector<Edge> Edges;
    for (unsigned I = 0; I < Count; ++I) {
      MinCut::Index From = Random() % Nodes, To = Random() % Nodes;
      if (From != To)
        Edges.push_back({From, To, int64_t(Random() % Largest)});
    }
    Cut Want = cheapest(Nodes, Edges), Got = solved(Nodes, Edges);
    CAPTURE(Trial);
    REQUIRE(Got.Cost == Want.Cost);
    REQUIRE(Got.Source == Want.Source);
  }
}

TEST_CASE("an infinite edge is not cut") {
  MinCut Network;
  auto A = Network.addNode(), B = Network.addNode();
  Network.addEdge(MinCut::Source, A, MinCut::Infinite);
  Network.addEdge(A, B, MinCut::MaxCapacity);
  Network.addEdge(B, MinCut::Sink, MinCut::Infinite);
  std::vector<bool> Stays = Network.solve();
  CHECK(Network.flow() == MinCut::MaxCapacity);
  CHECK(Stays[A]);
  CHECK(!Stays[B]);
}

TEST_CASE("a long chain is no deep recursion") {
  MinCut Network;
  MinCut::Index Last = MinCut::Source;
  for (unsigned I = 0; I < 300000; ++I) {
    auto Next = Network.addNode();
    Network.addEdge(Last, Next, I == 200000 ? 7 : 9);
    Last = Next;
  }
  Network.addEdge(Last, MinCut::Sink, MinCut::Infinite);
  std::vector<bool> Stays = Network.solve();
  CHECK(Network.flow() == 7);
  CHECK(std::count(Stays.begin(), Stays.end(), true) == 200001);
}
