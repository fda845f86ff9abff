//===- lib/rewrite/Slots.cpp - devices of shared variables ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Slots.h"

#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Variables.h"
#include "lib/program/Program.h"
#include "lib/strategy/Record.h"

#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace graft {

/// Returns the synchronizer attribute of \p Var; empty if there is none.
static StringRef written(const Graph &G, NodeId Var) {
  if (!(G.node(Var).Flags & NF_MayHaveGraft))
    return "";
  return G.stringAttr(Var, SynchronizerAttr).value_or("");
}

bool forEachSlot(const Graph &G, const VariableIndex &Vars,
                 function_ref<bool(NodeId, NodeId, NodeId)> Do) {
  for (NodeId N = 0; N < G.size(); ++N) {
    UpdateDef U = Vars.update(G, N);
    if (U.NumVars < 2 || !G.isLive(N))
      continue;
    NodeId Var = Vars.variableOf(G.input(N, 0));
    for (unsigned I = 1; Var != NoNode && I < U.NumVars; ++I)
      if (NodeId Slot = Vars.variableOf(G.input(N, I));
          Slot != NoNode && Slot != Var && !Do(N, Var, Slot))
        return false;
  }
  return true;
}

bool slotsFollow(Graph &G, const VariableIndex &Vars, bool &Changed,
                 DiagnosticEngine &Diags) {
  DenseMap<NodeId, NodeId> MainOf;
  return forEachSlot(G, Vars, [&](NodeId, NodeId Main, NodeId Slot) {
    Policy Plan = G.node(Main).Plan;
    StringRef Sync = written(G, Main);
    NodeId Before = MainOf.try_emplace(Slot, Main).first->second;
    if (Plan == G.node(Slot).Plan && Sync == written(G, Slot))
      return true;
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
    return true;
  });
}

std::optional<std::string> destinationOf(const Graph &G, NodeId Var,
                                         const Mesh &Devices,
                                         DiagnosticEngine &Diags) {
  auto Sync = synchronizerOf(G, Var);
  if (!Sync || Sync->Destination.empty())
    return "";
  auto Fail = [&](const Twine &Why) {
    Diags.error(G.name(Var),
                ("its destination '" + Sync->Destination + "' " + Why).str());
    return std::nullopt;
  };
  auto Device = DeviceName::parse(Sync->Destination);
  if (!Device || Device->Type.empty() || !Device->Index)
    return Fail("is not a device such as /job:worker/task:1/device:CPU:0");
  if (Device->Type == "TPU")
    return Fail("is a TPU, which holds no variables for other devices");
  auto First = DeviceName::parse(Devices.Devices[0]);
  bool HasTask = !Device->Job.empty() && Device->Task;
  if (!First || HasTask != (!First->Job.empty() && First->Task))
    return Fail(HasTask
                    ? "names a job and a task, but the replicas' devices do not"
                    : "names no job and task, but the replicas' devices do");
  // A device name may have several spellings. Returns the spelling of the mesh.
  for (const std::string &Of : Devices.Devices)
    if (auto Its = DeviceName::parse(Of); Its && Its->str() == Device->str())
      return Of;
  return Device->str();
}

} // namespace graft
