//===- lib/infer/graph/Loops.cpp - frames, local handles, lists -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/Loops.h"

#include "lib/infer/graph/Topology.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {
namespace {

enum class Role : uint8_t {
  Other,
  Enter,
  Exit,
  Merge,
  NextIteration,
  PassesOn, ///< Passes on a handle or a list, among other things.
  Creates,  ///< Makes a tensor array, a stack or a list.
  Zeros,    ///< Makes zeros, also a list of them.
  Writes,   ///< Returns a list with other elements than its operand.
  Uses,
};

Role roleOf(StringRef Op) {
  return StringSwitch<Role>(Op)
      .Cases(op::Enter, op::RefEnter, Role::Enter)
      .Cases(op::Exit, op::RefExit, Role::Exit)
      .Cases(op::Merge, op::RefMerge, Role::Merge)
      .Cases(op::NextIteration, op::RefNextIteration, Role::NextIteration)
      .Cases(op::Identity, op::Switch, op::RefSwitch, Role::PassesOn)
      .Case(op::AddN, Role::Merge)
      .Cases(op::TensorArrayV3, op::TensorArrayGradV3,
             op::TensorArrayGradWithShape, op::StackV2, Role::Creates)
      .Cases(op::EmptyTensorList, op::TensorListReserve,
             op::TensorListFromTensor, Role::Creates)
      .Case(op::ZerosLike, Role::Zeros)
      .Cases(op::TensorListSetItem, op::TensorListPushBack,
             op::TensorListPopBack, op::TensorListResize, Role::Writes)
      .Cases(op::TensorListGetItem, op::TensorListStack, op::TensorListGather,
             op::TensorListLength, op::TensorListElementShape, Role::Uses)
      .Default(isLocalHandleOp(Op) ? Role::Uses : Role::Other);
}

} // namespace

bool isLocalHandleOp(StringRef Op) {
  return (ruleOf(Op).Is & trait::Handle) != 0;
}

bool isPushOp(StringRef Op) {
  return Op == op::StackPushV2 || Op == op::TensorListPushBack;
}

bool isPopOp(StringRef Op) {
  return Op == op::StackPopV2 || Op == op::TensorListPopBack;
}

StringRef statedShape(StringRef Op) {
  const OpDef *Def = findOp(Op);
  if (!Def)
    return "";
  bool OfElements = isLocalHandleOp(Op);
  for (const AttrDef &A : Def->attrs())
    if (StringRef Key = A.Name;
        StringRef(A.Type) == "shape" &&
        (OfElements ? Key.starts_with("element_shape")
                    : Key == "shape" && !Def->inputs().empty()))
      return Key;
  return "";
}

std::unique_ptr<LoopInfo> LoopInfo::find(const Graph &G,
                                         ArrayRef<NodeId> Order) {
  bool Any = false;
  for (uint32_t Op = 0; Op < G.numOps() && !Any; ++Op) {
    StringRef Name = G.opNameOf(Op);
    Any = Name == op::Enter || Name == op::RefEnter ||
          roleOf(Name) == Role::Creates;
  }
  if (!Any)
    return nullptr;
  if (!Order.empty())
    return std::unique_ptr<LoopInfo>(new LoopInfo(G, Order));
  return std::unique_ptr<LoopInfo>(new LoopInfo(G, topologicalOrder(G)));
}

LoopInfo::LoopInfo(const Graph &G, ArrayRef<NodeId> Order)
    : Frames(1), FrameOf(G.size()), IsExit(G.size()), IsLoopMerge(G.size()),
      OnlyFirst(G.size()), HandleOf(G.size(), NoNode) {
  std::vector<Role> Roles;
  Roles.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Roles.push_back(roleOf(G.opNameOf(Op)));
  StringMap<uint32_t> ByName;
  StringMap<NodeId> Gradients;
  std::vector<NodeId> Merges;
  bool AnyList = false;
  for (NodeId N : Order) {
    const Node &This = G.node(N);
    Role R = Roles[This.Op];
    // Take the first input that is in a loop, since all such inputs are in the
    // same loop. Inputs that are back edges are not visited yet.
    uint32_t F = 0;
    for (Endpoint E : G.inputs(N)) {
      F = frameOfValue(E.Node);
      if (F != 0)
        break;
    }
    if (R == Role::Enter) {
      StringRef Name = G.stringAttr(N, "frame_name").value_or("");
      auto [It, New] =
          ByName.try_emplace(Name, static_cast<uint32_t>(Frames.size()));
      if (New) {
        auto Mine = static_cast<uint32_t>(Frames.size());
        uint32_t Outermost = F == 0 ? Mine : Frames[F].Outermost;
        Frames.push_back({F, Outermost, {}});
      }
      F = It->second;
    }
    FrameOf[N] = F;
    IsExit[N] = R == Role::Exit;
    if (F != 0)
      Frames[Frames[F].Outermost].Nodes.push_back(N);
    if (R == Role::Merge)
      IsLoopMerge[N] = any_of(G.dataInputs(N), [&](Endpoint E) {
        return Roles[G.node(E.Node).Op] == Role::NextIteration;
      });
    if (R == Role::Zeros && handleOf(G.input(N, 0)) != NoNode) {
      HandleOf[N] = N;
      Handles.push_back(N);
    }
    // An Enter brings each handle and each list into the loop. If an iteration
    // ends with another list, joinLists() joins the classes of the two lists.
    OnlyFirst[N] = R == Role::Creates || R == Role::Writes;
    if (R == Role::Creates) {
      NodeId Made = N;
      if (NodeId Of = This.NumData > 0 ? handleOf(G.input(N, 0)) : NoNode;
          Of != NoNode) {
        std::string Key = std::to_string(Of);
        Key += G.stringAttr(N, "source").value_or("");
        Made = Gradients.try_emplace(Key, N).first->second;
      }
      HandleOf[N] = Made;
      if (Made == N)
        Handles.push_back(N);
      AnyList |= !isLocalHandleOp(G.opName(N));
    }
    if (R == Role::Merge) {
      for (Endpoint E : G.dataInputs(N))
        if (HandleOf[N] == NoNode)
          HandleOf[N] = handleOf(E);
      if (HandleOf[N] != NoNode)
        Merges.push_back(N);
    } else if (R != Role::Other && R != Role::Creates && R != Role::Zeros &&
               R != Role::Uses && This.NumData > 0) {
      HandleOf[N] = handleOf(G.input(N, 0));
    }
  }
  if (AnyList)
    joinLists(G, Order, Merges);
  for (NodeId N : Order) {
    if (Roles[G.node(N).Op] < Role::Creates)
      continue;
    // TensorListFromTensor also writes the elements of the list that it makes.
    if (G.isOp(N, op::TensorListFromTensor) && HandleOf[N] != NoNode)
      Users[HandleOf[N]].push_back(N);
    for (Endpoint E : G.dataInputs(N))
      if (NodeId H = handleOf(E); H != NoNode)
        Users[H].push_back(N);
  }
}

/// Joins the classes of lists that \p Merges combine. Drops a class if one of
/// its lists comes from an unknown op.
void LoopInfo::joinLists(const Graph &G, ArrayRef<NodeId> Order,
                         ArrayRef<NodeId> Merges) {
  EquivalenceClasses<NodeId> Classes;
  for (NodeId N : Merges)
    if (!isLocalHandleOp(G.opName(HandleOf[N])))
      for (Endpoint E : G.dataInputs(N))
        Classes.unionSets(HandleOf[N], handleOf(E));
  if (Classes.empty())
    return;
  auto LeaderOf = [&](NodeId Handle) -> NodeId {
    auto It = Classes.findLeader(Handle);
    if (It == Classes.member_end())
      return Handle;
    return Classes.isEquivalent(Handle, NoNode) ? NoNode : *It;
  };
  for (NodeId N : Order)
    if (HandleOf[N] != NoNode)
      HandleOf[N] = LeaderOf(HandleOf[N]);
  for (NodeId Handle : Handles)
    if (NodeId Leader = LeaderOf(Handle); Leader != Handle)
      Shared.insert(Leader);
  erase_if(Handles, [&](NodeId Handle) { return LeaderOf(Handle) != Handle; });
}

bool LoopInfo::isStack(const Graph &G, NodeId Handle) const {
  return G.isOp(Handle, op::StackV2) ||
         (G.isOp(Handle, op::EmptyTensorList) && !Shared.contains(Handle));
}

std::vector<NodeId> LoopInfo::nests() const {
  std::vector<NodeId> Result;
  for (const Frame &F : Frames)
    if (!F.Nodes.empty())
      Result.push_back(F.Nodes.front());
  return Result;
}

SmallVector<NodeId, 2> LoopInfo::handlesUsedBy(const Graph &G, NodeId N) const {
  SmallVector<NodeId, 2> Result;
  if (N >= HandleOf.size())
    return Result;
  for (Endpoint E : G.dataInputs(N))
    if (NodeId H = handleOf(E); H != NoNode)
      Result.push_back(H);
  return Result;
}

} // namespace graft
