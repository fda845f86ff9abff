//===- lib/rewrite/ReductionReport.cpp - diagnostics of reductions --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/ReductionReport.h"

#include "lib/graph/Walk.h"
#include "lib/infer/rules/BatchNormReads.h"
#include "lib/ops/Ops.h"
#include "lib/rewrite/Fetches.h"
#include "lib/rewrite/ReducedWrites.h"
#include "lib/rewrite/UnprovedWrites.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using namespace llvm;

namespace graft {

ReductionReport::ReductionReport(const Graph &G, const ProgramFacts &Before,
                                 ArrayRef<std::string> Fetched,
                                 DiagnosticEngine &Diags)
    : G(G), Diags(Diags) {
  if (Before.Types.unprovedWrites().empty())
    return;
  DenseSet<std::pair<NodeId, NodeId>> Seen;
  for (auto [N, I] : Before.Types.unprovedWrites()) {
    NodeId Cause = Before.Types.type(G.input(N, I)).Cause;
    NodeId Var = Before.Vars.variableOf(G.input(N, 0));
    if (Cause == NoNode || Var == NoNode || !Seen.insert({Cause, Var}).second)
      continue;
    Spoils &Its = Spoiled[Cause];
    if (Its.Variables++ == 0)
      Its.Variable = Var;
  }
  for (auto [N, Cause] :
       Fetches(G, Before, /*Picks=*/false).unrelated(Fetched)) {
    Spoils &Its = Spoiled[Cause];
    if (Its.Fetches++ == 0)
      Its.Fetch = N;
  }
}

/// Notes why \p Cause is unknown and, if \p HowMany, how many values depend on
/// it.
void ReductionReport::note(Diagnostic &D, const ProgramFacts &Facts,
                           NodeId Cause, bool HowMany) const {
  if (Cause == NoNode)
    return;
  std::string Text = Facts.Types.reason(Cause);
  if (HowMany)
    Text += Spoiled.lookup(Cause).str(G);
  D.Notes.push_back({G.name(Cause).str(), Text});
}

void ReductionReport::warnRepair(const ProgramFacts &Facts,
                                 const Repair &R) const {
  if (!R.Text.empty())
    note(Diags.unproved("fallback", G.name(R.Source.Node), R.Text), Facts,
         R.Cause, true);
}

void ReductionReport::refuseDrifts(const ProgramFacts &Facts) const {
  const TypeAnalysis &Types = Facts.Types;
  if (Types.unprovedWrites().empty())
    return;
  LocalRuns Local(G, Facts);
  MapVector<NodeId, std::pair<SetVector<NodeId>, std::pair<NodeId, unsigned>>>
      Writes;
  for (auto [N, I] : Types.unprovedWrites())
    if (!Types.usesState(N, I) && Local.drifts(N, I)) {
      auto &[Variables, First] = Writes[Types.type(G.input(N, I)).Cause];
      if (Variables.empty())
        First = {N, I};
      Variables.insert(Facts.Vars.variableOf(G.input(N, 0)));
    }
  for (const auto &[Cause, Its] : Writes) {
    const auto &[Variables, First] = Its;
    auto [N, I] = First;
    Endpoint E = G.input(N, I);
    bool Locally = Types.localPredicate(N).has_value();
    Diagnostic &D = Diags.error(
        G.name(N),
        formatv("{0}, so the copies of variable '{1}'{2} would not stay "
                "equal; {3}",
                Locally ? "runs under a predicate that replicas may disagree "
                          "on"
                        : "writes a different value on each replica",
                G.name(Variables.front()),
                Variables.size() == 1
                    ? ""
                    : formatv(" and of {0} more", Variables.size() - 1).str(),
                !Locally && isFloating(G.outputType(E))
                    ? "reduce the written value by hand"
                    : "write a value that is equal on all replicas, or give "
                      "its policy with --variable")
            .str());
    D.Id = "unproved";
    note(D, Facts, Cause);
  }
}

void ReductionReport::remarkDemands(const ProgramFacts &Facts,
                                    bool OnlyGathers) const {
  if (!Diags.wantsRemarks())
    return;
  const TypeAnalysis &Types = Facts.Types;
  for (const auto &[D, Variables] :
       zip_equal(Types.demands(), variablesOf(G, Facts))) {
    if (D.Kind == Demand::Scale || (OnlyGathers && D.Kind != Demand::Gather))
      continue;
    StringRef Scale = D.Power == 0    ? "sum"
                      : D.Power == -1 ? "mean"
                                      : "scaled sum";
    if (D.Kind == Demand::Gather)
      Scale = D.Power == 0 ? "rows" : "rows, mean";
    Diags
        .remark("reduction", G.name(D.Source.Node),
                formatv("{0} is {1}: {2} over the replicas, for '{3}'",
                        Types.natural(D.Source).str(),
                        D.Kind == Demand::Gather ? "gathered" : "reduced",
                        Scale, G.name(D.Because)))
        .Facts = {{"type", Types.natural(D.Source).str()},
                  {"scale", int64_t(D.Power)},
                  {"for", G.name(D.Because).str()},
                  {"variables", originNames(G, Variables.getArrayRef())}};
  }
}

/// Warns of an unproved write to a variable whose policy lets its copies
/// differ.
void ReductionReport::warnAsked(const ProgramFacts &Facts, NodeId N,
                                unsigned I) const {
  bool IsSlot = I < Facts.Vars.update(G, N).NumVars;
  NodeId Var = Facts.Vars.variableOf(G.input(N, IsSlot ? I : 0));
  if (G.node(G.input(N, I).Node).Kind == Inserted::Merge)
    return; // aggregateWrites() has reported it
  bool OnRead = G.node(Var).Plan == Policy::SyncOnRead;
  ReplicationType Type = Facts.Types.number(G.input(N, I));
  Diagnostic &D = Diags.unproved(
      "policy", G.name(Var),
      OnRead
          ? formatv(
                "'{0}' writes to each copy a value that is {1}, so the {2} of "
                "the copies is not proved to be the value of the "
                "single-device step",
                G.name(N), Type.str(),
                aggregationName(
                    aggregationOf(G, Var).value_or(Aggregation::None)))
                .str()
          : formatv("'{0}' writes to each copy the value of its own replica, "
                    "so the copies differ; if they must be equal, give "
                    "--variable={1}={2},sum, mean or only-first-replica",
                    G.name(N), G.name(Var), policyName(Policy::Mirrored))
                .str());
  if (Type.isVarying())
    note(D, Facts, Type.Cause);
}

/// Warns once for each cause, however many writes it spoils.
void ReductionReport::warnWrites(const ProgramFacts &Facts) const {
  SmallVector<NodeId, 4> Causes;
  for (auto [N, I] : Facts.Types.unprovedWrites()) {
    NodeId Cause = Facts.Types.type(G.input(N, I)).Cause;
    if (Facts.Types.usesState(N, I)) {
      warnAsked(Facts, N, I);
      continue;
    }
    if (Cause != NoNode && is_contained(Causes, Cause))
      continue;
    Causes.push_back(Cause);
    note(Diags.unproved("write", G.name(N),
                        formatv("input {0} is not proved to be the value of "
                                "the single-device step on every replica",
                                I)),
         Facts, Cause, true);
  }
}

void ReductionReport::warnAssumptions(const TypeAnalysis &Types) const {
  for (auto [N, Bits] : Types.assumptions()) {
    if (Bits & AssumesLocalBatchNorm)
      Diags.unproved(
          "local-batch-norm", G.name(N),
          isVarianceRead(G, N)
              ? "batch normalization uses the statistics of each replica's "
                "rows, not of the whole batch; a reader of its variance, such "
                "as a moving average, gets the mean of the replicas' "
                "variances, without the variance between replicas; see "
                "--batch-norm"
              : "batch normalization uses the statistics of each replica's "
                "rows, not of the whole batch; see --batch-norm");
    if (Bits & AssumesRandomDraw)
      Diags.unproved("random", G.name(N),
                     "each replica draws its own random numbers: equal in "
                     "distribution, not in value");
  }
}

static constexpr int64_t MaxGroup = 1 << 30;

/// Returns the number of rows that the Reshape \p N groups, if the batch size
/// is unknown: 3 from [b,4] to [-1,3,4].
static int64_t groupOf(const Graph &G, const DimAnalysis &Dims, NodeId N) {
  auto From = Dims.shape(G.input(N, 0)), To = Dims.value(G.input(N, 1));
  if (!From || !To)
    return 1;
  // Has and Wants are the products of all sizes but the batch size and the -1.
  // They are limited, since a file may state sizes that overflow.
  int64_t Has = 1, Wants = 1;
  bool Rows = false, Open = false;
  for (DimId D : *From) {
    auto S = Dims.table().sym(D);
    int64_t Number = Dims.table().number(D);
    if (Number == UnknownSize &&
        (!S || !S->isLocal() || S->B != 1 || S->Ragged != 0 || Rows))
      return 1;
    Rows |= Number == UnknownSize;
    Has = std::min(MaxGroup, Has) *
          std::min(MaxGroup, Number == UnknownSize ? S->C : Number);
  }
  for (DimId D : *To) {
    int64_t Number = Dims.table().number(D);
    if (Number == UnknownSize || (Number == -1 && Open))
      return 1;
    Open |= Number == -1;
    Wants = std::min(MaxGroup, Wants) *
            std::min(MaxGroup, Number == -1 ? int64_t(1) : Number);
  }
  bool IsKnown = Rows && Open && Has > 0 && Wants > 0 && Has <= MaxGroup &&
                 Wants <= MaxGroup;
  return IsKnown ? Wants / std::gcd(Has, Wants) : 1;
}

/// Remarks that each replica needs whole groups of rows, such as triplets.
void ReductionReport::sayOfGroups(const ProgramFacts &Facts,
                                  unsigned Replicas) const {
  NodeId First = NoNode;
  int64_t Group = 1;
  for (NodeId N : Facts.Order) {
    if (!G.isPerReplica(N) || !G.isOp(N, op::Reshape))
      continue;
    int64_t Its = groupOf(G, Facts.Dims, N);
    if (Its > 1 && First == NoNode)
      First = N;
    if (Group <= MaxGroup)
      Group = std::lcm(Group, Its);
  }
  if (First == NoNode)
    return;
  Diags
      .remark("groups", G.name(First),
              formatv("reshapes rows in groups of {0}, and each replica needs "
                      "whole groups; feed a multiple of {1} rows",
                      Group, Group * Replicas))
      .shown()
      .Facts = {{"rows", Group * Replicas}};
}

void ReductionReport::report(const ProgramFacts &Facts,
                             unsigned Replicas) const {
  remarkDemands(Facts);
  warnWrites(Facts);
  for (auto [N, Predicate] : Facts.Types.localEffects())
    note(Diags.unproved("effect", G.name(N),
                        "runs under a predicate that replicas may disagree on, "
                        "so its side effect may be missing or extra compared "
                        "with the single-device step"),
         Facts, Facts.Types.type(Predicate).Cause);
  // A single replica has all rows and the samples of the input.
  if (Replicas == 1)
    return;
  warnAssumptions(Facts.Types);
  sayOfGroups(Facts, Replicas);
}

bool ReductionReport::sayOfSpread(
    const Spread &Work, ArrayRef<std::pair<std::string, std::string>> Causes,
    unsigned MinPercent) const {
  auto Percent = static_cast<unsigned>(Work.share() * 100);
  if (Work.OnceNodes == 0 && Percent >= MinPercent)
    return true;
  std::string Text =
      formatv("{0} % of the work of a step is spread over the replicas; {1} "
              "node{2} run{3} once, on the whole batch",
              Percent, Work.OnceNodes, Work.OnceNodes == 1 ? "" : "s",
              Work.OnceNodes == 1 ? "s" : "");
  if (std::string Rows = Work.Rows.str(); !Rows.empty())
    Text += "; " + Rows;
  bool IsError = Percent < MinPercent;
  if (IsError)
    Text += formatv(", but --min-spread requires {0} %", MinPercent);
  if (IsError)
    Diags.error("", Text);
  else
    (Percent < 50 ? Diags.warning("spread", "", Text)
                  : Diags.remark("spread", "", Text))
        .shown()
        .Facts = {{"percent", int64_t(Percent)},
                  {"nodes", int64_t(Work.OnceNodes)},
                  {"bytes", std::llround(Work.Rows.Bytes)},
                  {"row-bytes", std::llround(Work.Rows.RowBytes)}};
  // Notes only origins, not the nodes whose types are unknown due to them.
  for (const auto &[Node, Why] : Causes.take_front(3))
    Diags.addNote(Node, Why);
  return !IsError;
}

/// Returns true if \p N assigns an initial or a restored value.
static bool initializes(const Graph &G, const VariableIndex &Vars, NodeId N) {
  if (Vars.update(G, N).Kind != UpdateKind::Assign)
    return false;
  NodeId Value = through(G, G.input(N, 1), op::Identity).Node;
  NodeId Var = Vars.variableOf(G.input(N, 0));
  return G.isOp(Value, op::RestoreV2) || G.isOp(Value, op::Restore) ||
         (Var != NoNode && Vars.initialAssign(G, Var) == N);
}

void ReductionReport::warnNoGradient(const ProgramFacts &Facts) const {
  const TypeAnalysis &Types = Facts.Types;
  if (!Types.demands().empty() || !Types.unprovedWrites().empty())
    return;
  bool IsSpread = false; // if false, replicate has reported it
  bool Writes = false;
  for (NodeId N : Facts.Order) {
    const Node &This = G.node(N);
    if (This.Kind == Inserted::Reduce || This.Kind == Inserted::Gather)
      return;
    // An unreplicated node may compute the gradient, which needs no reduction.
    if (isKeptOnce(G, N))
      return;
    IsSpread |= This.Count == Copies::PerReplica;
    Writes |= Facts.Vars.isUpdate(G, N) && !initializes(G, Facts.Vars, N);
    // merge-fetches will write the sum, or the gathered rows of a sparse
    // gradient, to the shared variable.
    if (Facts.Vars.isUpdate(G, N) && any_of(G.dataInputs(N), [&](Endpoint E) {
          return Types.type(E).isPartial() || Types.natural(E).isPartial() ||
                 (Types.type(E).isSharded() &&
                  Facts.Vars.update(G, N).Indices >= 0);
        }))
      return;
  }
  if (IsSpread && !Writes && Diags.wantsRemarks())
    Diags.remark("no-gradient", "",
                 "no node writes a variable, so this is not a training step");
  if (IsSpread && Writes)
    Diags.unproved("no-gradient", "",
                   "no gradient was found: no sum over the rows of the batch "
                   "is written to a variable");
}

} // namespace graft
