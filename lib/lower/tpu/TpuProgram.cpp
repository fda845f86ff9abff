//===- lib/lower/tpu/TpuProgram.cpp - the step as one computation -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// A TPU runs its computation as a whole: an op inside cannot wait for an op
// that waits for the computation. So the step consists of all nodes that depend
// on the rows of a replica, the nodes on which these depend, and the nodes on a
// path between two parts of the step. Nodes that only prepare variables
// (initializers, restore) stay outside, one copy per replica. So do nodes that
// read results or wait for the step.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/tpu/TpuProgram.h"

#include "lib/graph/PerOp.h"
#include "lib/graph/Walk.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

/// Returns true if ops of this kind run on hosts only: they have string inputs
/// or outputs, or may exist only once.
bool isHostOp(StringRef Op, const OpDef *Def) {
  if (!Def)
    return false;
  auto IsString = [](const ArgDef &A) { return A.Type == DT_STRING; };
  return isOnceOp(Op) || any_of(Def->inputs(), IsString) ||
         any_of(Def->outputs(), IsString);
}

class StepFinder {
public:
  StepFinder(Graph &G, const ProgramFacts &Facts, const StringSet<> &Reads,
             DiagnosticEngine &Diags)
      : G(G), Vars(Facts.Vars), Reads(Reads), Diags(Diags),
        HostOps(G, isHostOp) {}

  std::optional<TpuStep> find();

private:
  bool isSplit(NodeId N) const { return G.isOp(N, ToReplicasOp); }
  bool isHost(NodeId N) const;
  bool isDoubled(NodeId N) const;
  void findOutside();
  void grow();
  bool isOwn(NodeId N) const;
  void cut();
  bool takeBranches();
  bool close();
  bool holdsLoops();
  void takeConstants();
  NodeId twin(NodeId N, Copies Count);
  void doubleReads();
  void sayLateReads(std::vector<NodeId> Work);
  void findBorder();
  bool leaveBranches();
  void checkRoots();
  void findHostClusters();
  bool isPure(NodeId N);

  Graph &G;
  const VariableIndex &Vars;
  const StringSet<> &Reads;
  DiagnosticEngine &Diags;
  PerOp HostOps;
  std::vector<NodeId> Order;
  /// Per-replica nodes before all members: variables, splits of feeds, and host
  /// ops that prepare the rows.
  std::vector<bool> Outside;
  std::vector<uint8_t> Pure; ///< 0: not asked yet, 1: no, 2: yes.
  TpuStep Step;
};

/// Returns true if \p N runs on the host: its op is a host op, or it has
/// strings as inputs or outputs.
bool StepFinder::isHost(NodeId N) const {
  if (HostOps[G.node(N)])
    return true;
  for (Endpoint E : G.dataInputs(N))
    if (G.outputType(E) == DT_STRING)
      return true;
  return G.outputType(N, 0) == DT_STRING;
}

/// Finds the per-replica nodes that run before the step (see Outside).
void StepFinder::findOutside() {
  Outside.assign(G.size(), false);
  for (NodeId N : Order) {
    if (!G.isPerReplica(N))
      continue;
    Outside[N] = isSplit(N) || isVariableOp(G.opName(N)) ||
                 (isHost(N) && all_of(G.inputs(N), [&](Endpoint E) {
                    return !G.isPerReplica(E.Node) || Outside[E.Node];
                  }));
  }
}

/// Adds all per-replica nodes that depend on the rows, and the per-replica
/// nodes on which these depend.
void StepFinder::grow() {
  auto Add = [&](NodeId N, std::vector<NodeId> &To) {
    if (G.isPerReplica(N) && !Outside[N])
      To.push_back(N);
  };
  std::vector<NodeId> First;
  for (NodeId N : Order)
    if (G.isPerReplica(N) && Outside[N] && !isVariableOp(G.opName(N)))
      G.forEachUse(N, [&](Use U) { Add(U.User, First); });
  walk::close(First, Step.Members, walk::Everywhere,
              [&](NodeId N, std::vector<NodeId> &Next) {
                for (Endpoint E : G.inputs(N))
                  Add(E.Node, Next);
                // Users of constants and of reads of variables may be outside
                // of the step.
                if (!isDoubled(N))
                  G.forEachUse(N, [&](Use U) { Add(U.User, Next); });
              });
}

/// Returns true if \p N is unreplicated and has a state: it cannot be part of a
/// computation that all replicas run.
bool StepFinder::isOwn(NodeId N) const {
  return G.node(N).Count == Copies::Once &&
         (Vars.isOnce(G, N) || Vars.isUpdate(G, N) ||
          isVariableOp(G.opName(N)));
}

/// Removes nodes from the step if they depend on an unreplicated effect that
/// itself depends on the step. The removed nodes stay outside, one copy per
/// replica.
void StepFinder::cut() {
  std::vector<bool> After(G.size()), Late(G.size());
  for (NodeId N : Order) {
    for (Endpoint E : G.inputs(N)) {
      After[N] = After[N] || After[E.Node] || Step.Members[E.Node];
      Late[N] = Late[N] || Late[E.Node];
    }
    if (Late[N])
      Step.Members[N] = false;
    Late[N] = Late[N] || (After[N] && isOwn(N));
  }
}

/// Adds the whole of each conditional to the step: a branch that does not run
/// has no value that a computation could return.
bool StepFinder::takeBranches() {
  if (!Conditions::any(G))
    return true;
  Conditions Branches(G, Order);
  std::set<uint32_t> Inside;
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (NodeId N : Order) {
      if (Outside[N])
        continue;
      uint32_t Own = Branches.predicateOf(N);
      bool IsSwitch = Own != ~0u;
      if (!Step.Members[N]) {
        auto IsIn = [&](uint32_t P) { return Inside.count(P) != 0; };
        bool Joins =
            G.isOp(N, op::Merge) && any_of(G.dataInputs(N), [&](Endpoint E) {
              return any_of(Branches.of(E.Node), IsIn);
            });
        if (!Joins && !(IsSwitch && IsIn(Own)) && none_of(Branches.of(N), IsIn))
          continue;
        if (isOwn(N)) {
          Diags.error(originName(G, N),
                      "runs once for all replicas, but in a branch of the "
                      "step, which a TPU computation must include as a whole; "
                      "give the variable a copy per replica "
                      "(--variable=NAME=mirrored)");
          return false;
        }
        Step.Members[N] = true;
        Changed = true;
      }
      if (Branches.isMany(N)) {
        Diags.error(originName(G, N),
                    formatv("runs under more than {0} predicates, so graft "
                            "cannot tell which conditionals the TPU "
                            "computation must include as a whole",
                            Conditions::MaxChoices));
        return false;
      }
      for (uint32_t P : Branches.of(N))
        Changed |= Inside.insert(P).second;
      if (IsSwitch)
        Changed |= Inside.insert(Own).second;
    }
  }
  return true;
}

/// Adds the nodes on a path from one part of the step to another.
bool StepFinder::close() {
  std::vector<bool> After(G.size()), Before(G.size());
  for (NodeId N : Order)
    After[N] = !Step.Members[N] && any_of(G.inputs(N), [&](Endpoint E) {
      return Step.Members[E.Node] || After[E.Node];
    });
  for (NodeId N : reverse(Order))
    for (Endpoint E : G.inputs(N))
      if (Step.Members[N] || Before[N])
        Before[E.Node] = true;
  for (NodeId N : Order) {
    if (!After[N] || !Before[N])
      continue;
    if (isSplit(N)) {
      Diags.error(
          originName(G, G.input(N, 0).Node),
          "is a result of one part of the step and is split for a later "
          "part of it, which a TPU computation cannot express");
      return false;
    }
    Step.Members[N] = true;
  }
  return true;
}

/// Checks that the step has either all nodes of a loop's iteration or none.
bool StepFinder::holdsLoops() {
  auto Loops = LoopInfo::find(G, Order);
  if (!Loops)
    return true;
  for (NodeId N : Order)
    for (Endpoint E : G.dataInputs(N))
      if (Step.Members[N] != Step.Members[E.Node] &&
          Loops->givesInside(E.Node)) {
        Diags.error(originName(G, Step.Members[N] ? E.Node : N),
                    "is in a loop of the step, but waits for a node that runs "
                    "once for all replicas after a part of the step, so a TPU "
                    "computation cannot include the whole loop; give variables "
                    "a copy per replica "
                    "(--variable=NAME=mirrored), or export the train op alone");
        return false;
      }
  return true;
}

/// Returns true if \p N is computed from constants alone, by ops without
/// effect.
bool StepFinder::isPure(NodeId N) {
  if (Pure[N] != 0)
    return Pure[N] == 2;
  const OpDef *Def = G.opDef(N);
  Pure[N] = 1;
  if (!Def || Def->isStateful() || G.isPerReplica(N) || isHost(N) ||
      G.opName(N).starts_with(op::Placeholder) || G.isOp(N, op::NoOp))
    return false;
  for (Endpoint E : G.inputs(N))
    if (E.isControl() || !isPure(E.Node))
      return false;
  Pure[N] = 2;
  return true;
}

NodeId StepFinder::twin(NodeId N, Copies Count) {
  std::string Name = G.uniqueName(
      ("tpu/" + (Count == Copies::Once ? Twine() : "outside/") + G.name(N))
          .str());
  SmallVector<Endpoint, 4> Inputs(G.dataInputs(N));
  NodeId New = G.addNode(Name, G.opName(N), Inputs, N);
  Node &To = G.node(New), &From = G.node(N);
  To.AttrData = From.AttrData;
  To.AttrSize = From.AttrSize;
  To.Device = From.Device;
  To.Count = Count;
  To.Flags |= From.Flags & (NF_MayHaveClass | NF_MayHaveGraft);
  Step.Members.resize(G.size());
  Outside.resize(G.size());
  Pure.resize(G.size());
  return New;
}

/// Adds constants that members use to the step: the compiler has to know sizes
/// and axes.
void StepFinder::takeConstants() {
  Pure.assign(G.size(), 0);
  for (NodeId N : reverse(Order)) {
    if (Step.Members[N] || !isPure(N))
      continue;
    SmallVector<Use, 8> Inner;
    bool Outer = false;
    for (Use U : G.uses(N))
      if (!Step.Members[U.User])
        Outer = true;
      else if (G.isData(U))
        Inner.push_back(U);
    if (Inner.empty())
      continue;
    if (!Outer) {
      Step.Members[N] = true;
      continue;
    }
    NodeId New = twin(N, Copies::Once);
    Step.Members[New] = true;
    for (Use U : Inner)
      G.setInput(U.User, U.Index, {New, G.input(U).Port});
  }
}

/// Returns true if a second copy of \p N, outside of the step, costs nothing.
bool StepFinder::isDoubled(NodeId N) const {
  if (!G.controlInputs(N).empty())
    return false;
  return G.isOp(N, op::Const) ||
         (G.isOp(N, op::Identity) && isDoubled(G.input(N, 0).Node)) ||
         (G.isOp(N, op::ReadVariableOp) &&
          isVariableOp(G.opName(G.input(N, 0).Node)));
}

/// Copies a read of a variable if nodes outside also use it: a saver, or a
/// fetch of a variable, must not run the step.
void StepFinder::doubleReads() {
  std::vector<NodeId> Again;
  for (NodeId N : reverse(Order)) {
    if (!Step.Members[N] || !G.isPerReplica(N) || !isDoubled(N))
      continue;
    SmallVector<Use, 8> Outer;
    for (Use U : G.uses(N))
      if (!Step.Members[U.User])
        Outer.push_back(U);
    if (Outer.empty() && !Reads.contains(G.name(N)))
      continue;
    NodeId New = twin(N, Copies::PerReplica);
    // The copy outside gets the name, because only it can be fetched.
    std::string Inner = G.name(New).str(), Name = G.name(N).str();
    G.rename(New, G.uniqueName(Inner + "/value"));
    G.rename(N, Inner);
    G.rename(New, Name);
    G.node(New).NameSplit = G.node(N).NameSplit;
    for (Use U : Outer)
      G.setInput(U.User, U.Index,
                 G.isData(U) ? Endpoint{New, G.input(U).Port}
                             : Endpoint{New, ControlPort});
    if (G.isOp(New, op::ReadVariableOp))
      Again.push_back(New);
  }
  if (!Again.empty())
    sayLateReads(std::move(Again));
}

/// Warns about a variable that the host reads again. If a user of this read
/// also waits for the step, the user may get the updated value. In the input
/// graph, the user gets the old value.
void StepFinder::sayLateReads(std::vector<NodeId> Work) {
  std::vector<bool> IsLate(G.size()), Seen(G.size());
  for (NodeId N : Order)
    IsLate[N] = any_of(G.inputs(N), [&](Endpoint E) {
      return IsLate[E.Node] || Step.isMember(E.Node);
    });
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    for (Use U : G.uses(N)) {
      if (Step.isMember(U.User) || Seen[U.User] || !G.isData(U))
        continue;
      Seen[U.User] = true;
      if (!IsLate[U.User]) {
        Work.push_back(U.User);
        continue;
      }
      Diags.unproved("one-step", originName(G, U.User),
                     "depends on the step and on a variable that the host "
                     "reads again, so it may get the updated value of the "
                     "variable");
      return;
    }
  }
}

void StepFinder::findBorder() {
  SmallSetVector<std::pair<NodeId, uint32_t>, 16> Inputs, Results;
  SmallSetVector<NodeId, 16> Variables, Effects;
  for (NodeId N : Order) {
    for (Endpoint E : G.inputs(N)) {
      if (Step.isMember(N) && !Step.isMember(E.Node)) {
        if (!G.isPerReplica(E.Node) || E.isControl())
          continue;
        if (NodeId Var = Vars.variableOf(E); Var != NoNode)
          Variables.insert(Var);
        else
          Inputs.insert({E.Node, E.Port});
      }
      if (!Step.isMember(N) && Step.isMember(E.Node)) {
        if (E.isControl())
          Effects.insert(E.Node);
        else
          Results.insert({E.Node, E.Port});
      }
    }
    if (Step.isMember(N) && !G.hasUses(N) &&
        (Vars.isUpdate(G, N) || G.numOutputs(N) == 0))
      Effects.insert(N);
  }
  for (auto [N, Port] : Inputs)
    Step.Inputs.push_back({N, Port});
  for (auto [N, Port] : Results)
    Step.Results.push_back({N, Port});
  Step.Variables.assign(Variables.begin(), Variables.end());
  Step.Effects.assign(Effects.begin(), Effects.end());
}

/// Drops effects in branches. A branch may not run, so a node that waits for
/// such an effect waits for the end of the conditional instead.
bool StepFinder::leaveBranches() {
  if (!Conditions::any(G))
    return true;
  Conditions Branches(G, Order);
  std::vector<bool> Run(G.size());
  std::vector<NodeId> InBranch;
  llvm::erase_if(Step.Effects, [&](NodeId N) {
    Run[N] = Branches.of(N).empty();
    if (!Run[N])
      InBranch.push_back(N);
    return !Run[N];
  });
  for (Endpoint E : Step.Results)
    Run[E.Node] = true;
  for (NodeId N : reverse(Order))
    for (Endpoint E : G.inputs(N))
      Run[E.Node] = Run[E.Node] || Run[N];
  for (NodeId N : InBranch)
    if (!Run[N] && Vars.isUpdate(G, N)) {
      Diags.error(originName(G, N),
                  "updates a variable in a branch, but no node after the "
                  "conditional waits for it, so the TPU computation would not "
                  "run it; let the conditional return a tensor that the train "
                  "op waits for");
      return false;
    }
  for (Endpoint E : Step.Results)
    if (!Branches.of(E.Node).empty()) {
      Diags.error(originName(G, E.Node),
                  "is read outside of the step and computed in a branch of it, "
                  "where it may have no value; let the conditional return it");
      return false;
    }
  return true;
}

/// Warns if no node runs all updates of the step, or if another node runs only
/// some of them: a run of a part of the step runs the whole step.
void StepFinder::checkRoots() {
  // The updates of the step, and those on the host that depend on it.
  std::vector<NodeId> Updates;
  std::vector<bool> UsesStep(G.size()), Counted(G.size());
  bool AnyMember = false;
  for (NodeId N : Order) {
    UsesStep[N] = Step.isMember(N) || any_of(G.inputs(N), [&](Endpoint E) {
                    return UsesStep[E.Node];
                  });
    if (!UsesStep[N] || !Vars.isUpdate(G, N))
      continue;
    Updates.push_back(N);
    Counted[N] = true;
    AnyMember |= Step.isMember(N);
  }
  if (!AnyMember || Updates.size() < 2)
    return;
  // Walk backwards from the last nodes that depend on updates: one of these
  // nodes should run all updates.
  std::vector<bool> Later(G.size());
  std::vector<NodeId> Ends;
  for (NodeId N : Updates)
    Later[N] = true;
  for (NodeId N : Order)
    for (Endpoint E : G.inputs(N))
      Later[N] = Later[N] || Later[E.Node];
  for (NodeId N : Order)
    if (Later[N] && !G.hasUses(N))
      Ends.push_back(N);
  constexpr size_t MaxEnds = 64;
  std::vector<std::pair<size_t, NodeId>> Counts;
  bool RunsAll = false;
  for (NodeId End : ArrayRef(Ends).take_back(MaxEnds)) {
    std::vector<bool> Seen(G.size());
    size_t Count = 0;
    walkInputs(G, {End}, Along::All, Seen, [&](NodeId N) {
      Count += Counted[N];
      return true;
    });
    if (Count == Updates.size())
      RunsAll = true;
    else if (Count > 0)
      Counts.push_back({Count, End});
  }
  if (RunsAll && Counts.empty())
    return;
  Diagnostic &D = Diags.unproved(
      "one-step", originName(G, Updates.front()),
      RunsAll ? "a TPU computation runs as a whole: a node that runs only "
                "some updates of the step in the input runs all of them here"
              : "a TPU computation runs as a whole: in the input, no node "
                "depends on all updates of the step, but here a run of one "
                "update runs all updates");
  for (auto [Count, End] : ArrayRef(Counts).take_front(5))
    D.Notes.push_back({originName(G, End).str(),
                       "runs " + std::to_string(Count) + " of " +
                           std::to_string(Updates.size()) + " updates"});
}

void StepFinder::findHostClusters() {
  Step.HostCluster.assign(G.size(), -1);
  // Twice the number of times that the path to a node came back from the host,
  // plus one if the node is on the host.
  std::vector<int> Level(G.size(), 0);
  for (NodeId N : topologicalOrder(G)) {
    if (!Step.isMember(N))
      continue;
    for (Endpoint E : G.inputs(N))
      if (Step.isMember(E.Node))
        Level[N] = std::max(Level[N], Level[E.Node]);
    if (G.node(N).Kind == Inserted::No && isHost(N)) {
      Level[N] |= 1;
      Step.HostCluster[N] = Level[N] / 2;
    } else {
      Level[N] += Level[N] % 2;
    }
  }
}

std::optional<TpuStep> StepFinder::find() {
  Order = topologicalOrder(G);
  Step.Members.assign(G.size(), false);
  findOutside();
  grow();
  if (none_of(Order, [&](NodeId N) { return Step.Members[N]; })) {
    Diags.error("", "no node depends on a feed that is split: there is nothing "
                    "that replicas could compute");
    return std::nullopt;
  }
  cut();
  if (!takeBranches() || !close() || !holdsLoops())
    return std::nullopt;
  for (NodeId N : Order)
    for (unsigned I = 0; Step.Members[N] && I < G.node(N).NumData; ++I)
      if (G.isRefInput(N, I) && Vars.variableOf(G.input(N, I)) != NoNode) {
        Diags.error(originName(G, N),
                    "uses a reference variable, and a TPU has resource "
                    "variables only; export the graph with use_resource=True");
        return std::nullopt;
      }
  takeConstants();
  doubleReads();
  Order = topologicalOrder(G);
  findBorder();
  if (!leaveBranches())
    return std::nullopt;
  checkRoots();
  findHostClusters();
  // Places per-replica host ops that run before the step on the CPU.
  for (NodeId N : Order)
    if (G.isPerReplica(N) && Outside[N] && isHost(N)) {
      G.setDevice(N, "/device:CPU:0");
      G.node(N).Flags |= NF_FixedDevice;
    }
  return std::move(Step);
}

} // namespace

std::optional<TpuStep> findTpuStep(Graph &G, const ProgramFacts &Facts,
                                   const StringSet<> &Reads,
                                   DiagnosticEngine &Diags) {
  return StepFinder(G, Facts, Reads, Diags).find();
}

} // namespace graft
