//===- lib/certify/fold/Fold.cpp - a lowered graph back to a program ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The inverse of the lowering. It relies on the format of the file and not on
// the code that wrote it. The name of a copy states its origin and its replica.
// The marker attribute identifies splits, merges and scales. An error names a
// node that cannot be folded.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/fold/Fold.h"

#include "lib/certify/compare/Certificate.h"
#include "lib/certify/fold/Copies.h"
#include "lib/certify/forms/InsertedForm.h"
#include "lib/graph/Verifier.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/RowRepeat.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {
namespace {

/// Returns the word in the names of copies in \p Lowered. It follows from the
/// marker attribute. Without a marker, it is the word that no name of \p Input
/// uses.
std::string copyWordOf(const Graph &Lowered, const Graph &Input) {
  return hasGraftStamp(Lowered) ? copyWordOf(Lowered) : freeCopyWord(Input);
}

class Folder {
public:
  Folder(const Graph &L, const Graph &In, unsigned Replicas,
         DiagnosticEngine &Diags)
      : L(L), In(In), Diags(Diags), Replicas(Replicas), Word(copyWordOf(L, In)),
        File(L, In, Word) {}

  /// Returns the program; null after an error.
  std::unique_ptr<Graph> fold();
  /// Folds the graph and checks its copies, which the program does not show.
  std::unique_ptr<Graph> run() {
    std::unique_ptr<Graph> Result = fold();
    return Result && checkCopies(L, In, *Result, Groups, Diags)
               ? std::move(Result)
               : nullptr;
  }

private:
  using Group = CopyGroup;

  bool error(NodeId N, const Twine &Message) {
    if (++Errors <= 12)
      Diags.error(L.name(N), Message.str());
    return false;
  }
  bool stamped(NodeId N) const { return File.isStamped(N); }
  /// Returns true if the scale \p N has a factor that is no constant.
  bool hasFactor(NodeId N) const {
    return L.node(N).NumData > 1 && !L.isOp(L.input(N, 1).Node, op::Const);
  }
  /// Returns the node that repeats the rows of the split \p N, or NoNode.
  NodeId repeatOf(NodeId N) const {
    NodeId From = L.isOp(N, op::Split) && L.node(N).NumData == 2
                      ? L.input(N, 1).Node
                      : NoNode;
    return From != NoNode && L.isOp(From, op::Tile) && stamped(From) &&
                   L.node(From).NumData == 2
               ? From
               : NoNode;
  }
  /// Returns true if the group may lack copy 0: it is a device copy, or
  /// refreshes a variable from copy 0. A proxy is refreshed on every replica.
  bool mayLackPrimary(const Group &Gr) const {
    NodeId N = Gr.Copies.back();
    return N != NoNode && !File.Proxies[N] &&
           (L.isOp(N, op::Identity) || assigns(L, N));
  }
  bool group();
  bool gathersRows(const Group &Gr);
  void takeFrame(const Group &Gr);
  void make(Group &Gr);
  bool connect(Group &Gr);
  bool edges(Group &Gr, unsigned Replica, bool Once,
             std::vector<Endpoint> &Result);
  bool controls(Group &Gr, NodeId N, unsigned Replica, bool Once,
                std::vector<Endpoint> &Result);
  std::optional<int64_t> axisAt(Endpoint E) const;
  NodeId keptOf(NodeId Keep) const;
  bool combined(Group &Gr, std::vector<Endpoint> &Result);
  bool source(Endpoint E, NodeId User, unsigned Replica, bool Once,
              Endpoint &Result);
  bool takeLed(Group &Gr);

  const Graph &L;
  const Graph &In;
  DiagnosticEngine &Diags;
  unsigned Replicas;
  std::string Word; ///< The word in the names of copies.
  LoweredFile File;
  unsigned Errors = 0;
  std::unique_ptr<Graph> P = std::make_unique<Graph>();
  std::vector<Group> Groups;
  std::vector<uint32_t> GroupOf;        ///< By lowered node.
  std::vector<int> ReplicaOf;           ///< By lowered node; -1: unreplicated.
  std::vector<uint32_t> GroupOfProgram; ///< By program node that make() added.
  std::vector<bool> Auxiliary;          ///< By lowered node: an added operand.
};

constexpr uint32_t NoGroup = ~uint32_t(0);

bool Folder::group() {
  GroupOf.assign(L.size(), NoGroup);
  ReplicaOf.assign(L.size(), -1);
  Auxiliary.assign(L.size(), false);
  for (NodeId N = 0; N < L.size(); ++N) {
    if (!stamped(N))
      continue;
    if (L.intAttr(N, StampAttr) != Replicas)
      return error(N,
                   "has a _graft_replicas that is not the number of replicas");
    // Lowering adds operands to a marked node, such as its axis or factor.
    // Parts has their positions.
    StringRef Op = L.opName(N);
    SmallVector<unsigned, 3> Parts;
    if (Op == op::Split)
      Parts = {0};
    else if (Op == op::ConcatV2)
      Parts = {L.node(N).NumData - 1};
    else if (Op == op::StridedSlice)
      Parts = {0, 1, 3};
    else if ((Op == op::Mul || Op == op::FloorDiv) && !hasFactor(N))
      Parts = {1};
    else if (Op == op::Min || Op == op::Max || Op == op::All || Op == op::Any)
      Parts = {0, 1};
    if (repeatOf(N) != NoNode)
      Parts.push_back(1);
    for (unsigned I : Parts) {
      if (I >= L.node(N).NumData)
        continue;
      NodeId Part = L.input(N, I).Node;
      if (In.find(L.name(Part)) != NoNode)
        continue;
      Auxiliary[Part] = true;
      if (!L.controlInputs(Part).empty())
        return error(Part, "is a part of '" + L.name(N) +
                               "' and must not wait for '" +
                               L.name(L.controlInputs(Part)[0].Node) + "'");
    }
  }
  StringMap<uint32_t> ByBase;
  std::vector<CopyName> Names(L.size());
  for (NodeId N = 0; N < L.size(); ++N) {
    Names[N] = copyNameIn(In, Word, L.name(N));
    if (Auxiliary[N] || Names[N].Replica < 0)
      continue;
    if (unsigned(Names[N].Replica) >= Replicas)
      return error(N, "is a copy for a replica that does not exist");
    auto [It, New] =
        ByBase.try_emplace(Names[N].Base, static_cast<uint32_t>(Groups.size()));
    if (New)
      Groups.push_back({std::vector<NodeId>(Replicas, NoNode), NoNode,
                        Names[N].Base, Names[N].Split, NoNode, NoNode});
    Groups[It->second].Copies[Names[N].Replica] = N;
    GroupOf[N] = It->second;
    ReplicaOf[N] = Names[N].Replica;
  }
  for (NodeId N = 0; N < L.size(); ++N) {
    if (Auxiliary[N] || GroupOf[N] != NoGroup)
      continue;
    auto It = ByBase.find(L.name(N));
    if (It != ByBase.end() && Groups[It->second].Copies[0] == NoNode) {
      Groups[It->second].Copies[0] = N;
      GroupOf[N] = It->second;
      ReplicaOf[N] = 0;
      continue;
    }
    GroupOf[N] = static_cast<uint32_t>(Groups.size());
    Groups.push_back({{}, N, originName(L, N).str(), 0, NoNode, NoNode});
    Groups.back().TakesName = It != ByBase.end();
  }
  for (Group &Gr : Groups)
    for (unsigned R = 0; Gr.Once == NoNode && R < Replicas; ++R)
      if (Gr.Copies[R] == NoNode &&
          (R > 0 || In.find(Gr.Base) != NoNode || !mayLackPrimary(Gr))) {
        ++Errors;
        Diags.error(Gr.Base,
                    ("the copy for replica " + Twine(R) + " is missing").str());
        return false;
      }
  return true;
}

/// Restores the frame name of the input. Each replica runs its own loops, in
/// frames whose names begin with the replica.
void Folder::takeFrame(const Group &Gr) {
  for (unsigned R = 0; R < Gr.Copies.size(); ++R) {
    if (Gr.Copies[R] == NoNode)
      continue;
    StringRef Frame = L.stringAttr(Gr.Copies[R], "frame_name").value_or("");
    if (Frame.consume_front((Word + Twine(R) + "/").str()))
      P->setStringAttr(Gr.Program, "frame_name", Frame);
    else
      error(Gr.Copies[R], "enters a frame that does not belong to its replica");
  }
}

/// Adds the program's node for a group, without inputs.
void Folder::make(Group &Gr) {
  NodeId M = Gr.model();
  bool Once = Gr.Once != NoNode;
  bool Local =
      !Once && Gr.Copies[0] != NoNode && L.name(Gr.Copies[0]) != Gr.Base;
  StringRef Op = L.opName(M);
  // Inserted nodes may have a name of the input. A merge may have the name of a
  // node whose copies have local names. The gate of a proxy's refresh has the
  // name of the update.
  bool FromInput = !stamped(M) && !ProxyForm.Recognize(File, M) &&
                   !AccumulateForm.Recognize(File, M) &&
                   !BlocksForm.Recognize(File, M) && !Gr.TakesName &&
                   In.find(Gr.Base) != NoNode;
  // If the copies have local names, the merged value has the base name.
  std::string Name = Once ? L.name(M).str() : Gr.Base;
  if (Local && (In.find(Gr.Base) != NoNode || L.find(Gr.Base) != NoNode))
    Name = (copyScope(Word) + "/" + Name).str();
  Inserted Kind = Inserted::No;
  std::string NewOp = Op.str();
  if (stamped(M)) {
    if (Op == op::Split) {
      NewOp = ToReplicasOp;
      Kind = Inserted::Split;
    } else if (Op == op::Mul || Op == op::FloorDiv) {
      NewOp = ScaleOp;
      Kind = Inserted::Scale;
    } else {
      NewOp = FromReplicasOp;
      Kind = L.hasAttr(M, AssumedAttr) ? Inserted::Reduce : Inserted::Merge;
    }
  } else if (!FromInput) {
    Kind = recognizeInserted(File, M);
  }
  NodeId N = Gr.Program = P->addNode(P->uniqueName(Name), NewOp, {}, NoNode);
  for (const AttrEntry &A : L.attrs(M)) {
    bool Shared =
        A.Key == "shared_name" || A.Key == "seed2" || A.Key == "frame_name";
    NodeId From = Shared && !Once && Gr.Copies[0] != NoNode ? Gr.Copies[0] : M;
    // If copy 0 of a handle has no shared name, only the other copies have one.
    if (auto Value = L.attr(From, A.Key))
      P->setAttr(N, A.Key, *Value);
  }
  if (!Once && L.hasAttr(M, "frame_name"))
    takeFrame(Gr);
  if (FromInput && L.isOp(M, op::Const)) {
    NodeId Was = In.find(Gr.Base);
    // In foldAlone(), the stand-in for the input has only names and ops, so its
    // constants have no value.
    auto Value = In.isOp(Was, op::Const) ? In.attr(Was, "value") : std::nullopt;
    if (Value && Value != L.attr(M, "value"))
      P->setAttr(N, OriginalAttr, *Value);
  }
  if (StringRef Key = FromInput ? statedShape(Op) : ""; !Key.empty()) {
    NodeId Was = In.find(Gr.Base);
    auto Shape = In.isOp(Was, Op) ? In.attr(Was, Key) : std::nullopt;
    if (Shape && Shape != L.attr(M, Key))
      P->setAttr(N, OriginalAttr, *Shape);
  }
  if (P->name(N) != Gr.Base && FromInput)
    P->setStringAttr(N, OriginAttr, Gr.Base);
  if (isVariableOp(Op) && L.hasAttr(M, AggregationAttr))
    P->setPolicy(N, Policy::SyncOnRead);
  Node &New = P->node(N);
  New.Kind = Kind;
  New.Count =
      Once && Kind != Inserted::Split ? Copies::Once : Copies::PerReplica;
  if (Local || (!Once && Op.starts_with("Collective")))
    New.Flags |= NF_LocalName;
  if (!Once && Gr.Copies[0] == NoNode)
    New.Flags |= NF_ElidePrimary;
}

/// Finds the program's endpoint for an input of a lowered node.
bool Folder::source(Endpoint E, NodeId User, unsigned Replica, bool Once,
                    Endpoint &Result) {
  if (GroupOf[E.Node] == NoGroup)
    return error(User, "uses '" + L.name(E.Node) +
                           "', an operand that lowering added to another "
                           "node");
  Group &From = Groups[GroupOf[E.Node]];
  Result = {From.Program, E.Port};
  if (From.Once != NoNode) {
    if (P->node(From.Program).Kind == Inserted::Split && !E.isControl()) {
      if (Once || E.Port != Replica)
        return error(User, "reads the slice of another replica from '" +
                               L.name(E.Node) + "'");
      Result.Port = 0;
    }
    return true;
  }
  if (!Once && ReplicaOf[E.Node] != int(Replica))
    return error(User, "reads '" + L.name(E.Node) +
                           "', which belongs to another replica");
  if (Once && !E.isControl()) {
    // An unreplicated node of the file that reads copy 0 of a per-replica value
    // reads a take-first merge in the program.
    if (ReplicaOf[E.Node] != 0)
      return error(User, "is unreplicated but reads '" + L.name(E.Node) +
                             "', which is not the copy of replica 0");
    if (From.Pick == NoNode) {
      From.Pick =
          P->addNode(P->uniqueName(P->name(From.Program).str() + "/pick"),
                     FromReplicasOp, {}, NoNode);
      P->setStringAttr(From.Pick, CombineAttr, combine::Pick);
      P->setTypeAttr(From.Pick, "T", L.outputType(E.Node, E.Port));
      P->node(From.Pick).Kind = Inserted::Merge;
      P->node(From.Pick).Flags |= NF_ElidePrimary;
      P->setInputs(From.Pick, Result);
    } else if (P->input(From.Pick, 0) != Result) {
      // The existing merge takes another output of the node.
      NodeId Pick = P->addNode(P->uniqueName(P->name(From.Pick).str()),
                               FromReplicasOp, Result, NoNode);
      P->setStringAttr(Pick, CombineAttr, combine::Pick);
      P->setTypeAttr(Pick, "T", L.outputType(E.Node, E.Port));
      P->node(Pick).Kind = Inserted::Merge;
      P->node(Pick).Flags |= NF_ElidePrimary;
      Result = {Pick, 0};
      return true;
    }
    Result = {From.Pick, 0};
  }
  return true;
}

/// Finds the inputs of copy \p Replica, data and control, in the program.
bool Folder::edges(Group &Gr, unsigned Replica, bool Once,
                   std::vector<Endpoint> &Result) {
  NodeId N = Once ? Gr.Once : Gr.Copies[Replica];
  unsigned Data = L.node(N).NumData, First = 0;
  NodeId Of = N;
  // Lowering added the other operands.
  if (stamped(N) && repeatOf(N) != NoNode) {
    Of = repeatOf(N);
    Data = 2;
  } else if (stamped(N)) {
    First = L.isOp(N, op::Split) ? 1 : 0;
    Data = !L.isOp(N, op::Split) && hasFactor(N) ? 2 : 1;
  }
  for (unsigned I = 0; I < Data; ++I) {
    Endpoint E = L.input(Of, First + I), To;
    if (!source(E, N, Replica, Once, To))
      return false;
    Result.push_back(To);
  }
  return controls(Gr, N, Replica, Once, Result);
}

/// Finds the control inputs. An unreplicated node waits for all copies, or for
/// copy 0 if copy 0 waits for the others.
bool Folder::controls(Group &Gr, NodeId N, unsigned Replica, bool Once,
                      std::vector<Endpoint> &Result) {
  ArrayRef<Endpoint> Controls = L.controlInputs(N);
  for (size_t I = 0; I < Controls.size(); ++I) {
    if (GroupOf[Controls[I].Node] == NoGroup)
      return error(N, "waits for '" + L.name(Controls[I].Node) +
                          "', an operand that lowering added to another "
                          "node");
    Group &From = Groups[GroupOf[Controls[I].Node]];
    if (!Once && &From == &Gr) {
      if (Replica != 0)
        return error(N, "waits for another copy of itself");
      continue; // takeLed() checks these
    }
    Endpoint To;
    if (!source(Controls[I], N, Replica, Once, To))
      return false;
    if (Once && From.Once == NoNode) {
      std::vector<bool> Seen(Replicas);
      size_t First = I;
      for (; I < Controls.size() &&
             GroupOf[Controls[I].Node] == GroupOf[Controls[First].Node];
           ++I)
        Seen[ReplicaOf[Controls[I].Node]] = true;
      --I;
      auto Count = static_cast<unsigned>(llvm::count(Seen, true));
      bool Led = P->node(From.Program).Flags & NF_Led;
      if (Count != Replicas - (From.Copies[0] == NoNode ? 1 : 0) &&
          !(Led && Count == 1 && Seen[0]))
        return error(N, "waits for only some of the replicas of '" + From.Base +
                            "'");
    }
    Result.push_back(To);
  }
  return true;
}

/// Returns the value of \p E if it is a scalar constant, as an axis must be.
std::optional<int64_t> Folder::axisAt(Endpoint E) const {
  auto Value = constValue(L, E.Node);
  if (!Value || Value->Ints.size() != 1 || !Value->Shape.Dims.empty())
    return std::nullopt;
  return Value->Ints[0];
}

/// Returns the concatenation whose first elements along one axis \p Keep keeps.
/// Returns NoNode if \p Keep keeps other elements.
NodeId Folder::keptOf(NodeId Keep) const {
  NodeId All = L.input(Keep, 0).Node;
  if (!stamped(All) || !L.isOp(All, op::ConcatV2) || L.node(All).NumData < 2)
    return NoNode;
  auto Axis = axisAt(L.input(All, L.node(All).NumData - 1));
  auto Kept = keptAxis(L, Keep);
  return Kept && Axis == int64_t(*Kept) ? All : NoNode;
}

/// Folds a merge, which combines copies 0 to N-1 of one tensor in order.
bool Folder::combined(Group &Gr, std::vector<Endpoint> &Result) {
  NodeId N = Gr.Once, Values = N;
  StringRef Op = L.opName(Gr.model());
  StringRef Combine =
      StringSwitch<StringRef>(Op)
          .Case(op::AddN, combine::Sum)
          .Cases(op::ConcatV2, op::StridedSlice, combine::Concat)
          .Case(op::Min, combine::Min)
          .Case(op::Max, combine::Max)
          .Case(op::All, combine::And)
          .Case(op::Any, combine::Or)
          .Case(op::Identity, combine::Pick)
          .Default("");
  if (N == NoNode || Combine.empty())
    return error(Gr.model(),
                 "has a _graft_replicas but is not an op that merges replicas");
  if (Op == op::Min || Op == op::Max || Op == op::All || Op == op::Any) {
    Values = L.input(N, 0).Node;
    auto Axis = constValue(L, L.input(N, 1).Node);
    if (!stamped(Values) || !L.isOp(Values, op::Pack) ||
        L.intAttr(Values, "axis") != 0 || L.boolAttr(N, "keep_dims") != false ||
        !Axis || !Axis->HasInts || Axis->Ints.size() != 1 || Axis->Ints[0] != 0)
      return error(N, "does not combine along the axis of the replicas");
  }
  if (Op == op::StridedSlice) {
    Values = keptOf(N);
    if (Values == NoNode)
      return error(N, "does not keep the first rows of all replicas");
  }
  unsigned Count = Combine == combine::Pick ? 1 : Replicas;
  if (L.node(Values).NumData < Count)
    return error(N, "does not combine all replicas");
  for (unsigned R = 0; R < Count; ++R) {
    Endpoint E = L.input(Values, R), First = L.input(Values, 0), To;
    // The parts of a split are outputs of one node: source() checks ports.
    uint32_t From = GroupOf[E.Node];
    bool IsPart = From != NoGroup && Groups[From].Once != NoNode &&
                  P->node(Groups[From].Program).Kind == Inserted::Split;
    if (From != GroupOf[First.Node] ||
        (!IsPart && (E.Port != First.Port || ReplicaOf[E.Node] != int(R))))
      return error(N, "does not combine the copies of one tensor in order");
    if (!source(E, N, R, false, To))
      return false;
    if (R == 0)
      Result.push_back(To);
  }
  P->setStringAttr(Gr.Program, CombineAttr, Combine);
  P->setTypeAttr(
      Gr.Program, "T",
      L.outputType(L.input(Values, 0).Node, L.input(Values, 0).Port));
  if (Combine == combine::Concat) {
    auto Axis = L.node(Values).NumData > Count ? axisAt(L.input(Values, Count))
                                               : std::nullopt;
    if (!Axis)
      return error(N, "concatenates along an unknown axis");
    P->setIntAttr(Gr.Program, "axis", *Axis);
    if (Values != N) {
      Endpoint To;
      if (!source(L.input(N, 2), N, 0, true, To))
        return false;
      Result.push_back(To);
    }
  }
  return controls(Gr, N, 0, true, Result);
}

/// Sets NF_Led if copy 0 waits for all other copies. Reports an error if it
/// waits for only some of them.
bool Folder::takeLed(Group &Gr) {
  auto Count = static_cast<unsigned>(
      llvm::count_if(L.controlInputs(Gr.Copies[0]), [&](Endpoint E) {
        return GroupOf[E.Node] == GroupOf[Gr.Copies[0]];
      }));
  if (Count != 0 && Count != Replicas - 1)
    return error(Gr.Copies[0], "waits for only some of its other copies");
  if (Count != 0)
    P->node(Gr.Program).Flags |= NF_Led;
  return true;
}

bool Folder::connect(Group &Gr) {
  std::vector<Endpoint> Inputs;
  NodeId M = Gr.model();
  if (stamped(M) && P->isOp(Gr.Program, FromReplicasOp)) {
    if (!combined(Gr, Inputs))
      return false;
  } else if (Gr.Once != NoNode) {
    if (!edges(Gr, 0, true, Inputs))
      return false;
  } else {
    if (!edges(Gr, Replicas - 1, false, Inputs))
      return false;
    for (unsigned R = 0; R + 1 < Replicas; ++R) {
      std::vector<Endpoint> Other;
      if (Gr.Copies[R] == NoNode)
        continue;
      if (L.opName(Gr.Copies[R]) != L.opName(M))
        return error(Gr.Copies[R], "has a different op than the other copies");
      if (!edges(Gr, R, false, Other))
        return false;
      // Copy 0 reads the input of a node whose copy 0 is not written.
      for (size_t I = 0; R == 0 && I < Other.size() && I < Inputs.size(); ++I) {
        NodeId Via = Inputs[I].Node;
        if (!(P->node(Via).Flags & NF_ElidePrimary) || Other[I] == Inputs[I])
          continue;
        Group &Elided = Groups[GroupOfProgram[Via]];
        Endpoint To;
        if (source(L.input(Elided.model(), 0), Elided.model(), Replicas - 1,
                   false, To) &&
            To == Other[I])
          Other[I] = Inputs[I];
      }
      if (Other != Inputs)
        return error(Gr.Copies[R],
                     "has different inputs than the other copies");
    }
  }
  if (stamped(M) && P->node(Gr.Program).Kind == Inserted::Split) {
    auto Axis = axisAt(L.input(M, 0));
    if (!Axis)
      return error(M, "splits along an unknown axis");
    if (L.intAttr(M, "num_split") != Replicas)
      return error(M, "does not split into as many parts as replicas");
    P->setIntAttr(Gr.Program, "axis", *Axis);
  }
  if (stamped(M) && P->node(Gr.Program).Kind == Inserted::Scale) {
    auto Factor = constScalar(L, L.input(M, 1).Node);
    for (NodeId Copy : Gr.Copies)
      if (Copy != NoNode &&
          (!stamped(Copy) ||
           (!hasFactor(M) && constScalar(L, L.input(Copy, 1).Node) != Factor)))
        return error(Copy,
                     "scales by a different factor than the other copies");
    // A factor for each element scales a vector of global sizes, which is
    // unreplicated.
    if ((!Factor && Gr.Once == NoNode && !hasFactor(M)) ||
        !takeScale(L, M, Replicas, *P, Gr.Program))
      return error(M, "does not scale by a power of the number of replicas");
  }
  P->setInputs(Gr.Program, Inputs);
  return true;
}

/// Checks that a collective gather, ordered by device, is in replica order.
bool Folder::gathersRows(const Group &Gr) {
  if (Gr.Once != NoNode || !L.isOp(Gr.model(), op::CollectiveGather))
    return true;
  std::vector<std::string> Devices;
  for (NodeId Copy : Gr.Copies)
    if (Copy != NoNode)
      Devices.push_back(L.device(Copy).str());
  return gathersInOrder(Devices) ||
         error(Gr.model(), "gathers rows in the order of the devices, which is "
                           "not that of the replicas");
}

std::unique_ptr<Graph> Folder::fold() {
  if (!group())
    return nullptr;
  NodeId MeshNode = P->addNode("graft/mesh", MeshOp, {}, NoNode);
  std::vector<std::string> Names;
  Names.reserve(Replicas);
  for (unsigned R = 0; R < Replicas; ++R)
    Names.push_back("/device:CPU:" + std::to_string(R));
  std::vector<StringRef> Refs(Names.begin(), Names.end());
  P->setIntAttr(MeshNode, "replicas", Replicas);
  P->setAttr(MeshNode, "devices", encodeStringListAttr(Refs));
  if (Word != UsualCopyWord)
    P->setStringAttr(MeshNode, CopyWordAttr, Word);
  P->node(MeshNode).Kind = Inserted::Mesh;
  for (Group &Gr : Groups) {
    make(Gr);
    GroupOfProgram.resize(P->size(), NoGroup);
    GroupOfProgram[Gr.Program] = static_cast<uint32_t>(&Gr - Groups.data());
  }
  for (Group &Gr : Groups)
    if (Gr.Once == NoNode && Gr.Copies[0] != NoNode)
      takeLed(Gr);
  for (Group &Gr : Groups) {
    connect(Gr);
    gathersRows(Gr);
  }
  return Errors == 0 ? std::move(P) : nullptr;
}

} // namespace

unsigned stampedReplicas(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Flags & NF_MayHaveGraft)
      if (auto Stamp = G.intAttr(N, StampAttr))
        return *Stamp > 0 ? static_cast<unsigned>(*Stamp) : 0;
  return 0;
}

unsigned countReplicas(const Graph &Lowered, const Graph &Input) {
  unsigned Replicas = stampedReplicas(Lowered);
  if (Replicas != 0)
    return Replicas;
  std::string Word = freeCopyWord(Input);
  for (NodeId N = 0; N < Lowered.size(); ++N)
    if (int Replica = copyNameIn(Input, Word, Lowered.name(N)).Replica;
        Replica > 0)
      Replicas = std::max(Replicas, static_cast<unsigned>(Replica) + 1);
  // Each replica has at least one node. A larger number comes from names that
  // only look like names of copies.
  return Replicas <= Lowered.numLive() ? Replicas : 0;
}

std::unique_ptr<Graph> foldReplicas(const Graph &Lowered, const Graph &Input,
                                    DiagnosticEngine &Diags) {
  return Folder(Lowered, Input, countReplicas(Lowered, Input), Diags).run();
}

std::unique_ptr<Graph> foldAlone(const Graph &Lowered) {
  if (stampedReplicas(Lowered) < 2)
    return nullptr;
  // Likely stands in for the unknown input. It has each node that is not a
  // copy, and the base name of each copy 0. It lacks marked nodes and their
  // operands.
  std::string Word = copyWordOf(Lowered);
  const Graph None;
  Graph Likely;
  for (NodeId N = 0; N < Lowered.size(); ++N) {
    CopyName Name = copyNameIn(None, Word, Lowered.name(N));
    auto IsStamped = [&](NodeId M) { return Lowered.hasAttr(M, StampAttr); };
    bool IsPart = Lowered.dataInputs(N).empty() && Lowered.hasUses(N) &&
                  !Lowered.anyUse(N, [&](Use U) { return !IsStamped(U.User); });
    if (Name.Replica <= 0 && !IsPart && !IsStamped(N) &&
        Likely.find(Name.Base) == NoNode)
      Likely.addNode(Name.Base, Lowered.opName(N), {}, NoNode);
  }
  DiagnosticEngine Ignored;
  std::unique_ptr<Graph> P =
      Folder(Lowered, Likely, stampedReplicas(Lowered), Ignored).fold();
  if (!P)
    return nullptr;
  // Removes the mesh: the result must not contain the number of replicas.
  unsigned Replicas = readMesh(*P).replicas();
  P->remove(readMesh(*P).Node);
  SmallVector<NodeId, 8> OfReplicas;
  for (NodeId N = 0; N < P->size(); ++N) {
    auto Lookup = P->isLive(N) ? rowLookup(*P, {N, 0}) : std::nullopt;
    if (!Lookup || !rowRest(*P, Lookup->Rest, Replicas))
      continue;
    OfReplicas.push_back(Lookup->Table);
    OfReplicas.push_back(P->input(Lookup->Rest.Node, 1).Node);
  }
  for (NodeId N : OfReplicas)
    P->removeAttr(N, "value");
  for (NodeId N = 0; N < P->size(); ++N) {
    if (!P->isLive(N))
      continue;
    StringRef Op = P->opName(N);
    for (StringRef Key : {"N", "num_split", "group_size"})
      if (Op == FromReplicasOp || Op == ToReplicasOp ||
          Op.starts_with("Collective"))
        P->removeAttr(N, Key);
    P->removeAttr(N, StampAttr);
  }
  return P;
}

/// Checks that nothing in \p Lowered refers to a second replica.
static bool verifyOneReplica(const Graph &Lowered, const Graph &Input,
                             DiagnosticEngine &Diags) {
  std::string Word = copyWordOf(Lowered, Input);
  for (NodeId N = 0; N < Lowered.size(); ++N) {
    bool IsCopy = copyNameIn(Input, Word, Lowered.name(N)).Replica > 0;
    if (!IsCopy && Lowered.intAttr(N, StampAttr).value_or(1) == 1)
      continue;
    Diags.error(Lowered.name(N), "is of a graph with more than one replica, "
                                 "but another node has a _graft_replicas of 1");
    return false;
  }
  return true;
}

/// Returns \p Lowered without device copies; null if it has none. A graph with
/// one replica has no copies of nodes, but may have inserted device copies,
/// which forward their values.
static std::unique_ptr<Graph> withoutPlaces(const Graph &Lowered,
                                            const Graph &Input) {
  auto IsPlace = [&](const Graph &G, NodeId N) {
    return G.isLive(N) && G.isOp(N, op::Identity) && G.node(N).NumData == 1 &&
           G.controlInputs(N).empty() && Input.find(G.name(N)) == NoNode &&
           !G.hasAttr(N, OriginAttr);
  };
  std::unique_ptr<Graph> Result;
  for (NodeId N = 0; N < Lowered.size() && !Result; ++N)
    if (IsPlace(Lowered, N))
      Result = compact(Lowered);
  for (NodeId N = 0; Result && N < Result->size(); ++N) {
    if (!IsPlace(*Result, N))
      continue;
    Endpoint Value = Result->input(N, 0);
    for (Use U : Result->uses(N))
      Result->setInput(
          U.User, U.Index,
          {Value.Node, Result->isData(U) ? Value.Port : ControlPort});
    Result->remove(N);
  }
  return Result ? compact(*Result) : nullptr;
}

bool certifyLowered(const Graph &Input, const Graph &Lowered,
                    DiagnosticEngine &Diags, bool IsComputation) {
  unsigned Replicas = countReplicas(Lowered, Input);
  if (!verifyTypes(Lowered, Diags) || !verifyCollectives(Lowered, Diags))
    return false;
  // Nothing is replicated.
  if (Replicas == 0) {
    std::unique_ptr<Graph> Plain = withoutPlaces(Lowered, Input);
    return certifyProgram(Input, Plain ? *Plain : Lowered, Diags);
  }
  // With one replica, names do not show which nodes are copies.
  if (Replicas == 1)
    return verifyOneReplica(Lowered, Input, Diags);
  std::unique_ptr<Graph> Program = foldReplicas(Lowered, Input, Diags);
  return Program && certifyProgram(Input, *Program, Diags, IsComputation);
}

} // namespace graft
