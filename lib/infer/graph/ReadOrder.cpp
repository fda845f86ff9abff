//===- lib/infer/graph/ReadOrder.cpp - reads before updates ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/ReadOrder.h"

#include "lib/graph/PerOp.h"
#include "lib/infer/graph/Marks.h"
#include "lib/infer/graph/References.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

using namespace llvm;

namespace graft {
namespace {

bool isFlowOp(StringRef Op) {
  Op.consume_front("Ref");
  return Op == op::Switch || Op == op::Merge || Op == op::Enter ||
         Op == op::Exit || Op == op::NextIteration;
}

/// The number of pairs of a reader and an update in one sweep.
constexpr size_t InSweep = Marks::Size;

class OpenReads {
public:
  explicit OpenReads(const Graph &G)
      : G(G), Vars(G), Order(topologicalOrder(G)),
        IsFlow(G, [](StringRef Op, const OpDef *) { return isFlowOp(Op); }),
        Looks(LooksForNode * G.size()) {}

  std::vector<OpenRead> find();

private:
  void findUpdates();
  void addReaders(NodeId Var);
  void addReads(NodeId Update, ArrayRef<NodeId> Readers);
  using NodeList = SmallVector<NodeId, 2>;
  NodeList othersOf(NodeId Reader, NodeId Update) const;
  bool mayRunWith(NodeId Reader, NodeId Update) const;
  std::vector<OpenRead> open() const;
  void addOfOtherParts(std::vector<OpenRead> &Open) const;
  /// Returns true if \p N reads elements each time it runs, and has no other
  /// effect.
  bool readsElements(NodeId N) const {
    const OpDef *Def = G.opDef(N);
    return Def && !Def->isStateful() &&
           !(ruleOf(Def->Name).Is & trait::ReadsSizes) &&
           !G.isOp(N, op::ZerosLike) && !G.isOp(N, op::IsVariableInitialized);
  }
  bool isControlFlow(NodeId N) const { return IsFlow[G.node(N)]; }

  /// The maximum number of nodes above an update that are searched for inputs
  /// of a reader. The gradient is computed near the update.
  static constexpr unsigned MostAbove = 64;
  /// The maximum number of pairs of a reader and an update.
  static constexpr size_t MostPairs = 16 * InSweep;
  /// The budget of checked pairs, as a multiple of the nodes of the graph.
  static constexpr size_t LooksForNode = 64;

  const Graph &G;
  VariableIndex Vars;
  std::vector<NodeId> Order;
  PerOp IsFlow;
  size_t Looks;                 ///< The number of checks left.
  std::vector<bool> IsLate;     ///< Runs after an update other than a counter.
  std::vector<bool> IsInBranch; ///< In, or behind, a conditional or loop.
  /// By node: the only update that depends on it, NoNode or Several.
  static constexpr NodeId Several = NoNode - 1;
  std::vector<NodeId> LeadsTo;
  /// The views of the current variable; the nodes above the current update.
  SmallSet<NodeId, 32> Views, Above;
  struct Pair {
    OpenRead Read;
    NodeList Others; ///< The other inputs of the reader.
  };
  std::vector<Pair> Found;
  std::vector<OpenRead> OfOthers; ///< Reads in other parts of the step.
};

void OpenReads::findUpdates() {
  IsLate.resize(G.size());
  IsInBranch.resize(G.size());
  LeadsTo.assign(G.size(), NoNode);
  for (NodeId N : Order) {
    IsInBranch[N] = isControlFlow(N);
    for (Endpoint E : G.inputs(N)) {
      if (IsLate[E.Node] ||
          (Vars.isUpdate(G, E.Node) && !isCounter(G, Vars, E.Node)))
        IsLate[N] = true;
      if (IsInBranch[E.Node])
        IsInBranch[N] = true;
    }
  }
  for (NodeId N : reverse(Order)) {
    NodeId To = Vars.isUpdate(G, N) ? N : LeadsTo[N];
    if (To == NoNode)
      continue;
    for (Endpoint E : G.inputs(N)) {
      NodeId &Its = LeadsTo[E.Node];
      Its = Its == NoNode || Its == To ? To : Several;
    }
  }
}

/// If \p Update needs all inputs of \p Reader other than the variable, returns
/// these inputs. Searches only nodes near \p Update. Returns nothing if a
/// nearby edge orders the two nodes, or if no other update depends on
/// \p Reader.
OpenReads::NodeList OpenReads::othersOf(NodeId Reader, NodeId Update) const {
  if (!readsElements(Reader) || IsLate[Reader] || Above.contains(Reader) ||
      LeadsTo[Reader] == NoNode || LeadsTo[Reader] == Update)
    return {};
  // The update needs all inputs of the reader. So whenever the update runs, the
  // reader runs too, in the same frame.
  NodeList Others;
  for (Endpoint E : G.inputs(Reader)) {
    if (Views.contains(E.Node) ||
        (G.isOp(E.Node, op::Const) && G.node(E.Node).NumInputs == 0))
      continue;
    if (!Above.contains(E.Node))
      return {};
    Others.push_back(E.Node);
  }
  return Others;
}

/// Returns true if \p Reader is in a part of the step with other updates, and
/// runs whenever its inputs are computed.
bool OpenReads::mayRunWith(NodeId Reader, NodeId Update) const {
  return readsElements(Reader) && !IsLate[Reader] && !IsInBranch[Reader] &&
         !IsInBranch[Update] && !Above.contains(Reader) &&
         LeadsTo[Reader] != NoNode && LeadsTo[Reader] != Update;
}

void OpenReads::addReads(NodeId Update, ArrayRef<NodeId> Readers) {
  Above.clear();
  SmallVector<NodeId, MostAbove> Work{Update};
  for (size_t I = 0; I < Work.size(); ++I)
    for (Endpoint E : G.inputs(Work[I])) {
      if (Work.size() == MostAbove)
        break;
      if (!Views.contains(E.Node) && !isControlFlow(E.Node) &&
          Above.insert(E.Node).second)
        Work.push_back(E.Node);
    }
  for (NodeId Reader : Readers) {
    if (Looks == 0 || Found.size() == MostPairs)
      return;
    --Looks;
    if (NodeList Others = othersOf(Reader, Update); !Others.empty())
      Found.push_back({{Reader, Update}, std::move(Others)});
    else if (OfOthers.size() < MostPairs && mayRunWith(Reader, Update))
      OfOthers.push_back({Reader, Update});
  }
}

void OpenReads::addReaders(NodeId Var) {
  Views.clear();
  SmallVector<NodeId, 8> Work{Var}, Readers, Updates;
  while (!Work.empty())
    G.forEachUse(Work.pop_back_val(), [&](Use U) {
      if (!G.isData(U))
        return;
      if (Vars.isUpdate(G, U.User)) {
        if (Vars.variableOf(G.input(U)) == Var && U.Index == 0 &&
            !isCounter(G, Vars, U.User))
          Updates.push_back(U.User);
      } else if (isControlFlow(U.User)) {
        return;
      } else if (passesMemoryOn(G, U.User) && U.Index == 0) {
        if (Views.insert(U.User).second)
          Work.push_back(U.User);
      } else {
        Readers.push_back(U.User);
      }
    });
  sort(Readers);
  Readers.erase(llvm::unique(Readers), Readers.end());
  for (NodeId Update : Updates)
    addReads(Update, Readers);
}

/// Returns the unordered reads of readers in a gradient. Such a reader has
/// another input that depends on the variable. Other readers are skipped: they
/// are in another part of the step, and that whole part would have to run
/// before the update.
std::vector<OpenRead> OpenReads::open() const {
  std::vector<OpenRead> Open;
  for (size_t Begin = 0; Begin < Found.size(); Begin += InSweep) {
    ArrayRef<Pair> Now =
        ArrayRef(Found).slice(Begin, std::min(InSweep, Found.size() - Begin));
    Marks OfReader(G), OfVariable(G);
    for (auto [I, P] : enumerate(Now)) {
      OfReader.mark(P.Read.Reader, I);
      OfVariable.mark(Vars.variableOf(G.input(P.Read.Update, 0)), I);
    }
    OfReader.spread(Order);
    OfVariable.spread(Order);
    for (auto [I, P] : enumerate(Now))
      if (!OfReader.has(P.Read.Update, I) &&
          any_of(P.Others,
                 [&, I = I](NodeId N) { return OfVariable.has(N, I); }))
        Open.push_back(P.Read);
  }
  return Open;
}

/// Adds the unordered reads of readers in other parts of a step, such as a
/// second loss with the same weights. All nodes that wait for the update need
/// the reader, so each run with the update includes the reader. Therefore the
/// update may wait for the reader.
void OpenReads::addOfOtherParts(std::vector<OpenRead> &Open) const {
  for (size_t Begin = 0; Begin < OfOthers.size(); Begin += InSweep) {
    ArrayRef<OpenRead> Now = ArrayRef(OfOthers).slice(
        Begin, std::min(InSweep, OfOthers.size() - Begin));
    Marks OfReader(G), AfterUpdate(G);
    for (auto [I, P] : enumerate(Now)) {
      OfReader.mark(P.Reader, I);
      AfterUpdate.mark(P.Update, I);
    }
    OfReader.spread(Order);
    AfterUpdate.spread(Order);
    for (auto [I, P] : enumerate(Now))
      AfterUpdate.unmark(P.Update, I);
    Marks::Set With = {}, Without = {};
    for (NodeId N : Order)
      for (unsigned W = 0; W < Marks::Words; ++W) {
        With[W] |= AfterUpdate[N][W] & OfReader[N][W];
        Without[W] |= AfterUpdate[N][W] & ~OfReader[N][W];
      }
    for (auto [I, P] : enumerate(Now))
      if (!OfReader.has(P.Update, I) && Marks::has(With, I) &&
          !Marks::has(Without, I))
        Open.push_back(P);
  }
}

std::vector<OpenRead> OpenReads::find() {
  findUpdates();
  for (NodeId Var : Vars.variables())
    if (!G.isOp(Var, op::VarHandleOp))
      addReaders(Var);
  std::vector<OpenRead> Open = open();
  addOfOtherParts(Open);
  return Open;
}

} // namespace

std::vector<OpenRead> findOpenReads(const Graph &G) {
  bool Any = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Any |= isVariableOp(G.opNameOf(Op)) && G.opNameOf(Op) != op::VarHandleOp;
  return Any ? OpenReads(G).find() : std::vector<OpenRead>();
}

} // namespace graft
