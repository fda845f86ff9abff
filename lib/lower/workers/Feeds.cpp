//===- lib/lower/workers/Feeds.cpp - the feeds of a worker ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/lower/workers/Cutter.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace llvm;

namespace graft {

/// Returns true if \p N splits a feed into the rows of each replica.
bool Cutter::isFeedSplit(NodeId N) const {
  return isSplit(N) && G.node(N).NumData == 2 &&
         G.opName(G.input(N, 1).Node).starts_with(op::Placeholder);
}

/// Adds an Identity of each shard of the feed that a node of another worker
/// reads, or of all shards if a node reads the whole feed. The worker that is
/// fed the shard sends the value of the Identity.
void Cutter::shareFeed(NodeId Split) {
  NodeId Feed = G.input(Split, 1).Node;
  auto Replicas =
      static_cast<unsigned>(G.intAttr(Split, "num_split").value_or(0));
  SmallVector<Use, 8> Whole, Others;
  for (Use U : G.uses(Feed))
    if (G.isData(U) && !isFeedSplit(U.User))
      Whole.push_back(U);
  for (Use U : G.uses(Split))
    if (G.isData(U) && ownerOfMade(U.User) != ownerOfRows(G.input(U).Port))
      Others.push_back(U);
  AttrRun Type;
  Type.type("T", G.outputType(Feed, 0));
  std::map<unsigned, Endpoint> Copies;
  auto Copy = [&](unsigned Port) {
    auto [It, New] = Copies.try_emplace(Port);
    if (New) {
      int Its = ownerOfRows(Port);
      NodeId N = add(G.name(Feed) + "/given_by_" + Twine(Its), part::Given,
                     op::Identity, Endpoint{Split, Port}, Split, Type,
                     hostOf(Its), Its);
      Given[N] = Its;
      It->second = {N, 0};
    }
    return It->second;
  };
  for (Use U : Others)
    G.setInput(U.User, U.Index, Copy(G.input(U).Port));
  if (Whole.empty())
    return;
  SmallVector<Endpoint, 8> Parts;
  for (unsigned Port = 0; Port < Replicas; ++Port)
    Parts.push_back(Copy(Port));
  Parts.push_back(G.input(Split, 0));
  AttrRun Attrs;
  Attrs.integer("N", Replicas)
      .type("T", G.outputType(Feed, 0))
      .type("Tidx", G.outputType(Parts.back()));
  NodeId All = add(G.name(Feed) + "/of_all", part::Whole, op::ConcatV2, Parts,
                   Split, Attrs, hostOf(0), 0);
  for (Use U : Whole)
    G.setInput(U.User, U.Index, {All, 0});
}

void Cutter::shareFeeds() {
  // A feed whose rows no node reads belongs to all workers.
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isFeedSplit(N) && !G.hasUses(N))
      G.remove(N);
  for (NodeId N = 0, E = G.size(); N < E; ++N)
    if (G.isLive(N) && isFeedSplit(N) &&
        !G.isOp(G.input(N, 1).Node, op::PlaceholderWithDefault))
      shareFeed(N);
}

/// Shrinks the feed of \p Split to the rows of this worker.
bool Cutter::splitFeed(NodeId Split) {
  NodeId Feed = G.input(Split, 1).Node;
  if (G.isOp(Feed, op::PlaceholderWithDefault)) {
    Diags.error(G.name(Feed), "cannot be split, because its default value has "
                              "the rows of all workers; give --feed=NAME=copy");
    return false;
  }
  // This worker reads the outputs First to First + Parts - 1 of the split.
  auto Mines = [&](unsigned Worker) { return Worker == unsigned(Mine); };
  auto First = static_cast<unsigned>(find_if(Plan.WorkerOf, Mines) -
                                     Plan.WorkerOf.begin());
  auto Parts = static_cast<unsigned>(count_if(Plan.WorkerOf, Mines));
  auto Axis =
      static_cast<int64_t>(constScalar(G, G.input(Split, 0).Node).value_or(-1));
  shrinkFeed(G, Feed, Axis, Parts, static_cast<unsigned>(Plan.WorkerOf.size()));
  G.setIntAttr(Feed, RowsAxisAttr, Axis);
  for (Use U : G.uses(Split)) {
    if (!G.isData(U)) {
      G.setInput(U.User, U.Index, {Feed, ControlPort});
      continue;
    }
    unsigned Port = G.input(U).Port;
    // A user of another worker's rows is removed later.
    if (Port < First || Port >= First + Parts) {
      G.setInput(U.User, U.Index, {Feed, 0});
      continue;
    }
    G.setInput(U.User, U.Index,
               Parts == 1 ? Endpoint{Feed, 0} : Endpoint{Split, Port - First});
  }
  if (Parts == 1) {
    G.remove(Split);
    return true;
  }
  G.setIntAttr(Split, "num_split", Parts);
  Owner[Split] = Mine;
  G.setDevice(Split, hostOf(Mine));
  return true;
}

bool Cutter::splitFeeds() {
  std::vector<NodeId> Splits;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isFeedSplit(N))
      Splits.push_back(N);
  return all_of(Splits, [&](NodeId N) { return splitFeed(N); });
}

} // namespace graft
