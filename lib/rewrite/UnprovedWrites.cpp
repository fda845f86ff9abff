//===- lib/rewrite/UnprovedWrites.cpp - writes that no rule relates -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/UnprovedWrites.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/LocalRuns.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class RepairFinder {
public:
  RepairFinder(const Module &M, const ProgramFacts &Facts)
      : M(M), G(M.graph()), Facts(Facts), Local(G, Facts) {}

  std::vector<Repair> find(bool OnlyNamed);

private:
  bool isNamed(NodeId Var);
  void repairRows(NodeId N);
  void repairSegments(Endpoint Rows, bool Adds, StringRef Text);
  void repairValue(NodeId N, unsigned I);
  Endpoint nearestGradient(Endpoint E) const;
  /// Returns true if \p N keeps the rows of its operand and changes their
  /// elements: sums, and products with tensors that are not rows.
  bool changesElements(NodeId N) const {
    uint32_t Is = ruleOf(G.opName(N)).Is;
    return Is & trait::KeepsRowOrder && !(Is & trait::RegroupsRows);
  }
  void dropSpared();

  const Module &M;
  const Graph &G;
  const ProgramFacts &Facts;
  LocalRuns Local;
  std::vector<Repair> Repairs;
  std::vector<Repair> Named; ///< Repairs of gradients in Module::Gradients.
  DenseSet<NodeId> Segments; ///< Segment sums with a repair.
};

/// Returns true if the input graph names the gradient of \p Var and that
/// gradient is not proved. Adds a repair of the gradient, whatever the
/// optimizer.
bool RepairFinder::isNamed(NodeId Var) {
  for (const NamedGradient &Gradient : M.Gradients) {
    auto V = G.findEndpoint(Gradient.Variable);
    auto E = G.findEndpoint(Gradient.Tensors);
    if (!V || V->Node != Var || !E || E->isControl() ||
        !G.isPerReplica(E->Node) || !Facts.Types.type(*E).isVarying() ||
        !isFloating(G.outputType(E->Node, E->Port)))
      continue;
    if (none_of(Named, [&](const Repair &R) { return R.Source == *E; }))
      Named.push_back(
          {*E, NoNode, 0, true, Facts.Types.type(*E).Cause,
           formatv("it is not proved how the replicas' gradients relate to the "
                   "single-device step, so graft uses their mean, since the "
                   "input names the gradient of '{0}'; choose with "
                   "--grad={0}={1},mean|sum",
                   G.name(Var), Gradient.Tensors)});
    return true;
  }
  return false;
}

/// Returns the tensor from whose mean the mean of \p E can be computed, as near
/// to a gradient as possible. Walks back through sums and through factors that
/// are equal on all replicas.
Endpoint RepairFinder::nearestGradient(Endpoint E) const {
  for (;;) {
    NodeId N = E.Node;
    // Replicas cannot exchange values in a loop.
    if (G.node(N).Kind != Inserted::No || G.isOp(N, op::Exit) ||
        G.isOp(N, op::RefExit))
      return E;
    int From = -1;
    for (unsigned I = 0; I < G.node(N).NumData; ++I)
      if (Local.differs(G.input(N, I))) {
        if (From >= 0)
          return E;
        From = static_cast<int>(I);
      }
    if (From < 0 || Facts.Types.localPredicate(N))
      return E;
    // Go on only if N keeps the rows and is linear in this operand.
    if (!changesElements(N) || G.isOp(N, op::IdentityN) ||
        (ruleOf(G.opName(N)).Is & trait::LinearInFirst && From != 0))
      return E;
    Endpoint Next = G.input(N, static_cast<unsigned>(From));
    if (!Facts.Types.type(Next).isVarying() ||
        !isFloating(G.outputType(Next)) || Local.hasOwnSize(Next))
      return E;
    E = Next;
  }
}

/// Repairs a write of rows by index. Gathers both the rows and the indices,
/// because each row needs its index.
void RepairFinder::repairRows(NodeId N) {
  UpdateDef U = Facts.Vars.update(G, N);
  unsigned RowsAt = static_cast<uint8_t>(U.Grad),
           IndicesAt = static_cast<uint8_t>(U.Indices);
  Endpoint Rows = G.input(N, RowsAt), Indices = G.input(N, IndicesAt);
  ReplicationType Type = Facts.Types.type(Indices);
  auto Shape = Facts.Dims.shape(Indices);
  StringRef Op = G.opName(N);
  bool Adds = U.Kind == UpdateKind::Apply || Op.ends_with(op::Add) ||
              Op.ends_with(op::Sub);
  if (!isFloating(G.outputType(Rows)) || (Adds && Rows.Node == Indices.Node))
    return;
  auto TextOf = [&](bool Mean) {
    return formatv("it is not proved how the replicas' rows that '{0}' writes "
                   "relate to the single-device step, so graft {1}",
                   originName(G, N),
                   Mean ? "uses their mean"
                        : "gathers and writes the rows of all replicas")
        .str();
  };
  std::string Text = TextOf(Adds);
  auto CauseOf = [&](Endpoint E) { return Facts.Types.type(E).Cause; };
  bool RowsVary = Facts.Types.type(Rows).isVarying() && Local.differs(Rows);
  if (Type.isSharded() || (Type.isVarying() && Local.differs(Indices))) {
    if (!Shape || Shape->empty() || (Type.isSharded() && Type.Axis != 0))
      return;
    NodeId Cause = CauseOf(RowsVary ? Rows : Indices);
    size_t Others = Repairs.size();
    if (Type.isVarying())
      Repairs.push_back({Indices, N, IndicesAt, false, Cause, ""});
    if (RowsVary || Facts.Types.type(Rows).isReplicated())
      Repairs.push_back({Rows, N, RowsAt, Adds, Cause, ""});
    if (Repairs.size() != Others)
      Repairs.back().Text = Text;
  } else if (RowsVary && Local.hasOwnSize(Indices)) {
    repairSegments(Rows, Adds, Text);
  } else if (RowsVary) {
    // All replicas write the same rows: reduce their values.
    Repairs.push_back({Rows, NoNode, 0, Adds, CauseOf(Rows), TextOf(true)});
  }
}

/// Repairs \p Rows that were summed by the segment ids of all replicas: gathers
/// the operands of the UnsortedSegmentSum ops behind \p Rows.
void RepairFinder::repairSegments(Endpoint Rows, bool Adds, StringRef Text) {
  DenseSet<NodeId> Seen;
  walkFrom({Rows.Node}, Seen, [&](NodeId At, std::vector<NodeId> &Next) {
    uint32_t Is = ruleOf(G.opName(At)).Is;
    if (G.isOp(At, op::UnsortedSegmentSum)) {
      Endpoint Of = G.input(At, 0);
      ReplicationType Type = Facts.Types.type(Of);
      if (Local.differs(Of) && Type.isVarying() &&
          Facts.Types.type(G.input(At, 1)).isReplicated() &&
          Local.hasOwnSize(G.input(At, 1)) && Segments.insert(At).second)
        Repairs.push_back({Of, At, 0, Adds, Type.Cause, Text.str()});
    } else if (changesElements(At) ||
               (Is & trait::Elementwise && !(Is & trait::KeepsZeros))) {
      for (Endpoint E : G.dataInputs(At))
        if (Local.differs(E))
          Next.push_back(E.Node);
    }
  });
}

/// Repairs a write of a whole value: plans a reduction to the mean of the
/// gradient or, for another value, of the tensor nearest to a gradient.
void RepairFinder::repairValue(NodeId N, unsigned I) {
  Endpoint Source = G.input(N, I);
  if (!isFloating(G.outputType(Source)))
    return;
  UpdateDef U = Facts.Vars.update(G, N);
  bool Slot = U.Kind == UpdateKind::Apply && U.Grad == static_cast<int>(I);
  if (!Slot)
    Source = nearestGradient(Source);
  Repairs.push_back(
      {Source, NoNode, 0, true, Facts.Types.type(Source).Cause,
       formatv("it is not proved how the replicas' {0} relate to the "
               "single-device step, so graft uses their mean; choose with "
               "--grad=VAR={1},mean|sum",
               Slot ? "gradients" : "values that are written to a variable",
               G.name(Source.Node))});
}

/// Drops reductions of values that are equal on all replicas after other
/// repairs.
void RepairFinder::dropSpared() {
  DenseMap<NodeId, SmallVector<size_t, 1>> By;
  for (size_t I = 0; I < Repairs.size(); ++I)
    if (Repairs[I].User == NoNode)
      By[Repairs[I].Source.Node].push_back(I);
  if (By.empty())
    return;
  DenseSet<std::pair<NodeId, uint32_t>> Equal;
  std::vector<bool> Spared(Repairs.size()), Settled(G.size());
  for (NodeId N : Facts.Order) {
    bool Was = false, Is = false;
    for (Endpoint E : G.dataInputs(N))
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

std::vector<Repair> RepairFinder::find(bool OnlyNamed) {
  const TypeAnalysis &Types = Facts.Types;
  NodeId LastRows = NoNode;
  for (auto [N, I] : Types.unprovedWrites()) {
    if (isNamed(Facts.Vars.variableOf(G.input(N, 0))))
      continue;
    if (OnlyNamed || Types.usesState(N, I) || !Local.differs(G.input(N, I)))
      continue;
    if (auto Predicate = Types.localPredicate(N);
        Predicate && Local.differs(*Predicate))
      continue;
    UpdateDef U = Facts.Vars.update(G, N);
    if (U.Indices < 0 ||
        (static_cast<int>(I) != U.Grad && static_cast<int>(I) != U.Indices))
      repairValue(N, I);
    else if (std::exchange(LastRows, N) != N)
      repairRows(N);
  }
  dropSpared();
  append_range(Named, Repairs);
  return std::move(Named);
}

} // namespace

std::vector<Repair> findRepairs(const Module &M, const ProgramFacts &Facts,
                                bool OnlyNamed) {
  if (Facts.Types.unprovedWrites().empty())
    return {};
  return RepairFinder(M, Facts).find(OnlyNamed);
}

bool aggregateWrites(Graph &G, const ProgramFacts &Facts,
                     DiagnosticEngine &Diags) {
  bool Any = false;
  for (auto [N, I] : Facts.Types.unprovedWrites()) {
    UpdateDef U = Facts.Vars.update(G, N);
    NodeId Var = Facts.Vars.variableOf(G.input(N, 0));
    auto How = Var == NoNode ? std::nullopt : aggregationOf(G, Var);
    Endpoint Source = G.input(N, I);
    if (!How || !G.isPerReplica(Source.Node) ||
        (U.Kind != UpdateKind::Assign && U.Kind != UpdateKind::AssignAdd))
      continue;
    Policy Plan = G.node(Var).Plan;
    bool One = isShared(Plan);
    if (*How == Aggregation::None) {
      if (One)
        Diags.error(
            G.name(N),
            formatv("each replica has its own value for variable '{0}', which "
                    "is unreplicated and has aggregation none; give "
                    "--variable={0}={1},sum, mean or only-first-replica",
                    G.name(Var), policyName(Plan)));
      continue;
    }
    if (!One && Plan != Policy::Mirrored)
      continue;
    AttrRun Attrs;
    Attrs.type("T", G.outputType(Source));
    bool First = *How == Aggregation::OnlyFirst;
    Attrs.string(CombineAttr, First ? combine::Pick : combine::Sum);
    if (!First) {
      int Power = *How == Aggregation::Mean ? -1 : 0;
      if (Power != 0)
        Attrs.integer("power", Power);
      Attrs.integer(AssumedAttr, -Power);
    }
    NodeId New = G.insertNode(
        (G.name(N) + "/aggregate").str(), First ? FromReplicasOp : ReduceOp,
        Source, Source.Node, Attrs, First ? Inserted::Merge : Inserted::Reduce,
        First ? Copies::Once : Copies::PerReplica);
    G.setInput(N, I, {New, 0});
    Any = true;
    Diags.unproved(
        "policy", G.name(Var),
        formatv("'{0}' writes {1} of the replicas' values, as the aggregation "
                "of the variable asks; the relation of these values to the "
                "single-device step is not proved",
                G.name(N),
                First                       ? "the first"
                : *How == Aggregation::Mean ? "the mean"
                                            : "the sum"));
  }
  return Any;
}

} // namespace graft
