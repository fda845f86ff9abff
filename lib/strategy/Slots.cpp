//===- lib/strategy/Slots.cpp - what is updated together ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Slots.h"

#include "lib/strategy/Record.h"

#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace graft {

/// The synchronizer as it is written on \p Var; empty without one.
static StringRef written(const Graph &G, NodeId Var) {
  if (!(G.node(Var).Flags & NF_MayHaveGraft))
    return "";
  return G.stringAttr(Var, SynchronizerAttr).value_or("");
}

bool slotsFollow(Graph &G, const VariableIndex &Vars, bool &Changed,
                 DiagnosticEngine &Diags) {
  DenseMap<NodeId, NodeId> MainOf;
  for (NodeId N = 0; N < G.size(); ++N) {
    const UpdateDef &U = Vars.update(G, N);
    if (U.NumVars < 2 || !G.isLive(N))
      continue;
    NodeId Main = Vars.variableOf(G.input(N, 0));
    for (unsigned I = 1; Main != NoNode && I < U.NumVars; ++I) {
      NodeId Slot = Vars.variableOf(G.input(N, I));
      if (Slot == NoNode || Slot == Main)
        continue;
      Policy Plan = G.node(Main).Plan;
      StringRef Sync = written(G, Main);
      NodeId Before = MainOf.try_emplace(Slot, Main).first->second;
      if (Plan == G.node(Slot).Plan && Sync == written(G, Slot))
        continue;
      if (Before != Main) {
        Diags.error(G.name(Slot),
                    ("is updated together with '" + G.name(Before) +
                     "' and with '" + G.name(Main) +
                     "', which are synchronized in different ways; give both "
                     "the same policy and destination")
                        .str());
        return false;
      }
      if (Plan != G.node(Slot).Plan)
        G.setPolicy(Slot, Plan);
      if (Sync.empty())
        G.removeAttr(Slot, SynchronizerAttr);
      else
        G.setStringAttr(Slot, SynchronizerAttr, Sync.str());
      Changed = true;
    }
  }
  return true;
}

} // namespace graft
