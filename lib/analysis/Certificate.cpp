//===- lib/analysis/Certificate.cpp - is it the same step? ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Certificate.h"

#include "lib/analysis/Program.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class Checker {
public:
  Checker(const Graph &Input, const Graph &Program, DiagnosticEngine &Diags)
      : In(Input), G(Program), Diags(Diags) {}

  bool run(const ProgramFacts &Facts);

private:
  void error(NodeId N, const Twine &Message, NodeId Because = NoNode);
  bool matchNodes();
  void compareNode(NodeId I, NodeId P);
  void compareAttrs(NodeId I, NodeId P);
  std::optional<Endpoint> erase(Endpoint E) const;
  void checkDemands(const ProgramFacts &Facts);
  void checkConstants(const ProgramFacts &Facts);
  bool isExcused(const RType &Type) const;
  void checkInserted(const ProgramFacts &Facts, NodeId N);
  void checkOnce(const ProgramFacts &Facts, NodeId N);
  void checkPerReplica(const ProgramFacts &Facts, NodeId N);
  void checkNames(const ProgramFacts &Facts, NodeId N);

  const Graph &In;
  const Graph &G;
  DiagnosticEngine &Diags;
  unsigned Replicas = 1;
  unsigned Errors = 0;
  std::vector<NodeId> ProgramOf; ///< By input node.
  std::vector<NodeId> InputOf;   ///< By program node, NoNode if inserted.
};

void Checker::error(NodeId N, const Twine &Message, NodeId Because) {
  if (++Errors > 12)
    return;
  Diagnostic &D =
      Diags.error(N == NoNode ? StringRef() : originName(G, N), Message.str());
  if (Because != NoNode)
    D.Notes.push_back({originName(G, Because).str(), "because of this node"});
}

/// Every node of the input is in the program once, and nothing else is that was
/// not inserted.
bool Checker::matchNodes() {
  ProgramOf.assign(In.size(), NoNode);
  InputOf.assign(G.size(), NoNode);
  for (NodeId P = 0; P < G.size(); ++P) {
    if (!G.isLive(P) || G.node(P).Kind != Inserted::No)
      continue;
    StringRef Origin = originName(G, P);
    // Mostly the ids are those of the input; names decide.
    NodeId I = P < In.size() && In.name(P) == Origin ? P : In.find(Origin);
    if (I == NoNode)
      error(P, "this node does not come from the input");
    else if (ProgramOf[I] != NoNode)
      error(P, "this node of the input is in the program twice");
    else {
      ProgramOf[I] = P;
      InputOf[P] = I;
    }
  }
  for (NodeId I = 0; I < In.size(); ++I)
    if (In.isLive(I) && ProgramOf[I] == NoNode && ++Errors <= 12)
      Diags.error(In.name(I), "this node of the input is missing");
  return Errors == 0;
}

/// Whether \p Op does to true values what a node of \p Kind does: nothing. What
/// the parameters of the op make of local values is for the types to say.
bool isErasable(Inserted Kind, StringRef Op) {
  switch (Kind) {
  case Inserted::Split:
    return Op == "_ToReplicas";
  case Inserted::Merge:
    return Op == "_FromReplicas";
  case Inserted::Reduce:
    return Op == "_Reduce" || Op == "CollectiveReduce" ||
           Op == "_FromReplicas" || Op == "Identity";
  case Inserted::Gather:
    return Op == "_Gather" || Op == "CollectiveGather" ||
           Op == "_FromReplicas" || Op == "Identity";
  case Inserted::Scale:
    return Op == "_Scale";
  case Inserted::Identity:
    return Op == "Identity" || Op == "IdentityN";
  case Inserted::No:
  case Inserted::Gate:
  case Inserted::Constant:
  case Inserted::Mesh:
    return false;
  }
  return false;
}

/// The tensor of the input that \p E is when inserted nodes are erased.
std::optional<Endpoint> Checker::erase(Endpoint E) const {
  for (unsigned Steps = 0; G.node(E.Node).Kind != Inserted::No; ++Steps) {
    unsigned From = G.isOp(E.Node, "IdentityN") ? E.Port : 0;
    if (!isErasable(G.node(E.Node).Kind, G.opName(E.Node)) ||
        From >= G.node(E.Node).NumData || Steps > G.size())
      return std::nullopt;
    E = G.input(E.Node, From);
  }
  return E;
}

void Checker::compareAttrs(NodeId I, NodeId P) {
  const Node &Old = In.node(I), &New = G.node(P);
  if (StringRef(Old.AttrData, Old.AttrSize) ==
      StringRef(New.AttrData, New.AttrSize))
    return;
  // Nothing that was dropped or changed may bear on values.
  auto Ignored = [](StringRef Key) {
    return Key.starts_with("_graft_") || Key == "_class" ||
           Key == "_output_shapes";
  };
  for (const AttrEntry &A : In.attrs(I)) {
    if (Ignored(A.Key))
      continue;
    auto Value = A.Key == "value" && G.hasAttr(P, OriginalAttr)
                     ? G.attr(P, OriginalAttr)
                     : G.attr(P, A.Key);
    if (Value != A.Value)
      error(P, "attribute '" + A.Key + "' is not that of the input");
  }
  for (const AttrEntry &A : G.attrs(P))
    if (!Ignored(A.Key) && !In.hasAttr(I, A.Key))
      error(P, "attribute '" + A.Key + "' is not in the input");
}

void Checker::compareNode(NodeId I, NodeId P) {
  if (In.opName(I) != G.opName(P))
    error(P,
          "the op is " + G.opName(P) + ", in the input it is " + In.opName(I));
  compareAttrs(I, P);
  if (In.node(I).NumData != G.node(P).NumData) {
    error(P, "has another number of inputs than in the input");
    return;
  }
  for (unsigned K = 0; K < In.node(I).NumData; ++K) {
    auto E = erase(G.input(P, K));
    Endpoint Want = In.input(I, K);
    if (!E || InputOf[E->Node] != Want.Node || E->Port != Want.Port)
      error(P, formatv("input {0} is not '{1}:{2}' as in the input", K,
                       In.name(Want.Node), Want.Port)
                   .str());
  }
  SmallVector<NodeId, 8> Controls;
  for (Endpoint E : G.controlInputs(P))
    if (G.node(E.Node).Kind == Inserted::No)
      Controls.push_back(InputOf[E.Node]);
  ArrayRef<Endpoint> Want = In.controlInputs(I);
  bool Same = Controls.size() == Want.size();
  for (size_t K = 0; Same && K < Want.size(); ++K)
    Same = Controls[K] == Want[K].Node;
  if (!Same)
    error(P, "has other control inputs than in the input");
}

/// A finished program demands nothing more.
void Checker::checkDemands(const ProgramFacts &Facts) {
  for (const Demand &D : Facts.Types.demands()) {
    const char *What = D.Kind == Demand::Reduce   ? "reduced"
                       : D.Kind == Demand::Gather ? "gathered"
                                                  : "scaled";
    error(D.Source.Node,
          formatv("output {0} is {1} and must be {2} for '{3}'", D.Source.Port,
                  Facts.Types.natural(D.Source).str(), What,
                  originName(G, D.Because))
              .str());
  }
  for (const DimAnalysis::Conflict &C : Facts.Dims.conflicts())
    error(C.Node,
          "two sizes that must be equal are not: " + Facts.Dims.describe(C.A) +
              " and " + Facts.Dims.describe(C.B));
  for (auto [N, I] : Facts.Types.unprovedWrites()) {
    NodeId Cause = Facts.Types.type(G.input(N, I)).Cause;
    // What the input itself leaves open was warned of; what was inserted has
    // no excuse.
    if (Cause == NoNode || G.node(Cause).Kind != Inserted::No)
      error(N,
            formatv("input {0} does not have the value of the single-device "
                    "step",
                    I)
                .str(),
            Cause);
  }
}

/// A constant whose recorded original differs must differ by the batch only.
void Checker::checkConstants(const ProgramFacts &Facts) {
  for (NodeId P : Facts.Order) {
    if (!G.isOp(P, "Const") || G.node(P).Kind != Inserted::No)
      continue;
    if (Facts.Dims.batchAxis({P, 0}) >= 0)
      error(P, "this constant is as long as the rows of one replica");
    auto Value = Facts.Dims.value({P, 0});
    auto Now = constValue(G, P), Was = constValue(In, InputOf[P]);
    if (!Value || !Now || !Was || Now->Ints.size() != Was->Ints.size())
      continue;
    for (size_t K = 0; K < Value->size(); ++K) {
      auto S = Facts.Dims.table().sym((*Value)[K]);
      int64_t Want = Now->Ints[K];
      for (int Power = 0; S && Power < S->globalPower(); ++Power)
        Want *= Replicas;
      if (Want == Was->Ints[K])
        continue;
      bool Batch = S && S->globalPower() > 0 && Was->Ints[K] % Replicas == 0;
      error(P, Batch
                   ? formatv("element {0} is the batch, {2} in the input; here "
                             "it must be {3} and is {1}",
                             K, Now->Ints[K], Was->Ints[K],
                             Was->Ints[K] / Replicas)
                         .str()
                   : formatv("element {0} is {1}, but {2} in the input, and "
                             "that is not the batch",
                             K, Now->Ints[K], Was->Ints[K])
                         .str());
    }
  }
}

/// Whether a type is that of a true value, or of one that the input leaves
/// open and a pass warned of. What an inserted node spoils has no excuse.
bool Checker::isExcused(const RType &Type) const {
  return Type.isTrue() || (Type.isVarying() && Type.Cause != NoNode &&
                           G.node(Type.Cause).Kind == Inserted::No);
}

/// What was inserted is of the form that its kind says.
void Checker::checkInserted(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  StringRef Op = G.opName(N);
  if (This.Kind == Inserted::Gate   ? Op != "NoOp" || This.NumData != 0
      : This.Kind == Inserted::Mesh ? Op != MeshOp
                                    : !isErasable(This.Kind, Op)) {
    error(N, "op " + Op + " is marked as inserted and is no such node");
    return;
  }
  if (Op.starts_with("Collective") && G.intAttr(N, "group_size") != Replicas)
    error(N, "is a member of a group of another size than the replicas");
  bool Pick =
      Op == "_FromReplicas" && G.stringAttr(N, "combine") == StringRef("pick");
  bool Place = This.Kind == Inserted::Identity && Op == "Identity" &&
               This.NumInputs == 1;
  if (This.Flags & NF_ElidePrimary && !Place && !Pick)
    error(N, "has a copy 0 that is passed over, and does something");
  if (Op != "_ToReplicas")
    return;
  auto Shape = Facts.Dims.shape(G.input(N, 0));
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  if (Axis < 0 || (Shape && static_cast<size_t>(Axis) >= Shape->size()))
    error(N, "splits along an axis that does not exist");
}

/// What exists once takes true values.
void Checker::checkOnce(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
    if (Facts.Dims.batchAxis({N, Port}) >= 0 ||
        (This.Kind == Inserted::No && Facts.Dims.isLocal({N, Port})))
      error(N, "exists once and has the size of one replica's rows");
  if (Facts.Vars.isUpdate(G, N)) {
    NodeId Var = Facts.Vars.variableOf(G.input(N, 0));
    if (Var != NoNode && G.node(Var).Count == Copies::PerReplica)
      error(N, "updates only one copy of a variable that exists per replica");
  }
  for (unsigned I = 0; I < This.NumData; ++I) {
    Endpoint E = G.input(N, I);
    if (G.node(E.Node).Count == Copies::PerReplica && !combinesReplicas(G, N)) {
      error(N,
            formatv("input {0} exists per replica and is not merged", I).str());
      continue;
    }
    if (This.Kind != Inserted::No)
      continue;
    RType Type = Facts.Types.type(E);
    if (!isExcused(Type))
      error(N, formatv("input {0} is {1}, not the value of the single-device "
                       "step",
                       I, Type.str())
                   .str());
  }
}

void Checker::checkPerReplica(const ProgramFacts &Facts, NodeId N) {
  if (Facts.Vars.isOnce(G, N))
    error(N, "has an effect of its own and must exist once, not per replica");
  if (!Facts.Vars.isUpdate(G, N))
    return;
  NodeId Var = Facts.Vars.variableOf(G.input(N, 0));
  if (Var != NoNode && G.node(Var).Count == Copies::Once)
    error(N, "every replica updates a variable that exists once");
  if (!(G.node(N).Flags & NF_Led))
    error(N, "updates the copies of a variable, but its copy 0 does not wait "
             "for the others");
}

/// A name of the input has its true value or does not exist.
void Checker::checkNames(const ProgramFacts &Facts, NodeId N) {
  const Node &This = G.node(N);
  auto AllTrue = [&] {
    for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
      RType Type = Facts.Types.number({N, Port});
      if (!isExcused(Type))
        return false;
      if (Type.isVarying() && This.Count == Copies::PerReplica)
        return false;
    }
    return true;
  };
  bool HasName = This.Count == Copies::Once || !(This.Flags & NF_LocalName);
  if (This.Kind == Inserted::No) {
    if (This.Flags & NF_ElidePrimary)
      error(N, "its copy 0 is passed over");
    if (HasName && !AllTrue())
      error(N, "its name gives the value of one replica, not that of the "
               "single-device step");
    // A result of the input, which nothing reads, keeps its name.
    NodeId I = InputOf[N];
    bool Read = false;
    In.forEachUse(I, [&](Use U) { Read |= U.Index < In.node(U.User).NumData; });
    if (HasName || Read || Facts.Dims.numOutputs(N) != 1 ||
        !Facts.Dims.shape({N, 0}) || Facts.Types.number({N, 0}).isVarying())
      return;
    NodeId Global = G.find(In.name(I));
    if (Global == NoNode || G.node(Global).Kind == Inserted::No)
      error(N, "this result has no global value");
    return;
  }
  NodeId I = In.find(G.name(N));
  if (I == NoNode || !HasName)
    return;
  for (uint32_t Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
    auto E = erase({N, Port});
    if (!E || InputOf[E->Node] != I || E->Port != Port)
      error(N, "has the name of another node of the input");
  }
  if (!AllTrue())
    error(N, "its name gives a value that is not that of the single-device "
             "step");
}

bool Checker::run(const ProgramFacts &Facts) {
  Mesh Devices = readMesh(G);
  Replicas = std::max(1u, Devices.replicas());
  if (!matchNodes())
    return false;
  for (NodeId I = 0; I < In.size(); ++I)
    if (In.isLive(I))
      compareNode(I, ProgramOf[I]);
  checkDemands(Facts);
  checkConstants(Facts);
  for (NodeId N : Facts.Order) {
    if (G.node(N).Kind != Inserted::No)
      checkInserted(Facts, N);
    if (G.node(N).Count == Copies::Once)
      checkOnce(Facts, N);
    else
      checkPerReplica(Facts, N);
    checkNames(Facts, N);
  }
  return Errors == 0;
}

} // namespace

bool certify(const Graph &Input, const Graph &Program,
             DiagnosticEngine &Diags) {
  return certify(Input, Program, ProgramFacts(Program), Diags);
}

bool certify(const Graph &Input, const Graph &Program,
             const ProgramFacts &Facts, DiagnosticEngine &Diags) {
  return Checker(Input, Program, Diags).run(Facts);
}

} // namespace graft
