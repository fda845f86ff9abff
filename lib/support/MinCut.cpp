//===- lib/support/MinCut.cpp - the cheapest cut of a network -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/MinCut.h"

#include <algorithm>

namespace graft {

void MinCut::addEdge(Index From, Index To, int64_t Capacity) {
  if (Capacity <= 0 || From == To)
    return;
  auto Add = [&](Index A, Index B, int64_t Left) {
    Edges.push_back({B, FirstEdge[A], Left});
    FirstEdge[A] = static_cast<Index>(Edges.size() - 1);
  };
  Add(From, To, Capacity);
  Add(To, From, 0);
}

/// Sets the distances from the source, along edges with unused capacity, of all
/// nodes nearer than the sink. Returns true if the sink is reachable.
bool MinCut::findLevels() {
  Level.assign(FirstEdge.size(), None);
  Level[Source] = 0;
  std::vector<Index> Due{Source};
  for (size_t I = 0; I < Due.size() && Level[Sink] == None; ++I)
    for (Index E = FirstEdge[Due[I]]; E != None; E = Edges[E].Next)
      if (Edges[E].Left > 0 && Level[Edges[E].To] == None) {
        Level[Edges[E].To] = Level[Due[I]] + 1;
        Due.push_back(Edges[E].To);
      }
  return Level[Sink] != None;
}

/// Sends all flow along shortest paths. There is no recursion, because a path
/// may be as long as the graph.
void MinCut::sendFlow() {
  NextEdge = FirstEdge;
  std::vector<Index> Way;
  for (Index At = Source;;) {
    if (At == Sink) {
      int64_t Least = Infinite;
      for (Index E : Way)
        Least = std::min(Least, Edges[E].Left);
      Flow += Least;
      size_t Used = Way.size();
      for (size_t I = Way.size(); I-- > 0;) {
        Edges[Way[I]].Left -= Least;
        Edges[Way[I] ^ 1].Left += Least;
        if (Edges[Way[I]].Left == 0)
          Used = I;
      }
      // Go on from the first edge without capacity.
      At = Edges[Way[Used] ^ 1].To;
      Way.resize(Used);
      continue;
    }
    Index &E = NextEdge[At];
    while (E != None &&
           (Edges[E].Left == 0 || Level[Edges[E].To] != Level[At] + 1))
      E = Edges[E].Next;
    if (E != None) {
      Way.push_back(E);
      At = Edges[E].To;
      continue;
    }
    if (Way.empty())
      return;
    // A dead end: no path of this phase can use it.
    Level[At] = None;
    At = Edges[Way.back() ^ 1].To;
    Way.pop_back();
  }
}

std::vector<bool> MinCut::solve() {
  while (findLevels())
    sendFlow();
  std::vector<bool> Stays(FirstEdge.size());
  for (size_t N = 0; N < Stays.size(); ++N)
    Stays[N] = Level[N] != None;
  return Stays;
}

} // namespace graft
