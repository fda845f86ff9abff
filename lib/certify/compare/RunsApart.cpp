//===- lib/certify/compare/RunsApart.cpp - needs of partial runs *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Proves that a run of a name has no needs beyond those of the same run of the
// input (RunsApart.h). Edges alone mostly suffice for this proof. It assigns
// needs to the nodes of the program. A copy of a node of the input gets the
// needs of that node in the input. An inserted node gets the needs of all its
// inputs together. Suppose that, along each edge from an inserted node to a
// copy, the needs of the inserted node are a subset of the needs of the copy.
// Then the assigned sets include the true needs, which are the least sets in
// which each node has the needs of its inputs. An edge meets the condition if
// the inserted node depends on one node only, its *front*, and the user has an
// edge from the front in the input. For all other edges, the check compares the
// sets. It computes them once over the input, and over the part of the program
// that may differ.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/RunsApart.h"

#include "lib/certify/forms/InsertedForm.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/facts/NumberSets.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/RowRepeat.h"
#include "lib/support/InternalError.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

namespace {

class RunsApart {
public:
  RunsApart(Comparison &C, const ProgramFacts &Facts);

  void run();

private:
  bool isInserted(NodeId N) const { return C.InputOf[N] == NoNode; }
  NodeId nameOf(NodeId N) const;
  NodeId variableOf(NodeId N, unsigned I, Endpoint E) const;
  void addRead(uint32_t &Set, NodeId N, NodeId Var);
  bool readsAny(NodeId N) const;
  bool isForeign(NodeId N) const {
    return IsNeed[G.node(N).Op] && !formOf(G.node(N).Kind).IsUnseen;
  }

  // By edges.
  bool addCut(Endpoint E);
  bool findFronts();
  Endpoint frontOf(Endpoint E) const;
  Endpoint join(Endpoint A, Endpoint B) const;
  bool matches(Endpoint Front, Endpoint Want) const;
  Endpoint frontOfInserted(NodeId N) const;
  bool hasExtra(NodeId N) const;
  bool findExtra();

  // By sets.
  void choose();
  void chooseAll();
  void number();
  uint32_t addNumber(NodeId Of) {
    NodeOf.push_back(Of);
    return static_cast<uint32_t>(NodeOf.size() - 1);
  }
  void add(uint32_t &Set, uint32_t Number) {
    Set = Sets->unite(Set, Sets->single(Number));
  }
  uint32_t cut(NodeId I, uint32_t Port) const;
  uint32_t wasTaken(Endpoint E);
  uint32_t isTaken(Endpoint E);
  uint32_t inputNeeds(NodeId I);
  uint32_t programNeeds(NodeId N);
  void solveInput();
  void solveProgram();
  bool holds();
  void report();
  void error(NodeId N, uint32_t Number);

  Comparison &C;
  const ProgramFacts &Facts;
  const InputGraph &In;
  const Graph &G;
  std::vector<bool> IsNeed; ///< By op of the program.
  /// Conditions in the program, which has all edges of the input.
  std::optional<Conditions> When;
  std::vector<NodeId> New; ///< The inserted nodes, in order.
  std::vector<bool> IsCut; ///< By node of the input: an output can be fed.
  /// By inserted node: the one tensor or node of the input that it depends on.
  std::vector<Endpoint> Front;
  std::vector<bool> IsExtra; ///< By node: edges do not settle its needs.

  static constexpr uint32_t NoNumber = ~uint32_t(0);
  /// By number of a need: its node of the input. The first NumForeign needs are
  /// effects of inserted nodes, and have nodes of the program instead.
  std::vector<NodeId> NodeOf;
  uint32_t NumForeign = 0;
  std::vector<uint32_t> NumberOf; ///< By node of the input: its number as need.
  /// By variable of the input: the number of the need of readers in a branch,
  /// see addRead(). Empty if the program has no branches.
  std::vector<uint32_t> BranchNumberOf;
  DenseMap<NodeId, uint32_t> ForeignNumbers;
  DenseMap<std::pair<NodeId, uint32_t>, uint32_t> CutNumbers;
  std::optional<NumberSets> Sets;
  std::vector<uint32_t> Was; ///< By node of the input: its needs.
  std::vector<uint32_t> Is;  ///< By node of the program: its needs.
  bool Differs = false;      ///< Set if a node of the input has new needs.
  std::vector<NodeId> Order; ///< The nodes whose sets are computed, in order.
  /// By node: a node in Order depends on it, so it may be a need.
  std::vector<bool> IsBelow;
};

/// NoFront: the inserted node depends on no node of the input. ManyFronts: it
/// depends on several.
constexpr Endpoint NoFront{NoNode, 0}, ManyFronts{NoNode, 1};

RunsApart::RunsApart(Comparison &C, const ProgramFacts &Facts)
    : C(C), Facts(Facts), In(C.In), G(C.G) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    IsNeed.push_back(isNeed(G.opNameOf(Op), G.opDefOf(Op)) &&
                     (G.opDefOf(Op) || !G.opNameOf(Op).starts_with("_")));
}

/// Adds the need of \p N for the value of \p Var, a variable of the input. A
/// reader in a branch needs the value only if the branch is taken, which is a
/// separate need. A reader outside of branches has both needs.
void RunsApart::addRead(uint32_t &Set, NodeId N, NodeId Var) {
  if (When)
    add(Set, BranchNumberOf[Var]);
  if (!When || When->of(N).empty())
    add(Set, NumberOf[Var]);
}

/// Returns the node of the input whose name \p N has in the output, or NoNode.
NodeId RunsApart::nameOf(NodeId N) const {
  const Node &This = G.node(N);
  if (This.Count == Copies::PerReplica && This.Flags & NF_LocalName)
    return NoNode;
  if (!isInserted(N))
    return C.InputOf[N];
  auto It = C.NamedAfter.find(N);
  return It == C.NamedAfter.end() ? NoNode : It->second;
}

/// Returns the variable of the input whose value \p N needs through \p E, input
/// \p I of \p N. Returns NoNode if there is none.
NodeId RunsApart::variableOf(NodeId N, unsigned I, Endpoint E) const {
  NodeId Var = Facts.Vars.variableOf(E);
  if (Var == NoNode || !needsValue(G, Facts.Vars, N, I, Var))
    return NoNode;
  if (!isInserted(Var))
    // A refresh reads the result of the update: it needs no earlier value.
    return G.node(N).Kind == Inserted::Proxy ? NoNode : C.InputOf[Var];
  Var = C.Proxies ? C.Proxies->standsFor({Var, 0}).Node : NoNode;
  return Var == NoNode ? NoNode : C.InputOf[Var];
}

bool RunsApart::readsAny(NodeId N) const {
  for (unsigned I = 0; I < G.node(N).NumData; ++I)
    if (variableOf(N, I, G.input(N, I)) != NoNode)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// By edges
//===----------------------------------------------------------------------===//

/// Records that \p E can be fed although its node has inputs. Returns true if
/// this was not recorded before.
bool RunsApart::addCut(Endpoint E) {
  if (E.Node == NoNode || In.inputs(C.InputOf[E.Node]).empty())
    return false;
  IsCut.resize(In.size());
  IsCut[C.InputOf[E.Node]] = true;
  return CutNumbers.try_emplace({C.InputOf[E.Node], E.Port}, NoNumber).second;
}

Endpoint RunsApart::frontOf(Endpoint E) const {
  if (isInserted(E.Node))
    return Front[E.Node];
  // A handle that is not read is no need.
  return Facts.Vars.variableOf({E.Node, 0}) == E.Node ? NoFront : E;
}

Endpoint RunsApart::join(Endpoint A, Endpoint B) const {
  if (A == B || B == NoFront)
    return A;
  if (A == NoFront)
    return B;
  if (A.Node == NoNode || A.Node != B.Node ||
      (!IsCut.empty() && IsCut[C.InputOf[A.Node]]))
    return ManyFronts;
  return {A.Node, ControlPort};
}

/// Returns true if, in the input, each reader of \p Want has all needs of \p
/// Front.
bool RunsApart::matches(Endpoint Front, Endpoint Want) const {
  return Front.Node != NoNode && C.InputOf[Front.Node] == Want.Node &&
         (Front.Port == Want.Port || IsCut.empty() || !IsCut[Want.Node]);
}

/// Returns true if \p N, a node of the input, has an edge in the program that
/// it does not have in the input.
bool RunsApart::hasExtra(NodeId N) const {
  NodeId I = C.InputOf[N];
  ArrayRef<Endpoint> Now = G.inputs(N), Old = In.inputs(I);
  size_t NumData = G.node(N).NumData;
  if (NumData != In.numData(I))
    return true;
  size_t Next = NumData;
  for (size_t K = 0; K < Now.size(); ++K) {
    Endpoint F = frontOf(Now[K]);
    if (K < NumData) {
      if (F != NoFront && !matches(F, Old[K]))
        return true;
      continue;
    }
    // Control inputs keep the order of the input. Some may be new.
    if (Next < Old.size() && F != ManyFronts && matches(F, Old[Next]))
      ++Next;
    else if (F != NoFront)
      return true;
  }
  return false;
}

/// Returns the front of the inserted node \p N.
Endpoint RunsApart::frontOfInserted(NodeId N) const {
  if (isForeign(N) || readsAny(N))
    return ManyFronts;
  Endpoint Result = NoFront;
  for (unsigned I = 0; I < G.node(N).NumInputs; ++I)
    if (!isRowOperand(G, N, I))
      Result = join(Result, frontOf(G.input(N, I)));
  return Result;
}

/// Finds the front of each inserted node. Returns false if this found a new
/// tensor that can be fed, so that another sweep is necessary.
bool RunsApart::findFronts() {
  bool Anew = false;
  for (NodeId N : New) {
    if (G.node(N).Kind == Inserted::Split && !followsOther(G, N))
      Anew |= addCut(C.erase(G.input(N, 0)));
    Front[N] = frontOfInserted(N);
  }
  return !Anew;
}

/// Marks the nodes whose needs do not follow from edges. Returns false if there
/// are none.
bool RunsApart::findExtra() {
  for (NodeId N : Facts.Order)
    if (isInserted(N))
      New.push_back(N);
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    if (G.opNameOf(Op) == op::PlaceholderWithDefault)
      for (NodeId N : Facts.Order)
        if (G.node(N).Op == Op && !isInserted(N))
          addCut({N, 0});
  Front.assign(G.size(), ManyFronts);
  while (!findFronts()) {
  }
  IsExtra.assign(G.size(), false);
  bool Any = false;
  std::vector<bool> Seen(G.size());
  auto Look = [&](NodeId N) {
    if (Seen[N] || isInserted(N))
      return;
    Seen[N] = true;
    if (hasExtra(N))
      IsExtra[N] = Any = true;
  };
  for (NodeId N : New)
    G.forEachUse(N, [&](Use U) { Look(U.User); });
  // A node that reads no inserted node has the edges of the input, unless the
  // program has definitions of batch norms or proxies, or errors were reported.
  if (C.BatchNorms || C.Proxies || C.Errors != 0)
    for (NodeId N : Facts.Order)
      Look(N);
  for (auto [N, I] : C.NamedAfter) {
    Endpoint F = Front[N];
    if (nameOf(N) != NoNode && F != NoFront &&
        (F.Node == NoNode || C.InputOf[F.Node] != I))
      IsExtra[N] = Any = true;
  }
  // Free Front: the sets that follow are the peak of the job's memory.
  Front = {};
  return Any;
}

//===----------------------------------------------------------------------===//
// By sets
//===----------------------------------------------------------------------===//

/// Selects the nodes whose sets are computed: the marked nodes, and all nodes
/// on which they depend in the program or in the input. A marked node is a need
/// only if a selected node depends on it.
void RunsApart::choose() {
  IsBelow.assign(G.size(), false);
  std::vector<NodeId> Roots;
  for (NodeId N : Facts.Order)
    if (IsExtra[N]) {
      Roots.push_back(N);
      if (isInserted(N))
        Roots.push_back(C.ProgramOf[nameOf(N)]);
    }
  std::vector<bool> IsChosen(G.size());
  walkFrom(Roots, IsChosen, [&](NodeId N, std::vector<NodeId> &Next) {
    size_t Others = Next.size();
    for (Endpoint E : G.inputs(N))
      Next.push_back(E.Node);
    if (!isInserted(N))
      for (Endpoint E : In.inputs(C.InputOf[N]))
        Next.push_back(C.ProgramOf[E.Node]);
    for (NodeId Below : drop_begin(Next, Others))
      IsBelow[Below] = true;
  });
  for (NodeId N : Facts.Order)
    if (IsChosen[N])
      Order.push_back(N);
}

void RunsApart::chooseAll() {
  IsBelow.assign(G.size(), true);
  Order = Facts.Order;
}

/// Numbers the needs. An error names the need with the least number, so the
/// effects of inserted nodes get the first numbers.
void RunsApart::number() {
  NodeOf.clear();
  NumberOf.assign(In.size(), NoNumber);
  std::vector<NodeId> Later;
  for (NodeId N : Order)
    if (isInserted(N) && isForeign(N))
      ForeignNumbers[N] = addNumber(N);
  NumForeign = static_cast<uint32_t>(NodeOf.size());
  for (NodeId N : Order) {
    if (isInserted(N) || !IsBelow[N] || !IsNeed[G.node(N).Op])
      continue;
    if (G.opName(N).starts_with(op::Placeholder))
      Later.push_back(C.InputOf[N]);
    else
      NumberOf[C.InputOf[N]] = addNumber(C.InputOf[N]);
  }
  for (NodeId Var : Facts.Vars.variables())
    if (!isInserted(Var))
      Later.push_back(C.InputOf[Var]);
  for (NodeId I : Later)
    NumberOf[I] = addNumber(I);
  BranchNumberOf.assign(When ? In.size() : 0, NoNumber);
  for (NodeId Var : Facts.Vars.variables())
    if (When && !isInserted(Var))
      BranchNumberOf[C.InputOf[Var]] = addNumber(C.InputOf[Var]);
  for (auto &[Of, Number] : CutNumbers)
    Number = addNumber(Of.first);
  Sets.emplace(NodeOf.size());
}

/// Returns the number of output \p Port of \p I if it can be fed, or NoNumber.
uint32_t RunsApart::cut(NodeId I, uint32_t Port) const {
  if (IsCut.empty() || !IsCut[I])
    return NoNumber;
  auto It = CutNumbers.find({I, Port});
  return It == CutNumbers.end() ? NoNumber : It->second;
}

/// Returns the needs that a reader of \p E has in the input because of \p E.
uint32_t RunsApart::wasTaken(Endpoint E) {
  uint32_t Number = cut(E.Node, E.Port);
  return Number == NoNumber ? Was[E.Node] : Sets->single(Number);
}

/// Returns the needs that a reader of \p E has in the program because of \p E.
uint32_t RunsApart::isTaken(Endpoint E) {
  uint32_t Number =
      isInserted(E.Node) ? NoNumber : cut(C.InputOf[E.Node], E.Port);
  return Number == NoNumber ? Is[E.Node] : Sets->single(Number);
}

uint32_t RunsApart::inputNeeds(NodeId I) {
  NodeId N = C.ProgramOf[I];
  uint32_t Set = Was[I];
  ArrayRef<Endpoint> Inputs = In.inputs(I);
  for (unsigned K = 0; K < Inputs.size(); ++K) {
    Endpoint E = Inputs[K];
    Set = Sets->unite(Set, wasTaken(E));
    if (K >= In.numData(I))
      continue;
    NodeId Var = variableOf(N, K, {C.ProgramOf[E.Node], E.Port});
    if (Var != NoNode)
      addRead(Set, N, Var);
  }
  if (IsBelow[N] && IsNeed[G.node(N).Op])
    add(Set, NumberOf[I]);
  return Set;
}

void RunsApart::solveInput() {
  Was.assign(In.size(), NumberSets::None);
  // A control dependency on a node needs all its outputs that can be fed.
  for (auto [Of, Number] : CutNumbers)
    add(Was[Of.first], Number);
  // Values of a back edge reach the loop in the next sweep. The sweeps end
  // because sets only grow.
  TurnLimit Limit("the needs of nodes", 2 + In.size());
  for (NodeId Again = 0; Again != NoNode;) {
    Limit.turn([&] { return G.name(Again).str(); });
    Again = NoNode;
    std::vector<bool> Seen(In.size());
    std::vector<bool> IsEarly(In.size()); ///< An earlier node reads it.
    for (NodeId N : Order) {
      NodeId I = C.InputOf[N];
      if (I == NoNode)
        continue;
      for (Endpoint E : In.inputs(I))
        if (!Seen[E.Node])
          IsEarly[E.Node] = true;
      Seen[I] = true;
      uint32_t Set = inputNeeds(I);
      if (Set == Was[I])
        continue;
      Was[I] = Set;
      if (IsEarly[I])
        Again = N;
    }
  }
}

uint32_t RunsApart::programNeeds(NodeId N) {
  uint32_t Set = Is[N];
  if (!isInserted(N) && !IsExtra[N] && !Differs)
    return Set;
  for (unsigned I = 0; I < G.node(N).NumInputs; ++I)
    if (!isInserted(N) || !isRowOperand(G, N, I))
      Set = Sets->unite(Set, isTaken(G.input(N, I)));
  if (!isInserted(N))
    return Set;
  for (unsigned I = 0; I < G.node(N).NumData; ++I)
    if (NodeId Var = variableOf(N, I, G.input(N, I)); Var != NoNode)
      addRead(Set, N, Var);
  if (auto It = ForeignNumbers.find(N); It != ForeignNumbers.end())
    add(Set, It->second);
  return Set;
}

void RunsApart::solveProgram() {
  Differs = false;
  Is.assign(G.size(), NumberSets::None);
  for (NodeId N : Order)
    if (!isInserted(N))
      Is[N] = Was[C.InputOf[N]];
  TurnLimit Limit("the needs of nodes", 2 + G.size());
  for (NodeId Again = 0; Again != NoNode;) {
    Limit.turn([&] { return G.name(Again).str(); });
    Again = NoNode;
    for (NodeId N : Order) {
      uint32_t Set = programNeeds(N);
      if (Set == Is[N])
        continue;
      Is[N] = Set;
      if (!isInserted(N))
        Differs = true;
      // A back edge needs another sweep only if a node of the input now has
      // needs that it does not have in the input.
      if (Differs)
        Again = N;
    }
  }
}

void RunsApart::error(NodeId N, uint32_t Number) {
  NodeId Because = NoNode;
  for (Endpoint E : G.inputs(N))
    if (Because == NoNode && Sets->contains(isTaken(E), Sets->single(Number)))
      Because = E.Node;
  NodeId Of = NodeOf[Number];
  if (Number < NumForeign)
    return C.error(N,
                   "a run of this node also runs '" + G.name(Of) +
                       "', which has an effect and is not in the input",
                   Because);
  std::string Name = ("'" + In.name(Of) + "'").str();
  StringRef Op = In.opNames()[In.op(Of)];
  std::string What = isVariableOp(Op) ? "needs a value of variable " + Name
                     : Op.starts_with(op::Placeholder)
                         ? "needs the feed " + Name
                         : "runs " + Name;
  C.error(N, "a run of this node " + What + ", but not in the input graph",
          Because);
}

/// Returns true if no chosen node has more needs than in the input. Then no
/// other node has more needs, either.
bool RunsApart::holds() {
  return !Differs && all_of(Order, [&](NodeId N) {
    return !isInserted(N) || !IsExtra[N] ||
           Sets->contains(Was[nameOf(N)], Is[N]);
  });
}

/// Reports each node with new needs unless it depends on a reported node.
void RunsApart::report() {
  std::vector<bool> Told(G.size());
  for (NodeId N : Order) {
    NodeId I = nameOf(N);
    Told[N] = any_of(G.inputs(N), [&](Endpoint E) { return Told[E.Node]; });
    if (I == NoNode || Told[N] || Sets->contains(Was[I], Is[N]))
      continue;
    Told[N] = true;
    error(N, Sets->firstOutside(Is[N], Was[I]));
  }
}

void RunsApart::run() {
  if (!findExtra())
    return;
  if (Conditions::any(G))
    When.emplace(G, Facts.Order);
  auto Solve = [&] {
    number();
    solveInput();
    solveProgram();
  };
  choose();
  Solve();
  if (holds())
    return;
  // A report needs the sets of all nodes.
  chooseAll();
  Solve();
  report();
}

} // namespace

void checkRunsApart(Comparison &C, const ProgramFacts &Facts) {
  RunsApart(C, Facts).run();
}

} // namespace graft
