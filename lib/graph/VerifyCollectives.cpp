//===- lib/graph/VerifyCollectives.cpp - rules of collectives ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A collective with a missing member waits forever, also if a fetch runs only
// some members. Members that disagree compute wrong numbers without a message.
// Therefore users wait for a gate (a barrier) of all members:
//
//   red_r = CollectiveReduce(g_r)    gate = NoOp(^red_0, ..., ^red_N-1)
//   use_r = Identity(red_r, ^gate)   all else reads use_r, never red_r
//
// If only the first rows of a gather are used, use_r is a StridedSlice.
//
// Only collectives of graft are checked, because a graph written by hand may
// have only the members of one task.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"

#include "lib/graph/CopyWord.h"
#include "lib/graph/DeviceName.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

struct Group {
  std::vector<NodeId> Members;
  bool IsOurs = false;
  bool InProgram = false; ///< A member is per-replica.
};

bool isReduction(StringRef Op) {
  return Op == op::CollectiveReduce || Op == op::CollectiveGather;
}

bool isBroadcast(StringRef Op) {
  return Op == op::CollectiveBcastSend || Op == op::CollectiveBcastRecv;
}

using Key = std::pair<int64_t, int64_t>;

std::map<Key, Group> collectGroups(const Graph &G) {
  SmallVector<bool, 64> IsMember(G.numOps());
  bool Any = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    IsMember[Op] = isReduction(Name) || isBroadcast(Name);
    Any |= IsMember[Op];
  }
  std::map<Key, Group> Groups;
  for (NodeId N = 0; Any && N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.isDead() || !IsMember[This.Op])
      continue;
    Group &Its = Groups[{G.intAttr(N, "group_key").value_or(0),
                         G.intAttr(N, "instance_key").value_or(0)}];
    Its.Members.push_back(N);
    Its.IsOurs |= This.Kind != Inserted::No || G.hasAttr(N, StampAttr);
    Its.InProgram |= This.Count == Copies::PerReplica;
  }
  return Groups;
}

void verifyAgreement(const Graph &G, const Group &Its,
                     DiagnosticEngine &Diags) {
  NodeId First = Its.Members[0];
  bool Broadcast = isBroadcast(G.opName(First));
  for (NodeId N : ArrayRef(Its.Members).drop_front()) {
    if (Broadcast ? !isBroadcast(G.opName(N))
                  : G.node(N).Op != G.node(First).Op) {
      Diags.error(G.name(N),
                  formatv("is a {0} in the same collective as '{1}', a {2}; "
                          "give it another group_key or instance_key",
                          G.opName(N), G.name(First), G.opName(First)));
      continue;
    }
    for (StringRef Attr :
         {"T", "group_size", "merge_op", "final_op", "communication_hint"})
      if (G.attr(N, Attr) != G.attr(First, Attr))
        Diags.error(G.name(N),
                    formatv("attribute '{0}' differs from that of '{1}', which "
                            "is in the same collective",
                            Attr, G.name(First)));
  }
}

void verifySize(const Graph &G, Key K, const Group &Its,
                DiagnosticEngine &Diags) {
  NodeId First = Its.Members[0];
  int64_t Size = G.intAttr(First, "group_size").value_or(0);
  if (static_cast<int64_t>(Its.Members.size()) != Size)
    Diags.error(
        G.name(First),
        formatv("the collective with group_key {0} and instance_key "
                "{1} has {2} member{3} instead of {4} and would wait forever",
                K.first, K.second, Its.Members.size(),
                Its.Members.size() == 1 ? "" : "s", Size));
  unsigned Senders = 0;
  for (NodeId N : Its.Members)
    Senders += G.isOp(N, op::CollectiveBcastSend);
  if (isBroadcast(G.opName(First)) && Senders != 1)
    Diags.error(G.name(First),
                formatv("the broadcast with group_key {0} and instance_key {1} "
                        "has {2} senders: it needs one",
                        K.first, K.second, Senders));
}

void verifyPlaces(const Graph &G, const Group &Its, DiagnosticEngine &Diags) {
  std::map<std::string, NodeId> Places;
  std::string Type;
  for (NodeId N : Its.Members) {
    auto Device = DeviceName::parse(G.device(N));
    if (!Device || Device->Type.empty() || !Device->Index) {
      Diags.error(G.name(N), "is a member of a collective and has no explicit "
                             "device: place it on one");
      continue;
    }
    auto [It, New] = Places.try_emplace(Device->str(), N);
    if (!New)
      Diags.error(G.name(N),
                  formatv("is on the device of '{0}', a member of the same "
                          "collective: members need different devices",
                          G.name(It->second)));
    if (Type.empty())
      Type = Device->Type;
    else if (Type != Device->Type)
      Diags.error(G.name(N),
                  formatv("is on a {0}, but other members of its collective "
                          "are on a {1}; place all on one type of device",
                          Device->Type, Type));
  }
}

/// Returns true if \p N is a gate that waits for all of \p Members.
bool isGate(const Graph &G, NodeId N, ArrayRef<NodeId> Members) {
  if (!G.isOp(N, op::NoOp))
    return false;
  ArrayRef<Endpoint> Inputs = G.controlInputs(N);
  return all_of(Members, [&](NodeId M) {
    return is_contained(Inputs, Endpoint{M, ControlPort});
  });
}

/// Checks that every user of a member is a gate or waits for one.
void verifyGates(const Graph &G, const Group &Its, DiagnosticEngine &Diags) {
  // Many users wait for the same gate, which is inspected only once.
  std::map<NodeId, bool> Gates;
  auto IsGate = [&](NodeId N) {
    auto [It, New] = Gates.try_emplace(N, false);
    if (New)
      It->second = isGate(G, N, Its.Members);
    return It->second;
  };
  for (NodeId M : Its.Members)
    for (const Use &U : G.uses(M)) {
      if (G.isOp(U.User, op::NoOp))
        continue;
      bool Behind =
          (G.isOp(U.User, op::Identity) || G.isOp(U.User, op::StridedSlice)) &&
          U.Index == 0 && any_of(G.controlInputs(U.User), [&](Endpoint E) {
            return IsGate(E.Node);
          });
      if (!Behind)
        Diags.error(G.name(U.User),
                    formatv("uses '{0}', a member of a collective, without a "
                            "barrier that waits for all members; a step that "
                            "fetches only this node would hang",
                            G.name(M)));
    }
}

} // namespace

bool verifyCollectives(const Graph &G, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  std::optional<bool> IsOutput;
  for (const auto &[K, Its] : collectGroups(G)) {
    // A lowered graph has no other collectives: replicate refuses them.
    if (!Its.IsOurs && !IsOutput)
      IsOutput = hasGraftStamp(G);
    if (!Its.IsOurs && !*IsOutput)
      continue;
    verifyAgreement(G, Its, Diags);
    if (!Its.InProgram) {
      verifySize(G, K, Its, Diags);
      verifyPlaces(G, Its, Diags);
    }
    if (isReduction(G.opName(Its.Members[0])))
      verifyGates(G, Its, Diags);
  }
  return Diags.errorCount() == Before;
}

} // namespace graft
