//===- lib/infer/facts/ProgramFacts.cpp - facts about a program -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/ProgramFacts.h"

#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/support/InternalError.h"

using namespace llvm;

namespace graft {

static DimOptions optionsOf(const Graph &G) {
  DimOptions Options;
  Options.Replicas = std::max(1u, readMesh(G).replicas());
  return Options;
}

/// Options with the nodes that must select among the rows of all replicas:
/// readers of every other one can use what it finds on one.
static DimOptions settled(const Graph &G, ArrayRef<NodeId> Order,
                          const VariableIndex &Vars, DimOptions Options) {
  uint32_t Op = 0;
  while (Op < G.numOps() && G.opNameOf(Op) != op::Where &&
         G.opNameOf(Op) != op::DynamicPartition)
    ++Op;
  if (Op == G.numOps())
    return Options;
  // Each turn finds one more.
  TurnLimit Limit("row numbers", 1 + G.size());
  for (;;) {
    DimAnalysis Dims(G, Order, Options);
    if (!Dims.table().hasRagged())
      return Options;
    TypeAnalysis Types(G, Order, Dims, Vars);
    if (Types.unusableNumbers().empty())
      return Options;
    Limit.turn([&] { return G.name(Types.unusableNumbers().front()).str(); });
    append_range(Options.Whole, Types.unusableNumbers());
  }
}

ProgramFacts::ProgramFacts(const Graph &G, DimOptions Options)
    : Order(topologicalOrder(G)), Vars(G),
      Dims(G, Order, settled(G, Order, Vars, std::move(Options))),
      Types(G, Order, Dims, Vars) {}

ProgramFacts::ProgramFacts(const Graph &G) : ProgramFacts(G, optionsOf(G)) {}

void ProgramFacts::adoptInserted(const Graph &G) {
  Order = topologicalOrder(G);
  Vars.extend(G);
  Dims.extend();
  Types.extend(Order);
}

ProgramFacts &programFacts(Module &M) {
  if (!M.Facts || M.FactsRevision != M.graph().revision()) {
    M.Facts = std::make_shared<ProgramFacts>(M.graph());
    keepFacts(M);
  }
  return *static_cast<ProgramFacts *>(M.Facts.get());
}

void keepFacts(Module &M) { M.FactsRevision = M.graph().revision(); }

} // namespace graft
