//===- lib/infer/graph/LateUses.cpp - uses after an update ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A view is a node that passes on the memory of a variable. A use of a view is
// late if the use runs after an update and the view does not. Views are found
// in order from the variable, so each edge can be checked by itself. For each
// node, a set of bits tells which updates it runs after. The sweep visits only
// nodes after an update, a small part of most graphs.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/LateUses.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/References.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <array>
#include <map>
#include <optional>

using namespace llvm;

namespace graft {
namespace {

class Finder {
public:
  explicit Finder(const Graph &G)
      : G(G), Vars(G), Order(topologicalOrder(G)),
        Budget(LooksForNode * G.size()) {}

  LateUses find();

private:
  /// A use that may run after an update, although its view does not.
  struct Candidate {
    NodeId Var, View;
    Use Of;
    bool IsLate = false;
    bool Many = false; ///< Set if there are too many updates to wait for.
    SmallVector<NodeId, 4> Updates; ///< The updates before the use.
  };

  void findLate();
  void addUses(NodeId Var);
  bool isView(Use U) const { return passesMemoryOn(G, Vars, U); }
  void numberUpdates();
  void sweep(size_t Begin);
  void look(Candidate &C, size_t Begin);
  std::optional<LateUse> settle(ArrayRef<Candidate> Same);
  bool addViews(NodeId View, std::vector<NodeId> &Views);

  /// The number of updates in one sweep.
  static constexpr size_t Words = 4, InWord = 64, InSweep = Words * InWord;
  using Set = std::array<uint64_t, Words>;
  /// Returns those updates of the sweep after which \p N runs.
  Set before(NodeId N) const {
    return Index[N] == NoIndex ? Set() : Bits[Index[N]];
  }
  Set asOf(NodeId View, unsigned Depth = 0) const;
  Set itself(NodeId N) const {
    auto It = Swept.find(N);
    return It == Swept.end() ? Set() : It->second;
  }

  /// The budget of visited nodes, as a multiple of the nodes of the graph.
  static constexpr size_t LooksForNode = 64;
  static constexpr size_t MostWaits = 8;
  static constexpr uint32_t NoIndex = ~0u;

  const Graph &G;
  VariableIndex Vars;
  std::vector<NodeId> Order;
  size_t Budget; ///< The number of visits left.
  std::vector<bool> IsUpdate, Late;
  std::vector<NodeId> LateNodes; ///< The nodes after an update, in order.
  std::vector<uint32_t> Index;   ///< By node: its place in LateNodes.
  DenseSet<NodeId> Views;
  std::vector<Candidate> Found;
  std::vector<std::pair<NodeId, NodeId>> Updates; ///< With their variables.
  DenseMap<NodeId, std::pair<size_t, size_t>> RangeOf; ///< By variable.
  DenseMap<NodeId, Set> Swept; ///< Updates of the sweep.
  std::vector<Set> Bits;       ///< By index.
  std::unique_ptr<LoopInfo> Loops;
  std::optional<Conditions> When;
  LateUses Result;
};

void Finder::findLate() {
  IsUpdate.resize(G.size());
  Late.resize(G.size());
  Index.assign(G.size(), NoIndex);
  for (NodeId N : Order) {
    IsUpdate[N] = Vars.isUpdate(G, N);
    Late[N] = any_of(G.inputs(N), [&](Endpoint E) {
      return Late[E.Node] || IsUpdate[E.Node];
    });
    if (Late[N]) {
      Index[N] = static_cast<uint32_t>(LateNodes.size());
      LateNodes.push_back(N);
    }
  }
}

void Finder::addUses(NodeId Var) {
  DenseSet<NodeId> Seen;
  walkFrom({Var}, Seen, [&](NodeId View, std::vector<NodeId> &Next) {
    G.forEachUse(View, [&](Use U) {
      if (Budget != 0)
        --Budget;
      NodeId User = U.User;
      if (!G.isData(U) || Budget == 0)
        return;
      bool IsVariable = Vars.variableOf(G.input(U)) == Var;
      if (IsVariable && G.isRefInput(User, U.Index)) {
        if (Vars.variableOf({User, 0}) == Var)
          Next.push_back(User);
        return;
      }
      if (isView(U)) {
        Views.insert(User);
        Next.push_back(User);
      }
      // An Identity of the variable reads the variable when the Identity runs.
      // A Merge forwards the value of one side of a conditional, and no update
      // of the other side runs.
      bool Reads =
          (IsVariable && G.isOp(User, op::Identity)) || G.isOp(User, op::Merge);
      if (Late[User] && !Reads &&
          !(ruleOf(G.opName(User)).Is & trait::ReadsSizes) &&
          !G.isOp(User, op::ZerosLike))
        Found.push_back({.Var = Var, .View = View, .Of = U, .Updates = {}});
    });
  });
  if (Budget == 0)
    G.forEachUse(Var, [&](Use U) { Result.Open.push_back({U, Var}); });
}

void Finder::numberUpdates() {
  for (const Candidate &C : Found) {
    auto [It, New] = RangeOf.try_emplace(C.Var);
    if (!New)
      continue;
    size_t Begin = Updates.size();
    Vars.forEachUse(G, C.Var, [&](Use U) {
      if (U.Index < Vars.update(G, U.User).NumVars)
        Updates.push_back({U.User, C.Var});
    });
    It->second = {Begin, Updates.size()};
  }
}

/// Returns the updates that run before the read whose value \p View passes on.
Finder::Set Finder::asOf(NodeId View, unsigned Depth) const {
  Set S = before(View);
  if (!G.isOp(View, op::Merge)) {
    Set Own = itself(View);
    for (size_t W = 0; W < Words; ++W)
      S[W] |= Own[W];
    return S;
  }
  for (Endpoint E : G.dataInputs(View))
    if (Views.contains(E.Node)) {
      Set Its = Depth == 8 ? Set() : asOf(E.Node, Depth + 1);
      for (size_t W = 0; W < Words; ++W)
        S[W] &= Its[W];
    }
  return S;
}

void Finder::look(Candidate &C, size_t Begin) {
  auto [First, Last] = RangeOf.lookup(C.Var);
  First = std::max(First, Begin) - Begin;
  Last = std::min(Last - Begin, InSweep);
  Set Has = before(C.Of.User), Had = asOf(C.View);
  for (size_t W = First / InWord; W < Words && W * InWord < Last; ++W) {
    uint64_t Mask = ~uint64_t(0);
    if (First > W * InWord)
      Mask <<= First - W * InWord;
    if (Last < (W + 1) * InWord)
      Mask &= ~uint64_t(0) >> ((W + 1) * InWord - Last);
    C.IsLate |= (Has[W] & Mask & ~Had[W]) != 0;
    for (uint64_t Left = Has[W] & Mask; Left != 0 && !C.Many; Left &= Left - 1)
      if (C.Updates.size() == MostWaits)
        C.Many = true;
      else
        C.Updates.push_back(
            Updates[Begin + W * InWord + countr_zero(Left)].first);
  }
}

void Finder::sweep(size_t Begin) {
  size_t End = std::min(Begin + InSweep, Updates.size());
  Swept.clear();
  for (size_t I = Begin; I < End; ++I)
    Swept[Updates[I].first][(I - Begin) / InWord] |= uint64_t(1)
                                                     << (I - Begin) % InWord;
  Bits.assign(LateNodes.size(), {});
  for (auto [I, N] : enumerate(LateNodes))
    for (Endpoint E : G.inputs(N)) {
      Set Its = before(E.Node), Own = IsUpdate[E.Node] ? itself(E.Node) : Set();
      for (size_t W = 0; W < Words; ++W)
        Bits[I][W] |= Its[W] | Own[W];
    }
  // Candidates are sorted by their updates.
  auto First = partition_point(Found, [&](const Candidate &C) {
    return RangeOf.lookup(C.Var).second <= Begin;
  });
  for (; First != Found.end() && RangeOf.lookup(First->Var).first < End;
       ++First)
    look(*First, Begin);
}

/// Adds to \p Chain the views between the variable and \p View, sources first.
/// Returns false if they cannot be copied.
bool Finder::addViews(NodeId View, std::vector<NodeId> &Chain) {
  SmallVector<std::pair<NodeId, unsigned>, 8> Stack;
  DenseSet<NodeId> Seen;
  auto Enter = [&](NodeId N) {
    if (Views.contains(N) && Seen.insert(N).second)
      Stack.push_back({N, 0});
  };
  Enter(View);
  while (!Stack.empty()) {
    auto [N, I] = Stack.back();
    StringRef Op = G.opName(N);
    bool MayCopy = Op == op::Slice || Op == op::StridedSlice ||
                   Op == op::Split || Op == op::SplitV || Op == op::Unpack;
    bool Turns =
        Op == op::Exit || Op == op::NextIteration ||
        (Op == op::Enter && !G.boolAttr(N, "is_constant").value_or(false)) ||
        (Op == op::Merge && Loops && Loops->isInLoop(N));
    if (MayCopy || Turns || Budget == 0)
      return false;
    if (I < G.node(N).NumData) {
      ++Stack.back().second;
      if (isView({N, I}) && Vars.variableOf(G.input(N, I)) == NoNode)
        Enter(G.input(N, I).Node);
      continue;
    }
    --Budget;
    Chain.push_back(N);
    Stack.pop_back();
  }
  return true;
}

/// Returns the new read for a late use, or nothing if a new read is impossible.
/// All candidates in \p Same have this use, perhaps for several variables.
std::optional<LateUse> Finder::settle(ArrayRef<Candidate> Same) {
  LateUse Result{
      .Var = Same.front().Var, .Of = Same.front().Of, .Views = {}, .Waits = {}};
  NodeId User = Result.Of.User;
  if (!addViews(Same.front().View, Result.Views))
    return std::nullopt;
  bool InLoop = Loops && Loops->isInLoop(User), OneByOne = true;
  for (const Candidate &C : Same) {
    OneByOne &= !C.Many;
    for (NodeId Update : C.Updates) {
      if (Loops && Loops->isInLoop(Update))
        return std::nullopt;
      OneByOne &= !When || When->of(Update).empty();
      Result.Waits.push_back(Update);
    }
  }
  if (!OneByOne) {
    // The inputs of the user are computed whenever it runs, so the new read can
    // wait for them.
    Result.Waits.clear();
    for (Endpoint E : G.inputs(User))
      if (Late[E.Node] || IsUpdate[E.Node])
        Result.Waits.push_back(E.Node);
    if (InLoop || Result.Waits.size() > Budget)
      return std::nullopt;
    Budget -= Result.Waits.size();
  }
  llvm::sort(Result.Waits);
  Result.Waits.erase(llvm::unique(Result.Waits), Result.Waits.end());
  return Result;
}

LateUses Finder::find() {
  findLate();
  for (NodeId Var : Vars.variables())
    if (!G.isOp(Var, op::VarHandleOp))
      addUses(Var);
  numberUpdates();
  for (size_t Begin = 0; Begin < Updates.size(); Begin += InSweep)
    sweep(Begin);
  erase_if(Found, [](const Candidate &C) { return !C.IsLate; });
  if (Found.empty())
    return std::move(Result);
  Loops = LoopInfo::find(G, Order);
  if (Conditions::any(G))
    When.emplace(G, Order);
  // Sort later uses first, since the copy of a view is made from the nodes that
  // exist at that time.
  auto Place = [&](const Candidate &C) {
    return std::tuple(Index[C.Of.User], C.Of.Index);
  };
  llvm::stable_sort(Found, [&](const Candidate &A, const Candidate &B) {
    return Place(A) > Place(B);
  });
  for (size_t I = 0, End = 0; I < Found.size(); I = End) {
    while (End < Found.size() && Place(Found[I]) == Place(Found[End]))
      ++End;
    if (auto Use = settle(ArrayRef(Found).slice(I, End - I)))
      Result.Known.push_back(std::move(*Use));
    else
      Result.Open.push_back({Found[I].Of, Found[I].Var});
  }
  return std::move(Result);
}

} // namespace

LateUses findLateUses(const Graph &G) {
  bool Any = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Any |= isVariableOp(G.opNameOf(Op)) && G.opNameOf(Op) != op::VarHandleOp;
  return Any ? Finder(G).find() : LateUses();
}

} // namespace graft
