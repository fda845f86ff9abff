//===- lib/infer/graph/Loops.cpp - frames and local handles -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/Loops.h"

#include "lib/infer/graph/Topology.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

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
  PassesOn, ///< Passes on a handle, among other things.
  Creates,  ///< Makes a tensor array or a stack.
  Uses,
};

Role roleOf(StringRef Op) {
  return StringSwitch<Role>(Op)
      .Cases(op::Enter, op::RefEnter, Role::Enter)
      .Cases(op::Exit, op::RefExit, Role::Exit)
      .Cases(op::Merge, op::RefMerge, Role::Merge)
      .Cases(op::NextIteration, op::RefNextIteration, Role::NextIteration)
      .Cases(op::Identity, op::Switch, op::RefSwitch, Role::PassesOn)
      .Cases(op::TensorArrayV3, op::TensorArrayGradV3,
             op::TensorArrayGradWithShape, op::StackV2, Role::Creates)
      .Default(isLocalHandleOp(Op) ? Role::Uses : Role::Other);
}

} // namespace

bool isLocalHandleOp(StringRef Op) {
  return (ruleOf(Op).Is & trait::Handle) != 0;
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
    Any = Name == op::Enter || Name == op::RefEnter || Name == op::StackV2 ||
          Name.starts_with(op::TensorArray);
  }
  if (!Any)
    return nullptr;
  if (!Order.empty())
    return std::unique_ptr<LoopInfo>(new LoopInfo(G, Order));
  return std::unique_ptr<LoopInfo>(new LoopInfo(G, topologicalOrder(G)));
}

LoopInfo::LoopInfo(const Graph &G, ArrayRef<NodeId> Order)
    : Frames(1), FrameOf(G.size()), IsExit(G.size()), IsLoopMerge(G.size()),
      Creates(G.size()), HandleOf(G.size(), NoNode) {
  std::vector<Role> Roles;
  Roles.reserve(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Roles.push_back(roleOf(G.opNameOf(Op)));
  StringMap<uint32_t> ByName;
  StringMap<NodeId> Gradients;
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
    // Back edges need no handles of their own: an Enter brings each handle into
    // the loop.
    if (R == Role::Creates) {
      Creates[N] = true;
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
    }
    if (R == Role::Creates || R == Role::Uses) {
      for (Endpoint E : G.dataInputs(N))
        if (NodeId H = handleOf(E); H != NoNode)
          Users[H].push_back(N);
    } else if (R != Role::Other && This.NumData > 0) {
      HandleOf[N] = handleOf(G.input(N, 0));
    }
  }
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
