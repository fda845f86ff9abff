//===- lib/infer/batch/SpreadCopies.cpp - per-replica nodes -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/SpreadCopies.h"

#include "lib/infer/graph/Loops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/DenseSet.h"

using namespace llvm;

namespace graft {

bool spreadCopies(Graph &G, const VariableIndex &Vars,
                  std::vector<NodeId> Work) {
  bool Any = false;
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G);
  DenseSet<NodeId> Nests; ///< The visited loops, by their first node.
  auto Mark = [&](NodeId N) {
    if (G.node(N).Count == Copies::PerReplica)
      return;
    G.node(N).Count = Copies::PerReplica;
    G.markModified();
    Any = true;
    Work.push_back(N);
  };
  auto MayBeCopied = [&](NodeId N) {
    if (Vars.isOnce(G, N) || combinesReplicas(G, N))
      return false;
    NodeId Var = Vars.isUpdate(G, N) ? Vars.variableOf(G.input(N, 0)) : NoNode;
    return Var == NoNode || G.node(Var).Count != Copies::Once;
  };
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    if (Loops) {
      // A loop and the arrays and stacks that it uses are per-replica together.
      ArrayRef<NodeId> Nest = Loops->nest(N);
      if (!Nest.empty() && Nests.insert(Nest.front()).second)
        for (NodeId Other : Nest)
          if (MayBeCopied(Other))
            Mark(Other);
      for (NodeId Handle : Loops->handlesUsedBy(G, N))
        Mark(Handle);
    }
    G.forEachUse(N, [&](Use U) {
      if (U.Index >= G.node(U.User).NumData)
        return;
      if (G.node(U.User).Count == Copies::PerReplica) {
        // A Switch of a variable may already be per-replica because of its
        // predicate. Its users, such as updates, still have to be visited.
        if (Vars.anySwitched() && U.Index == 0 &&
            Vars.variableOf({U.User, 0}) != NoNode)
          Work.push_back(U.User);
        return;
      }
      if (MayBeCopied(U.User))
        Mark(U.User);
    });
  }
  return Any;
}

} // namespace graft
