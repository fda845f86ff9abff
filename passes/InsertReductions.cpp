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
// Other values that no rule relates and that would make the copies of a
// variable differ are treated alike: where an optimizer is made of plain
// assignments, the mean is taken of what is nearest to the gradient, and of
// rows and their numbers both are gathered. What is no mean, as an integer, is
// an error.
//
// Relies on: lib/infer/types/Types.h; variables decided.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/facts/LocalRuns.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/rules/BatchNormReads.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
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
  /// What is done for writes that no rule relates.
  struct Repair {
    Endpoint Source;
    NodeId User = NoNode; ///< NoNode: a reduction, for all users.
    unsigned Index = 0;
    bool Adds = true; ///< Rows are added to others: they are divided.
    NodeId Cause = NoNode;
    std::string Text; ///< Of the warning; none for what goes with another one.
  };
  bool fallBack(const Module &M, const ProgramFacts &Facts);
  void repairRows(const ProgramFacts &Facts, const LocalRuns &Local, NodeId N,
                  DenseSet<NodeId> &Segments, std::vector<Repair> &Repairs);
  Endpoint nearestGradient(const ProgramFacts &Facts, const LocalRuns &Local,
                           Endpoint E) const;
  void dropSpared(const ProgramFacts &Facts, const LocalRuns &Local,
                  std::vector<Repair> &Repairs) const;
  void reportDrifts(const ProgramFacts &Facts, const LocalRuns &Local);
  std::string reasonOf(const ProgramFacts &Facts, NodeId Cause) const;
  void countSpoiled(const ProgramFacts &Facts);
  bool fallBackToNamed(const Module &M, const ProgramFacts &Facts, NodeId Var,
                       SmallVectorImpl<Endpoint> &Sources);
  bool aggregate(const ProgramFacts &Facts);
  void insert(const Demand &D, bool Assumed = false);
  void report(const ProgramFacts &Facts);
  void reportAsked(const ProgramFacts &Facts, NodeId N, unsigned I);
  NodeId reduce(Endpoint Source, StringRef Combine, int Power, bool Assumed);

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  unsigned Replicas = 1;
  bool Changed = false;
  uint64_t *Reductions = nullptr;
  DenseMap<NodeId, unsigned> Spoiled; ///< By cause: of how many variables.
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
        formatv("the relation of the replicas' gradients is not proved, so "
                "their mean is taken, since the input names the gradient of "
                "'{0}'; decide with --grad={0}={1},mean|sum",
                G->name(Var), Gradient.Tensors));
    if (Cause != NoNode)
      D.Notes.push_back({G->name(Cause).str(), reasonOf(Facts, Cause)});
    return true;
  }
  return false;
}

/// The reason of a warning, with how many variables it spoils.
std::string InsertReductions::reasonOf(const ProgramFacts &Facts,
                                       NodeId Cause) const {
  std::string Text = Facts.Types.reason(Cause);
  unsigned Count = Spoiled.lookup(Cause);
  if (Count > 1)
    Text += formatv("; this affects {0} variables", Count);
  return Text;
}

/// How many variables each cause of unproved writes spoils.
void InsertReductions::countSpoiled(const ProgramFacts &Facts) {
  DenseSet<std::pair<NodeId, NodeId>> Seen;
  for (auto [N, I] : Facts.Types.unprovedWrites()) {
    NodeId Cause = Facts.Types.type(G->input(N, I)).Cause;
    NodeId Var = Facts.Vars.variableOf(G->input(N, 0));
    if (Cause != NoNode && Seen.insert({Cause, Var}).second)
      ++Spoiled[Cause];
  }
}

/// The tensor whose mean gives that of \p E, as near to a gradient as sums and
/// factors that all replicas have lead.
Endpoint InsertReductions::nearestGradient(const ProgramFacts &Facts,
                                           const LocalRuns &Local,
                                           Endpoint E) const {
  for (;;) {
    NodeId N = E.Node;
    if (G->node(N).Kind != Inserted::No)
      return E;
    int From = -1;
    for (unsigned I = 0; I < G->node(N).NumData; ++I)
      if (Local.differs(G->input(N, I))) {
        if (From >= 0)
          return E;
        From = static_cast<int>(I);
      }
    if (From < 0 || Facts.Types.localPredicate(N))
      return E;
    switch (ruleOf(G->opName(N)).Type) {
    case TypeRule::Pass:
      if (G->isOp(N, op::IdentityN))
        return E;
      break;
    case TypeRule::Linear:
    case TypeRule::Cast:
    case TypeRule::Add:
    case TypeRule::Mul:
      break;
    case TypeRule::Div:
      if (From != 0)
        return E;
      break;
    default:
      return E;
    }
    Endpoint Next = G->input(N, static_cast<unsigned>(From));
    if (!Facts.Types.type(Next).isVarying() ||
        !isFloating(G->outputType(Next.Node, Next.Port)) ||
        Local.hasOwnSize(Next))
      return E;
    E = Next;
  }
}

/// A write of rows by number: the rows and the numbers of all replicas, so that
/// they stay as many.
void InsertReductions::repairRows(const ProgramFacts &Facts,
                                  const LocalRuns &Local, NodeId N,
                                  DenseSet<NodeId> &Segments,
                                  std::vector<Repair> &Repairs) {
  const UpdateDef &U = Facts.Vars.update(*G, N);
  unsigned RowsAt = static_cast<uint8_t>(U.Grad),
           NumbersAt = static_cast<uint8_t>(U.Indices);
  Endpoint Rows = G->input(N, RowsAt), Numbers = G->input(N, NumbersAt);
  RType Type = Facts.Types.type(Numbers);
  auto Shape = Facts.Dims.shape(Numbers);
  bool Float = isFloating(G->outputType(Rows.Node, Rows.Port));
  StringRef Op = G->opName(N);
  bool Adds = U.Kind == UpdateKind::Apply || Op.ends_with(op::Add) ||
              Op.ends_with(op::Sub);
  auto Text = [&] {
    return formatv("the relation of the replicas' rows that '{0}' writes is "
                   "not proved, so {1}",
                   originName(*G, N),
                   Adds ? "their mean is taken" : "all of them are written")
        .str();
  };
  auto CauseOf = [&](Endpoint E) { return Facts.Types.type(E).Cause; };
  if (!Float || (Adds && Rows.Node == Numbers.Node))
    return;
  bool RowsVary = Facts.Types.type(Rows).isVarying() && Local.differs(Rows);
  if (Type.isSharded() || (Type.isVarying() && Local.differs(Numbers))) {
    if (!Shape || Shape->empty() || (Type.isSharded() && Type.Axis != 0))
      return;
    NodeId Cause = CauseOf(RowsVary ? Rows : Numbers);
    if (Type.isVarying())
      Repairs.push_back({Numbers, N, NumbersAt, false, Cause, ""});
    if (RowsVary || Facts.Types.type(Rows).isReplicated())
      Repairs.push_back({Rows, N, RowsAt, Adds, Cause, ""});
    Repairs.back().Text = Text();
    return;
  }
  if (!RowsVary)
    return;
  if (!Local.hasOwnSize(Numbers)) {
    // The same rows on all replicas.
    Repairs.push_back({Rows, NoNode, 0, Adds, CauseOf(Rows), Text()});
    return;
  }
  // Numbers that occur several times were added up, by those of all replicas:
  // so must be the rows.
  std::vector<Endpoint> Work{Rows};
  DenseSet<NodeId> Seen;
  while (!Work.empty()) {
    NodeId At = Work.back().Node;
    Work.pop_back();
    if (!Seen.insert(At).second)
      continue;
    switch (ruleOf(G->opName(At)).Type) {
    case TypeRule::UnsortedSegmentSum: {
      Endpoint Of = G->input(At, 0);
      if (Local.differs(Of) && Facts.Types.type(Of).isVarying() &&
          Facts.Types.type(G->input(At, 1)).isReplicated() &&
          Local.hasOwnSize(G->input(At, 1)) && Segments.insert(At).second)
        Repairs.push_back({Of, At, 0, Adds, CauseOf(Of), Text()});
      break;
    }
    case TypeRule::Pass:
    case TypeRule::Linear:
    case TypeRule::NonLinear:
    case TypeRule::Cast:
    case TypeRule::Add:
    case TypeRule::Mul:
    case TypeRule::Div:
      for (Endpoint E : G->dataInputs(At))
        if (Local.differs(E))
          Work.push_back(E);
      break;
    default:
      break;
    }
  }
}

/// Drops reductions of what all replicas have when the others are there.
void InsertReductions::dropSpared(const ProgramFacts &Facts,
                                  const LocalRuns &Local,
                                  std::vector<Repair> &Repairs) const {
  DenseMap<NodeId, SmallVector<size_t, 1>> By;
  for (size_t I = 0; I < Repairs.size(); ++I)
    if (Repairs[I].User == NoNode)
      By[Repairs[I].Source.Node].push_back(I);
  if (By.empty())
    return;
  DenseSet<std::pair<NodeId, uint32_t>> Equal;
  std::vector<bool> Spared(Repairs.size()), Settled(G->size());
  for (NodeId N : Facts.Order) {
    bool Was = false, Is = false;
    for (Endpoint E : G->dataInputs(N))
      if (Local.differs(E)) {
        Was = true;
        Is |= !Settled[E.Node] && !Equal.contains({E.Node, E.Port});
      }
    Settled[N] = Was && !Is;
    if (auto It = By.find(N); It != By.end())
      for (size_t I : It->second) {
        Endpoint Source = Repairs[I].Source;
        if (Settled[N] || !Equal.insert({Source.Node, Source.Port}).second)
          Spared[I] = true;
      }
  }
  size_t At = 0;
  llvm::erase_if(Repairs, [&](const Repair &) { return Spared[At++]; });
}

/// Writes that no rule could prove and that would make copies of a variable
/// differ: take the mean and say so. Returns whether anything was inserted.
bool InsertReductions::fallBack(const Module &M, const ProgramFacts &Facts) {
  const TypeAnalysis &Types = Facts.Types;
  if (Types.unprovedWrites().empty())
    return false;
  LocalRuns Local(*G, Facts);
  std::vector<Repair> Repairs;
  SmallVector<Endpoint, 4> Named;
  NodeId LastRows = NoNode;
  DenseSet<NodeId> Segments;
  for (auto [N, I] : Types.unprovedWrites()) {
    if (!M.Gradients.empty() &&
        fallBackToNamed(M, Facts, Facts.Vars.variableOf(G->input(N, 0)), Named))
      continue;
    Endpoint Source = G->input(N, I);
    if (option("no-gradient-slots") == "true" || Types.usesState(N) ||
        !Local.differs(Source))
      continue;
    if (auto Predicate = Types.localPredicate(N);
        Predicate && Local.differs(*Predicate))
      continue;
    const UpdateDef &U = Facts.Vars.update(*G, N);
    if (U.Indices >= 0 && (int(I) == U.Grad || int(I) == U.Indices)) {
      if (std::exchange(LastRows, N) != N)
        repairRows(Facts, Local, N, Segments, Repairs);
      continue;
    }
    if (!isFloating(G->outputType(Source.Node, Source.Port)))
      continue;
    bool Slot = U.Kind == UpdateKind::Apply && U.Grad == int(I);
    if (!Slot)
      Source = nearestGradient(Facts, Local, Source);
    Repairs.push_back(
        {Source, NoNode, 0, true, Types.type(Source).Cause,
         (Slot ? "the relation of the replicas' gradients is not proved, so "
                 "their mean is taken; decide with --grad=VAR="
               : "the relation of the replicas' values that are written to a "
                 "variable is not proved, so their mean is taken; decide with "
                 "--grad=VAR=") +
             G->name(Source.Node).str() + ",mean|sum"});
  }
  dropSpared(Facts, Local, Repairs);
  for (Endpoint Source : Named)
    reduce(Source, "sum", -1, true);
  for (const Repair &R : Repairs) {
    if (!R.Text.empty()) {
      Diagnostic &D =
          Diags->unproved("fallback", G->name(R.Source.Node), R.Text);
      if (R.Cause != NoNode)
        D.Notes.push_back({G->name(R.Cause).str(), reasonOf(Facts, R.Cause)});
    }
    if (R.User == NoNode) {
      reduce(R.Source, "sum", -1, true);
      continue;
    }
    Demand D;
    D.Kind = Demand::Gather;
    D.Source = R.Source;
    D.User = R.User;
    D.Index = R.Index;
    D.Power = R.Adds ? -1 : 0;
    D.Uneven = Facts.Dims.isUneven(R.Source, 0);
    insert(D, /*Assumed=*/true);
  }
  return !Repairs.empty() || !Named.empty();
}

/// Writes that would leave the copies of a variable other than each other, one
/// error for a cause.
void InsertReductions::reportDrifts(const ProgramFacts &Facts,
                                    const LocalRuns &Local) {
  MapVector<NodeId, std::pair<SetVector<NodeId>, std::pair<NodeId, unsigned>>>
      Writes;
  for (auto [N, I] : Facts.Types.unprovedWrites())
    if (!Facts.Types.usesState(N) && Local.drifts(N, I)) {
      auto &[Variables, First] = Writes[Facts.Types.type(G->input(N, I)).Cause];
      if (Variables.empty())
        First = {N, I};
      Variables.insert(Facts.Vars.variableOf(G->input(N, 0)));
    }
  for (const auto &[Cause, Its] : Writes) {
    const auto &[Variables, First] = Its;
    auto [N, I] = First;
    Endpoint E = G->input(N, I);
    bool Locally = Facts.Types.localPredicate(N).has_value();
    Diagnostic &D = Diags->error(
        G->name(N),
        formatv("{0}, so the copies of variable '{1}'{2} would not stay equal; "
                "{3}",
                Locally ? "runs under a predicate that replicas may disagree on"
                        : "writes a different value on each replica",
                G->name(Variables.front()),
                Variables.size() == 1
                    ? ""
                    : formatv(" and of {0} more", Variables.size() - 1).str(),
                !Locally && isFloating(G->outputType(E.Node, E.Port))
                    ? "reduce the written value by hand"
                    : "write a value that is equal on all replicas, or give "
                      "its policy with --variable")
            .str());
    if (Cause != NoNode)
      D.Notes.push_back({G->name(Cause).str(), Facts.Types.reason(Cause)});
  }
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
        Diags->error(
            G->name(N),
            formatv("each replica has its own value for variable '{0}', which "
                    "is unreplicated and has aggregation none; give "
                    "--variable={0}={1},sum, mean or only-first-replica",
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
    Diags->unproved(
        "policy", G->name(Var),
        formatv(
            "'{0}' writes {1} of values whose relation to the single-device "
            "step is not proved, because the aggregation says so",
            G->name(N),
            First                       ? "the first replica's"
            : *How == Aggregation::Mean ? "the mean"
                                        : "the sum"));
  }
  return Any;
}

void InsertReductions::insert(const Demand &D, bool Assumed) {
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
    if (Assumed)
      G->setIntAttr(N, AssumedAttr, -D.Power);
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
      D.Notes.push_back({G->name(Cause).str(), reasonOf(Facts, Cause)});
  }
  for (auto [N, Predicate] : Types.localEffects()) {
    Diagnostic &D = Diags->unproved(
        "effect", G->name(N),
        "runs under a predicate that replicas may disagree on, so its effect "
        "may happen where the single-device step has none, or be missing");
    NodeId Cause = Types.type(Predicate).Cause;
    if (Cause != NoNode)
      D.Notes.push_back({G->name(Cause).str(), Types.reason(Cause)});
  }
  for (auto [N, Bits] : Types.assumptions()) {
    // One replica has all rows and draws what the input draws.
    if (Replicas == 1)
      break;
    if (Bits & AssumesLocalBatchNorm)
      Diags->unproved(
          "local-batch-norm", G->name(N),
          isVarianceRead(*G, N)
              ? "batch normalization uses the statistics of each replica's "
                "rows, not of the whole batch, and a reader of its variance, "
                "such as a moving average, gets the mean of the replicas' "
                "variances, which lacks the variance between replicas; see "
                "--batch-norm"
              : "batch normalization uses the statistics of each replica's "
                "rows, not of the whole batch; see --batch-norm");
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
  countSpoiled(*Facts);
  if (aggregate(*Facts))
    Facts = &programFacts(M);
  if (Diags->errorCount() != Errors)
    return PassResult::Failure;
  // What is settled may show what else is not.
  for (unsigned Round = 0; Round < 4 && fallBack(M, *Facts); ++Round)
    Facts = &programFacts(M);
  if (!Facts->Types.unprovedWrites().empty())
    reportDrifts(*Facts, LocalRuns(*G, *Facts));
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
