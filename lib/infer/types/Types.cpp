//===- lib/infer/types/Types.cpp - replication types ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The fixpoint of type inference. Every round infers types as if the demands of
// earlier rounds were met, and makes more demands. Rounds after the first visit
// only nodes that read a type that changed. A demand moves up along linear ops
// to the raw gradient, so that one reduction serves all its users. Since a
// round sees only demands of earlier rounds, the result does not depend on the
// order of nodes.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/Types.h"

#include "lib/infer/types/TypeInference.h"
#include "lib/ops/ProgramOps.h"
#include "lib/support/InternalError.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace graft {

StringRef combineName(Combine Op) {
  static constexpr StringLiteral Names[] = {
      combine::Sum, combine::Min, combine::Max, combine::And, combine::Or};
  return Names[static_cast<int>(Op)];
}

std::string ReplicationType::str() const {
  std::string Text;
  switch (L) {
  case Layout::Replicated:
    Text = Zero ? "Zero" : Whole ? "Whole" : "Replicated";
    break;
  case Layout::Sharded:
    Text = "Sharded(" + std::to_string(Axis) + ")";
    break;
  case Layout::Partial:
    Text = ("Partial(" + combineName(Op) + ")").str();
    break;
  case Layout::Varying:
    return "Varying";
  }
  if (isJoined())
    Text += " joined";
  if (K != 0)
    Text += " k=" + std::to_string(K);
  return Text;
}

TypeAnalysis::TypeAnalysis(const Graph &G, ArrayRef<NodeId> Order,
                           const DimAnalysis &Dims, const VariableIndex &Vars,
                           const KeepOptions *KeepOnce)
    : G(G), Dims(Dims), Vars(Vars) {
  Types.resize(Dims.totalOutputs());
  Reduced.resize(Dims.totalOutputs());
  findStates();
  TypeInference Rules(*this, Order);
  std::vector<Demand> Reductions;
  // Each round meets at least one more demand. Ordinary graphs need three
  // rounds.
  TurnLimit Limit("collective requests", 3 + 2 * Types.size());
  while (Rules.round() || (KeepOnce && Rules.keepUnrelated(*KeepOnce))) {
    Limit.turn([&] {
      return Reductions.empty() ? std::string()
                                : G.name(Reductions.back().Because).str();
    });
    for (const Demand &A : Rules.takeReductions()) {
      uint32_t Index = Dims.outputIndex(A.Source);
      if (Reduced[Index])
        continue;
      Reduced[Index] = true;
      Reductions.push_back(A);
      // A reduction of joined rows also changes the type of the node that joins
      // them.
      Rules.markUsers(A.Source.Node);
      Rules.restartLoops();
      if (natural(A.Source).isJoined())
        Rules.mark(A.Source.Node);
    }
  }
  // A later demand further up may make an earlier reduction unnecessary.
  for (Demand &D : Reductions) {
    ReplicationType Type = natural(D.Source);
    if (!Type.isPartial()) {
      Reduced[Dims.outputIndex(D.Source)] = false;
      continue;
    }
    D.Power = -Type.K;
    D.Op = Type.Op;
    Demands.push_back(D);
  }
  llvm::sort(Sources);
  llvm::sort(Unproved);
  if (Dims.table().hasRagged())
    Rules.findUnusable(Unusable);
  if (KeepOnce)
    Kept = Rules.takeKept();
  // A gather or scale serves one user. So Rules keeps only the demands of the
  // last visit to each user.
  append_range(Demands, Rules.asked());
  llvm::stable_sort(Demands, [](const Demand &A, const Demand &B) {
    return std::tuple(A.Kind, A.Source.Node, A.Source.Port, A.User, A.Index) <
           std::tuple(B.Kind, B.Source.Node, B.Source.Port, B.User, B.Index);
  });
}

void TypeAnalysis::extend(ArrayRef<NodeId> Order) {
  auto Old = static_cast<uint32_t>(Types.size());
  Types.reserve(Dims.totalOutputs());
  Types.resize(Dims.totalOutputs());
  Reduced.assign(Dims.totalOutputs(), false);
  Demands.clear();
  TypeInference Rules(*this, Order);
  Rules.settle();
  for (NodeId N : Order)
    if (Dims.numOutputs(N) != 0 && Dims.outputIndex({N, 0}) >= Old)
      Rules.visit(N);
}

unsigned TypeAnalysis::blocks(Endpoint E) const {
  static constexpr size_t MostBlocks = 256;
  ReplicationType Type = natural(E);
  if (!Type.isJoined() || Type.Zero || Type.Symbolic || Dims.replicas() == 1)
    return 0;
  const OrderedParts &Parts = Orders[Type.Order];
  return Parts.size() > 1 && Parts.size() <= MostBlocks && all_equal(Parts) &&
                 Parts[0].Order == ReplicationType::InOrder &&
                 Parts[0].Size == 0 && Parts[0].Rows.Ragged == 0
             ? static_cast<unsigned>(Parts.size())
             : 0;
}

ReplicationType TypeAnalysis::numberOf(Endpoint E, ReplicationType Type) const {
  if (Type.isJoined()) {
    // A permutation of zeros is the same value.
    if (!Type.Zero)
      return ReplicationType::varying(E.Node);
    Type.Order = ReplicationType::InOrder;
    return Type;
  }
  Type.Symbolic = false;
  auto Value = Dims.value(E);
  // If all elements are global values, only the number of elements is local,
  // and that number is not known.
  if (!Value || Dims.table().areSame(*Value))
    return ReplicationType::varying(E.Node);
  std::optional<int> Power;
  // Data-dependent row counts of all replicas add up to the global one.
  auto IsCount = [&](DimId D) {
    auto S = Dims.table().sym(D);
    return S && S->Ragged != 0 && S->isLocal();
  };
  if (all_of(*Value, IsCount)) {
    ReplicationType Sum = ReplicationType::partial(0);
    Sum.Assumes = Type.Assumes;
    return Sum;
  }
  for (DimId D : *Value) {
    auto Is = Dims.table().globalPower(D);
    if (!Is || (Power && *Power != *Is))
      return ReplicationType::varying(E.Node);
    Power = Is;
  }
  Type.setPower(-*Power);
  return Type;
}

std::optional<SmallVector<int64_t, 4>>
TypeAnalysis::sizePowers(Endpoint E) const {
  auto Value = Dims.value(E);
  if (!Value)
    return std::nullopt;
  SmallVector<int64_t, 4> Powers;
  for (DimId D : *Value) {
    auto Power = Dims.table().globalPower(D);
    if (!Power)
      return std::nullopt;
    Powers.push_back(*Power);
  }
  // If all elements are global values, only the number of elements is local,
  // and that number is not known.
  if (natural(E).Symbolic && all_of(Powers, [](int64_t P) { return P == 0; }) &&
      Dims.table().areSame(*Value))
    return std::nullopt;
  // Elements with different powers are scaled by a vector of products.
  if (!all_equal(Powers) &&
      (Dims.isMatrix(E) || any_of(Powers, [](int64_t P) { return P < 0; })))
    return std::nullopt;
  return Powers;
}

std::vector<NodeId> TypeAnalysis::differing() const {
  std::vector<NodeId> Result;
  copy_if(Dims.shared(), std::back_inserter(Result),
          [&](NodeId N) { return !type({N, 0}).isTrue(); });
  llvm::sort(Result);
  return Result;
}

std::optional<int> TypeAnalysis::wholeAxis(Endpoint E) const {
  const DimTable &Table = Dims.table();
  auto Value = Dims.value(E);
  unsigned Type = G.outputType(E);
  int Axis = localAxis(E);
  if (Axis == -2 || natural(E).Symbolic || Type == DT_RESOURCE ||
      Type == DT_VARIANT || (Value && !Table.areSame(*Value)))
    return std::nullopt;
  if (Axis < 0)
    return Axis;
  // Replicas cannot get equal shares of a data-dependent number of rows, or of
  // a number that N does not divide.
  DimId Rows = (*Dims.shape(E))[Axis];
  int64_t Number = Table.number(Rows);
  if (Table.isRagged(Rows) ||
      (Number != UnknownSize && Number % Dims.replicas() != 0))
    return std::nullopt;
  // A gradient sums over the axes along which an operand was broadcast. A batch
  // axis of one row looks like such an axis. Sum removes it, and a Reshape
  // restores it later.
  if (G.isOp(E.Node, op::Sum) && G.boolAttr(E.Node, "keep_dims") != true &&
      G.isOp(G.input(E.Node, 1).Node, op::BroadcastGradientArgs) &&
      Dims.mayBeOneRow(Rows))
    return std::nullopt;
  return Axis;
}

int TypeAnalysis::localAxis(Endpoint E) const {
  auto Shape = Dims.shape(E);
  if (!Shape)
    return -2;
  int Axis = -1;
  for (size_t I = 0; I < Shape->size(); ++I) {
    if (Dims.table().isSame((*Shape)[I]))
      continue;
    auto S = Dims.table().sym((*Shape)[I]);
    bool IsShare =
        S ? S->B == 1 && S->R == 0 : Dims.table().followsRows((*Shape)[I]);
    if (!IsShare || Axis >= 0)
      return -2;
    Axis = static_cast<int>(I);
  }
  return Axis;
}

std::string TypeAnalysis::reason(NodeId N) const {
  auto It = Reasons.find(N);
  if (It != Reasons.end())
    return It->second;
  if (natural({N, 0}).isJoined())
    return "concatenates rows of the batch with others, so that their order "
           "differs from the single-device step";
  return ("no rule for op " + G.opName(N)).str();
}

} // namespace graft
