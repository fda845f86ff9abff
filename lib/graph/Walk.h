//===- lib/graph/Walk.h - walks along edges ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Closures of nodes over their inputs or their users:
//
//     std::vector<bool> InRun(G.size());
//     walkInputs(G, Fetches, Along::All, InRun);     what a run executes
//
//     walkUsers(G, {Var}, Along::Data, Seen, [&](NodeId N) {
//       return !Vars.isUpdate(G, N);                 stops at updates
//     });
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_WALK_H
#define GRAFT_LIB_GRAPH_WALK_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace graft {

/// The edges that a walk follows.
enum class Along : uint8_t { Data, All };

namespace walk {

/// Adds \p N to \p Seen. Returns false if it was there.
inline bool enter(std::vector<bool> &Seen, NodeId N) {
  bool IsNew = !Seen[N];
  Seen[N] = true;
  return IsNew;
}
inline bool enter(llvm::BitVector &Seen, NodeId N) {
  bool IsNew = !Seen[N];
  Seen.set(N);
  return IsNew;
}
inline bool enter(llvm::DenseSet<NodeId> &Seen, NodeId N) {
  return Seen.insert(N).second;
}

inline constexpr auto Everywhere = [](NodeId) { return true; };

/// Adds the nodes \p From to \p Seen. For each added node at which \p GoesOn is
/// true, \p Next lists further nodes to add.
template <typename SetT, typename GoesOnFn, typename NextFn>
void close(std::vector<NodeId> From, SetT &Seen, GoesOnFn GoesOn, NextFn Next) {
  while (!From.empty()) {
    NodeId N = From.back();
    From.pop_back();
    if (enter(Seen, N) && GoesOn(N))
      Next(N, From);
  }
}

} // namespace walk

/// Adds the nodes \p From to \p Seen. For each added node, \p Visit appends
/// further nodes to add to the list `std::vector<NodeId> &Next`.
template <typename SetT, typename Fn>
void walkFrom(std::vector<NodeId> From, SetT &Seen, Fn Visit) {
  walk::close(std::move(From), Seen, walk::Everywhere, Visit);
}

/// Adds to \p Seen the nodes \p From and all nodes on which they depend,
/// directly or indirectly. The walk stops at nodes that are in \p Seen already.
/// Calls \p GoesOn once for each added node, and continues at the inputs of the
/// node if the result is true.
template <typename GraphT, typename SetT,
          typename Fn = decltype(walk::Everywhere)>
void walkInputs(const GraphT &G, std::vector<NodeId> From, Along Edges,
                SetT &Seen, Fn GoesOn = walk::Everywhere) {
  walk::close(std::move(From), Seen, GoesOn,
              [&](NodeId N, std::vector<NodeId> &Next) {
                for (Endpoint E : G.inputs(N))
                  if (Edges == Along::All || !E.isControl())
                    Next.push_back(E.Node);
              });
}

/// Like walkInputs(), but adds the nodes that depend on \p From and continues
/// at the users of a node.
template <typename SetT, typename Fn = decltype(walk::Everywhere)>
void walkUsers(const Graph &G, std::vector<NodeId> From, Along Edges,
               SetT &Seen, Fn GoesOn = walk::Everywhere) {
  walk::close(std::move(From), Seen, GoesOn,
              [&](NodeId N, std::vector<NodeId> &Next) {
                G.forEachUse(N, [&](Use U) {
                  if (Edges == Along::All || G.isData(U))
                    Next.push_back(U.User);
                });
              });
}

/// Returns the tensor that a chain of ops of the types \p Ops forwards to \p E
/// through input 0: through(G, E, op::Identity, op::Cast).
template <typename... OpNames>
Endpoint through(const Graph &G, Endpoint E, OpNames... Ops) {
  while ((G.isOp(E.Node, Ops) || ...))
    E = G.input(E.Node, 0);
  return E;
}

} // namespace graft

#endif // GRAFT_LIB_GRAPH_WALK_H
