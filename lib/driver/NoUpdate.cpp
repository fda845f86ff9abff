//===- lib/driver/NoUpdate.cpp - graphs that train nothing ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/NoUpdate.h"

#include "lib/graph/PerOp.h"
#include "lib/graph/Walk.h"
#include "lib/io/inline/Functions.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

enum : uint8_t { Other, Feeds, Holds, Restores, Assigns, Updates };

static uint8_t roleOf(StringRef Name, const OpDef *Op) {
  UpdateKind Kind = Op ? Op->update().Kind : UpdateKind::None;
  if (Kind != UpdateKind::None)
    return Kind == UpdateKind::Assign ? Assigns : Updates;
  if (isVariableOp(Name))
    return Holds;
  if (Name == op::RestoreV2 || Name == op::Restore || Name == op::RestoreSlice)
    return Restores;
  return Name.starts_with(op::Placeholder) || isBatchRead(Name) ||
                 Name == op::IteratorGetNextAsOptional ||
                 (Op && Op->readsVariable())
             ? Feeds
             : Other;
}

static bool updatesVariables(const Graph &G) {
  PerOp Roles(G, roleOf);
  bool Any = false;
  forEachBodyNode(G, [&](StringRef Op, StringRef) {
    Any |= roleOf(Op, findOp(Op)) >= Assigns;
  });
  std::vector<NodeId> From;
  for (NodeId N = 0; N < G.size() && !Any; ++N) {
    if (!G.isLive(N))
      continue;
    uint8_t Role = Roles[G.node(N)];
    Any = Role == Updates;
    bool ReadsMemory =
        Role == Other && any_of(G.dataInputs(N), [&](Endpoint E) {
          return Roles[G.node(E.Node)] == Holds;
        });
    if (Role == Feeds || ReadsMemory)
      From.push_back(N);
  }
  std::vector<bool> Seen(G.size());
  if (!Any)
    walkUsers(G, std::move(From), Along::Data, Seen, [&](NodeId N) {
      Any |= Roles[G.node(N)] == Assigns;
      return Roles[G.node(N)] != Restores;
    });
  return Any;
}

void warnOfNoUpdate(const Module &M, DiagnosticEngine &Diags) {
  if (!updatesVariables(M.graph()))
    Diags.unproved("no-update", "",
                   "no op updates a variable, so there is no training step to "
                   "distribute; export the graph that trains");
}

} // namespace graft
