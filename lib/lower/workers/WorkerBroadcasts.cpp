//===- lib/lower/workers/WorkerBroadcasts.cpp - broadcasts of worker 0 ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Every worker computes unreplicated nodes for itself. Their values are equal
// if they depend on variables, which are equal, on feeds and on constants. They
// may differ if they depend on a sample without a seed, on a read from a file,
// a queue or an iterator, or on a Python function.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Variables.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/io/Module.h"
#include "lib/lower/workers/Workers.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

/// The sources that a value depends on.
enum Root : uint8_t {
  State = 1, ///< A variable, a feed, or a per-replica node.
  Own = 2,   ///< A source that may differ by worker, as a sample.
};

class BroadcastFinder {
public:
  BroadcastFinder(Module &M, DiagnosticEngine &Diags);
  std::vector<WorkerBroadcast> run();

private:
  uint8_t ownRoots(NodeId N) const;
  void findRoots();
  bool mayBeDead(NodeId N) const {
    return (When && !When->of(N).empty()) || (Loops && Loops->givesInside(N));
  }
  bool send(Endpoint Value, const std::optional<ShapeValue> &Shape, Use By);
  std::optional<ShapeValue> knownShape(Endpoint E);
  void findAssignments();
  void findOthers();
  void readOwn(Endpoint Value, Use By);

  /// Returns true if \p N is not written: its users read its input.
  bool isElided(NodeId N) const {
    return G.node(N).Flags & NF_ElidePrimary && G.node(N).NumData > 0;
  }
  Endpoint resolve(Endpoint E) const {
    while (isElided(E.Node))
      E = G.input(E.Node, 0);
    return E;
  }

  Module &M;
  const Graph &G;
  DiagnosticEngine &Diags;
  VariableIndex Vars;
  std::unique_ptr<const Conditions> When; ///< Null without conditionals.
  std::unique_ptr<const LoopInfo> Loops;  ///< Null without loops.
  std::vector<uint8_t> Roots;             ///< By node.
  MapVector<std::pair<NodeId, uint32_t>, WorkerBroadcast> Found;
  std::vector<bool> Sent; ///< By node: assigns a broadcast value.
};

BroadcastFinder::BroadcastFinder(Module &M, DiagnosticEngine &Diags)
    : M(M), G(M.graph()), Diags(Diags), Vars(G), Roots(G.size()),
      Sent(G.size()) {
  std::vector<NodeId> Order;
  if (Conditions::any(G)) {
    Order = topologicalOrder(G);
    When = std::make_unique<Conditions>(G, Order);
  }
  Loops = LoopInfo::find(G, Order);
}

uint8_t BroadcastFinder::ownRoots(NodeId N) const {
  const Node &This = G.node(N);
  StringRef Op = G.opName(N);
  if (This.Count == Copies::PerReplica && !isElided(N))
    return State;
  if (isVariableOp(Op) || Op.starts_with(op::Placeholder))
    return State;
  const OpDef *Def = G.opDef(N);
  if (!Def)
    return This.Kind == Inserted::No ? Own : 0;
  if (isRandomOp(Op)) {
    // All workers have the same seed.
    bool Seeded = G.intAttr(N, "seed").value_or(0) != 0 ||
                  G.intAttr(N, "seed2").value_or(0) != 0;
    return Def->isStateful() && !Seeded ? Own : 0;
  }
  if (Op == op::ReadFile || Op == op::MatchingFiles)
    return Own;
  // These ops are stateful, but their value depends on their inputs only.
  bool Passes = Def->update().Kind != UpdateKind::None ||
                Def->readsVariable() || isLocalHandleOp(Op) ||
                Op == op::Print || Op == op::Assert;
  return Def->isStateful() && !Passes ? Own : 0;
}

void BroadcastFinder::findRoots() {
  std::vector<NodeId> Work;
  for (NodeId N = 0; N < G.size(); ++N) {
    Roots[N] = G.isLive(N) ? ownRoots(N) : 0;
    if (Roots[N] != 0)
      Work.push_back(N);
  }
  // Copies are equal on all workers, and so are the values of variables.
  std::vector<bool> Ends(G.size());
  for (NodeId N : Work)
    Ends[N] = Roots[N] & State;
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    G.forEachUse(N, [&](Use U) {
      // A control edge carries no value.
      if (!G.isData(U) || Ends[U.User] ||
          (Roots[U.User] | Roots[N]) == Roots[U.User])
        return;
      Roots[U.User] |= Roots[N];
      Work.push_back(U.User);
    });
  }
}

static bool isBroadcastType(unsigned Type) {
  return Type == DT_HALF || Type == DT_FLOAT || Type == DT_DOUBLE ||
         Type == DT_INT32 || Type == DT_INT64 || Type == DT_BOOL;
}

static bool isStatic(const std::optional<ShapeValue> &Shape) {
  return Shape && !Shape->UnknownRank &&
         all_of(Shape->Dims, [](int64_t D) { return D >= 0; });
}

/// Adds a broadcast of \p Value for the use \p By. Returns false if it cannot
/// be sent.
bool BroadcastFinder::send(Endpoint Value,
                           const std::optional<ShapeValue> &Shape, Use By) {
  if (!isStatic(Shape) || mayBeDead(Value.Node) ||
      !isBroadcastType(G.outputType(Value)))
    return false;
  WorkerBroadcast &B = Found[{Value.Node, Value.Port}];
  B.Value = Value;
  B.Shape = *Shape;
  B.Uses.push_back(By);
  return true;
}

/// Finds assignments of initial and restored values: values that depend on a
/// source that may differ by worker, or on no variable or feed.
void BroadcastFinder::findAssignments() {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || Vars.update(G, N).Kind != UpdateKind::Assign ||
        G.node(N).NumData < 2)
      continue;
    NodeId Var = Vars.variableOf(G.input(N, 0));
    Endpoint Value = resolve(G.input(N, 1));
    if (Var == NoNode || G.isPerReplica(Value.Node) ||
        (Roots[Value.Node] & (State | Own)) == State)
      continue;
    Sent[N] = send(Value, G.shapeAttr(Var, "shape"), {N, 1});
  }
}

/// Returns the static shape of \p E that the program proves.
std::optional<ShapeValue> BroadcastFinder::knownShape(Endpoint E) {
  const DimAnalysis &Dims = programFacts(M).Dims;
  auto Shape = Dims.shape(E);
  if (!Shape)
    return std::nullopt;
  ShapeValue Result;
  for (DimId D : *Shape)
    Result.Dims.push_back(Dims.table().number(D));
  return Result;
}

/// Adds a broadcast of \p Value for the use \p By, or warns that the value may
/// differ by worker.
void BroadcastFinder::readOwn(Endpoint Value, Use By) {
  if (isElided(By.User)) {
    G.forEachUse(By.User, [&](Use U) {
      if (G.isData(U))
        readOwn(Value, U);
    });
    return;
  }
  if (Sent[By.User] ||
      (G.node(By.User).Count == Copies::Once && !Vars.isUpdate(G, By.User)))
    return;
  unsigned Type = G.outputType(Value);
  // Queues, tables and other resources exist in one process only.
  if (Type == DT_RESOURCE || Type == DT_VARIANT ||
      G.isRefOutput(Value.Node, Value.Port) || Vars.variableOf(Value) != NoNode)
    return;
  if (send(Value, knownShape(Value), By))
    return;
  std::string Text = "each worker has its own value, and these are not proved "
                     "to be equal: worker 0 broadcasts only numeric tensors of "
                     "known shape, outside of branches and loops";
  if (isBatchRead(G.opName(Value.Node)))
    Text += "; with --batch=per-replica each takes its own batch";
  Diags.unproved("worker", originName(G, Value.Node), Text);
}

/// Finds all other values that depend on a source that may differ by worker.
void BroadcastFinder::findOthers() {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !(Roots[N] & Own) || isElided(N) || G.isPerReplica(N))
      continue;
    for (const Use &U : G.uses(N))
      if (G.isData(U))
        readOwn(G.input(U), U);
  }
}

std::vector<WorkerBroadcast> BroadcastFinder::run() {
  findRoots();
  findAssignments();
  findOthers();
  std::vector<WorkerBroadcast> Result;
  Result.reserve(Found.size());
  for (auto &[Value, B] : Found)
    Result.push_back(std::move(B));
  // Keys follow this order, which must not depend on the order of nodes.
  llvm::sort(Result, [&](const WorkerBroadcast &A, const WorkerBroadcast &B) {
    return std::pair(G.name(A.Value.Node), A.Value.Port) <
           std::pair(G.name(B.Value.Node), B.Value.Port);
  });
  return Result;
}

} // namespace

std::vector<WorkerBroadcast> findBroadcasts(Module &M,
                                            DiagnosticEngine &Diags) {
  return BroadcastFinder(M, Diags).run();
}

} // namespace graft
