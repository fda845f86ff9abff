//===- passes/InsertReductions.cpp - insert-reductions ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The one place that decides where replicas exchange values. The replication
// types say what must hold (a write takes the true value, a square root takes
// no partial sum); this pass inserts what they demand:
//
//     g = MatMul*(x, dy)                  g = MatMul*(x, dy)
//                                         g/reduce = _Reduce*(g) power=-1
//     Apply*(w, lr, g)               →    Apply*(w, lr, g/reduce)
//
//   _Reduce   a partial value becomes the same, true value everywhere, for all
//             of its users, so that each gradient is reduced once
//   _Gather   the rows of all replicas, for one user (a de-duplication)
//   _Scale    times a power of the number of replicas
//
// Whether a gradient is averaged or added is the scale of its type: it is found
// and not configured. Where no rule can relate the replicas' values and an
// optimizer's gradient slot is written, the mean is taken with a warning;
// --grad settles it. So it is with the aggregation of a variable that a rule
// names, for values that no rule relates and that are assigned or added to it.
//
// Relies on: lib/analysis/Types.h; variables decided.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/BatchNormCheck.h"
#include "lib/analysis/Program.h"
#include "lib/graph/AttrRun.h"
#include "lib/io/Module.h"
#include "lib/pass/Pass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

constexpr PassOption Options[] = {
    {"grad", "VAR=TENSOR,mean|sum, separated by ;: reduce TENSOR so", ""},
    {"no-gradient-slots",
     "Do not fall back to the mean at an optimizer's gradient slot", "false"},
};

class InsertReductions final : public PassBase<InsertReductions> {
public:
  static constexpr PassInfo Info = {
      "insert-reductions", "Reduce, gather and scale where the types demand it",
      "Inserts `_Reduce`, `_Gather` and `_Scale` so that every write of a\n"
      "variable and every op reads values that its rule allows.",
      Options};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool userGradients();
  bool fallBack(const Module &M, const ProgramFacts &Facts);
  bool fallBackToNamed(const Module &M, const ProgramFacts &Facts, NodeId Var,
                       SmallVectorImpl<Endpoint> &Sources);
  bool aggregate(const ProgramFacts &Facts);
  void insert(const Demand &D);
  void report(const ProgramFacts &Facts);
  void reportAsked(const ProgramFacts &Facts, NodeId N, unsigned I);
  NodeId reduce(Endpoint Source, StringRef Combine, int Power, bool Assumed);

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  unsigned Replicas = 1;
  bool Changed = false;
  uint64_t *Reductions = nullptr;
};

NodeId InsertReductions::reduce(Endpoint Source, StringRef Combine, int Power,
                                bool Assumed) {
  AttrRun Attrs;
  Attrs.type("T", G->outputType(Source.Node, Source.Port));
  Attrs.string("combine", Combine);
  if (Power != 0)
    Attrs.integer("power", Power);
  if (Assumed)
    Attrs.integer(AssumedAttr, -Power);
  SmallString<128> Name(G->name(Source.Node));
  Name += "/reduce";
  NodeId N = G->insertNode(Name, "_Reduce", Source, Source.Node, Attrs);
  G->replaceUses(Source, {N, 0}, N);
  G->node(N).Kind = Inserted::Reduce;
  G->node(N).Count = Copies::PerReplica;
  Changed = true;
  count(Reductions, "reductions");
  return N;
}

/// --grad=VAR=TENSOR,mean|sum: the user says what TENSOR is.
bool InsertReductions::userGradients() {
  SmallVector<StringRef, 4> Rules;
  option("grad").split(Rules, ';', -1, false);
  for (StringRef Rule : Rules) {
    auto [Var, Rest] = Rule.split('=');
    auto [Tensor, How] = Rest.rsplit(',');
    NodeId V = G->find(Var);
    if (V == NoNode || !isVariableOp(G->opName(V))) {
      Diags->error("", "--grad: the graph has no variable '" + Var.str() + "'");
      return false;
    }
    auto Source = G->findEndpoint(Tensor);
    if (!Source || Source->isControl()) {
      Diags->error("",
                   "--grad: the graph has no tensor '" + Tensor.str() + "'");
      return false;
    }
    if (How != "mean" && How != "sum") {
      Diags->error("", "--grad: '" + How.str() +
                           "' is not a reduction; use mean "
                           "or sum");
      return false;
    }
    if (G->node(Source->Node).Count != Copies::PerReplica) {
      Diags->error(G->name(Source->Node),
                   "--grad: this tensor is the same for all replicas, so there "
                   "is nothing to reduce");
      return false;
    }
    reduce(*Source, "sum", How == "mean" ? -1 : 0, true);
    Diags->unproved("grad", G->name(Source->Node),
                    "the gradient of '" + Var.str() + "' is reduced by " +
                        How.str() + " because --grad says so");
  }
  return true;
}

/// The input names the gradient of \p Var, whatever its optimizer is made of.
/// False if it does not, or if it is not the gradient that is not proved.
bool InsertReductions::fallBackToNamed(const Module &M,
                                       const ProgramFacts &Facts, NodeId Var,
                                       SmallVectorImpl<Endpoint> &Sources) {
  for (const NamedGradient &Gradient : M.Gradients) {
    auto V = G->findEndpoint(Gradient.Variable);
    auto E = G->findEndpoint(Gradient.Tensors);
    if (!V || V->Node != Var || !E || E->isControl() ||
        G->node(E->Node).Count != Copies::PerReplica ||
        !Facts.Types.type(*E).isVarying() ||
        !isFloating(G->outputType(E->Node, E->Port)))
      continue;
    if (is_contained(Sources, *E))
      return true;
    Sources.push_back(*E);
    NodeId Cause = Facts.Types.type(*E).Cause;
    Diagnostic &D = Diags->unproved(
        "fallback", G->name(E->Node),
        formatv("how the gradients of the replicas relate is not proved, so "
                "their mean is taken, since the input names the gradient of "
                "'{0}'; settle it with --grad={0}={1},mean|sum",
                G->name(Var), Gradient.Tensors));
    if (Cause != NoNode)
      D.Notes.push_back({G->name(Cause).str(), Facts.Types.reason(Cause)});
    return true;
  }
  return false;
}

/// A write that no rule could prove, of an optimizer's gradient: take the mean
/// there and say so. Returns whether anything was inserted.
bool InsertReductions::fallBack(const Module &M, const ProgramFacts &Facts) {
  const TypeAnalysis &Types = Facts.Types;
  SmallVector<Endpoint, 4> Sources;
  for (auto [N, I] : Types.unprovedWrites()) {
    if (!M.Gradients.empty() &&
        fallBackToNamed(M, Facts, Facts.Vars.variableOf(G->input(N, 0)),
                        Sources))
      continue;
    if (option("no-gradient-slots") == "true")
      continue;
    const OpDef *Def = G->opDef(N);
    UpdateDef U = Def->update();
    if (U.Kind != UpdateKind::Apply || U.Grad != int(I) || U.Indices >= 0 ||
        G->node(N).Count != Copies::PerReplica ||
        !isFloating(G->outputType(G->input(N, I).Node, G->input(N, I).Port)))
      continue;
    Endpoint Source = G->input(N, I);
    if (is_contained(Sources, Source))
      continue;
    Sources.push_back(Source);
    NodeId Cause = Types.type(Source).Cause;
    Diagnostic &D = Diags->unproved(
        "fallback", G->name(Source.Node),
        "how the gradients of the replicas relate is not proved, so their mean "
        "is taken; settle it with --grad=VAR=" +
            G->name(Source.Node).str() + ",mean|sum");
    if (Cause != NoNode)
      D.Notes.push_back({G->name(Cause).str(), Types.reason(Cause)});
  }
  for (Endpoint Source : Sources)
    reduce(Source, "sum", -1, true);
  return !Sources.empty();
}

/// Writes of values that no rule could relate, to variables whose aggregation
/// says what becomes of them. Returns whether anything was inserted.
bool InsertReductions::aggregate(const ProgramFacts &Facts) {
  bool Any = false;
  for (auto [N, I] : Facts.Types.unprovedWrites()) {
    const UpdateDef &U = Facts.Vars.update(*G, N);
    NodeId Var = Facts.Vars.variableOf(G->input(N, 0));
    auto How = Var == NoNode ? std::nullopt : aggregationOf(*G, Var);
    Endpoint Source = G->input(N, I);
    if (!How || G->node(Source.Node).Count != Copies::PerReplica ||
        (U.Kind != UpdateKind::Assign && U.Kind != UpdateKind::AssignAdd))
      continue;
    Policy Plan = G->node(Var).Plan;
    bool One = isShared(Plan);
    if (*How == Aggregation::None) {
      if (One)
        Diags->error(G->name(N),
                     formatv("each replica has a value of its own for variable "
                             "'{0}', which exists once and has aggregation "
                             "none; give --variable={0}={1},sum, mean or "
                             "only-first-replica",
                             G->name(Var), policyName(Plan)));
      continue;
    }
    if (!One && Plan != Policy::Mirrored)
      continue;
    AttrRun Attrs;
    Attrs.type("T", G->outputType(Source.Node, Source.Port));
    bool First = *How == Aggregation::OnlyFirst;
    Attrs.string("combine", First ? "pick" : "sum");
    if (!First) {
      int Power = *How == Aggregation::Mean ? -1 : 0;
      if (Power != 0)
        Attrs.integer("power", Power);
      Attrs.integer(AssumedAttr, -Power);
    }
    SmallString<128> Name(G->name(N));
    Name += "/aggregate";
    NodeId New = G->insertNode(Name, First ? "_FromReplicas" : "_Reduce",
                               Source, Source.Node, Attrs);
    G->node(New).Kind = First ? Inserted::Merge : Inserted::Reduce;
    if (!First)
      G->node(New).Count = Copies::PerReplica;
    G->setInput(N, I, {New, 0});
    Any = Changed = true;
    Diags->unproved("policy", G->name(Var),
                    formatv("'{0}' writes {1} of values that are not proved to "
                            "relate to that of the single-device step, because "
                            "the aggregation says so",
                            G->name(N),
                            First                       ? "the first replica's"
                            : *How == Aggregation::Mean ? "the mean"
                                                        : "the sum"));
  }
  return Any;
}

void InsertReductions::insert(const Demand &D) {
  static constexpr const char *Names[] = {"sum", "min", "max", "and", "or"};
  if (D.Kind == Demand::Reduce) {
    reduce(D.Source, Names[static_cast<int>(D.Op)], D.Power, false);
    return;
  }
  Endpoint Source = G->input(D.User, D.Index);
  auto Chain = [&](StringRef Op, StringRef Suffix, Inserted Kind) {
    NodeId N = G->addNode(G->uniqueName((G->name(Source.Node) + Suffix).str()),
                          Op, Source, Source.Node);
    G->setTypeAttr(N, "T", G->outputType(Source.Node, Source.Port));
    G->node(N).Kind = Kind;
    G->node(N).Count = G->node(Source.Node).Count;
    Source = {N, 0};
    Changed = true;
    return N;
  };
  if (D.Kind == Demand::Gather) {
    NodeId N = Chain("_Gather", "/gather", Inserted::Gather);
    G->setIntAttr(N, "axis", D.Axis);
    if (D.Uneven)
      G->setBoolAttr(N, "uneven", true);
    ++Statistics["gathers"];
  }
  if (D.Kind == Demand::Count) {
    NodeId N = Chain("_Reduce", "/reduce", Inserted::Reduce);
    G->setStringAttr(N, "combine", "sum");
    count(Reductions, "reductions");
  }
  if (D.Power != 0) {
    NodeId N = Chain("_Scale", "/scale", Inserted::Scale);
    G->setIntAttr(N, "power", D.Power);
    ++Statistics["scales"];
  }
  G->setInput(D.User, D.Index, Source);
}

/// A write that leaves the copies of a variable as its policy asks.
void InsertReductions::reportAsked(const ProgramFacts &Facts, NodeId N,
                                   unsigned I) {
  NodeId Var = Facts.Vars.variableOf(G->input(N, 0));
  if (G->node(G->input(N, I).Node).Kind == Inserted::Merge)
    return; // aggregate() told
  bool OnRead = G->node(Var).Plan == Policy::SyncOnRead;
  RType Type = Facts.Types.number(G->input(N, I));
  Diagnostic &D = Diags->unproved(
      "policy", G->name(Var),
      OnRead
          ? formatv("'{0}' gives each copy a value that is {1}, so the {2} of "
                    "the copies is not proved to be the value of the "
                    "single-device step",
                    G->name(N), Type.str(),
                    aggregationName(
                        aggregationOf(*G, Var).value_or(Aggregation::None)))
                .str()
          : formatv("'{0}' gives each copy the value of its own replica, so "
                    "copies differ; give --variable={1}={2},sum, mean or "
                    "only-first-replica if that is not meant",
                    G->name(N), G->name(Var), policyName(Policy::Mirrored))
                .str());
  if (Type.isVarying() && Type.Cause != NoNode)
    D.Notes.push_back(
        {G->name(Type.Cause).str(), Facts.Types.reason(Type.Cause)});
}

void InsertReductions::report(const ProgramFacts &Facts) {
  const TypeAnalysis &Types = Facts.Types;
  for (const Demand &D : Types.demands()) {
    if (!Diags->wantsRemarks())
      break;
    if (D.Kind == Demand::Scale)
      continue;
    StringRef Scale = D.Power == 0    ? "sum"
                      : D.Power == -1 ? "mean"
                                      : "scaled sum";
    if (D.Kind == Demand::Gather)
      Scale = D.Power == 0 ? "rows" : "rows, mean";
    Diags
        ->remark("reduction", G->name(D.Source.Node),
                 formatv("{0} is {1}: {2} over the replicas, for '{3}'",
                         Types.natural(D.Source).str(),
                         D.Kind == Demand::Gather ? "gathered" : "reduced",
                         Scale, G->name(D.Because)))
        .Facts = {{"type", Types.natural(D.Source).str()},
                  {"scale", std::to_string(D.Power)},
                  {"for", G->name(D.Because).str()}};
  }
  // One warning for a cause, however many writes it spoils.
  SmallVector<NodeId, 4> Causes;
  for (auto [N, I] : Types.unprovedWrites()) {
    NodeId Cause = Types.type(G->input(N, I)).Cause;
    if (Types.usesState(N)) {
      reportAsked(Facts, N, I);
      continue;
    }
    if (Cause != NoNode && is_contained(Causes, Cause))
      continue;
    Causes.push_back(Cause);
    Diagnostic &D = Diags->unproved(
        "write", G->name(N),
        formatv("input {0} is not proved to be the value of the single-device "
                "step on every replica",
                I));
    if (Cause != NoNode)
      D.Notes.push_back({G->name(Cause).str(), Types.reason(Cause)});
  }
  for (auto [N, Predicate] : Types.localEffects()) {
    Diagnostic &D = Diags->unproved(
        "effect", G->name(N),
        "runs under a predicate that replicas may disagree on, so its effect "
        "may come when the single-device step has none, or be missing");
    NodeId Cause = Types.type(Predicate).Cause;
    if (Cause != NoNode)
      D.Notes.push_back({G->name(Cause).str(), Types.reason(Cause)});
  }
  for (auto [N, Bits] : Types.assumptions()) {
    // One replica has all rows and draws what the input draws.
    if (Replicas == 1)
      break;
    if (Bits & AssumesLocalBatchNorm)
      Diags->unproved("local-batch-norm", G->name(N),
                      BatchNormCheck::isVarianceRead(*G, N)
                          ? "batch normalisation uses the statistics of each "
                            "replica's rows, not of the whole batch, and who "
                            "reads its variance, as a moving average does, "
                            "gets the mean of theirs, which lacks the variance "
                            "between replicas; see --batch-norm"
                          : "batch normalisation uses the statistics of each "
                            "replica's rows, not of the whole batch; see "
                            "--batch-norm");
    if (Bits & AssumesRandomDraw)
      Diags->unproved("random", G->name(N),
                      "each replica draws its own random numbers: equal in "
                      "distribution, not in value");
  }
}

PassResult InsertReductions::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  Replicas = readMesh(*G).replicas();
  if (Replicas == 0)
    return PassResult::Unchanged;
  if (!userGradients())
    return PassResult::Failure;
  ProgramFacts *Facts = &programFacts(M);
  unsigned Errors = Diags->errorCount();
  bool Inserted = aggregate(*Facts);
  if (fallBack(M, *Facts) || Inserted)
    Facts = &programFacts(M);
  if (Diags->errorCount() != Errors)
    return PassResult::Failure;
  report(*Facts);
  // A shared variable takes the sum, or the rows of a sparse gradient, from
  // merge-fetches.
  auto WritesPartial = [&](NodeId N) {
    return Facts->Vars.isUpdate(*G, N) &&
           any_of(G->dataInputs(N), [&](Endpoint E) {
             return Facts->Types.type(E).isPartial() ||
                    Facts->Types.natural(E).isPartial() ||
                    (Facts->Types.type(E).isSharded() &&
                     Facts->Vars.update(*G, N).Indices >= 0);
           });
  };
  auto Reduces = [&](NodeId N) {
    return G->node(N).Kind == Inserted::Reduce ||
           G->node(N).Kind == Inserted::Gather;
  };
  // Where nothing is spread, replicate told.
  auto IsSpread = [&](NodeId N) {
    return G->node(N).Count == Copies::PerReplica;
  };
  if (Facts->Types.demands().empty() && Facts->Types.unprovedWrites().empty() &&
      none_of(Facts->Order, Reduces) && none_of(Facts->Order, WritesPartial) &&
      any_of(Facts->Order, IsSpread))
    Diags->unproved("no-gradient", "",
                    "no gradient was found: nothing that depends on the batch "
                    "is written to a variable as a sum over rows");
  for (const Demand &Needed : Facts->Types.demands())
    insert(Needed);
  Facts->adoptInserted(*G);
  keepFacts(M);
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(InsertReductions)

} // namespace graft
