//===- lib/analysis/Types.cpp - replication types ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The fixpoint. Every round infers all types with the demands of the rounds
// before it met, and asks for more. A demand moves up along linear ops to the
// raw gradient, so that a gradient is reduced once for all its users. Rounds
// see only what earlier rounds asked for, so the result does not depend on the
// order of nodes.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Types.h"

#include "lib/analysis/TypeRules.h"

#include <algorithm>

using namespace llvm;

namespace graft {

std::string RType::str() const {
  static constexpr const char *Ops[] = {"sum", "min", "max", "and", "or"};
  std::string Text;
  switch (L) {
  case Layout::Replicated:
    Text = Zero ? "Zero" : "Replicated";
    break;
  case Layout::Sharded:
    Text = "Sharded(" + std::to_string(Axis) + ")";
    break;
  case Layout::Partial:
    Text = std::string("Partial(") + Ops[static_cast<int>(Op)] + ")";
    break;
  case Layout::Varying:
    return "Varying";
  }
  if (K != 0)
    Text += " k=" + std::to_string(K);
  return Text;
}

TypeAnalysis::TypeAnalysis(const Graph &G, ArrayRef<NodeId> Order,
                           const DimAnalysis &Dims, const VariableIndex &Vars)
    : G(G), Dims(Dims), Vars(Vars) {
  Types.resize(Dims.totalOutputs());
  Reduced.resize(Dims.totalOutputs());
  TypeRules Rules(*this, Order);
  std::vector<Demand> Reductions;
  // Each round meets at least one more demand; ordinary graphs take three.
  bool New = true;
  for (unsigned Round = 0; New && Round < 64; ++Round) {
    Rules.round();
    New = false;
    for (const Demand &A : Rules.Asked) {
      if (A.Kind != Demand::Reduce || Reduced[Dims.outputIndex(A.Source)])
        continue;
      Reduced[Dims.outputIndex(A.Source)] = true;
      Reductions.push_back(A);
      New = true;
    }
  }
  // A reduction below another one may have become unnecessary.
  for (Demand &D : Reductions) {
    RType Type = natural(D.Source);
    if (!Type.isPartial()) {
      Reduced[Dims.outputIndex(D.Source)] = false;
      continue;
    }
    D.Power = -Type.K;
    D.Op = Type.Op;
    Demands.push_back(D);
  }
  llvm::sort(Sources);
  // Gathers and scales are for one consumer, so the last round asked for all.
  for (const Demand &A : Rules.Asked)
    if (A.Kind != Demand::Reduce)
      Demands.push_back(A);
  llvm::stable_sort(Demands, [](const Demand &A, const Demand &B) {
    return std::tuple(A.Kind, A.Source.Node, A.Source.Port, A.User, A.Index) <
           std::tuple(B.Kind, B.Source.Node, B.Source.Port, B.User, B.Index);
  });
}

void TypeAnalysis::extend(ArrayRef<NodeId> Order) {
  auto Old = static_cast<uint32_t>(Types.size());
  Types.resize(Dims.totalOutputs());
  Reduced.assign(Dims.totalOutputs(), false);
  Demands.clear();
  TypeRules Rules(*this, Order);
  for (NodeId N : Order)
    if (Dims.numOutputs(N) != 0 && Dims.outputIndex({N, 0}) >= Old)
      Rules.visit(N);
}

RType TypeAnalysis::natural(Endpoint E) const {
  if (!Dims.validPort(E))
    return RType::varying(E.Node);
  return Types[Dims.outputIndex(E)];
}

RType TypeAnalysis::type(Endpoint E) const {
  RType Type = natural(E);
  if (Dims.validPort(E) && Reduced[Dims.outputIndex(E)] && Type.isPartial()) {
    RType Result = RType::replicated();
    Result.Assumes = Type.Assumes;
    return Result;
  }
  return Type;
}

RType TypeAnalysis::number(Endpoint E) const {
  RType Type = type(E);
  if (!Type.Symbolic)
    return Type;
  Type.Symbolic = false;
  auto Value = Dims.value(E);
  if (!Value || Value->empty())
    return RType::varying(E.Node);
  std::optional<int> Power;
  for (DimId D : *Value) {
    auto S = Dims.table().sym(D);
    if (!S || (Power && *Power != S->globalPower()))
      return RType::varying(E.Node);
    Power = S->globalPower();
  }
  Type.K = static_cast<int8_t>(-*Power);
  return Type;
}

std::string TypeAnalysis::reason(NodeId N) const {
  auto It = Reasons.find(N);
  if (It != Reasons.end())
    return It->second;
  return ("no rule for op " + G.opName(N)).str();
}

} // namespace graft
