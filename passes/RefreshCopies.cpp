//===- passes/RefreshCopies.cpp - refresh-copies ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A Saver that is built after the import knows only the variables that
// collections declare. So it restores only the primary of a mirrored variable.
// This pass adds an op that refreshes the copies. The local init op, which a
// session runs after a restore, runs this op:
//
//     w = VarHandleOp*()            graft/refresh_copies/w/value =
//     w/Read = ReadVariableOp*(w)       _FromReplicas(w/Read) combine=pick
//                              →    graft/refresh_copies/w =
//                                       AssignVariableOp*(w, .../value)
//                                   graft/refresh_copies = NoOp(^.../w)
//                                   graft/local_init_op = NoOp(^local init,
//                                       ^graft/refresh_copies)
//
// The collection `local_init_op` then names graft/local_init_op. This op also
// runs the op that the collection named before or, if the collection was empty,
// the ops that TensorFlow would have run: the initializers of local variables
// and tables. graft/refresh_copies also refreshes the proxies of shared
// variables.
//
// Copies of local variables are left alone, because local init writes them all.
// Copies of sync-on-read variables are left alone, because the primary is only
// a part of the value. A bare GraphDef declares no variables, and no Saver can
// be built from it.
//
// Relies on: the policies of all variables.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "lib/program/forms/Proxy.h"
#include "lib/rewrite/LocalInit.h"

#include "tensorflow/core/framework/variable.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

using namespace llvm;

namespace graft {
namespace {

class RefreshCopies final : public PassBase<RefreshCopies> {
public:
  static constexpr PassInfo Info = {
      "refresh-copies",
      "An op that makes copies of variables equal to the primary",
      "Adds `graft/refresh_copies` for the mirrored variables that a\n"
      "MetaGraphDef declares, and runs it in the collection `local_init_op`."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  Endpoint findRead(NodeId Var, StringRef Snapshot) const;
  NodeId refresh(NodeId Var, NodeId Of, Endpoint Read);
  NodeId group(StringRef Name, ArrayRef<Endpoint> Waits);
  void addToLocalInit(Module &M, NodeId All);

  Graph *G = nullptr;
};

constexpr StringLiteral RefreshName = "graft/refresh_copies";

/// Returns a read of \p Var without control inputs. Prefers the declared
/// snapshot.
Endpoint RefreshCopies::findRead(NodeId Var, StringRef Snapshot) const {
  bool IsHandle = G->isOp(Var, op::VarHandleOp);
  // Unreplicated nodes read the primary through a take-first merge.
  auto IsVariable = [&](Endpoint E) {
    if (G->node(E.Node).Kind == Inserted::Merge &&
        G->node(E.Node).Flags & NF_ElidePrimary)
      E = G->input(E.Node, 0);
    return E == Endpoint{Var, 0};
  };
  auto Reads = [&](NodeId N) {
    return G->isOp(N, IsHandle ? op::ReadVariableOp : op::Identity) &&
           G->node(N).NumInputs == 1 && IsVariable(G->input(N, 0));
  };
  auto Declared = G->findEndpoint(Snapshot);
  if (Declared && !Declared->isControl() && Reads(Declared->Node))
    return *Declared;
  for (Use U : G->uses(Var))
    if (Reads(U.User))
      return {U.User, 0};
  return {};
}

/// Adds an assignment of the primary's value to each copy of \p Var except the
/// primary. If \p Of is a proxy of \p Var and not \p Var itself, assigns to all
/// copies of the proxy.
NodeId RefreshCopies::refresh(NodeId Var, NodeId Of, Endpoint Read) {
  bool IsHandle = G->isOp(Of, op::VarHandleOp);
  unsigned Type = G->outputType(Read.Node, 0);
  SmallString<128> Name(RefreshName);
  Name += '/';
  Name += G->name(Var);
  size_t Length = Name.size();
  Name += "/value";
  AttrRun Assign;
  NodeId Value = Read.Node;
  if (G->isPerReplica(Value))
    Value = insertPick(*G, Name, Read, Var);
  Name.truncate(Length);
  Assign.type(IsHandle ? "dtype" : "T", Type);
  NodeId N = G->insertNode(Name, IsHandle ? op::AssignVariableOp : op::Assign,
                           {Endpoint{Of, 0}, Endpoint{Value, 0}}, Var, Assign,
                           Inserted::Refresh, Copies::PerReplica);
  if (Of == Var)
    G->node(N).Flags |= NF_ElidePrimary;
  ++Statistics["variables refreshed"];
  return N;
}

NodeId RefreshCopies::group(StringRef Name, ArrayRef<Endpoint> Waits) {
  return G->insertNode(Name, op::NoOp, Waits, Waits.back().Node, {},
                       Inserted::Gate);
}

void RefreshCopies::addToLocalInit(Module &M, NodeId All) {
  std::optional<SmallVector<NodeId, 8>> Runs = localInit(M);
  // If the collection names several ops, the user must choose one.
  if (!Runs)
    return addLocalInit(M, All);
  SmallVector<Endpoint, 8> Waits;
  for (NodeId N : *Runs)
    Waits.push_back({N, ControlPort});
  Waits.push_back({All, ControlPort});
  setLocalInit(M, group("graft/local_init_op", Waits));
}

PassResult RefreshCopies::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  if (!M.metaGraph() || readMesh(*G).replicas() < 2)
    return PassResult::Unchanged;
  SmallVector<NodeId, 16> Local;
  forEachVariable(M, "local_variables", [&](const tensorflow::VariableDef &V) {
    if (auto E = G->findEndpoint(V.variable_name()))
      Local.push_back(E->Node);
  });
  llvm::sort(Local);
  SmallVector<Endpoint, 16> Refreshed;
  forEachVariable(M, "variables", [&](const tensorflow::VariableDef &V) {
    auto E = G->findEndpoint(V.variable_name());
    if (!E || E->isControl() || !isVariableOp(G->opName(E->Node)) ||
        G->node(E->Node).Plan == Policy::SyncOnRead ||
        binary_search(Local, E->Node))
      return;
    NodeId Of = G->isPerReplica(E->Node) ? E->Node : proxyOf(*G, E->Node);
    if (Of == NoNode)
      return;
    Endpoint Read = findRead(E->Node, V.snapshot_name());
    if (Read.Node == NoNode)
      Diags.unproved("stale-copies", G->name(E->Node),
                     "no node reads the unmodified value of this variable, so "
                     "graft/refresh_copies does not refresh its copies; "
                     "restore it with the saver of the graph");
    else
      Refreshed.push_back({refresh(E->Node, Of, Read), ControlPort});
  });
  if (Refreshed.empty())
    return PassResult::Unchanged;
  addToLocalInit(M, group(RefreshName, Refreshed));
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(RefreshCopies)

} // namespace graft
