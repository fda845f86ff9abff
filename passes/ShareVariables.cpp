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
// Relies on: policies (assign-strategy); updates of variables that are
// once were left once by replicate.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Program.h"
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
      "on one device.",
      {}};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

PassResult ShareVariables::run(Module &M, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  Mesh Devices = readMesh(G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  bool Any = false;
  for (NodeId N = 0; N < G.size() && !Any; ++N)
    Any = G.node(N).Plan == Policy::Shared && G.isLive(N) &&
          isVariableOp(G.opName(N));
  if (!Any)
    return PassResult::Unchanged;
  VariableIndex Vars(G);
  bool Changed = false;
  for (NodeId Var : Vars.variables()) {
    if (G.node(Var).Plan != Policy::Shared)
      continue;
    if (G.node(Var).Count == Copies::PerReplica) {
      Diags.error(G.name(Var), "has policy shared but exists per replica; "
                               "share it or mirror it, not both");
      return PassResult::Failure;
    }
    StringRef Device = G.device(Var);
    if (Device.empty() || Device == "/device:CPU:0")
      Device = Devices.Devices[0];
    G.setDevice(Var, Device);
    Changed = true;
    ++Statistics["variables shared"];
    if (Diags.wantsRemarks())
      Diags
          .remark("variable", G.name(Var),
                  "shared by all replicas on " + Device.str())
          .Facts = {{"policy", "shared"}};
  }
  for (NodeId N = 0; N < G.size(); ++N)
    for (unsigned I = 0; I < G.node(N).NumData; ++I) {
      NodeId Var = Vars.variableOf(G.input(N, I));
      if (Var == NoNode || G.node(Var).Plan != Policy::Shared ||
          !Vars.usesInPlace(G, N, I))
        continue;
      G.setDevice(N, G.device(Var));
      G.node(N).Flags |= NF_FixedDevice;
      Changed = true;
    }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(ShareVariables)

} // namespace graft
