//===- lib/certify/partition/PartitionLike.cpp - repeat a partition -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/partition/PartitionLike.h"

#include "lib/certify/partition/PartitionCheck.h"
#include "lib/ops/Ops.h"
#include "lib/rewrite/partition/PartitionEdit.h"

using namespace llvm;

namespace graft {

bool partitionLike(Module &M, const Graph &Like, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  std::vector<NewPartition> Wanted = newPartitions(G, Like);
  if (Wanted.empty())
    return true;
  VariableIndex Vars(G);
  PartitionPlan Plan(G, Vars, Diags);
  for (NewPartition &P : Wanted)
    if (!Plan.add(P.Variable, {P.Axis, std::move(P.Sizes)}))
      return false;
  if (!Plan.complete())
    return false;
  InputGraph Before(G);
  PartitionEditor Editor(M, Vars, Plan);
  // An Identity with the name of an update shows that the partition kept the
  // reference that the update returns.
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !Vars.isUpdate(G, N))
      continue;
    NodeId Its = Like.find(G.name(N));
    if (Its != NoNode && Like.isOp(Its, op::Identity))
      Editor.keep((G.name(N) + ":0").str());
  }
  Editor.run();
  return checkPartition(Before, G, Diags);
}

} // namespace graft
