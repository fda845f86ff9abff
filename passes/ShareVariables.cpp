//===- passes/ShareVariables.cpp - share-variables --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One variable for all replicas: it and its updates exist once, on the device
// of replica 0 unless the input says otherwise, and every replica reads it
// there.
//
//     w = VariableV2()                w = VariableV2() @/device:CPU:0
//     g = MatMul*(x/split, dy)    →   g = MatMul*(x/split, dy)
//     ApplyGradientDescent(w, a, g)   ApplyGradientDescent(w, a, g)
//     @/device:CPU:0
//
// The update reads the true gradient: merge-fetches puts the sum in between. An
// op of a replica that uses the variable in place (a lookup of rows) runs where
// the variable is, as TensorFlow would place it in any case.
//
// So it is with the policy `host`, on the host: XLA leaves the variable alone,
// and each replica has a cache of what a read gives, one snapshot for all.
//
//     r = ReadVariableOp(w)           r = ReadVariableOp(w) @/device:CPU:0
//     y = MatMul*(x/split, r)    →    w/Read/Identity = Identity*(r)
//                                     y = MatMul*(x/split, w/Read/Identity)
//
// Relies on: policies (assign-strategy); updates of variables that are
// once were left once by replicate.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

using namespace llvm;

namespace graft {
namespace {

class ShareVariables final : public PassBase<ShareVariables> {
public:
  static constexpr PassInfo Info = {
      "share-variables",
      "One variable for all replicas",
      "Places the variables with policy `shared` and what uses them in place\n"
      "on one device, those with policy `host` on the host, and gives "
      "replicas\n"
      "a cache of what they read from the latter.",
      {}};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  void keepOnHost(NodeId Var);
  void cache(NodeId Var, Endpoint Read);

  Graph *G = nullptr;
  const VariableIndex *Vars = nullptr;
};

/// The host of the task that \p Device is on.
static std::string hostOf(StringRef Device) {
  auto Parsed = DeviceName::parse(Device);
  DeviceName Host = Parsed ? *Parsed : DeviceName();
  Host.Type = "CPU";
  Host.Index = 0;
  return Host.str();
}

/// Replicas that read \p Read take it from a place of their own.
void ShareVariables::cache(NodeId Var, Endpoint Read) {
  SmallVector<Use, 8> Readers;
  for (Use U : G->uses(Read.Node))
    if (U.Index < G->node(U.User).NumData &&
        G->node(U.User).Count == Copies::PerReplica &&
        G->input(U.User, U.Index) == Read)
      Readers.push_back(U);
  if (Readers.empty())
    return;
  AttrRun Attrs;
  Attrs.type("T", G->outputType(Read.Node, Read.Port));
  SmallString<128> Name(G->name(Var));
  Name += "/Read/Identity";
  NodeId N = G->insertNode(Name, "Identity", Read, Read.Node, Attrs);
  G->node(N).Kind = Inserted::Identity;
  G->node(N).Count = Copies::PerReplica;
  for (Use U : Readers)
    G->setInput(U.User, U.Index, {N, 0});
}

void ShareVariables::keepOnHost(NodeId Var) {
  bool IsHandle = G->isOp(Var, "VarHandleOp");
  SmallVector<NodeId, 4> Reads, Own{Var};
  NodeId Initial = Vars->initialAssign(*G, Var);
  Vars->forEachUse(*G, Var, [&](Use U) {
    StringRef Op = G->opName(U.User);
    bool Reads0 =
        U.Index == 0 && Op == (IsHandle ? "ReadVariableOp" : "Identity");
    if (Reads0 && Vars->variableOf({U.User, 0}) == NoNode)
      Reads.push_back(U.User);
    else if (U.User != Initial && Op != "VarIsInitializedOp" &&
             Op != "IsVariableInitialized")
      return;
    Own.push_back(U.User);
  });
  llvm::sort(Own);
  llvm::sort(Reads);
  for (NodeId N : Own) {
    G->setBoolAttr(N, "_XlaCompile", false);
    G->setStringAttr(N, "_XlaScope", "");
  }
  for (NodeId Read : Reads)
    if (G->node(Read).Count == Copies::Once)
      cache(Var, {Read, 0});
}

PassResult ShareVariables::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  Mesh Devices = readMesh(*G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  auto IsShared = [&](NodeId N) { return isShared(G->node(N).Plan); };
  bool Any = false;
  for (NodeId N = 0; N < G->size() && !Any; ++N)
    Any = IsShared(N) && G->isLive(N) && isVariableOp(G->opName(N));
  if (!Any)
    return PassResult::Unchanged;
  VariableIndex Index(*G);
  Vars = &Index;
  bool Changed = false;
  for (NodeId Var : Vars->variables()) {
    if (!IsShared(Var))
      continue;
    StringRef Plan = policyName(G->node(Var).Plan);
    if (G->node(Var).Count == Copies::PerReplica) {
      Diags.error(G->name(Var), ("has policy " + Plan +
                                 " but exists per replica; share it or mirror "
                                 "it, not both")
                                    .str());
      return PassResult::Failure;
    }
    bool OnHost = G->node(Var).Plan == Policy::Host;
    std::string Device = G->device(Var).str();
    if (OnHost)
      Device = hostOf(Device);
    else if (Device.empty() || Device == "/device:CPU:0")
      Device = Devices.Devices[0];
    G->setDevice(Var, Device);
    Changed = true;
    ++Statistics["variables shared"];
    if (Diags.wantsRemarks())
      Diags
          .remark(
              "variable", G->name(Var),
              (OnHost ? "one on the host, " : "shared by all replicas on ") +
                  Device)
          .Facts = {{"policy", Plan.str()}};
    if (OnHost)
      keepOnHost(Var);
  }
  for (NodeId N = 0; N < G->size(); ++N)
    for (unsigned I = 0; I < G->node(N).NumData; ++I) {
      NodeId Var = Vars->variableOf(G->input(N, I));
      if (Var == NoNode || !IsShared(Var) || !Vars->usesInPlace(*G, N, I))
        continue;
      G->setDevice(N, G->device(Var));
      G->node(N).Flags |= NF_FixedDevice;
      Changed = true;
    }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(ShareVariables)

} // namespace graft
