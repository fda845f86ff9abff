//===- lib/rewrite/LoopConditions.cpp - shares loop conditions ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A backward walk from LoopCond finds the nodes that decide an iteration, in
// the loop and in the loops around it. Only nodes that depend on rows are
// repeated. Other nodes, such as a counter, are equal on all replicas if the
// number of iterations is equal.
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/LoopConditions.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/PerOp.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/EntrySlice.h"
#include "lib/rewrite/Work.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {
namespace {

/// Finds the operands in loops that must be global values but are not: loop
/// conditions, and values that replicas would have to exchange. If the loop of
/// a gradient pops such a value from a stack, returns the pushed operand
/// instead.
std::vector<Use> decisions(const Graph &G, const ProgramFacts &Facts,
                           const LoopInfo *Loops) {
  std::vector<Use> Found;
  PerOp IsCond(G, [](StringRef Op, const OpDef *) -> uint8_t {
    return Op == op::LoopCond;
  });
  if (!IsCond.any())
    return Found;
  for (NodeId N : Facts.Order)
    if (IsCond[G.node(N)] && G.isPerReplica(N) &&
        !Facts.Types.natural({N, 0}).isTrue())
      Found.push_back({N, 0});
  auto Add = [&](Use U) {
    if (none_of(Found, [&](Use Had) {
          return Had.User == U.User && Had.Index == U.Index;
        }))
      Found.push_back(U);
  };
  for (auto [N, I] : Facts.Types.refusedInside()) {
    Endpoint E = G.input(N, I);
    NodeId Stack = Loops && isPopOp(G.opName(E.Node))
                       ? Loops->handleOf(G.input(E.Node, 0))
                       : NoNode;
    if (Stack == NoNode) {
      Add({N, I});
      continue;
    }
    for (NodeId User : Loops->usersOf(Stack))
      if (isPushOp(G.opName(User)))
        Add({User, 1});
  }
  return Found;
}

/// Returns true if \p Op only moves or forwards data.
bool movesOnly(StringRef Op) {
  return isLocalHandleOp(Op) ||
         StringSwitch<bool>(Op)
             .Cases(op::Enter, op::Exit, op::Merge, op::Switch, true)
             .Cases(op::NextIteration, op::LoopCond, op::Identity, op::Const,
                    true)
             .Default(false);
}

using JoinedRows = DenseMap<std::pair<NodeId, uint32_t>, Endpoint>;

/// Shares the conditions of one loop and of the loops inside and around it.
class Sharer {
public:
  Sharer(Graph &G, const ProgramFacts &Facts, const LoopInfo &Loops,
         NodeId Node, JoinedRows &Joined)
      : G(G), Facts(Facts), Loops(Loops), Nest(Loops.nest(Node)),
        Joined(Joined) {
    for (NodeId N : Nest)
      if (G.node(N).Kind == Inserted::Again)
        Again[G.find(G.stringAttr(N, AgainAttr).value_or(""))] = N;
  }

  /// Computes the ancestors of \p Decided on the rows of all replicas. Returns
  /// nullopt if that is impossible or costs too much; nothing is edited then.
  std::optional<SharedLoop> share(Use Decided);

private:
  bool collect(Use Decided);
  bool mayRepeat(NodeId N) const;
  bool readsRows(Endpoint E) const;
  bool canJoin(Endpoint E) const;
  bool isCheap() const;
  void findOthers(Use Decided);
  Endpoint joined(Endpoint E, SharedLoop &Its);
  Endpoint source(Endpoint E, SharedLoop &Its);
  void repeat(NodeId N, SharedLoop &Its);

  Graph &G;
  const ProgramFacts &Facts;
  const LoopInfo &Loops;
  ArrayRef<NodeId> Nest;
  DenseSet<NodeId> OfRows;        ///< Nodes that depend on rows.
  DenseSet<NodeId> Others;        ///< Nodes of OfRows with other users.
  DenseMap<NodeId, NodeId> Again; ///< By node: its inserted repetition.
  JoinedRows &Joined;
};

/// Returns true if \p E, outside of the loop, is not equal on all replicas.
bool Sharer::readsRows(Endpoint E) const {
  ReplicationType Type = Facts.Types.type(E);
  return !Type.isTrue() || Type.Whole;
}

/// Returns true if the global value of \p E can be combined before the loop.
bool Sharer::canJoin(Endpoint E) const {
  if (G.node(E.Node).Kind == Inserted::Split)
    return true;
  ReplicationType Type = Facts.Types.type(E);
  unsigned Is = G.outputType(E);
  return (Type.isSharded() || Type.isPartial()) && Type.K == 0 &&
         !Type.isJoined() && !Type.Symbolic && !Type.Whole &&
         Is != DT_RESOURCE && Is != DT_VARIANT && Is != DT_INVALID;
}

/// Returns true if \p N is a pure function or forwards a value of a loop.
bool Sharer::mayRepeat(NodeId N) const {
  const OpDef *Def = G.opDef(N);
  if (!Def || Def->isStateful() || G.node(N).Kind != Inserted::No ||
      !G.isPerReplica(N) || isLocalHandleOp(G.opName(N)) ||
      G.isOp(N, op::Const) ||
      traitsOf(G.opName(N)) & (trait::Draws | trait::Opaque))
    return false;
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
    if (G.isRefOutput(N, Port))
      return false;
  return true;
}

/// Finds the nodes before \p Decided that depend on rows.
bool Sharer::collect(Use Decided) {
  SmallVector<NodeId, 16> Work, Rows;
  DenseSet<NodeId> Seen;
  OfRows.clear();
  auto Follow = [&](Endpoint E, NodeId User) {
    if (!Loops.givesInside(E.Node)) {
      if (!readsRows(E))
        return true;
      if (OfRows.insert(User).second)
        Rows.push_back(User);
      return canJoin(E);
    }
    if (G.isOp(E.Node, op::LoopCond) || !Seen.insert(E.Node).second)
      return true;
    Work.push_back(E.Node);
    return !G.isOp(E.Node, op::Const) ||
           Facts.Types.natural({E.Node, 0}).isTrue();
  };
  Endpoint From = G.input(Decided);
  if (!Loops.givesInside(From.Node) || !Follow(From, Decided.User))
    return false;
  while (!Work.empty()) {
    NodeId N = Work.pop_back_val();
    for (Endpoint E : G.dataInputs(N))
      if (!Follow(E, N))
        return false;
  }
  while (!Rows.empty())
    G.forEachUse(Rows.pop_back_val(), [&](Use U) {
      if (G.isData(U) && Seen.contains(U.User) && OfRows.insert(U.User).second)
        Rows.push_back(U.User);
    });
  return OfRows.contains(From.Node) &&
         all_of(OfRows, [&](NodeId N) { return mayRepeat(N); });
}

/// Returns true if the repeated work is at most a third of the loop's work.
bool Sharer::isCheap() const {
  double Rest = 0, Whole = 0;
  for (NodeId N : Nest)
    if (!movesOnly(G.opName(N)))
      (OfRows.contains(N) || G.node(N).Kind == Inserted::Again ? Whole
                                                               : Rest) +=
          WorkCounter(G, Facts.Dims).operations(N);
  return 2 * Whole <= Rest;
}

/// Finds nodes of OfRows whose values nodes other than \p Decided also need.
void Sharer::findOthers(Use Decided) {
  std::vector<NodeId> First;
  for (NodeId N : OfRows)
    if (G.anyUse(N, [&](Use U) {
          bool Decides = U.User == Decided.User && U.Index == Decided.Index;
          return G.isData(U) && !Decides && !OfRows.contains(U.User);
        }))
      First.push_back(N);
  Others.clear();
  walk::close(std::move(First), Others, walk::Everywhere,
              [&](NodeId N, std::vector<NodeId> &Next) {
                for (Endpoint E : G.dataInputs(N))
                  if (OfRows.contains(E.Node))
                    Next.push_back(E.Node);
              });
}

/// Returns the global value of \p E, which is combined before the loop.
Endpoint Sharer::joined(Endpoint E, SharedLoop &Its) {
  if (G.node(E.Node).Kind == Inserted::Split)
    return splitSource(G, E.Node, E.Port);
  Endpoint &Found = Joined[{E.Node, E.Port}];
  if (Found.Node != NoNode && G.isLive(Found.Node))
    return Found;
  ReplicationType Type = Facts.Types.type(E);
  AttrRun Attrs;
  Attrs.type("T", G.outputType(E));
  bool Gathers = Type.isSharded();
  if (!Gathers) {
    Attrs.string(CombineAttr, combineName(Type.Op));
  } else {
    Attrs.integer("axis", Type.Axis);
    if (Facts.Dims.isUneven(E, Type.Axis))
      Attrs.boolean("uneven", true);
  }
  std::string Name = (G.name(E.Node) + (Gathers ? "/gather" : "/reduce")).str();
  NodeId N = G.insertNode(Name, Gathers ? GatherOp : ReduceOp, E, E.Node, Attrs,
                          Gathers ? Inserted::Gather : Inserted::Reduce,
                          Copies::PerReplica);
  Its.Inserted.push_back(N);
  return Found = {N, 0};
}

/// Returns the tensor that replaces \p E and has the rows of all replicas.
/// Keeps a value of the previous iteration whose node is not repeated yet.
Endpoint Sharer::source(Endpoint E, SharedLoop &Its) {
  if (auto It = Again.find(E.Node); It != Again.end())
    return {It->second, E.Port};
  return !Loops.givesInside(E.Node) && readsRows(E) ? joined(E, Its) : E;
}

/// Adds a repetition of \p N.
void Sharer::repeat(NodeId N, SharedLoop &Its) {
  SmallVector<Endpoint, 4> Inputs;
  for (Endpoint E : G.inputs(N))
    Inputs.push_back(E.isControl() ? E : source(E, Its));
  AttrRun Attrs;
  for (const AttrEntry &A : G.attrs(N))
    if (A.Key != "_class" && A.Key != "_output_shapes" &&
        !A.Key.starts_with("_graft_"))
      Attrs.raw(A.Key, A.Value);
  Attrs.string(AgainAttr, originName(G, N));
  NodeId Copy = G.insertNode((G.name(N) + "/again").str(), G.opName(N), Inputs,
                             N, Attrs, Inserted::Again, Copies::PerReplica);
  G.setDevice(Copy, G.device(N));
  Again[N] = Copy;
  Its.Inserted.push_back(Copy);
}

std::optional<SharedLoop> Sharer::share(Use Decided) {
  if (!collect(Decided) || !isCheap())
    return std::nullopt;
  findOthers(Decided);
  SharedLoop Its;
  Its.Nest = Nest.front();
  Its.Decided = Decided;
  std::vector<NodeId> New;
  for (NodeId N : Nest)
    if (Others.contains(N) && !Again.contains(N)) {
      repeat(N, Its);
      New.push_back(N);
    }
  auto Connect = [&](NodeId N, NodeId Like, unsigned I) {
    Endpoint Was = G.input(Like, I), E = source(Was, Its);
    if (G.input(N, I) == E)
      return;
    if (N == Like)
      Its.Edges.push_back({N, I, Was});
    G.setInput(N, I, E);
  };
  auto ConnectAll = [&](NodeId N, NodeId Like) {
    for (unsigned I = 0; I < G.node(N).NumData; ++I)
      Connect(N, Like, I);
    Its.Joined.push_back(N);
  };
  for (NodeId N : New)
    ConnectAll(Again[N], N);
  for (NodeId N : Nest)
    if (OfRows.contains(N) && !Others.contains(N))
      ConnectAll(N, N);
  Connect(Decided.User, Decided.User, Decided.Index);
  return Its;
}

} // namespace

bool dropLoops(Graph &G, std::vector<SharedLoop> &Loops,
               function_ref<bool(const SharedLoop &)> IsGone) {
  DenseSet<NodeId> Nests;
  for (const SharedLoop &Its : Loops)
    if (IsGone(Its))
      Nests.insert(Its.Nest);
  std::vector<NodeId> Gone;
  for (const SharedLoop &Its : reverse(Loops)) {
    if (!Nests.contains(Its.Nest))
      continue;
    for (const SharedLoop::Edge &E : reverse(Its.Edges))
      G.setInput(E.User, E.Index, E.Was);
    for (NodeId N : reverse(Its.Inserted)) {
      if (G.node(N).Kind == Inserted::Again)
        G.setInputs(N, {});
      Gone.push_back(N);
    }
  }
  // Another loop may read a value that was gathered for a removed loop.
  for (NodeId N : Gone)
    if (!G.hasUses(N))
      G.remove(N);
  erase_if(Loops,
           [&](const SharedLoop &Its) { return Nests.contains(Its.Nest); });
  return !Nests.empty();
}

std::vector<SharedLoop> shareLoopConditions(Module &M,
                                            DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  std::vector<SharedLoop> Result;
  JoinedRows Joined;
  DenseSet<std::pair<NodeId, unsigned>> Tried;
  // A shared condition may make the types of further operands known, so repeat.
  for (bool More = true; More;) {
    More = false;
    const ProgramFacts &Facts = programFacts(M);
    std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Facts.Order);
    std::vector<Use> Decisions = decisions(G, Facts, Loops.get());
    erase_if(Decisions,
             [&](Use U) { return Tried.contains({U.User, U.Index}); });
    if (Decisions.empty())
      break;
    std::vector<SharedLoop> Shared;
    DenseMap<NodeId, std::unique_ptr<Sharer>> Nests;
    for (Use U : Decisions) {
      std::unique_ptr<Sharer> &Nest = Nests[Loops->nest(U.User).front()];
      if (!Nest)
        Nest = std::make_unique<Sharer>(G, Facts, *Loops, U.User, Joined);
      if (auto Its = Nest->share(U)) {
        Tried.insert({U.User, U.Index});
        Shared.push_back(std::move(*Its));
      }
    }
    if (Shared.empty())
      break;
    G.markModified();
    const ProgramFacts &Now = programFacts(M);
    DenseSet<NodeId> Wrong;
    for (const DimAnalysis::Conflict &C : Now.Dims.conflicts())
      Wrong.insert(C.Node);
    for (const Demand &D : Now.Types.demands()) {
      Wrong.insert(D.Source.Node);
      Wrong.insert(D.Because);
    }
    dropLoops(G, Shared, [&](const SharedLoop &Its) {
      return !Now.Types.type(G.input(Its.Decided)).isTrue() ||
             any_of(Its.Joined, [&](NodeId N) { return Wrong.contains(N); });
    });
    for (SharedLoop &Its : Shared) {
      More = true;
      if (Diags.wantsRemarks())
        Diags.remark("loop", originName(G, Its.Decided.User),
                     "each replica computes this condition of a loop on the "
                     "rows of all replicas, as the single device does");
      Result.push_back(std::move(Its));
    }
  }
  return Result;
}

} // namespace graft
