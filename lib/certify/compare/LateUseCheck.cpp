//===- lib/certify/compare/LateUseCheck.cpp - memory of a task ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/LateUseCheck.h"

#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/LateUses.h"
#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class Tasks {
public:
  explicit Tasks(const Graph &G) : G(G), Devices(readMesh(G)) {
    for (const std::string &Device : Devices.Devices)
      All.insert(jobAndTask(Device).value_or(""));
    HasCopies = All.size() > 1;
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && G.node(N).Device != 0 &&
          !Of.contains(G.node(N).Device))
        All.insert(ofDevice(N));
    All.erase("");
  }

  bool areSeveral() const { return All.size() > 1; }
  /// Returns true if \p N may run in another task than \p Other. Copies of one
  /// replica are in the same task.
  bool isAway(NodeId N, NodeId Other) {
    bool IsCopy = isCopy(N);
    if (IsCopy || isCopy(Other))
      return IsCopy != isCopy(Other);
    const std::string &Its = ofDevice(N), &There = ofDevice(Other);
    return !Its.empty() && !There.empty() && Its != There;
  }

private:
  bool isCopy(NodeId N) const {
    const Node &This = G.node(N);
    return HasCopies && This.Count == Copies::PerReplica &&
           !(This.Flags & NF_FixedDevice);
  }
  const std::string &ofDevice(NodeId N) {
    auto [It, New] = Of.try_emplace(G.node(N).Device);
    if (New)
      It->second = jobAndTask(G.device(N)).value_or("");
    return It->second;
  }

  const Graph &G;
  Mesh Devices;
  bool HasCopies = false; ///< Set if the replicas are in several tasks.
  StringSet<> All;
  DenseMap<uint32_t, std::string> Of; ///< Job and task, by device.
};

} // namespace

bool checkLateUses(const Graph &G, DiagnosticEngine &Diags) {
  Tasks In(G);
  if (!In.areSeveral())
    return true;
  LateUses Late = findLateUses(G);
  bool Good = true;
  auto Check = [&](NodeId Var, Use Of, ArrayRef<NodeId> Views) {
    if (!In.isAway(Of.User, Var) &&
        none_of(Views, [&](NodeId N) { return In.isAway(N, Var); }))
      return;
    Good = false;
    Diags.error(
        G.name(Of.User),
        formatv("uses a read of the variable '{0}' from before an update: on "
                "one device the read has the updated value, in another task "
                "the old one; read the variable where its value is needed",
                G.name(Var))
            .str());
  };
  for (const LateUse &Use : Late.Known)
    Check(Use.Var, Use.Of, Use.Views);
  for (auto [Of, Var] : Late.Open)
    Check(Var, Of, G.input(Of).Node);
  return Good;
}

} // namespace graft
