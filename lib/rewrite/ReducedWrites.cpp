//===- lib/rewrite/ReducedWrites.cpp - reductions of writes -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A forward walk marks the tensors that depend on a reduction. The backward
// walk from each write stays on marked tensors. So it does not visit other
// tensors, such as the norm of all gradients, once per variable.
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/ReducedWrites.h"

#include "lib/graph/PerOp.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {
namespace {

class ReducedWrites {
public:
  ReducedWrites(const Graph &G, const ProgramFacts &Facts);
  std::vector<SetVector<NodeId>> run();

private:
  /// The operands in which an op is elementwise or linear. For an op that moves
  /// elements: the floating-point operands, not the indices.
  enum Follows : uint8_t { None, Each, First, SamePort, Moved };
  static Follows followsOf(StringRef Op);

  const std::vector<unsigned> *demandsAt(NodeId N, unsigned I) const;
  template <typename Fn> void forEachOperand(Endpoint E, Fn F) const;
  bool leads(NodeId N, unsigned I) const;
  void mark(NodeId N);
  void walk(NodeId Update);

  const Graph &G;
  const ProgramFacts &Facts;
  PerOp Followed;
  /// The demands: by tensor, if it is combined for all readers, and by operand,
  /// if it is combined for one reader only.
  DenseMap<uint32_t, std::vector<unsigned>> ForAll;
  DenseMap<std::pair<NodeId, unsigned>, std::vector<unsigned>> ForOne;
  std::vector<bool> Leads; ///< By output.
  std::vector<SetVector<NodeId>> Found;
};

ReducedWrites::Follows ReducedWrites::followsOf(StringRef Op) {
  // These ops move elements, such as the part of a gradient for a part of a
  // variable, or the rows that an update writes by index.
  if (StringSwitch<bool>(Op)
          .Cases(op::Split, op::SplitV, op::Slice, op::StridedSlice, true)
          .Cases(op::Concat, op::ConcatV2, op::Pack, op::Unpack, true)
          .Cases(op::Gather, op::GatherV2, op::Pad, op::PadV2, true)
          .Cases(op::DynamicPartition, op::UnsortedSegmentSum, true)
          .Default(false))
    return Moved;
  uint32_t Is = traitsOf(Op);
  if (Is & (trait::Elementwise | trait::LinearInEach))
    return Each;
  if (Is & (trait::LinearInFirst | trait::LinearOfFloats))
    return First;
  return Is & trait::LinearInSame ? SamePort : None;
}

ReducedWrites::ReducedWrites(const Graph &G, const ProgramFacts &Facts)
    : G(G), Facts(Facts),
      Followed(G, [](StringRef Op, const OpDef *) { return followsOf(Op); }),
      Leads(Facts.Dims.totalOutputs()), Found(Facts.Types.demands().size()) {
  for (auto [Index, D] : enumerate(Facts.Types.demands())) {
    if (D.Kind == Demand::Reduce)
      ForAll[Facts.Dims.outputIndex(D.Source)].push_back(Index);
    else if (D.Kind != Demand::Scale)
      ForOne[{D.User, D.Index}].push_back(Index);
  }
}

/// Returns the demands for operand \p I of \p N, or null.
const std::vector<unsigned> *ReducedWrites::demandsAt(NodeId N,
                                                      unsigned I) const {
  if (auto It = ForOne.find({N, I}); It != ForOne.end())
    return &It->second;
  Endpoint E = G.input(N, I);
  if (!Facts.Dims.validPort(E))
    return nullptr;
  auto It = ForAll.find(Facts.Dims.outputIndex(E));
  return It == ForAll.end() ? nullptr : &It->second;
}

template <typename Fn>
void ReducedWrites::forEachOperand(Endpoint E, Fn F) const {
  unsigned NumData = G.node(E.Node).NumData;
  unsigned Begin = 0, End = 0;
  switch (Followed[G.node(E.Node)]) {
  case Each:
  case Moved:
    End = NumData;
    break;
  case First:
    End = 1;
    break;
  case SamePort:
    Begin = E.Port;
    End = E.Port + 1;
    break;
  default:
    break;
  }
  for (unsigned I = Begin; I < std::min(End, NumData); ++I)
    if (Followed[G.node(E.Node)] != Moved ||
        isFloating(G.outputType(G.input(E.Node, I))))
      F(I);
}

bool ReducedWrites::leads(NodeId N, unsigned I) const {
  Endpoint E = G.input(N, I);
  return demandsAt(N, I) != nullptr ||
         (Facts.Dims.validPort(E) && Leads[Facts.Dims.outputIndex(E)]);
}

void ReducedWrites::mark(NodeId N) {
  for (unsigned Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
    forEachOperand({N, Port}, [&](unsigned I) {
      if (leads(N, I))
        Leads[Facts.Dims.outputIndex({N, Port})] = true;
    });
}

void ReducedWrites::walk(NodeId Update) {
  unsigned NumVars = Facts.Vars.update(G, Update).NumVars;
  SmallVector<NodeId, 4> Variables = variablesWritten(G, Facts.Vars, Update);
  SmallVector<Endpoint> ToDo;
  DenseSet<uint32_t> Seen;
  auto Take = [&](NodeId N, unsigned I) {
    if (const auto *Demands = demandsAt(N, I)) {
      for (unsigned Index : *Demands)
        Found[Index].insert(Variables.begin(), Variables.end());
      return;
    }
    Endpoint E = G.input(N, I);
    if (leads(N, I) && Seen.insert(Facts.Dims.outputIndex(E)).second)
      ToDo.push_back(E);
  };
  for (unsigned I = NumVars; I < G.node(Update).NumData; ++I)
    Take(Update, I);
  while (!ToDo.empty()) {
    Endpoint E = ToDo.pop_back_val();
    forEachOperand(E, [&](unsigned I) { Take(E.Node, I); });
  }
}

std::vector<SetVector<NodeId>> ReducedWrites::run() {
  for (NodeId N : Facts.Order)
    mark(N);
  for (NodeId N : Facts.Order)
    if (Facts.Vars.isUpdate(G, N))
      walk(N);
  return std::move(Found);
}

} // namespace

std::vector<SetVector<NodeId>> variablesOf(const Graph &G,
                                           const ProgramFacts &Facts) {
  return ReducedWrites(G, Facts).run();
}

SmallVector<NodeId, 4>
variablesWritten(const Graph &G, const VariableIndex &Vars, NodeId Update) {
  SmallVector<NodeId, 4> Variables;
  for (unsigned I = 0; I < Vars.update(G, Update).NumVars; ++I)
    if (NodeId Var = Vars.variableOf(G.input(Update, I)); Var != NoNode)
      Variables.push_back(Var);
  return Variables;
}

std::vector<std::string> originNames(const Graph &G, ArrayRef<NodeId> Nodes) {
  std::vector<std::string> Names;
  for (NodeId N : Nodes)
    Names.push_back(originName(G, N).str());
  return Names;
}

} // namespace graft
