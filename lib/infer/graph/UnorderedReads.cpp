//===- lib/infer/graph/UnorderedReads.cpp - in either order ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/UnorderedReads.h"

#include "lib/graph/PerOp.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Marks.h"
#include "lib/infer/graph/References.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace llvm;

namespace graft {
namespace {

/// Properties of the op of a node.
enum : uint8_t {
  IsFed = 1,         ///< A feed, or a read of a queue or iterator.
  IsShown = 2,       ///< A summary or print: its value leaves the step.
  IsSaver = 4,       ///< A write of a checkpoint, in a separate run.
  TakesElements = 8, ///< Reads the elements of a reference operand.
  IsRead = 16,       ///< Reads the variable of a handle.
  IsUpdate = 32,     ///< Writes a variable.
};

uint8_t roleOf(StringRef Op, const OpDef *Def) {
  if (Op == op::Save || Op == op::SaveSlices || Op == op::SaveV2)
    return IsSaver;
  if (Op == op::ReadVariableOp || Op == op::ResourceGather ||
      Op == op::ResourceGatherNd)
    return IsRead;
  uint32_t Is = ruleOf(Op).Is;
  if (Op == op::Placeholder || Op == op::PlaceholderV2 || isBatchRead(Op) ||
      Is & trait::ReadsSource)
    return IsFed;
  uint8_t Role = isOnceOp(Op) ? IsShown : 0;
  if (Def && Def->update().Kind != UpdateKind::None)
    Role |= IsUpdate;
  bool Asks = Is & (trait::ReadsSizes | trait::AsksVariable) ||
              Op == op::ZerosLike || Op == op::IsVariableInitialized;
  return Def && !Asks ? Role | TakesElements : Role;
}

/// The longest path through the graph. In a training step, this path runs
/// through the layers to the loss and back, so it orders most reads before
/// their updates. Two walks find this order for all variables at once.
class LongestPath {
public:
  LongestPath(const Graph &G, ArrayRef<NodeId> Order);
  /// Returns true if there is a path from \p A to \p B through a node of the
  /// longest path.
  bool joins(NodeId A, NodeId B) const { return Next[A] <= Last[B]; }

private:
  /// By node. Next is the first position on the longest path whose node depends
  /// on this node. Last is the last position on which this node depends.
  std::vector<uint32_t> Next, Last;
};

LongestPath::LongestPath(const Graph &G, ArrayRef<NodeId> Order)
    : Next(G.size(), UINT32_MAX), Last(G.size()) {
  std::vector<uint32_t> Depth(G.size());
  NodeId End = NoNode;
  for (NodeId N : Order) {
    uint32_t Above = 0;
    for (Endpoint E : G.inputs(N))
      Above = std::max(Above, Depth[E.Node]);
    Depth[N] = Above + 1;
    if (End == NoNode || Depth[N] > Depth[End])
      End = N;
  }
  while (End != NoNode) {
    Next[End] = Last[End] = Depth[End];
    NodeId Before = NoNode;
    for (Endpoint E : G.inputs(End))
      if (Depth[E.Node] + 1 == Depth[End])
        Before = E.Node;
    End = Before;
  }
  for (NodeId N : Order)
    for (Endpoint E : G.inputs(N))
      Last[N] = std::max(Last[N], Last[E.Node]);
  for (NodeId N : reverse(Order))
    for (Endpoint E : G.inputs(N))
      Next[E.Node] = std::min(Next[E.Node], Next[N]);
}

class Finder {
public:
  Finder(const Graph &G, ArrayRef<NodeId> Named)
      : G(G), Vars(G), Order(topologicalOrder(G)), Path(G, Order),
        Roles(G, roleOf),
        HasLoops(PerOp(G, [](StringRef Op,
                             const OpDef *) { return isBackEdgeOp(Op); })
                     .any()),
        Looks(LooksForNode * G.size()), Is(G.size()), Steps(G),
        Named(Named.begin(), Named.end()) {}

  UnorderedReads find();

private:
  struct Reader {
    NodeId Node;
    bool IsMemory;  ///< Fetched: its memory is read after the run.
    bool IsFetched; ///< A run of a step may also fetch it.
  };
  /// The readers of a variable whose updates begin at index Begin of All.
  struct Group {
    size_t Begin;
    SmallVector<Reader, 4> Readers;
  };
  struct Pair {
    Reader Read;
    size_t Update; ///< Its place in the sweep.
  };

  void findSteps();
  void findFetches();
  bool isPlainRead(NodeId N) const;
  void addVariable(NodeId Var);
  bool isOfVariables(NodeId N) const;
  bool excludesEachOther(NodeId Read, NodeId Update);
  void sweep(size_t Begin);

  /// Calls \p Sweep until it finds nothing new. Returns false if nested loops
  /// need too many sweeps.
  template <typename Fn> bool settle(Fn Sweep) {
    for (unsigned I = 0; I < MostSweeps; ++I)
      if (!Sweep() || !HasLoops)
        return true;
    return false;
  }
  bool set(NodeId N, uint8_t Flags) {
    bool New = (Flags & ~Is[N]) != 0;
    Is[N] |= Flags;
    return New;
  }

  /// Properties of a node.
  enum : uint8_t {
    OfRows = 1,      ///< Depends on a feed.
    OfVariables = 2, ///< Depends on a variable.
    Updates = 4,     ///< Is an update, or depends on one.
    Learns = 8,      ///< Is, or depends on, an update that defines a step.
    InStep = 16,     ///< A step depends on it.
    FedMore = 32,    ///< Depends on a feed that no step needs.
    ForShow = 64,    ///< A summary or named tensor depends on it.
    ForSink = 128    ///< A node without users depends on it.
  };

  static constexpr unsigned MostSweeps = 8;
  /// The maximum number of updates.
  static constexpr size_t MostUpdates = 16 * Marks::Size;
  /// The budget of checked pairs, as a multiple of the nodes of the graph.
  static constexpr size_t LooksForNode = 64;

  const Graph &G;
  VariableIndex Vars;
  std::vector<NodeId> Order;
  LongestPath Path;
  PerOp Roles;
  bool HasLoops;
  size_t Looks; ///< The number of checks left.
  std::vector<uint8_t> Is;
  Marks Steps; ///< By node, the steps that depend on it.
  DenseSet<NodeId> Named;
  std::vector<Group> Groups;
  std::vector<NodeId> All; ///< Updates, group by group.
  std::optional<Conditions> When;
  UnorderedReads Result;
};

void Finder::findSteps() {
  settle([&] {
    bool New = false;
    for (NodeId N : Order) {
      uint8_t Role = Roles[G.node(N)];
      UpdateDef Update = Role & IsUpdate ? Vars.update(G, N) : UpdateDef();
      uint8_t Its = Role & IsFed ? OfRows : 0;
      for (auto [I, E] : enumerate(G.inputs(N))) {
        Its |= Is[E.Node] & (Updates | Learns);
        if (E.isControl() || I < Update.NumVars)
          continue;
        Its |= Is[E.Node] & (OfRows | OfVariables);
        if (Vars.variableOf(E) != NoNode)
          Its |= OfVariables;
      }
      if (Update.Kind != UpdateKind::None) {
        Its |= Updates;
        // A restored value, or a feed for an assignment, depends on no
        // variable.
        bool IsMade = (Its & OfRows) && (Its & OfVariables);
        bool Counts = Update.Kind == UpdateKind::Count || isCounter(G, Vars, N);
        if (Update.Kind == UpdateKind::Assign ? IsMade : !Counts)
          Its |= Learns;
      }
      New |= set(N, Its);
    }
    return New;
  });
  size_t Count = 0;
  for (NodeId N : Order) {
    if (!(Is[N] & Learns) || G.hasUses(N))
      continue;
    Is[N] |= InStep;
    // If the last node of a step is its only update, all reads of the step come
    // before this update.
    bool HasOthers =
        !Vars.isUpdate(G, N) ||
        any_of(G.inputs(N), [&](Endpoint E) { return Is[E.Node] & Updates; });
    if (HasOthers && Count < Marks::Size)
      Steps.mark(N, Count++);
  }
  settle([&] {
    bool New = Steps.spreadBack(Order);
    for (NodeId N : reverse(Order))
      if (Is[N] & InStep)
        for (Endpoint E : G.inputs(N))
          New |= set(E.Node, InStep);
    return New;
  });
}

/// Returns true if \p N is the read that TensorFlow creates with each variable.
/// Such a read is assumed to be fetched only if the user names it.
bool Finder::isPlainRead(NodeId N) const {
  return (G.isOp(N, op::Identity) || G.isOp(N, op::ReadVariableOp)) &&
         Vars.variableOf(G.input(N, 0)) != NoNode;
}

void Finder::findFetches() {
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G, Order);
  settle([&] {
    bool New = false;
    for (NodeId N : Order)
      if ((Roles[G.node(N)] & IsFed && !(Is[N] & InStep)) ||
          any_of(G.inputs(N), [&](Endpoint E) { return Is[E.Node] & FedMore; }))
        New |= set(N, FedMore);
    return New;
  });
  settle([&] {
    bool New = false;
    for (NodeId N : reverse(Order)) {
      uint8_t Role = Roles[G.node(N)];
      if (Role & IsSaver)
        continue;
      if (!(Is[N] & (Updates | FedMore))) {
        if (Role & IsShown || Named.contains(N))
          New |= set(N, ForShow);
        // No run fetches a node inside a loop.
        if (!G.hasUses(N) && !isPlainRead(N) &&
            Vars.variableOf({N, 0}) == NoNode &&
            !(Loops && Loops->givesInside(N)))
          New |= set(N, ForSink);
      }
      for (Endpoint E : G.inputs(N))
        New |= set(E.Node, Is[N] & (ForShow | ForSink));
    }
    return New;
  });
}

/// Returns true if the value of \p N, or of a user of the read \p N, is
/// computed from variables alone. Example: a penalty. A run may fetch the value
/// if a node without users depends on it. A value that depends on rows, or on
/// another value of the step, may be an unused part of a gradient.
bool Finder::isOfVariables(NodeId N) const {
  auto IsOfStep = [&](Endpoint E) {
    return !E.isControl() && Is[E.Node] & InStep && Is[E.Node] & OfVariables &&
           !isPlainRead(E.Node) && Vars.variableOf(E) == NoNode;
  };
  auto IsIt = [&](NodeId It) {
    return Is[It] & ForSink && !(Is[It] & OfRows) &&
           !(Roles[G.node(It)] & IsSaver) && none_of(G.inputs(It), IsOfStep);
  };
  return Roles[G.node(N)] & IsRead && G.hasUses(N)
             ? G.anyUse(N, [&](Use U) { return G.isData(U) && IsIt(U.User); })
             : IsIt(N);
}

void Finder::addVariable(NodeId Var) {
  size_t Begin = All.size();
  SmallVector<NodeId, 8> Work{Var};
  Vars.forEachUse(G, Var, [&](Use U) {
    if (U.Index < Vars.update(G, U.User).NumVars && Is[U.User] & InStep)
      All.push_back(U.User);
  });
  if (All.size() == Begin || All.size() > MostUpdates) {
    All.resize(Begin);
    return;
  }
  bool IsHandle = G.isOp(Var, op::VarHandleOp), IsUsed = false;
  SmallVector<Reader, 4> Readers;
  DenseSet<NodeId> Seen{Var};
  auto Add = [&](NodeId N, bool IsMemory) {
    Readers.push_back({N, IsMemory, bool(Is[N] & ForShow)});
    IsUsed |= (Is[N] & InStep) && !(Is[N] & Updates);
  };
  while (!Work.empty()) {
    NodeId View = Work.pop_back_val();
    bool IsFetched =
        Named.contains(View) || (!G.hasUses(View) && !isPlainRead(View) &&
                                 View != Var && !G.isOp(View, op::Switch));
    if (!IsHandle && IsFetched && !Vars.isUpdate(G, View))
      Add(View, /*IsMemory=*/true);
    G.forEachUse(View, [&](Use U) {
      NodeId User = U.User;
      if (!G.isData(U) || U.Index < Vars.update(G, User).NumVars)
        return;
      // A value from one side of a conditional is read only on that side.
      bool IsView =
          Vars.variableOf({User, 0}) == Var ||
          (!IsHandle && passesMemoryOn(G, Vars, U) && !G.isOp(User, op::Merge));
      if ((!IsView &&
           (!(Roles[G.node(User)] & (IsHandle ? IsRead : TakesElements)) ||
            G.isOp(User, op::Merge))) ||
          !Seen.insert(User).second)
        return;
      if (IsView)
        Work.push_back(User);
      else
        Add(User, /*IsMemory=*/false);
    });
  }
  // A fetch of a variable that the step writes but does not read, such as the
  // total of a metric, is a separate run after the step.
  for (Reader &Read : Readers)
    Read.IsFetched |= IsUsed && isOfVariables(Read.Node);
  erase_if(Readers, [&](Reader Read) {
    return !Read.IsFetched && !(Is[Read.Node] & InStep);
  });
  if (Readers.empty()) {
    All.resize(Begin);
    return;
  }
  llvm::sort(Readers, [](Reader A, Reader B) { return A.Node < B.Node; });
  Groups.push_back({Begin, std::move(Readers)});
}

/// Returns true if \p Read and \p Update run on different sides of a
/// conditional.
bool Finder::excludesEachOther(NodeId Read, NodeId Update) {
  if (!When)
    return false;
  ArrayRef<uint32_t> Its = When->choices({Read, 0});
  SmallVector<uint32_t, 8> Of(Its.begin(), Its.end());
  return any_of(When->choices({Update, 0}), [&](uint32_t Choice) {
    return Choice / 2 != Conditions::Many && is_contained(Of, Choice ^ 1);
  });
}

void Finder::sweep(size_t Begin) {
  size_t End = std::min(Begin + Marks::Size, All.size());
  std::vector<Pair> Open;
  for (auto [I, Of] : enumerate(Groups)) {
    size_t First = std::max(Of.Begin, Begin),
           Last = std::min(
               I + 1 < Groups.size() ? Groups[I + 1].Begin : All.size(), End);
    if (First >= Last)
      continue;
    for (Reader Read : Of.Readers)
      for (size_t U = First; U < Last && Looks != 0; ++U, --Looks)
        if (Read.Node != All[U] &&
            (Read.IsFetched || Steps.share(Read.Node, All[U])) &&
            (Read.IsMemory || !Path.joins(Read.Node, All[U])))
          Open.push_back({Read, U - Begin});
  }
  if (Open.empty())
    return;
  Marks Needs(G), After(G);
  for (size_t I = Begin; I < End; ++I) {
    Needs.mark(All[I], I - Begin);
    After.mark(All[I], I - Begin);
  }
  if (!settle([&] { return Needs.spreadBack(Order); }))
    return;
  erase_if(Open, [&](const Pair &P) {
    return !P.Read.IsMemory && Needs.has(P.Read.Node, P.Update);
  });
  if (Open.empty() || !settle([&] { return After.spread(Order); }))
    return;
  if (!When && Conditions::any(G))
    When.emplace(G, Order);
  for (const Pair &P : Open) {
    NodeId Read = P.Read.Node, Update = All[Begin + P.Update];
    if (After.has(Read, P.Update) || excludesEachOther(Read, Update))
      continue;
    if (Result.Count++ == 0) {
      Result.First = {Read, Update};
      Result.IsMemory = P.Read.IsMemory;
    }
  }
}

UnorderedReads Finder::find() {
  findSteps();
  if (none_of(Order, [&](NodeId N) { return Is[N] & InStep; }))
    return Result;
  findFetches();
  for (NodeId Var : Vars.variables())
    addVariable(Var);
  for (size_t Begin = 0; Begin < All.size(); Begin += Marks::Size)
    sweep(Begin);
  return Result;
}

} // namespace

UnorderedReads findUnorderedReads(const Graph &G, ArrayRef<NodeId> Named) {
  bool Any = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Any |= isVariableOp(G.opNameOf(Op));
  return Any ? Finder(G, Named).find() : UnorderedReads();
}

} // namespace graft
