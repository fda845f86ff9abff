//===- lib/certify/partition/PartitionParts.cpp - partitioned variables ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/partition/PartitionTerms.h"
#include "lib/ops/Ops.h"

#include "lib/graph/AttrWire.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <set>

using namespace llvm;

namespace graft {

std::optional<SliceSpec> SliceSpec::parse(StringRef Text) {
  SmallVector<StringRef, 8> Words, Axes;
  Text.split(Words, ' ');
  Words.pop_back_val().split(Axes, ':');
  SliceSpec S;
  if (Words.empty() || Words.size() != Axes.size())
    return std::nullopt;
  for (auto [Word, Axis] : zip_equal(Words, Axes)) {
    int64_t Whole, Offset = 0, Size;
    if (Word.getAsInteger(10, Whole) || Whole < 0)
      return std::nullopt;
    Size = Whole;
    auto [Begin, Length] = Axis.split(',');
    if (Axis != "-" &&
        (Begin.getAsInteger(10, Offset) || Length.getAsInteger(10, Size)))
      return std::nullopt;
    if (Offset < 0 || Size < 0 || Size > Whole || Offset > Whole - Size)
      return std::nullopt;
    S.Shape.push_back(Whole);
    S.Offsets.push_back(Offset);
    S.Sizes.push_back(Size);
  }
  return S;
}

PartitionTerms::PartitionTerms(const InputGraph &Whole, const Graph &Parts,
                               DiagnosticEngine &Diags)
    : In(Whole), G(Parts), Diags(Diags), InputOf(Parts.size(), NoNode),
      PartsOf(Whole.size(), NoNode), Explained(Parts.size()) {}

void PartitionTerms::error(StringRef Name, const Twine &Message) {
  if (++Errors <= 12)
    Diags.error(Name, Message.str());
}

void PartitionTerms::error(NodeId N, const Twine &Message) {
  error(G.name(N), Message);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

bool PartitionTerms::match() {
  DenseMap<StringRef, NodeId> ByName;
  for (NodeId P = 0; P < G.size(); ++P) {
    if (!G.isLive(P))
      continue;
    NodeId I = P;
    if (P >= In.size() || !In.isLive(P) || In.name(P) != G.name(P)) {
      if (ByName.empty())
        for (NodeId N = 0; N < In.size(); ++N)
          if (In.isLive(N))
            ByName[In.name(N)] = N;
      auto It = ByName.find(G.name(P));
      I = It == ByName.end() ? NoNode : It->second;
    }
    if (I == NoNode)
      continue;
    InputOf[P] = I;
    PartsOf[I] = P;
  }
  if (!findParts())
    return false;
  // Clones replace the nodes that passed a variable on, except updates.
  // Register these nodes for alias().
  for (NodeId I = 0; I < In.size(); ++I)
    if (In.isLive(I) && PartsOf[I] == NoNode && In.numData(I) > 0 &&
        cutOf({I, 0}))
      firstAlias({I, 0});
  return Errors == 0;
}

/// Finds the variables whose parts are the new nodes with a slice.
bool PartitionTerms::findParts() {
  DenseMap<StringRef, NodeId> Vars;
  struct Part {
    SliceSpec Spec;
    NodeId Node;
  };
  std::map<NodeId, std::vector<Part>> ByVar;
  std::map<std::pair<StringRef, StringRef>, NodeId> Resources;
  SmallVector<std::pair<NodeId, StringRef>, 8> Found;
  for (NodeId P = 0; P < G.size(); ++P)
    if (G.isLive(P) && isVariableOp(G.opName(P))) {
      if (InputOf[P] == NoNode)
        if (auto Text = G.stringAttr(P, SliceAttr))
          Found.push_back({P, *Text});
      StringRef Container = G.stringAttr(P, "container").value_or("");
      StringRef Shared = G.stringAttr(P, "shared_name").value_or("");
      if (Shared.empty())
        Shared = G.name(P);
      auto [It, New] = Resources.try_emplace({Container, Shared}, P);
      if (!New && (InputOf[P] == NoNode || InputOf[It->second] == NoNode))
        error(P, "has the shared_name of '" + G.name(It->second) + "'");
    }
  if (!Found.empty())
    for (NodeId I = 0; I < In.size(); ++I)
      if (In.isLive(I) && isVariableOp(inputOp(I)))
        Vars[In.name(I)] = I;
  for (auto [P, Text] : Found) {
    auto [Name, Rest] = Text.split(' ');
    auto It = Vars.find(Name);
    auto Spec = SliceSpec::parse(Rest);
    auto Own = G.shapeAttr(P, "shape");
    if (It == Vars.end() || !Spec || PartsOf[It->second] != NoNode) {
      error(P, "its attribute _graft_slice is not a slice of a variable that "
               "parts replace");
      continue;
    }
    NodeId Var = It->second;
    auto Shape = In.attr(Var, "shape");
    auto Bytes = Shape ? bytesField(*Shape, AttrShape) : std::nullopt;
    ShapeValue Whole = Bytes ? parseShape(*Bytes) : ShapeValue();
    if (G.opName(P) != inputOp(Var) || !Bytes || Whole.UnknownRank ||
        Whole.Dims != Spec->Shape || !Own || Own->UnknownRank ||
        Own->Dims != Spec->Sizes || G.node(P).NumInputs != 0 ||
        !In.inputs(Var).empty() || !sameAttrs(In.attrBytes(Var), P))
      error(P, "is not a slice of '" + In.name(Var) + "'");
    else
      ByVar[Var].push_back({std::move(*Spec), P});
    Explained[P] = true;
  }
  for (auto &[Var, Parts] : ByVar) {
    PartedVariable &C = Cuts.emplace_back();
    C.Var = Var;
    C.Shape = Parts[0].Spec.Shape;
    unsigned Rank = C.Shape.size();
    while (C.Axis + 1 < Rank && Parts[0].Spec.Sizes[C.Axis] == C.Shape[C.Axis])
      ++C.Axis;
    llvm::sort(Parts, [&](const Part &A, const Part &B) {
      return A.Spec.Offsets[C.Axis] < B.Spec.Offsets[C.Axis];
    });
    int64_t Next = 0;
    bool Good = true;
    for (const Part &P : Parts) {
      for (unsigned A = 0; A < Rank; ++A)
        Good &= A == C.Axis ? P.Spec.Offsets[A] == Next && P.Spec.Sizes[A] > 0
                            : P.Spec.Sizes[A] == C.Shape[A];
      C.Offsets.push_back(Next);
      C.Sizes.push_back(P.Spec.Sizes[C.Axis]);
      Next += P.Spec.Sizes[C.Axis];
      PartIndex[P.Node] = {unsigned(Cuts.size() - 1), unsigned(C.Parts.size())};
      C.Parts.push_back(P.Node);
    }
    if (!Good || Next != C.Shape[C.Axis])
      error(In.name(Var),
            "its parts do not cover the variable without gaps and overlaps");
    CutIndex[Var] = static_cast<unsigned>(Cuts.size() - 1);
  }
  return Errors == 0;
}

bool PartitionTerms::sameAttrs(StringRef Was, NodeId P) const {
  bool IsPart = PartIndex.contains(P) || isVariableOp(G.opName(P));
  auto Ignored = [&](StringRef Key) {
    return Key.starts_with("_graft_") || Key == "_class" ||
           Key == "_output_shapes" ||
           (IsPart && (Key == "shape" || Key == "shared_name"));
  };
  std::map<StringRef, StringRef> Old;
  AttrReader R(Was);
  for (AttrEntry A; R.next(A);)
    if (!Ignored(A.Key))
      Old[A.Key] = A.Value;
  for (const AttrEntry &A : G.attrs(P)) {
    if (Ignored(A.Key))
      continue;
    auto It = Old.find(A.Key);
    if (It == Old.end() || It->second != A.Value)
      return false;
    Old.erase(It);
  }
  return Old.empty();
}

/// The form in which an op forwards the variable at its first input: a value
/// such as a handle, a reference, or not at all.
enum class Passing : uint8_t { No, Value, Ref };
static Passing passingOf(StringRef Op) {
  const OpDef *Def = findOp(Op);
  bool GivesRef = Def && Def->NumOutputs > 0 && Def->outputs()[0].IsRef;
  if (GivesRef && Def->update().Kind != UpdateKind::None)
    return Passing::Ref;
  return StringSwitch<Passing>(Op)
      .Cases(op::Identity, op::Switch, op::Enter, Passing::Value)
      .Cases(op::RefIdentity, op::RefSwitch, op::RefEnter, Passing::Ref)
      .Default(Passing::No);
}

const PartedVariable *PartitionTerms::cutOf(Endpoint E) const {
  if (E.isControl() || CutIndex.empty())
    return nullptr;
  // Collect the nodes that pass the variable on, up to the variable or to a
  // node with a memo.
  SmallVector<NodeId, 4> Chain;
  bool AllRefs = true, AllValues = true;
  int Found = -1;
  for (;;) {
    if (auto It = CutIndex.find(E.Node); It != CutIndex.end()) {
      bool IsRef = !isHandle(Cuts[It->second]);
      if (E.Port == 0 && (IsRef ? AllRefs : AllValues))
        Found = static_cast<int>(It->second);
      break;
    }
    if (auto It = CutMemo.find(E.Node); It != CutMemo.end()) {
      bool Fits =
          It->second >= 0 && (isHandle(Cuts[It->second]) ? AllValues : AllRefs);
      Found = Fits ? It->second : -1;
      break;
    }
    Passing How = In.numData(E.Node) == 0 || Chain.size() > In.size()
                      ? Passing::No
                      : passingOf(inputOp(E.Node));
    if (How == Passing::No)
      break;
    AllRefs &= How == Passing::Ref;
    AllValues &= How == Passing::Value;
    Chain.push_back(E.Node);
    E = In.inputs(E.Node)[0];
  }
  // If the walk found no variable, that result is recorded only for the first
  // node of the chain.
  if (Found >= 0)
    for (NodeId N : Chain)
      CutMemo[N] = Found;
  else if (!Chain.empty())
    CutMemo[Chain.front()] = -1;
  return Found < 0 ? nullptr : &Cuts[Found];
}

bool PartitionTerms::isGoneAlias(NodeId I) const {
  return PartsOf[I] == NoNode && In.numData(I) > 0 && cutOf({I, 0});
}

Endpoint PartitionTerms::firstAlias(Endpoint E) {
  if (E.isControl() || !isGoneAlias(E.Node))
    return E;
  if (auto It = FirstAlias.find(E.Node); It != FirstAlias.end())
    return {It->second, E.Port};
  NodeId I = E.Node;
  Endpoint From = firstAlias(In.inputs(I)[0]);
  auto AttrsOf = [&](NodeId N) {
    std::map<StringRef, StringRef> All;
    AttrReader R(In.attrBytes(N));
    for (AttrEntry A; R.next(A);)
      if (!A.Key.starts_with("_graft_") && A.Key != "_class" &&
          A.Key != "_output_shapes")
        All[A.Key] = A.Value;
    return All;
  };
  SmallVector<NodeId, 2> &Like = GoneAliases[From.Node];
  for (NodeId A : Like)
    if (In.op(A) == In.op(I) && firstAlias(In.inputs(A)[0]) == From &&
        In.inputs(A).drop_front() == In.inputs(I).drop_front() &&
        AttrsOf(A) == AttrsOf(I)) {
      FirstAlias[I] = A;
      return {A, E.Port};
    }
  Like.push_back(I);
  FirstAlias[I] = I;
  return E;
}

Endpoint PartitionTerms::resolve(Endpoint E) const {
  while (!E.isControl() && PartsOf[E.Node] == NoNode &&
         inputOp(E.Node) == op::Identity && In.inputs(E.Node).size() == 1 &&
         !cutOf(E))
    E = In.inputs(E.Node)[0];
  return E;
}

std::optional<SmallVector<int64_t, 4>> PartitionTerms::ints(Endpoint E) const {
  if (E.isControl() || !G.isOp(E.Node, op::Const) ||
      SaverConsts.contains(E.Node))
    return std::nullopt;
  auto V = constValue(G, E.Node);
  if (!V || !V->HasInts)
    return std::nullopt;
  return V->Ints;
}

uint32_t PartitionTerms::idOf(SmallVector<NodeId, 4> Set) {
  llvm::sort(Set);
  Set.erase(std::unique(Set.begin(), Set.end()), Set.end());
  auto [It, New] =
      Sets.try_emplace(std::move(Set), static_cast<uint32_t>(SetOf.size()));
  if (New)
    SetOf.push_back(&It->first);
  return It->second;
}

uint32_t PartitionTerms::waitsOf(NodeId P, bool IsRead) {
  SmallVector<NodeId, 4> Set;
  DenseMap<NodeId, unsigned> Updates;
  for (Endpoint E : G.controlInputs(P)) {
    NodeId I = InputOf[E.Node];
    if (auto It = UpdateOf.find(E.Node); It != UpdateOf.end()) {
      // The updates of all parts count as the update of the variable.
      const PartedVariable *C = cutOf(In.inputs(It->second)[0]);
      if (++Updates[It->second] == C->Parts.size())
        Set.push_back(It->second);
      continue;
    }
    if (I == NoNode) {
      const PartTerm &X = term({E.Node, 0});
      // A clone counts as the removed node of the input.
      if (X.Kind == PartTerm::Handle && PartsOf[X.E.Node] == NoNode)
        I = X.E.Node;
      // A wait for another read counts as a wait for its inputs.
      if (X.Kind == PartTerm::WholeRead && IsRead) {
        append_range(Set, *SetOf[X.Waits]);
        if (!CutIndex.contains(X.E.Node))
          Set.push_back(X.E.Node);
        continue;
      }
    }
    Set.push_back(I);
  }
  for (auto [I, Count] : Updates)
    if (!is_contained(Set, I))
      Set.push_back(NoNode);
  return idOf(std::move(Set));
}

uint32_t PartitionTerms::waitsOfInput(NodeId I) {
  SmallVector<NodeId, 4> Set;
  for (Endpoint E : In.inputs(I).drop_front(In.numData(I)))
    Set.push_back(firstAlias({E.Node, 0}).Node);
  return idOf(std::move(Set));
}

uint32_t PartitionTerms::inputsBeside(NodeId I, unsigned K) {
  SmallVector<NodeId, 4> Set;
  for (auto [J, E] : enumerate(In.inputs(I)))
    if (J != K && !isVariableOp(inputOp(E.Node)))
      Set.push_back(firstAlias({E.Node, 0}).Node);
  return idOf(std::move(Set));
}

bool PartitionTerms::isLate(NodeId I, unsigned K, uint32_t Waits) {
  NodeId Read = In.inputs(I)[K].Node;
  auto IsThere = [&](NodeId N) {
    return N != NoNode &&
           (isVariableOp(inputOp(N)) ||
            (inputOp(N) == op::Identity && In.inputs(N).size() == 1 &&
             isVariableOp(inputOp(In.inputs(N)[0].Node))));
  };
  std::set<NodeId> Now, Want;
  for (NodeId N : *SetOf[Waits])
    if (!IsThere(N))
      Now.insert(N);
  auto Add = [&](Endpoint E) {
    if (E.Node != Read && !IsThere(E.Node))
      Want.insert(firstAlias({E.Node, 0}).Node);
  };
  for (Endpoint E : In.inputs(I))
    Add(E);
  for (Endpoint E : In.inputs(Read).drop_front(In.numData(Read)))
    Add(E);
  return Now == Want;
}

bool PartitionTerms::waitsForContext(NodeId P) {
  return all_of(G.controlInputs(P), [&](Endpoint E) {
    bool IsPivot =
        InputOf[E.Node] == NoNode &&
        (G.isOp(E.Node, op::Identity) || G.isOp(E.Node, op::RefIdentity));
    bool Is = term({E.Node, 0}).Kind == PartTerm::Handle ||
              (IsPivot && G.node(E.Node).NumInputs == 1 &&
               term(in(E.Node, 0)).Kind == PartTerm::Handle);
    if (Is && InputOf[E.Node] == NoNode)
      Explained[E.Node] = true;
    return Is;
  });
}

} // namespace graft
