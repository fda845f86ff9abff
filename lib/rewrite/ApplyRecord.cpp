//===- lib/rewrite/ApplyRecord.cpp - a record to its variables ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/ApplyRecord.h"

#include "lib/rewrite/VariableRules.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

Policy policyOf(const Synchronizer &S) {
  return S.Kind == Synchronizer::PS ? Policy::Shared : Policy::Mirrored;
}

class Apply {
public:
  Apply(Graph &G, const VariableIndex &Vars, const StrategyRecord &Record,
        StringRef Source, DiagnosticEngine &Diags)
      : G(G), Vars(Vars), Record(Record), Source(Source), Diags(Diags) {}

  bool match();
  void write(const Synchronizer &Default);

private:
  bool check(const VariableStrategy &V, NodeId Var);
  void write(NodeId Var, const Synchronizer &S);
  void write(NodeId Var, const VariableStrategy &V);
  void writeSlots();
  void explain(NodeId Var, const VariableStrategy &V) const;
  bool fail(const VariableStrategy &V, const Twine &Why) {
    Diags.error(fileError(
        Source, createStringError(inconvertibleErrorCode(),
                                  Source + V.Place + ": node_config '" +
                                      V.Variable + "': " + Why)));
    return false;
  }
  bool hasPolicy(NodeId Var) const {
    return G.node(Var).Plan != Policy::None || G.hasAttr(Var, PolicyAttr);
  }

  Graph &G;
  const VariableIndex &Vars;
  const StrategyRecord &Record;
  StringRef Source;
  DiagnosticEngine &Diags;
  DenseMap<NodeId, const VariableStrategy *> Entries;
};

bool Apply::check(const VariableStrategy &V, NodeId Var) {
  if (V.numParts() == 1)
    return true;
  auto Shape = G.shapeAttr(Var, "shape");
  size_t Rank = V.Partitioner.size();
  if (!Shape || Shape->UnknownRank)
    return fail(
        V, "the variable cannot be partitioned because its shape is not known");
  if (Shape->Dims.size() != Rank)
    return fail(
        V, formatv("the partitioner has {0} axes, but the variable has {1}",
                   Rank, Shape->Dims.size()));
  for (auto [Axis, Parts] : enumerate(V.Partitioner))
    if (Parts > 1 && Shape->Dims[Axis] < 0)
      return fail(V, formatv("the size of axis {0} is not known", Axis));
    else if (Parts > 1 && Shape->Dims[Axis] < int64_t(Parts))
      return fail(V, formatv("{0} parts of {1} rows along axis {2}; give no "
                             "more parts than rows",
                             Parts, Shape->Dims[Axis], Axis));
  return true;
}

/// Finds the variable of each entry.
bool Apply::match() {
  bool Good = true;
  for (const VariableStrategy &V : Record.Variables) {
    NodeId Var = G.find(V.Variable);
    if (Var == NoNode || !isVariableOp(G.opName(Var))) {
      Good = fail(V, "the graph has no such variable" +
                         similarVariable(G, Vars, V.Variable));
      continue;
    }
    if (!Entries.try_emplace(Var, &V).second)
      Good = fail(V, "this variable already has an entry");
    else
      Good &= check(V, Var);
  }
  return Good;
}

void Apply::write(NodeId Var, const Synchronizer &S) {
  G.setPolicy(Var, policyOf(S));
  // On a mirrored variable the attribute matters only for gradients.
  if (S.Kind == Synchronizer::PS)
    G.setStringAttr(Var, SynchronizerAttr, printSynchronizer(S));
}

void Apply::write(NodeId Var, const VariableStrategy &V) {
  G.setPolicy(Var, policyOf(V.Sync));
  G.setStringAttr(Var, SynchronizerAttr, printSynchronizer(V.Sync));
  if (V.numParts() > 1) {
    auto Cut = find_if(V.Partitioner, [](unsigned N) { return N > 1; });
    Partition P;
    P.Axis = Cut - V.Partitioner.begin();
    P.Sizes = partSizes(G.shapeAttr(Var, "shape")->Dims[P.Axis], *Cut);
    G.setStringAttr(Var, PartitionAttr, printPartition(P));
    if (!V.Parts.empty()) {
      std::vector<std::string> Texts;
      Texts.reserve(V.Parts.size());
      for (const Synchronizer &S : V.Parts)
        Texts.push_back(printSynchronizer(S));
      std::vector<StringRef> Refs(Texts.begin(), Texts.end());
      G.setAttr(Var, PartSynchronizersAttr, encodeStringListAttr(Refs));
    }
  }
  if (Diags.wantsRemarks())
    explain(Var, V);
  // Warns even without --remarks, because the user asked for another strategy.
  auto IsLoose = [](const Synchronizer &S) {
    return S.Kind == Synchronizer::PS && (!S.Sync || S.Staleness != 0);
  };
  if (IsLoose(V.Sync) || any_of(V.Parts, IsLoose))
    Diags.warning(
        "synchronous", G.name(Var),
        "`sync` and `staleness` have no effect: all replicas of a graph run in "
        "one step, and every update waits for all of them");
}

void Apply::explain(NodeId Var, const VariableStrategy &V) const {
  std::string Text = printSynchronizer(V.Sync);
  unsigned Parts = V.numParts();
  if (Parts > 1)
    Text = formatv("{0} parts, {1}", Parts,
                   V.Sync.Kind == Synchronizer::PS ? "ps" : "all-reduce");
  Diags
      .remark("strategy", G.name(Var),
              Text + (V.Why.empty() ? "" : ": " + V.Why))
      .Facts = {
      {"synchronizer", printSynchronizer(V.Sync)},
      {"partition", G.stringAttr(Var, PartitionAttr).value_or("").str()}};
}

/// Gives slots the synchronizer of the variable that their op updates.
void Apply::writeSlots() {
  for (NodeId N = 0; N < G.size(); ++N) {
    UpdateDef U = Vars.update(G, N);
    if (U.Kind != UpdateKind::Apply || U.NumVars < 2 || !G.isLive(N))
      continue;
    NodeId Var = Vars.variableOf(G.input(N, 0));
    auto Entry = Var == NoNode ? Entries.end() : Entries.find(Var);
    for (unsigned I = 1; Entry != Entries.end() && I < U.NumVars; ++I) {
      NodeId Slot = Vars.variableOf(G.input(N, I));
      if (Slot == NoNode || Entries.count(Slot) || hasPolicy(Slot) ||
          G.attr(Slot, "shape") != G.attr(Var, "shape"))
        continue;
      Synchronizer S = Entry->second->Sync;
      // Replicas do not read slots.
      S.Proxy = false;
      write(Slot, S);
    }
  }
}

void Apply::write(const Synchronizer &Default) {
  std::vector<NodeId> Others;
  for (NodeId Var : Vars.variables())
    if (auto Entry = Entries.find(Var); Entry != Entries.end()) {
      if (!hasPolicy(Var))
        write(Var, *Entry->second);
      else if (Diags.wantsRemarks())
        Diags.remark("strategy", G.name(Var),
                     "keeps the policy that the input gives it");
    }
  writeSlots();
  for (NodeId Var : Vars.variables())
    if (!hasPolicy(Var))
      write(Var, Default);
}

} // namespace

Synchronizer defaultSynchronizer(const StrategyRecord &Record,
                                 StringRef FirstServer) {
  Synchronizer S;
  if (Record.Variables.empty() ||
      any_of(Record.Variables, [](const VariableStrategy &V) {
        return V.Sync.Kind == Synchronizer::AllReduce;
      }))
    return S;
  S.Kind = Synchronizer::PS;
  S.Destination = FirstServer.str();
  return S;
}

bool applyRecord(Graph &G, const VariableIndex &Vars,
                 const StrategyRecord &Record, const Synchronizer &Default,
                 StringRef Source, DiagnosticEngine &Diags) {
  Apply A(G, Vars, Record, Source, Diags);
  if (!A.match())
    return false;
  A.write(Default);
  return true;
}

} // namespace graft
