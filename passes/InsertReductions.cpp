//===- passes/InsertReductions.cpp - insert-reductions ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The only pass that decides where replicas exchange values. The replication
// types define which inputs an op can use: a write needs the global value, a
// square root cannot use a partial sum. This pass inserts the collectives that
// they request:
//
//     g = MatMul*(x, dy)                  g = MatMul*(x, dy)
//                                         g/reduce = _Reduce*(g) power=-1
//     Apply*(w, lr, g)               →    Apply*(w, lr, g/reduce)
//
//   _Reduce   a partial value becomes the global one everywhere, for all of its
//             users, so that each gradient is reduced once
//   _Gather   the rows of all replicas, for one user (a de-duplication)
//   _Scale    times a power of the number of replicas
//
// Three edits come first, because types depend on them. A maximum length that
// becomes a size is reduced where it is computed. A Squeeze without axes gets
// the axes that it removes from the whole batch. The condition of a loop is
// computed on the rows of all replicas (lib/rewrite/LoopConditions.h).
//
// The scale exponent of a gradient's type decides if the gradient is averaged
// or added. The exponent is inferred. The flag --grad overrides it. If a value
// that is written to a variable has an unknown type, the pass warns. It then
// uses the aggregation of the variable, or else the mean of the tensor nearest
// to a gradient (lib/rewrite/UnprovedWrites.h). The pass fails if copies of a
// variable would still differ.
//
// Relies on: lib/infer/types/Types.h; the policies of all variables.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Loops.h"
#include "lib/io/Module.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/rewrite/FedSizes.h"
#include "lib/rewrite/KeepOnce.h"
#include "lib/rewrite/LoopConditions.h"
#include "lib/rewrite/ReductionReport.h"
#include "lib/rewrite/UnprovedWrites.h"
#include "passes/Options.h"

using namespace llvm;

namespace graft {
namespace {

class InsertReductions final
    : public PassBase<InsertReductions, InsertReductionsOptions> {
public:
  static constexpr PassInfo Info = {
      "insert-reductions", "Reduce, gather and scale where the types demand it",
      "Inserts `_Reduce`, `_Gather` and `_Scale` so that every write of a\n"
      "variable and every op reads values that its rule allows."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool userGradients();
  void shareSizes(Module &M);
  void nameAxes(Module &M);
  bool repair(Module &M, const ProgramFacts &Facts,
              const ReductionReport &Report);
  void refuseUpdatesInLoops(const ProgramFacts &Facts);
  void insert(const Demand &D, bool Assumed = false);
  void reduce(Endpoint Source, StringRef Combine, int Power, bool Assumed);

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  bool Changed = false;
  uint64_t *Reductions = nullptr;
};

void InsertReductions::reduce(Endpoint Source, StringRef Combine, int Power,
                              bool Assumed) {
  AttrRun Attrs;
  Attrs.type("T", G->outputType(Source));
  Attrs.string(CombineAttr, Combine);
  if (Power != 0)
    Attrs.integer(PowerAttr, Power);
  if (Assumed)
    Attrs.integer(AssumedAttr, -Power);
  SmallString<128> Name(G->name(Source.Node));
  Name += "/reduce";
  NodeId N = G->insertNode(Name, ReduceOp, Source, Source.Node, Attrs,
                           Inserted::Reduce, Copies::PerReplica);
  G->replaceUses(Source, {N, 0}, N);
  Changed = true;
  count(Reductions, "reductions");
}

/// Applies --grad=VAR=TENSOR,mean|sum: the user says how TENSOR is reduced.
bool InsertReductions::userGradients() {
  for (StringRef Rule : *Options.Grad) {
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
    if (!G->isPerReplica(Source->Node)) {
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

/// Reduces maximum lengths that become sizes, which must be equal on all
/// replicas. This reveals the types of values with these sizes. Another maximum
/// length may depend on such a value, so the search is repeated.
void InsertReductions::shareSizes(Module &M) {
  for (bool Any = true; Any;) {
    Any = false;
    const ProgramFacts &Facts = programFacts(M);
    for (NodeId N : Facts.Dims.differing()) {
      ReplicationType Type = Facts.Types.natural({N, 0});
      if (!Type.isPartial() || Type.K != 0 || !leadsToSize(*G, N))
        continue;
      reduce({N, 0}, combineName(Type.Op), 0, false);
      Any = true;
    }
  }
}

/// Names the axes of a Squeeze without axes, which would also remove the batch
/// axis of a replica that has one row.
void InsertReductions::nameAxes(Module &M) {
  uint32_t Op = 0;
  while (Op < G->numOps() && G->opNameOf(Op) != op::Squeeze)
    ++Op;
  if (Op == G->numOps())
    return;
  const DimAnalysis &Dims = programFacts(M).Dims;
  bool Any = false;
  for (NodeId N = 0; N < G->size(); ++N) {
    if (!G->isLive(N) || G->node(N).Op != Op || !G->isPerReplica(N))
      continue;
    auto Named = G->intListAttr(N, "squeeze_dims");
    int Rows = Dims.batchAxis(G->input(N, 0));
    if ((Named && !Named->empty()) || Rows < 0 ||
        !Dims.mayBeOneRow((*Dims.shape(G->input(N, 0)))[Rows]))
      continue;
    auto Axes = Dims.axesOfOne(G->input(N, 0));
    if (!Axes || Axes->empty())
      continue;
    G->setAttr(N, "squeeze_dims", encodeIntListAttr(*Axes));
    Any = true;
  }
  if (Any)
    G->markModified();
  Changed |= Any;
}

/// Makes writes of values with an unknown type equal on all replicas. Returns
/// true if there were any.
bool InsertReductions::repair(Module &M, const ProgramFacts &Facts,
                              const ReductionReport &Report) {
  std::vector<Repair> Repairs = findRepairs(M, Facts, Options.NoGradientSlots);
  for (const Repair &R : Repairs) {
    Report.warnRepair(Facts, R);
    if (R.User == NoNode) {
      reduce(R.Source, combine::Sum, -1, true);
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
  return !Repairs.empty();
}

/// Refuses updates in a loop that has per-replica nodes or updates a
/// per-replica variable: replicas exchange no values there, and copy 0 of an
/// update cannot wait for copies in other loops.
void InsertReductions::refuseUpdatesInLoops(const ProgramFacts &Facts) {
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(*G, Facts.Order);
  if (!Loops)
    return;
  for (NodeId First : Loops->nests()) {
    ArrayRef<NodeId> Nest = Loops->nest(First);
    bool IsCopied = any_of(Nest, [&](NodeId N) { return G->isPerReplica(N); });
    for (NodeId N : Nest) {
      if (!Facts.Vars.isUpdate(*G, N))
        continue;
      NodeId Var = Facts.Vars.variableOf(G->input(N, 0));
      if (!IsCopied && (Var == NoNode || !G->isPerReplica(Var)))
        continue;
      Diags
          ->error(originName(*G, N),
                  "updates a variable in a loop, where replicas cannot "
                  "exchange values; move the update out of the loop")
          .Id = "unproved";
      break;
    }
  }
}

void InsertReductions::insert(const Demand &D, bool Assumed) {
  if (D.Kind == Demand::Reduce) {
    reduce(D.Source, combineName(D.Op), D.Power, false);
    return;
  }
  Endpoint Source = G->input(D.User, D.Index);
  auto Chain = [&](StringRef Op, StringRef Suffix, Inserted Kind) {
    NodeId N = G->addNode(G->uniqueName((G->name(Source.Node) + Suffix).str()),
                          Op, Source, Source.Node);
    G->setTypeAttr(N, "T", G->outputType(Source));
    G->node(N).Kind = Kind;
    G->node(N).Count = G->node(Source.Node).Count;
    Source = {N, 0};
    Changed = true;
    return N;
  };
  if (D.Kind == Demand::Gather) {
    NodeId N = Chain(GatherOp, "/gather", Inserted::Gather);
    G->setIntAttr(N, "axis", D.Axis);
    if (D.Uneven)
      G->setBoolAttr(N, "uneven", true);
    if (Assumed)
      G->setIntAttr(N, AssumedAttr, -D.Power);
    ++Statistics["gathers"];
  }
  if (D.Kind == Demand::Count) {
    NodeId N = Chain(ReduceOp, "/reduce", Inserted::Reduce);
    G->setStringAttr(N, CombineAttr, combine::Sum);
    count(Reductions, "reductions");
  }
  if (D.Power != 0) {
    NodeId N = Chain(ScaleOp, "/scale", Inserted::Scale);
    G->setIntAttr(N, PowerAttr, D.Power);
    ++Statistics["scales"];
  }
  G->setInput(D.User, D.Index, Source);
}

PassResult InsertReductions::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  unsigned Replicas = readMesh(*G).replicas();
  if (Replicas == 0)
    return PassResult::Unchanged;
  if (Options.What == Fallback::Refuse)
    D.refuseUnproved();
  if (!userGradients())
    return PassResult::Failure;
  shareSizes(M);
  nameAxes(M);
  std::vector<SharedLoop> Loops;
  if (Replicas > 1)
    Loops = shareLoopConditions(M, D);
  Changed |= !Loops.empty();
  ProgramFacts *Facts = &programFacts(M);
  unsigned Errors = D.errorCount();
  ReductionReport Report(*G, *Facts, *Options.Fetch, D);
  if (aggregateWrites(*G, *Facts, D)) {
    Changed = true;
    Facts = &programFacts(M);
  }
  if (D.errorCount() != Errors)
    return PassResult::Failure;
  KeptOnce Kept;
  if (Options.What == Fallback::Once) {
    auto Gather = [&](const ProgramFacts &Now) {
      Report.remarkDemands(Now, /*OnlyGathers=*/true);
      for (const Demand &Needed : Now.Types.demands())
        if (Needed.Kind == Demand::Gather)
          insert(Needed);
    };
    Kept = keepOnce(M, *Options.Fetch, Options.LocalBatchNorm, std::move(Loops),
                    Gather, D);
    Changed |= Kept.Any;
    Facts = &programFacts(M);
  }
  // A repair may reveal other unproved writes.
  for (unsigned Round = 0; Round < 4 && repair(M, *Facts, Report); ++Round)
    Facts = &programFacts(M);
  // With workers, each graph has one copy of an update, which waits for no
  // other copy.
  if (Options.What != Fallback::Mean)
    refuseUpdatesInLoops(*Facts);
  Report.refuseDrifts(*Facts);
  if (D.errorCount() != Errors)
    return PassResult::Failure;
  Report.report(*Facts, Replicas);
  Report.warnNoGradient(*Facts);
  for (const Demand &Needed : Facts->Types.demands())
    insert(Needed);
  Facts->adoptInserted(*G);
  keepFacts(M);
  Spread Work = spreadOf(*G, *Facts, Options.MinSpread != 0);
  Statistics["nodes computed once"] += Work.OnceNodes;
  // One replica does all the work.
  if (Replicas > 1 && !Report.sayOfSpread(Work, Kept.Causes, Options.MinSpread))
    return PassResult::Failure;
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(InsertReductions)

} // namespace graft
