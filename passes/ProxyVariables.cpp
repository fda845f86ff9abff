//===- passes/ProxyVariables.cpp - proxy-variables --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Adds a copy of a shared variable on each replica, which the replica reads
// instead: the variable is sent once for each update and not for each read.
//
//     w = VarHandleOp() @D            w = VarHandleOp() @D
//     r = ReadVariableOp(w)           w/proxy = VarHandleOp*()
//     y = MatMul*(x/split, r)         w/proxy/Read = ReadVariableOp*(w/proxy)
//     step = ResourceApply..(w, g) →  y = MatMul*(x/split, w/proxy/Read)
//                                     step/update = ResourceApply..(w, g, ^r)
//                                     step/value = ReadVariableOp(w,
//                                         ^step/update) @D
//                                     step/refresh = AssignVariableOp*(w/proxy,
//                                         step/value, ^w/proxy/Read)
//                                     step = NoOp(^step/refresh)
//
// Every op that writes the variable gets a refresh: its initial assignment, a
// restore, an assignment by the user. The name of the op, and control edges
// from it, then mean the op and its refresh. For a reference, `step` is an
// Identity of the op's output. A refresh waits for the reads of the proxy that
// precede the update in the input. The update waits for the original read too,
// although replicas no longer use this read: a moving average or a fetch of it
// still gets the value from before the update. Lookups read rows of the proxy,
// on the device of the replica.
//
// An unreplicated Identity of a read, as in `read_value()`, is a read as well.
// Reads that wait for another node, such as a read after a write, still read
// the variable. A variable gets no proxies if a write of it may have no
// refresh: a write in a loop, by an op outside of the op table, through another
// handle, or by two unordered updates in one run. A remark names the reason.
//
// The file is long because it has both the search for variables that can have
// proxies and the edit.
//
// Relies on: shared variables (share-variables).
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Topology.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "lib/program/forms/Proxy.h"
#include "lib/strategy/Record.h"

#include "llvm/ADT/StringMap.h"

#include <optional>

using namespace llvm;

namespace graft {
namespace {

class ProxyVariables final : public PassBase<ProxyVariables> {
public:
  static constexpr PassInfo Info = {
      "proxy-variables", "A copy of a shared variable near its readers",
      "Gives each replica a proxy of each shared variable whose synchronizer\n"
      "asks for it. The replica reads the proxy. Every write of the variable\n"
      "refreshes the proxy."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  /// A variable that gets proxies.
  struct Candidate {
    NodeId Var;
    SmallVector<NodeId, 4> Updates, Reads, Lookups;
    /// Reads, and unreplicated Identities of their values.
    SmallVector<NodeId, 4> Values;
  };

  std::string findUses(Candidate &C);
  void findValues(Candidate &C) const;
  bool isReadByReplicas(NodeId N) const;
  void keepLookups(Module &M, std::vector<Candidate> &Found);
  bool readsBefore(const Candidate &C, NodeId Proxied, NodeId Update) const;
  NodeId insert(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                NodeId After, const AttrRun &Attrs, Copies Count);
  void refresh(const Candidate &C, NodeId Proxy, NodeId Read, NodeId Update,
               bool ReadBefore);
  void build(const Candidate &C);

  Graph *G = nullptr;
  const VariableIndex *Vars = nullptr;
  StringMap<unsigned> Handles;    ///< By container and name.
  std::optional<Conditions> When; ///< Set if there is a branch.
};

/// Returns the name that two handles of one variable share.
std::string stateName(const Graph &G, NodeId N) {
  StringRef Shared = G.stringAttr(N, "shared_name").value_or("");
  return (G.stringAttr(N, "container").value_or("") + "/" +
          (Shared.empty() ? G.name(N) : Shared))
      .str();
}

/// Classifies the uses of the variable. Returns the reason why the variable
/// cannot have proxies, or "".
std::string ProxyVariables::findUses(Candidate &C) {
  bool IsHandle = G->isOp(C.Var, op::VarHandleOp);
  if (Handles[stateName(*G, C.Var)] > 1)
    return "another handle refers to the same variable";
  SmallVector<NodeId, 2> Changes;
  std::string Why;
  Vars->forEachUse(*G, C.Var, [&](Use U) {
    UpdateDef Def = Vars->update(*G, U.User);
    const Node &User = G->node(U.User);
    if (Def.Kind == UpdateKind::None || U.Index >= Def.NumVars) {
      bool Direct = G->input(U) == Endpoint{C.Var, 0};
      if (!leavesVariable(*G, U))
        Why = ("'" + G->name(U.User) + "' may write the variable").str();
      else if (Direct && User.Count == Copies::Once && User.NumInputs == 1 &&
               G->isOp(U.User, IsHandle ? op::ReadVariableOp : op::Identity))
        C.Reads.push_back(U.User);
      else if (Direct && looksUpRows(*G, U.User) &&
               User.Count == Copies::PerReplica)
        C.Lookups.push_back(U.User);
      return;
    }
    C.Updates.push_back(U.User);
    if (Def.Kind != UpdateKind::Assign)
      Changes.push_back(U.User);
    if (User.Count != Copies::Once || G->anyUse(U.User, [&](Use Of) {
          return G->isData(Of) && G->isRefInput(Of.User, Of.Index);
        }))
      Why = ("an op writes to the variable through the result of '" +
             G->name(U.User) + "'")
                .str();
  });
  llvm::sort(Changes);
  if (Why.empty() &&
      !areOrdered(*G, Changes, [](NodeId Update) { return Update; }))
    Why = ("'" + G->name(Changes[0]) +
           "' and another update may run in any order")
              .str();
  // A refresh waits for the reads of the replicas, which fail if the variable
  // has no value. A run of the input that does not take the branch of the
  // update needs no value.
  for (NodeId Update : Changes)
    if (Why.empty() && When && !When->of(Update).empty() &&
        !readsBefore(C, NoNode, Update))
      Why = ("'" + G->name(Update) +
             "' updates the variable in a branch, and no node reads it before")
                .str();
  for (auto *List : {&C.Updates, &C.Reads, &C.Lookups})
    llvm::sort(*List);
  return Why;
}

/// Finds the values of \p C: reads without control inputs, and Identities of
/// them. `read_value()` adds an Identity after each read.
void ProxyVariables::findValues(Candidate &C) const {
  C.Values = C.Reads;
  for (size_t I = 0; I < C.Values.size(); ++I)
    for (Use U : G->uses(C.Values[I])) {
      const Node &User = G->node(U.User);
      if (User.NumInputs == 1 && User.Count == Copies::Once &&
          User.Kind == Inserted::No && G->isOp(U.User, op::Identity) &&
          !G->input(U.User, 0).isControl())
        C.Values.push_back(U.User);
    }
}

bool ProxyVariables::isReadByReplicas(NodeId N) const {
  return G->anyUse(
      N, [&](Use U) { return G->isData(U) && G->isPerReplica(U.User); });
}

/// Drops lookups after a write, and lookups whose rows are not sharded, from \p
/// Found: these lookups still read the variable.
void ProxyVariables::keepLookups(Module &M, std::vector<Candidate> &Found) {
  std::vector<NodeId> Work;
  for (const Candidate &C : Found)
    if (!C.Lookups.empty())
      append_range(Work, C.Updates);
  if (Work.empty())
    return;
  const ProgramFacts &Facts = programFacts(M);
  std::vector<bool> After(G->size());
  walkUsers(*G, std::move(Work), Along::All, After);
  for (Candidate &C : Found)
    erase_if(C.Lookups, [&](NodeId N) {
      return After[N] || !Facts.Types.type({N, 0}).isSharded();
    });
}

/// Returns true if \p Update depends on a read of the variable, or on \p
/// Proxied, the read of its proxy.
bool ProxyVariables::readsBefore(const Candidate &C, NodeId Proxied,
                                 NodeId Update) const {
  DenseSet<NodeId> Seen;
  bool Found = false;
  walkInputs(*G, {Update}, Along::All, Seen, [&](NodeId N) {
    // A read counts even if it waits for another node.
    bool IsRead = G->isOp(N, op::ReadVariableOp) || G->isOp(N, op::Identity);
    Found |=
        N == Proxied || (IsRead && N != Update && G->input(N, 0).Node == C.Var);
    return !Found;
  });
  return Found;
}

NodeId ProxyVariables::insert(const Twine &Name, StringRef Op,
                              ArrayRef<Endpoint> Inputs, NodeId After,
                              const AttrRun &Attrs, Copies Count) {
  NodeId N = G->insertNode(Name.str(), Op, Inputs, After, Attrs,
                           Inserted::Proxy, Count);
  if (Count == Copies::PerReplica)
    G->node(N).Flags |= NF_LocalName;
  return N;
}

/// Adds a refresh after \p Update. The name of \p Update then runs both.
void ProxyVariables::refresh(const Candidate &C, NodeId Proxy, NodeId Read,
                             NodeId Update, bool ReadBefore) {
  std::string Name = G->name(Update).str();
  SmallVector<Use, 8> Uses = G->uses(Update);
  StringRef Device = G->device(C.Var);
  bool IsHandle = G->isOp(C.Var, op::VarHandleOp);
  unsigned Type = G->typeAttr(Proxy, "dtype").value_or(DT_INVALID);
  StringRef TypeKey = IsHandle ? "dtype" : "T";
  G->setStringAttr(Update, OriginAttr, Name);
  G->rename(Update, G->uniqueName(Name + "/update"));
  NodeId Value =
      insert(Name + "/value", IsHandle ? op::ReadVariableOp : op::Identity,
             {{C.Var, 0}, {Update, ControlPort}}, Update,
             AttrRun().type(TypeKey, Type), Copies::Once);
  G->setDevice(Value, Device);
  G->node(Value).Flags |= NF_FixedDevice;
  SmallVector<Endpoint, 3> Inputs{{Proxy, 0}, {Value, 0}};
  if (ReadBefore)
    Inputs.push_back({Read, ControlPort});
  NodeId Assign = insert(Name + "/refresh", op::AssignVariableOp, Inputs, Value,
                         AttrRun().type("dtype", Type), Copies::PerReplica);
  Inputs.clear();
  AttrRun Attrs;
  bool Gives = G->numOutputs(Update).value_or(0) != 0;
  if (Gives) {
    Inputs.push_back({Update, 0});
    Attrs.type("T", G->outputType(Update, 0));
  }
  Inputs.push_back({Assign, ControlPort});
  NodeId Gate = insert(Name, Gives ? op::Identity : op::NoOp, Inputs, Assign,
                       Attrs, Copies::Once);
  G->setDevice(Gate, Device);
  for (Use U : Uses)
    G->setInput(U.User, U.Index,
                {Gate, G->input(U).isControl() ? ControlPort : 0});
}

void ProxyVariables::build(const Candidate &C) {
  AttrRun Attrs;
  unsigned Type = G->typeAttr(C.Var, "dtype").value_or(DT_INVALID);
  std::string Name = G->uniqueName((G->name(C.Var) + "/proxy").str());
  Attrs.type("dtype", Type).string("shared_name", Name);
  if (auto Shape = G->attr(C.Var, "shape"))
    Attrs.raw("shape", *Shape);
  NodeId Proxy =
      insert(Name, op::VarHandleOp, {}, C.Var, Attrs, Copies::PerReplica);
  NodeId Read = NoNode;
  SmallVector<NodeId, 4> Before;
  for (NodeId V : C.Values)
    for (Use U : G->uses(V)) {
      if (!G->isData(U) || !G->isPerReplica(U.User))
        continue;
      if (Read == NoNode)
        Read = insert(Name + "/Read", op::ReadVariableOp, Endpoint{Proxy, 0},
                      Proxy, AttrRun().type("dtype", Type), Copies::PerReplica);
      G->setInput(U.User, U.Index, {Read, 0});
      NodeId Of = V;
      while (!is_contained(C.Reads, Of))
        Of = G->input(Of, 0).Node;
      if (!is_contained(Before, Of))
        Before.push_back(Of);
    }
  for (NodeId N : C.Lookups) {
    G->setInput(N, 0, {Proxy, 0});
    G->node(N).Flags &= ~NF_FixedDevice;
    G->setDevice(N, "");
  }
  for (NodeId Update : C.Updates) {
    bool ReadBefore = Read != NoNode &&
                      (Vars->update(*G, Update).Kind != UpdateKind::Assign ||
                       readsBefore(C, Read, Update));
    refresh(C, Proxy, Read, Update, ReadBefore);
    for (NodeId V : ReadBefore ? ArrayRef(Before) : ArrayRef<NodeId>())
      G->addControlInput(Update, V);
  }
}

PassResult ProxyVariables::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  if (readMesh(*G).Node == NoNode)
    return PassResult::Unchanged;
  std::vector<Candidate> Found;
  for (NodeId N = 0; N < G->size(); ++N) {
    const Node &This = G->node(N);
    if (This.Plan != Policy::Shared || This.isDead() ||
        !(This.Flags & NF_MayHaveGraft) || This.Count != Copies::Once)
      continue;
    if (auto Sync = synchronizerOf(*G, N); Sync && Sync->Proxy)
      Found.push_back({N, {}, {}, {}, {}});
  }
  if (Found.empty())
    return PassResult::Unchanged;
  VariableIndex Index(*G);
  Vars = &Index;
  Handles.clear();
  for (NodeId Var : Index.variables())
    ++Handles[stateName(*G, Var)];
  When.reset();
  if (Conditions::any(*G))
    When.emplace(*G, topologicalOrder(*G));
  erase_if(Found, [&](Candidate &C) {
    std::string Why = findUses(C);
    if (!Why.empty() && Diags.wantsRemarks())
      Diags.remark("proxy", G->name(C.Var), "has no proxies: " + Why).Facts = {
          {"policy", "shared"}};
    return !Why.empty();
  });
  keepLookups(M, Found);
  erase_if(Found, [&](Candidate &C) {
    findValues(C);
    // A variable that no replica reads needs no copy.
    return C.Lookups.empty() &&
           none_of(C.Values, [&](NodeId V) { return isReadByReplicas(V); });
  });
  for (const Candidate &C : Found) {
    build(C);
    ++Statistics["variables with proxies"];
    if (Diags.wantsRemarks())
      Diags
          .remark("proxy", G->name(C.Var),
                  "each replica reads a proxy, which is refreshed by " +
                      std::to_string(C.Updates.size()) +
                      " writes of the variable")
          .Facts = {{"policy", "shared"}};
  }
  return Found.empty() ? PassResult::Unchanged : PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(ProxyVariables)

} // namespace graft
