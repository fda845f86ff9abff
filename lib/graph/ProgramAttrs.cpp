//===- lib/graph/ProgramAttrs.cpp - program state as attributes -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/ProgramAttrs.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

static constexpr const char *PolicyNames[] = {
    "", "mirrored", "sync-on-read", "replicated", "shared", "host"};

StringRef policyName(Policy Plan) {
  return PolicyNames[static_cast<size_t>(Plan)];
}

Policy parsePolicy(StringRef Name) {
  const auto *It = find(PolicyNames, Name);
  return It == std::end(PolicyNames)
             ? Policy::None
             : static_cast<Policy>(It - std::begin(PolicyNames));
}

static constexpr const char *InsertedNames[] = {
    "",
#define GRAFT_INSERTED(Kind, Name, Is, StandsFor) Name,
#include "lib/graph/Inserted.def"
};

StringRef insertedName(Inserted Kind) {
  return InsertedNames[static_cast<size_t>(Kind)];
}

/// Returns the kind that is called \p Name, or No.
static Inserted parseInserted(StringRef Name) {
  const auto *It = find(InsertedNames, Name);
  return It == std::end(InsertedNames)
             ? Inserted::No
             : static_cast<Inserted>(It - std::begin(InsertedNames));
}

bool hasProgramState(const Node &N) {
  return N.Count != Copies::Once || N.Kind != Inserted::No ||
         N.NameSplit != 0 || N.Plan != Policy::None ||
         (N.Flags &
          (NF_LocalName | NF_Led | NF_ElidePrimary | NF_FixedDevice)) != 0;
}

SmallVector<ProgramAttr, 4> programAttrs(const Node &N) {
  SmallVector<ProgramAttr, 4> Result;
  if (N.Plan != Policy::None)
    Result.push_back({PolicyAttr, encodeStringAttr(policyName(N.Plan))});
  if (N.Count == Copies::PerReplica)
    Result.push_back({CopiesAttr, encodeStringAttr("per-replica")});
  if (N.Flags & NF_ElidePrimary)
    Result.push_back({ElidePrimaryAttr, encodeBoolAttr(true)});
  if (N.Flags & NF_FixedDevice)
    Result.push_back({FixedDeviceAttr, encodeBoolAttr(true)});
  if (N.Kind != Inserted::No)
    Result.push_back({InsertedAttr, encodeStringAttr(insertedName(N.Kind))});
  if (N.Flags & NF_Led)
    Result.push_back({LedAttr, encodeBoolAttr(true)});
  if (N.Flags & NF_LocalName)
    Result.push_back({LocalNameAttr, encodeBoolAttr(true)});
  if (N.NameSplit != 0)
    Result.push_back({NameSplitAttr, encodeIntAttr(N.NameSplit)});
  return Result;
}

/// Turns the attributes of a printed program into fields again.
void Graph::readProgramAttrs(NodeId N) {
  bool WasChanged = Changed;
  auto Take = [&](StringRef Key) {
    auto Value = boolAttr(N, Key);
    if (Value)
      removeAttr(N, Key);
    return Value.value_or(false);
  };
  if (auto Count = stringAttr(N, CopiesAttr)) {
    if (*Count == "per-replica")
      Nodes[N].Count = Copies::PerReplica;
    removeAttr(N, CopiesAttr);
  }
  if (auto Kind = stringAttr(N, InsertedAttr)) {
    Nodes[N].Kind = parseInserted(*Kind);
    removeAttr(N, InsertedAttr);
  }
  if (auto Plan = stringAttr(N, PolicyAttr);
      Plan && parsePolicy(*Plan) != Policy::None) {
    Nodes[N].Plan = parsePolicy(*Plan);
    removeAttr(N, PolicyAttr);
  }
  if (auto Split = intAttr(N, NameSplitAttr)) {
    Nodes[N].NameSplit = static_cast<uint32_t>(*Split);
    removeAttr(N, NameSplitAttr);
  }
  if (Take(LocalNameAttr))
    Nodes[N].Flags |= NF_LocalName;
  if (Take(LedAttr))
    Nodes[N].Flags |= NF_Led;
  if (Take(ElidePrimaryAttr))
    Nodes[N].Flags |= NF_ElidePrimary;
  if (Take(FixedDeviceAttr))
    Nodes[N].Flags |= NF_FixedDevice;
  // Reading a program is no edit. But the bytes read still have the attributes
  // of the program, so they must not be written.
  Nodes[N].RawData = nullptr;
  Nodes[N].Flags &= ~NF_Modified;
  Changed = WasChanged;
}

} // namespace graft
