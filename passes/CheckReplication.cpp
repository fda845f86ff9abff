//===- passes/CheckReplication.cpp - check-replication ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The certificate. Compares the program with the graph that was read. Each
// inserted node is erased according to its meaning on global values: the rest
// must equal the input edge for edge. The replication types, inferred from
// scratch, must prove that the erasure changes nothing
// (lib/certify/compare/Certificate.h).
//
//     g/reduce = _Reduce*(g)  erased  →  g      because g is Partial, k=1,
//     Apply*(w, lr, g/reduce)            and the reduction scales by N^-1
//
// If variables are partitioned, the check first partitions the variables of the
// input, too, and checks this edit separately
// (lib/certify/partition/PartitionCheck.h). For a partitioned graph without
// replicas, this is the only check.
//
// If the pass runs alone on a text file, the option {input=FILE} names the
// input graph. The pass can then check a file that expand-replicas wrote, too:
// it is first folded back to a program (lib/certify/fold/Fold.h).
//
//===----------------------------------------------------------------------===//

#include "lib/certify/Certify.h"
#include "lib/io/read/Read.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "passes/Options.h"

using namespace llvm;

namespace graft {
namespace {

class CheckReplication final
    : public PassBase<CheckReplication, CheckReplicationOptions> {
public:
  static constexpr PassInfo Info = {
      "check-replication", "Prove that the program computes the input's step",
      "Erases what was inserted and compares with the input graph; infers all\n"
      "replication types again to prove that the erasure changes nothing."};

  Effect effect() const override { return Effect::Checks; }
  PassResult run(Module &M, DiagnosticEngine &Diags) override;
};

/// Reads the input again, if no snapshot was taken before the first edit.
Expected<Module> readAgain(const Module &M) {
  Module Input;
  if (Error E = Input.graph().parse(M.graphBytes()))
    return E;
  return Input;
}

PassResult CheckReplication::run(Module &M, DiagnosticEngine &Diags) {
  const Graph &G = M.graph();
  StringRef File = *Options.Input;
  bool IsProgram = readMesh(G).Node != NoNode;
  if (!IsProgram && File.empty())
    return PassResult::Unchanged;
  // The certificate infers its own facts. The facts of the passes are freed to
  // save memory.
  M.Facts.reset();
  if (!certify::checkFetched(G, *Options.Fetch, Diags))
    return PassResult::Failure;
  if (File.empty() && M.input())
    return certify::check(*M.input(), G, Diags) ? PassResult::Unchanged
                                                : PassResult::Failure;
  Expected<Module> Input = File.empty() ? readAgain(M) : readModule(File);
  if (!Input) {
    Diags.error("", toString(Input.takeError()));
    return PassResult::Failure;
  }
  return certify::check(*Input, G, Diags) ? PassResult::Unchanged
                                          : PassResult::Failure;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(CheckReplication)

} // namespace graft
