//===- lib/infer/facts/SizeUses.cpp - uses of facts of sizes --------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Most graphs have no facts, because their equal sizes are equal by definition:
// they are the same number, or sizes of one feed. If a graph has facts, one
// walk finds the nodes at which origins meet. An op may use the fact that it
// states itself. For any other node, two dataflow passes find the ops that run
// whenever the node does.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/SizeUses.h"

#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <map>
#include <set>

using namespace llvm;

namespace graft {
namespace {

using Origin = SizeOrigins::Origin;
using Kind = SizeOrigins::Kind;

/// The branches and loops in which nodes run.
class Scopes {
public:
  /// \p Loops is null without loops.
  Scopes(const Graph &G, ArrayRef<NodeId> Order, const LoopInfo *Loops);

  /// Returns the scope of \p N as a number.
  unsigned of(NodeId N);
  /// Returns true if the nodes of scope \p Outer run whenever a node of scope
  /// \p Inner does.
  bool includes(unsigned Inner, unsigned Outer) const;

private:
  struct Scope {
    std::vector<uint32_t> Choices;
    uint32_t Body; ///< The innermost loop whose body has the node.
    bool operator<(const Scope &O) const {
      return std::tie(Body, Choices) < std::tie(O.Body, O.Choices);
    }
  };
  void findBodies(ArrayRef<NodeId> Order);
  bool runsBody(uint32_t Inner, uint32_t Outer) const;

  const Graph &G;
  const LoopInfo *Loops;
  std::optional<Conditions> When;
  std::vector<uint32_t> BodyOf;  ///< By node.
  std::vector<uint32_t> Outside; ///< By loop: the body that it is in.
  /// By loop: other loops whose bodies push to a stack that this loop's body
  /// pops.
  std::vector<SmallVector<uint32_t, 1>> Pushed;
  std::map<Scope, unsigned> Ids;
  std::vector<const Scope *> ById;
};

Scopes::Scopes(const Graph &G, ArrayRef<NodeId> Order, const LoopInfo *Loops)
    : G(G), Loops(Loops) {
  if (Conditions::any(G))
    When.emplace(G, Order);
  if (Loops)
    findBodies(Order);
}

/// Finds the loop body of each node. A body begins at the outputs of the loop's
/// Switch nodes that continue the loop. Nodes that compute the loop condition
/// are in no body.
void Scopes::findBodies(ArrayRef<NodeId> Order) {
  BodyOf.assign(G.size(), 0);
  Outside.assign(Loops->numFrames(), 0);
  Pushed.resize(Loops->numFrames());
  for (NodeId N : Order) {
    uint32_t F = Loops->frame(N);
    if (F == 0)
      continue;
    StringRef Op = G.opName(N);
    if (Op == op::Enter || Op == op::RefEnter) {
      Outside[F] = BodyOf[G.input(N, 0).Node];
      BodyOf[N] = Outside[F];
      continue;
    }
    bool InBody = false;
    if (!Loops->isLoopMerge(N) && Op != op::Exit && Op != op::RefExit)
      for (Endpoint E : G.inputs(N)) {
        bool GoesOn =
            !E.isControl() && E.Port == 1 &&
            (G.isOp(E.Node, op::Switch) || G.isOp(E.Node, op::RefSwitch)) &&
            G.isOp(G.input(E.Node, 1).Node, op::LoopCond);
        InBody |= GoesOn || BodyOf[E.Node] == F;
      }
    BodyOf[N] = InBody ? F : Outside[F];
  }
  for (NodeId Handle : Loops->handles()) {
    if (!Loops->isStack(G, Handle))
      continue;
    std::optional<uint32_t> By;
    bool One = true;
    for (NodeId User : Loops->usersOf(Handle))
      if (isPushOp(G.opName(User))) {
        One &= By.value_or(BodyOf[User]) == BodyOf[User];
        By = BodyOf[User];
      }
    for (NodeId User : Loops->usersOf(Handle))
      if (By && One && isPopOp(G.opName(User)) && BodyOf[User] != 0 &&
          (!When || When->of(User).empty()) &&
          !is_contained(Pushed[BodyOf[User]], *By))
        Pushed[BodyOf[User]].push_back(*By);
  }
}

unsigned Scopes::of(NodeId N) {
  Scope S{{}, BodyOf.empty() ? 0 : BodyOf[N]};
  if (When)
    S.Choices = When->choices({N, 0}).vec();
  auto [It, New] = Ids.try_emplace(S, static_cast<unsigned>(ById.size()));
  if (New)
    ById.push_back(&It->first);
  return It->second;
}

bool Scopes::runsBody(uint32_t Inner, uint32_t Outer) const {
  SmallVector<uint32_t, 8> Todo{Inner};
  for (size_t I = 0; I < Todo.size(); ++I) {
    uint32_t Body = Todo[I];
    if (Body == Outer)
      return true;
    if (Body == 0)
      continue;
    auto Add = [&](uint32_t Next) {
      if (!is_contained(Todo, Next))
        Todo.push_back(Next);
    };
    Add(Outside[Body]);
    for (uint32_t Next : Pushed[Body])
      Add(Next);
  }
  return false;
}

bool Scopes::includes(unsigned Inner, unsigned Outer) const {
  const Scope &In = *ById[Inner], &Out = *ById[Outer];
  // If a node has inputs from both sides of a predicate, neither choice counts.
  // A Merge of the two sides has neither choice.
  return runsBody(In.Body, Out.Body) && all_of(Out.Choices, [&](uint32_t C) {
           return C / 2 != Conditions::Many && is_contained(In.Choices, C) &&
                  !is_contained(In.Choices, C ^ 1);
         });
}

class UseFinder {
public:
  UseFinder(const Graph &G, ArrayRef<NodeId> Order, const DimAnalysis &Dims,
            const TypeAnalysis &Types)
      : G(G), Order(Order), Dims(Dims), Types(Types), From(Dims.origins()) {}

  SizeUses run();

private:
  /// An equality of two origins: a definition, a fact that ops state (Says), or
  /// an equality that follows from others (Needs).
  struct Edge {
    unsigned X, Y;
    std::vector<NodeId> Says;                         ///< Nodes that state it.
    std::vector<std::pair<unsigned, unsigned>> Needs; ///< Needed equalities.
    bool isDefinition() const { return Says.empty() && Needs.empty(); }
  };
  /// Origins that \p User treats as one size.
  struct Meeting {
    NodeId User;
    SmallVector<unsigned, 4> Of;
    /// The size is known to be a number or rows, but no origin in Of says so.
    bool Known;
  };

  unsigned vertex(Origin O);
  void readFacts();
  void addRowsOfNumbers();
  int vertexOf(DimId D);
  Origin classOf(DimId D) const;
  void look(DimId D, int &Sees);
  static void addSight(int Its, int &Sees);
  int sightOf(NodeId N, uint32_t Port);
  bool mayMeet(NodeId N);
  void see(DimId D);
  template <typename Fn> void forEachSize(NodeId N, Fn Visit) const;
  bool isClaim(NodeId N) const;
  ArrayRef<DimId> held(Endpoint E) const;
  void meet(NodeId N);
  bool join(const Meeting &M, function_ref<bool(const Edge &)> Holds);
  bool follows(const Meeting &M, function_ref<bool(const Edge &)> Holds) const;
  NodeId usesIn(NodeId N) const;
  void judge();

  const Graph &G;
  ArrayRef<NodeId> Order;
  const DimAnalysis &Dims;
  const TypeAnalysis &Types;
  const SizeOrigins &From;
  std::unique_ptr<LoopInfo> Loops;

  std::map<Origin, unsigned> Ids;
  std::vector<Origin> Vertices;
  std::vector<Edge> Edges;
  std::vector<SmallVector<unsigned, 2>> EdgesAt; ///< By vertex.
  std::vector<int> VertexOf; ///< By size; -1: in no fact, -2: not yet found.

  static constexpr int SeesNone = -1, SeesSeveral = -2;
  std::vector<int> Sights; ///< By output: its only vertex, or a constant above.
  /// By size: the vertex that defines it, SeesNone, SeesSeveral or NotAsked.
  std::vector<int> SightOf;
  static constexpr int NotAsked = -3;
  bool AnyCounts = false; ///< Set if a tensor holds row numbers.

  /// The origins of the sizes of the current node, grouped by inferred size.
  SmallVector<std::pair<Origin, SmallVector<unsigned, 4>>, 4> Seen;
  /// By origin: the node that saw it last, and the index of its list in Seen.
  std::vector<std::pair<unsigned, unsigned>> SeenAt;
  unsigned SeenNodes = 0;
  std::vector<Meeting> Meetings;
  std::vector<unsigned> TurnOf;   ///< By origin: the turn that reached it.
  std::vector<unsigned> WantedIn; ///< By origin: the turn that looks for it.
  SmallVector<unsigned> Now;      ///< The origins that this turn reached.
  unsigned Turn = 0;
  SizeUses Result;
};

unsigned UseFinder::vertex(Origin O) {
  auto [It, New] = Ids.try_emplace(O, static_cast<unsigned>(Vertices.size()));
  if (New) {
    Vertices.push_back(O);
    EdgesAt.emplace_back();
  }
  return It->second;
}

void UseFinder::readFacts() {
  std::map<std::pair<unsigned, unsigned>, unsigned> ByEnds;
  auto Add = [&](Origin A, Origin B) -> Edge * {
    unsigned X = vertex(From.settled(A)), Y = vertex(From.settled(B));
    if (X == Y)
      return nullptr;
    Edges.push_back({std::min(X, Y), std::max(X, Y), {}, {}});
    return &Edges.back();
  };
  for (const SizeOrigins::Fact &F : From.facts()) {
    Edge *E = Add(F.X, F.Y);
    if (!E)
      continue;
    auto [It, New] = ByEnds.try_emplace(
        {E->X, E->Y}, static_cast<unsigned>(Edges.size()) - 1);
    if (!New)
      Edges.pop_back();
    Edges[It->second].Says.push_back(F.Says);
  }
  for (const SizeOrigins::Derived &D : From.derived())
    if (Edge *E = Add(D.X, D.Y))
      for (auto [A, B] : D.From)
        if (unsigned X = vertex(From.settled(A)), Y = vertex(From.settled(B));
            X != Y)
          E->Needs.push_back({X, Y});
  addRowsOfNumbers();
  for (auto [I, E] : enumerate(Edges)) {
    llvm::sort(E.Says);
    E.Says.erase(std::unique(E.Says.begin(), E.Says.end()), E.Says.end());
    EdgesAt[E.X].push_back(static_cast<unsigned>(I));
    EdgesAt[E.Y].push_back(static_cast<unsigned>(I));
  }
}

/// For each split tensor whose row count is a number by definition, adds an
/// edge between the number and the rows.
void UseFinder::addRowsOfNumbers() {
  if (From.derived().empty())
    return;
  std::set<std::pair<unsigned, unsigned>> Known;
  const DimTable &Table = Dims.table();
  for (DimId D = 0; D < Table.size(); ++D) {
    Origin Is = From.of(D);
    if (Is.Is != Kind::Rows || !From.isFixed(D))
      continue;
    auto Rows = Ids.find(Is), Number = Ids.find(From.number(Table.number(D)));
    if (Rows != Ids.end() && Number != Ids.end())
      Known.insert(std::minmax(Rows->second, Number->second));
  }
  for (auto [X, Y] : Known)
    Edges.push_back({X, Y, {}, {}});
}

int UseFinder::vertexOf(DimId D) {
  int &Is = VertexOf[D];
  if (Is == -2) {
    auto It = Ids.find(From.of(D));
    Is = It == Ids.end() ? -1 : static_cast<int>(It->second);
  }
  return Is;
}

/// Returns the origin of the symbolic size of \p D. If \p D has no symbolic
/// size, returns its class of equal sizes.
Origin UseFinder::classOf(DimId D) const {
  const DimTable &Table = Dims.table();
  if (auto S = Table.sym(D))
    return SizeOrigins::originOf(*S);
  return {Kind::Open, Table.find(D)};
}

void UseFinder::see(DimId D) {
  int V = vertexOf(D);
  if (V < 0)
    return;
  Origin Is = classOf(D);
  auto *It = find_if(Seen, [&](const auto &S) { return S.first == Is; });
  if (It == Seen.end()) {
    Seen.push_back({Is, {}});
    It = &Seen.back();
  }
  std::pair Now(SeenNodes, static_cast<unsigned>(It - Seen.begin()));
  if (std::exchange(SeenAt[V], Now) != Now)
    It->second.push_back(static_cast<unsigned>(V));
}

/// Returns the sizes of the elements of the array or stack with handle \p E.
ArrayRef<DimId> UseFinder::held(Endpoint E) const {
  NodeId Handle = Loops ? Loops->handleOf(E) : NoNode;
  return Handle == NoNode ? ArrayRef<DimId>() : From.heldBy(Handle);
}

/// Returns true if a type of \p N may rely on equal sizes: some operand is not
/// a global value, and some result is related to its global value. An op on
/// global values computes global values for any sizes.
bool UseFinder::isClaim(NodeId N) const {
  if (all_of(G.dataInputs(N),
             [&](Endpoint E) { return Types.type(E).isTrue(); }))
    return false;
  return any_of(seq(0u, Dims.numOutputs(N)), [&](unsigned Port) {
    return !Types.type({N, Port}).isUnrelated();
  });
}

/// Calls \p Visit with each size that \p N may compare.
template <typename Fn> void UseFinder::forEachSize(NodeId N, Fn Visit) const {
  auto See = [&](std::optional<ArrayRef<DimId>> List) {
    if (List)
      for (DimId D : *List)
        Visit(D);
  };
  for (Endpoint E : G.dataInputs(N)) {
    See(Dims.shape(E));
    See(Dims.value(E));
    // A user of row numbers compares the size of the row numbers with the size
    // of the axis that they index.
    ReplicationType T = Types.type(E);
    if (T.countsRows() && T.Cause != NoNode) {
      See(Dims.shape({T.Cause, 0}));
      for (Endpoint Of : G.dataInputs(T.Cause))
        See(Dims.shape(Of));
    }
    See(held(E));
  }
  for (unsigned Port = 0; Port < Dims.numOutputs(N); ++Port) {
    See(Dims.shape({N, Port}));
    See(Dims.value({N, Port}));
  }
}

/// Adds the vertex of \p D to \p Sees.
void UseFinder::look(DimId D, int &Sees) {
  int &Its = SightOf[D];
  if (Its == NotAsked) {
    int V = vertexOf(D);
    Kind Is = V < 0 ? Kind::Number : classOf(D).Is;
    Its = Is == Kind::Number                         ? SeesNone
          : Is == Kind::Open || Is == Vertices[V].Is ? V
                                                     : SeesSeveral;
  }
  addSight(Its, Sees);
}

void UseFinder::addSight(int Its, int &Sees) {
  if (Its != SeesNone && Its != Sees)
    Sees = Sees == SeesNone ? Its : SeesSeveral;
}

int UseFinder::sightOf(NodeId N, uint32_t Port) {
  int Sees = SeesNone;
  for (auto List : {Dims.shape({N, Port}), Dims.value({N, Port})})
    if (List)
      for (DimId D : *List)
        look(D, Sees);
  return Sees;
}

/// Returns false if the sizes of \p N have at most one origin, as for most
/// nodes.
bool UseFinder::mayMeet(NodeId N) {
  int Sees = SeesNone;
  for (uint32_t Port = 0; Port < Dims.numOutputs(N); ++Port) {
    int Its = sightOf(N, Port);
    Sights[Dims.outputIndex({N, Port})] = Its;
    addSight(Its, Sees);
  }
  for (Endpoint E : G.dataInputs(N)) {
    if (Dims.validPort(E))
      addSight(Sights[Dims.outputIndex(E)], Sees);
    if (Loops && Loops->handleOf(E) != NoNode)
      Sees = SeesSeveral;
  }
  return Sees == SeesSeveral || AnyCounts;
}

/// Records the origins that \p N treats as one size.
void UseFinder::meet(NodeId N) {
  if (!mayMeet(N) || !isClaim(N))
    return;
  Seen.clear();
  ++SeenNodes;
  SeenAt.resize(Vertices.size());
  forEachSize(N, [&](DimId D) { see(D); });
  for (auto &[Is, Of] : Seen) {
    // A size that is a number everywhere does not depend on rows.
    if (Is.Is == Kind::Number)
      continue;
    bool Known = Is.Is != Kind::Open;
    bool HasOwn = !Known || any_of(Of, [&, Is = Is](unsigned V) {
      return Vertices[V].Is == Is.Is;
    });
    if (Of.size() > 1 || !HasOwn)
      Meetings.push_back({N, Of, !HasOwn});
  }
}

/// Returns true if the facts that \p Holds accepts connect all origins of \p M,
/// without derived edges. If \p M is Known, these facts must also connect the
/// origins to a number or rows.
bool UseFinder::join(const Meeting &M, function_ref<bool(const Edge &)> Holds) {
  TurnOf.resize(Vertices.size());
  WantedIn.resize(Vertices.size());
  Now.clear();
  ++Turn;
  for (unsigned V : M.Of)
    WantedIn[V] = Turn;
  size_t Missing = M.Of.size();
  bool Known = M.Known;
  auto Add = [&](unsigned V) {
    if (std::exchange(TurnOf[V], Turn) == Turn)
      return;
    Now.push_back(V);
    Missing -= WantedIn[V] == Turn;
    Known &= Vertices[V].Is == Kind::Open;
  };
  Add(M.Of.front());
  for (size_t I = 0; I < Now.size() && (Missing != 0 || Known); ++I)
    for (unsigned Next : EdgesAt[Now[I]]) {
      const Edge &E = Edges[Next];
      if ((TurnOf[E.X] == Turn && TurnOf[E.Y] == Turn) ||
          !(E.isDefinition() || (!E.Says.empty() && Holds(E))))
        continue;
      Add(E.X);
      Add(E.Y);
    }
  return Missing == 0 && !Known;
}

/// Like join(), with derived edges. Repeatedly adds the derived edges whose
/// needed equalities hold.
bool UseFinder::follows(const Meeting &M,
                        function_ref<bool(const Edge &)> Holds) const {
  IntEqClasses Classes(static_cast<unsigned>(Vertices.size()));
  auto AreEqual = [&](unsigned X, unsigned Y) {
    return Classes.findLeader(X) == Classes.findLeader(Y);
  };
  for (bool Again = true; Again;) {
    Again = false;
    for (const Edge &E : Edges)
      if (!AreEqual(E.X, E.Y) &&
          (E.Says.empty() ? all_of(E.Needs,
                                   [&](auto Pair) {
                                     return AreEqual(Pair.first, Pair.second);
                                   })
                          : Holds(E))) {
        Classes.join(E.X, E.Y);
        Again = true;
      }
  }
  unsigned First = M.Of.front();
  return all_of(M.Of, [&](unsigned V) { return AreEqual(First, V); }) &&
         (!M.Known ||
          any_of(seq<unsigned>(0, Vertices.size()), [&](unsigned V) {
            return Vertices[V].Is != Kind::Open && AreEqual(First, V);
          }));
}

/// Returns the node in whose scope \p N uses facts. The Merge of a loop
/// compares the value after an iteration with the initial value, so it uses
/// facts only if there was an iteration.
NodeId UseFinder::usesIn(NodeId N) const {
  if (Loops && Loops->isLoopMerge(N))
    for (Endpoint E : G.dataInputs(N))
      if (isBackEdgeOp(G.opName(E.Node)))
        return E.Node;
  return N;
}

/// Sorts the facts that meetings need: Founded facts hold at the node of the
/// meeting, and Unfounded facts may not.
void UseFinder::judge() {
  Scopes In(G, Order, Loops.get());
  // The edges that can be reached from a meeting.
  std::vector<bool> Matters(Edges.size());
  SmallVector<unsigned> Todo;
  std::vector<bool> Reached(Vertices.size());
  auto Add = [&](unsigned V) {
    if (!Reached[V]) {
      Reached[V] = true;
      Todo.push_back(V);
    }
  };
  for (const Meeting &M : Meetings)
    for (unsigned V : M.Of)
      Add(V);
  while (!Todo.empty())
    for (unsigned At : EdgesAt[Todo.pop_back_val()]) {
      Matters[At] = true;
      Add(Edges[At].X);
      Add(Edges[At].Y);
      for (auto [X, Y] : Edges[At].Needs) {
        Add(X);
        Add(Y);
      }
    }
  // A group: the ops of one scope that state one fact. Each group has a bit.
  struct Group {
    unsigned Of, Scope;
    std::vector<NodeId> Says;
  };
  std::vector<Group> Groups;
  for (unsigned At = 0; At < Edges.size(); ++At) {
    if (!Matters[At])
      continue;
    std::map<unsigned, unsigned> ByScope;
    for (NodeId N : Edges[At].Says) {
      auto [It, New] =
          ByScope.try_emplace(In.of(N), static_cast<unsigned>(Groups.size()));
      if (New)
        Groups.push_back({At, It->first, {}});
      Groups[It->second].Says.push_back(N);
    }
  }
  // By meeting: the groups that run whenever its node does.
  std::vector<SmallVector<unsigned, 4>> Runs(Meetings.size());
  std::vector<bool> IsBack(G.numOps());
  bool AnyBack = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    AnyBack |= IsBack[Op] = isBackEdgeOp(G.opNameOf(Op));
  for (unsigned First = 0; First < Groups.size(); First += 64) {
    unsigned Count = std::min<size_t>(64, Groups.size() - First);
    // By node, a bit for each group. Above: the node depends on an op of the
    // group. Below: each fetch that runs the node also runs an op of the group.
    std::vector<uint64_t> Above(G.size()), Below(G.size(), ~uint64_t(0));
    for (unsigned I = 0; I < Count; ++I)
      for (NodeId N : Groups[First + I].Says)
        Above[N] |= uint64_t(1) << I;
    for (bool Again = true; Again;) {
      Again = false;
      for (NodeId N : Order) {
        uint64_t Bits = Above[N];
        for (Endpoint E : G.inputs(N))
          Bits |= Above[E.Node];
        if (Loops && G.isOp(N, op::StackPopV2) && G.node(N).NumData > 0)
          if (NodeId H = Loops->handleOf(G.input(N, 0)); H != NoNode)
            for (NodeId User : Loops->usersOf(H))
              if (G.isOp(User, op::StackPushV2))
                Bits |= Above[User];
        Again |= AnyBack && Bits != Above[N] && IsBack[G.node(N).Op];
        Above[N] = Bits;
      }
    }
    // By node: this node, or a node that depends on it, is a node of the input
    // graph.
    std::vector<bool> Leads(G.size());
    for (bool Again = true; Again;) {
      Again = false;
      for (NodeId N : reverse(Order)) {
        uint64_t Bits = ~uint64_t(0);
        bool Read = false;
        G.forEachUse(N, [&](Use U) {
          if (Leads[U.User]) {
            Bits &= Below[U.User];
            Read = true;
          }
        });
        // If an inserted node without users is fetched, the fetched node of the
        // input graph is the node before it.
        bool IsOwn = G.node(N).Kind == Inserted::No;
        if (!Read && IsOwn)
          Bits = Above[N];
        Bits |= Above[N];
        Again |= AnyBack && Bits != Below[N] && G.opName(N) == op::Merge;
        Below[N] = Bits;
        Leads[N] = Read || IsOwn;
      }
    }
    for (auto [M, Its] : zip(Meetings, Runs)) {
      unsigned Scope = In.of(usesIn(M.User));
      for (unsigned I = 0; I < Count; ++I)
        if (Below[M.User] >> I & 1 &&
            In.includes(Scope, Groups[First + I].Scope))
          Its.push_back(First + I);
    }
  }
  std::vector<NodeId> Denied;
  // Each origin is judged once. Without the denied facts, other meetings may
  // vanish. The next analysis judges the remaining ones.
  std::vector<bool> Judged(Vertices.size());
  for (auto [M, Its] : zip(Meetings, Runs)) {
    auto Holds = [&, &M = M, &Its = Its](const Edge &E) {
      return std::binary_search(E.Says.begin(), E.Says.end(), M.User) ||
             any_of(Its, [&](unsigned Group) {
               return &Edges[Groups[Group].Of] == &E;
             });
    };
    if (join(M, Holds)) {
      for (unsigned V : Now)
        for (unsigned Next : EdgesAt[V])
          for (unsigned Group : Its)
            if (Edges[Next].X == V && TurnOf[Edges[Next].Y] == Turn &&
                Groups[Group].Of == Next)
              Result.Founded.push_back({M.User, Groups[Group].Says});
      continue;
    }
    if (follows(M, Holds)) {
      for (unsigned Group : Its)
        Result.Founded.push_back({M.User, Groups[Group].Says});
      continue;
    }
    SmallVector<unsigned> Around;
    auto Visit = [&](unsigned V) {
      if (!Judged[V]) {
        Judged[V] = true;
        Around.push_back(V);
      }
    };
    for (unsigned V : M.Of)
      Visit(V);
    while (!Around.empty())
      for (unsigned At : EdgesAt[Around.pop_back_val()]) {
        const Edge &E = Edges[At];
        Visit(E.X);
        Visit(E.Y);
        for (auto [X, Y] : E.Needs) {
          Visit(X);
          Visit(Y);
        }
        if (!Holds(E))
          append_range(Denied, E.Says);
      }
  }
  llvm::sort(Denied);
  Denied.erase(std::unique(Denied.begin(), Denied.end()), Denied.end());
  Result.Unfounded = std::move(Denied);
  for (Group &Its : Groups)
    Result.Statements.push_back(std::move(Its.Says));
}

SizeUses UseFinder::run() {
  readFacts();
  if (Edges.empty())
    return {};
  Loops = LoopInfo::find(G, Order);
  VertexOf.assign(Dims.table().size(), -2);
  SightOf.assign(Dims.table().size(), NotAsked);
  // When the user of a back edge is visited, the edge has no Sight yet.
  Sights.assign(Dims.totalOutputs(), SeesSeveral);
  AnyCounts = any_of(Order, [&](NodeId N) {
    return any_of(seq(0u, Dims.numOutputs(N)), [&](unsigned Port) {
      return Types.natural({N, Port}).countsRows();
    });
  });
  for (NodeId N : Order)
    meet(N);
  // An op may use the fact that it states itself.
  erase_if(Meetings, [&](const Meeting &M) {
    return join(M, [&](const Edge &E) {
      return std::binary_search(E.Says.begin(), E.Says.end(), M.User);
    });
  });
  if (!Meetings.empty())
    judge();
  return std::move(Result);
}

} // namespace

SizeUses findSizeUses(const Graph &G, ArrayRef<NodeId> Order,
                      const DimAnalysis &Dims, const TypeAnalysis &Types) {
  return UseFinder(G, Order, Dims, Types).run();
}

} // namespace graft
