//===- lib/infer/facts/ProgramFacts.cpp - facts about a program -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/ProgramFacts.h"

#include "lib/program/Program.h"
#include "lib/support/InternalError.h"

#include <utility>

using namespace llvm;

namespace graft {

DimOptions optionsOf(const Graph &G) {
  DimOptions Options;
  Options.Replicas = std::max(1u, readMesh(G).replicas());
  return Options;
}

/// Repeats the analyses until the types refute no assumption of the size
/// analysis, and no node relies on a fact that may not hold where the node
/// runs. The size analysis assumes that a node selects among the rows of one
/// replica. Types refute this if a reader cannot use the selected rows. It also
/// assumes that an integer equals that of the single-device step. Types refute
/// this if the integer differs on replicas.
std::unique_ptr<ProgramFacts::Analyses>
ProgramFacts::settled(const Graph &G, ArrayRef<NodeId> Order,
                      const VariableIndex &Vars, DimOptions Options) {
  // Each turn refutes at least one more assumption.
  TurnLimit Limit("assumptions about sizes", 1 + 2 * G.size());
  for (;;) {
    auto Found = std::make_unique<Analyses>(G, Order, Vars, Options);
    std::vector<NodeId> Denied = Found->Types.differing();
    append_range(Options.Differing, Denied);
    llvm::sort(Options.Differing);
    append_range(Options.Whole, Found->Types.unusableNumbers());
    append_range(Denied, Found->Types.unusableNumbers());
    append_range(Options.Denied, Found->Uses.Unfounded);
    llvm::sort(Options.Denied);
    append_range(Denied, Found->Uses.Unfounded);
    if (Denied.empty())
      return Found;
    Limit.turn([&] { return G.name(Denied.front()).str(); });
  }
}

ProgramFacts::ProgramFacts(const Graph &G, DimOptions Options)
    : Order(topologicalOrder(G)), Vars(G),
      Of(settled(G, Order, Vars, std::move(Options))), Dims(Of->Dims),
      Types(Of->Types) {}

ProgramFacts::ProgramFacts(const Graph &G) : ProgramFacts(G, optionsOf(G)) {}

void ProgramFacts::adoptInserted(const Graph &G) {
  Order = topologicalOrder(G);
  Vars.extend(G);
  Dims.extend();
  Types.extend(Order);
}

ProgramFacts &programFacts(Module &M) {
  if (!hasFacts(M)) {
    M.Facts = std::make_shared<ProgramFacts>(M.graph());
    M.FactsGrew = false;
    keepFacts(M);
  }
  if (std::exchange(M.FactsGrew, false))
    static_cast<ProgramFacts *>(M.Facts.get())->adoptInserted(M.graph());
  return *static_cast<ProgramFacts *>(M.Facts.get());
}

bool hasFacts(const Module &M) {
  return M.Facts && M.FactsRevision == M.graph().revision();
}

void adoptFacts(Module &M) {
  M.FactsGrew = true;
  keepFacts(M);
}

void keepFacts(Module &M) { M.FactsRevision = M.graph().revision(); }

} // namespace graft
