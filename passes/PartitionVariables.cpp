//===- passes/PartitionVariables.cpp - partition-variables ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Partitions variables along one axis: a single-device graph becomes a
// single-device graph with more and smaller variables. Later passes place,
// mirror and reduce each part by itself (docs/Partitions.md).
//
//     w = VarHandleOp()                w/part_0 = VarHandleOp(), ...
//     w/Read = ReadVariableOp(w)       w/Read = Identity(ConcatV2(
//                                          ReadVariableOp(w/part_0), ...))
//     up = ResourceApplyAdam(w, ...) → up/part_0 = ResourceApplyAdam(w/part_0,
//                                          ..., SplitV(g):0), ...
//                                      up = NoOp(^up/part_0, ...)
//
// Lookups and sparse updates send each row to the part that has it. Slots that
// an op updates together with a variable are partitioned alike. Checkpoints
// have slices of the whole variable, under its key.
//
// Relies on: `_graft_partition` on variables (assign-strategy), or the option
// of the pass. The pass checks all users before the first edit.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/Certify.h"
#include "lib/graph/PerOp.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"
#include "lib/program/TensorNames.h"
#include "lib/rewrite/VariableRules.h"
#include "lib/rewrite/partition/PartitionEdit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

struct PartitionVariablesOptions : PassOptions {
  Option<Strings, ';', /*TakesCommas=*/true> Partition{
      *this, "partition",
      "VAR=AXIS:SIZE,SIZE,... or VAR=AXIS/COUNT (even parts)"};
  Option<Strings> Fetch{*this, "fetch", "Further tensors that are fetched"};
};

class PartitionVariables final
    : public PassBase<PartitionVariables, PartitionVariablesOptions> {
public:
  static constexpr PassInfo Info = {
      "partition-variables", "Partition variables",
      "Replaces each variable that has a `_graft_partition`, and its slots, "
      "by\n"
      "parts along one axis. Reads are concatenations, updates are one for\n"
      "each part, lookups and sparse updates go to the part that has the row,\n"
      "checkpoints have slices of the whole variable."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  static std::vector<NodeId> findMarked(const Graph &G);
  void report(const Graph &G, const PartitionedVariable &Of,
              DiagnosticEngine &Diags);
  bool addWanted(const Graph &G, const VariableIndex &Vars, PartitionPlan &Plan,
                 DiagnosticEngine &Diags);
};

/// Returns the parts of `AXIS/COUNT`. Their sizes are equal or, if COUNT does
/// not divide the size of the axis, the first parts are larger by one.
std::optional<Partition> evenParts(const Graph &G, NodeId Var, StringRef Text) {
  auto [Axis, Count] = Text.split('/');
  Partition P;
  unsigned Parts;
  auto Shape = G.shapeAttr(Var, "shape");
  if (Axis.getAsInteger(10, P.Axis) || Count.getAsInteger(10, Parts) ||
      Parts == 0 || !Shape || P.Axis >= Shape->Dims.size() ||
      Shape->Dims[P.Axis] < Parts)
    return std::nullopt;
  P.Sizes = partSizes(Shape->Dims[P.Axis], Parts);
  return P;
}

/// Adds the parts that the option asks for.
bool PartitionVariables::addWanted(const Graph &G, const VariableIndex &Vars,
                                   PartitionPlan &Plan,
                                   DiagnosticEngine &Diags) {
  for (StringRef Rule : *Options.Partition) {
    auto [Name, How] = Rule.split('=');
    NodeId Var = G.find(Name);
    if (Var == NoNode || !isVariableOp(G.opName(Var))) {
      Diags.error("", ("partition: no variable is called '" + Name + "'" +
                       similarVariable(G, Vars, Name))
                          .str());
      return false;
    }
    auto P = How.contains('/') ? evenParts(G, Var, How) : parsePartition(How);
    if (!P) {
      Diags.error(
          G.name(Var),
          ("'" + How +
           "' is not a partition of this variable; write AXIS:SIZE,SIZE,... or "
           "AXIS/COUNT, with at least one element in each part")
              .str());
      return false;
    }
    if (P->Sizes.size() > 1 && !Plan.add(Var, *P))
      return false;
  }
  return true;
}

/// Returns the variables that have a `_graft_partition`.
std::vector<NodeId> PartitionVariables::findMarked(const Graph &G) {
  PerOp IsVariable(
      G, [](StringRef Op, const OpDef *) { return isVariableOp(Op); });
  std::vector<NodeId> Marked;
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (IsVariable[This] && !This.isDead() && This.Flags & NF_MayHaveGraft &&
        G.hasAttr(N, PartitionAttr))
      Marked.push_back(N);
  }
  return Marked;
}

void PartitionVariables::report(const Graph &G, const PartitionedVariable &Of,
                                DiagnosticEngine &Diags) {
  ++Statistics["variables partitioned"];
  Statistics["parts"] += Of.parts();
  if (!Diags.wantsRemarks())
    return;
  std::string How = printPartition(Of.Cut);
  Diags
      .remark("partition", Of.Name,
              formatv("in {0} parts along axis {1}: {2}{3}", Of.parts(),
                      Of.Cut.Axis, StringRef(How).split(':').second,
                      Of.Leader == Of.Var
                          ? std::string()
                          : ", as a slot of '" + G.name(Of.Leader).str() + "'"))
      .Facts = {{"partition", How}};
}

PassResult PartitionVariables::run(Module &M, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  std::vector<NodeId> Marked = findMarked(G);
  if (Marked.empty() && Options.Partition->empty())
    return PassResult::Unchanged;
  VariableIndex Vars(G);
  PartitionPlan Plan(G, Vars, Diags);
  for (NodeId Var : Marked) {
    auto P = partitionOf(G, Var);
    if (!P) {
      Diags.error(G.name(Var),
                  formatv("its {0} is not AXIS:SIZE,SIZE,...", PartitionAttr));
      return PassResult::Failure;
    }
    if (P->Sizes.size() > 1 && !Plan.add(Var, *P))
      return PassResult::Failure;
  }
  if (!addWanted(G, Vars, Plan, Diags) || !Plan.complete())
    return PassResult::Failure;
  for (NodeId Var : Marked)
    G.removeAttr(Var, PartitionAttr);
  for (const PartitionedVariable &Of : Plan.variables())
    report(G, Of, Diags);
  if (Plan.variables().empty())
    return Marked.empty() ? PassResult::Unchanged : PassResult::Changed;
  PartitionEditor Editor(M, Vars, Plan);
  for (StringRef Name : withoutPatterns(G, *Options.Fetch))
    Editor.keep(Name.contains(':') ? Name.str() : (Name + ":0").str());
  std::optional<InputGraph> Before;
  if (!M.input())
    Before.emplace(G);
  Editor.run();
  if (!certify::check(Before ? *Before : *M.input(), G, Diags,
                      certify::Claim::Parts))
    return PassResult::Failure;
  M.setParts();
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(PartitionVariables)

} // namespace graft
