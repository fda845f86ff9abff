//===- lib/infer/graph/Variables.cpp - variables and their users *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/Variables.h"
#include "lib/ops/ProgramOps.h"

#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

static constexpr const char *AggregationNames[] = {"none", "sum", "mean",
                                                   "only-first-replica"};

StringRef aggregationName(Aggregation How) {
  return AggregationNames[static_cast<size_t>(How)];
}

std::optional<Aggregation> parseAggregation(StringRef Name) {
  const auto *It = find(AggregationNames, Name);
  if (It == std::end(AggregationNames))
    return std::nullopt;
  return static_cast<Aggregation>(It - std::begin(AggregationNames));
}

std::optional<Aggregation> aggregationOf(const Graph &G, NodeId Var) {
  if (!(G.node(Var).Flags & NF_MayHaveGraft))
    return std::nullopt;
  return parseAggregation(G.stringAttr(Var, AggregationAttr).value_or(""));
}

VariableIndex::VariableIndex(const Graph &G) {
  enum : uint8_t { Other, Creates, PassesOn, PassesOnTwice };
  std::vector<uint8_t> Role(G.numOps(), Other);
  UpdateOps.resize(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    StringRef Name = G.opNameOf(Op);
    OnceOps.push_back(isOnceOp(Name));
    if (isVariableOp(Name)) {
      Role[Op] = Creates;
      continue;
    }
    // FromReplicasOp, and ops that return their operand: a reference, or a
    // handle (the code below checks its source).
    if (!Def) {
      if (Name == FromReplicasOp)
        Role[Op] = PassesOn;
      continue;
    }
    UpdateOps[Op] = Def->update();
    if (Def->NumInputs == 0 || Def->NumOutputs == 0)
      continue;
    bool RefToRef = Def->inputs()[0].IsRef && Def->outputs()[0].IsRef;
    bool AnyToAny =
        *Def->inputs()[0].TypeAttr && *Def->outputs()[0].TypeAttr &&
        StringRef(Def->inputs()[0].TypeAttr) == Def->outputs()[0].TypeAttr &&
        !*Def->inputs()[0].NumberAttr;
    if (RefToRef || (AnyToAny && (Name == op::Identity || Name == op::Switch ||
                                  Name == op::Enter || Name == op::Exit ||
                                  Name == op::Merge)))
      Role[Op] = Name.ends_with(op::Switch) ? PassesOnTwice : PassesOn;
  }
  VarOf.assign(G.size(), NoNode);
  for (NodeId N = 0; N < G.size(); ++N)
    if (Role[G.node(N).Op] == Creates && G.isLive(N))
      Vars.push_back(N);
  // Follow each variable through the nodes that pass it on. There are few such
  // nodes, and each passes on one variable.
  SmallVector<NodeId, 8> Aliases;
  for (NodeId Var : Vars) {
    VarOf[Var] = Var;
    bool IsHandle = G.isOp(Var, op::VarHandleOp);
    Aliases.push_back(Var);
    while (!Aliases.empty())
      G.forEachUse(Aliases.pop_back_val(), [&](Use U) {
        const Node &User = G.node(U.User);
        if (U.Index != 0 || Role[User.Op] < PassesOn || User.NumData == 0 ||
            VarOf[U.User] != NoNode || variableOf(G.input(U.User, 0)) == NoNode)
          return;
        // Identity of a reference reads the value, but passes a handle on.
        if (!IsHandle && G.opDef(U.User) && !G.isRefOutput(U.User, 0))
          return;
        VarOf[U.User] = Var;
        if (Role[User.Op] == PassesOnTwice)
          Switches.insert(U.User);
        Aliases.push_back(U.User);
      });
  }
}

UpdateDef VariableIndex::updateOf(const Graph &G, uint32_t Op) {
  const OpDef *Def = G.opDefOf(Op);
  return Def ? Def->update() : UpdateDef();
}

NodeId VariableIndex::initialAssign(const Graph &G, NodeId Var) const {
  NodeId Found = NoNode;
  bool Several = false;
  forEachUse(G, Var, [&](Use U) {
    if (update(G, U.User).Kind != UpdateKind::Assign || U.Index != 0 ||
        G.node(U.User).Kind != Inserted::No)
      return;
    NodeId Value = G.input(U.User, 1).Node;
    auto PassesOn = [&] {
      const Node &This = G.node(Value);
      return This.NumData != 0 &&
             (This.Kind == Inserted::Identity || This.Kind == Inserted::Scale ||
              (This.Count == Copies::Once && G.isOp(Value, op::Identity)));
    };
    while (PassesOn())
      Value = G.input(Value, 0).Node;
    if (G.node(Value).Count != Copies::Once || isOnce(G, Value) ||
        G.opName(Value).starts_with(op::Placeholder))
      return;
    Several |= Found != NoNode;
    Found = U.User;
  });
  return Several ? NoNode : Found;
}

bool VariableIndex::usesInPlace(const Graph &G, NodeId N,
                                unsigned Index) const {
  Endpoint In = G.input(N, Index);
  NodeId Var = variableOf(In);
  if (Var == NoNode)
    return false;
  return G.isOp(Var, op::VarHandleOp) || G.isRefInput(N, Index);
}

} // namespace graft
