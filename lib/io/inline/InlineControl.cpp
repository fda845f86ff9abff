//===- lib/io/inline/InlineControl.cpp - functional control flow *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Converts If, Case and While to version 1 control flow, as TensorFlow does
// before it runs a graph (lower_if_op.cc, lower_case_op.cc, lower_while_op.cc).
// A Case becomes a chain of conditionals: index == 0, index == 1, ...
//
//     y = If(p, x)        s = Switch(x, p)
//                     →   y = Merge(else-branch(s:0), then-branch(s:1))
//
//===----------------------------------------------------------------------===//

#include "lib/io/inline/Inliner.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Adds the branches of the conditional \p N from number \p Level on. Predicate
/// i selects branch i. The last branch runs if no predicate is true.
Inliner::Body Inliner::branches(NodeId N, ArrayRef<Endpoint> Predicates,
                                ArrayRef<FunctionRef> Functions, Ends Args,
                                const Site &At, unsigned Level) {
  std::string Prefix = At.Prefix.str();
  if (isExhausted())
    return exhausted(Functions[Level], At.Chain, N);
  if (Level == Predicates.size()) {
    Body B = instantiate(
        Functions[Level], Args,
        {(Prefix + "/branch_" + Twine(Level)).str(), N, At.Chain, At.Pivot});
    waitForEffects(B, Prefix, N);
    return B;
  }
  std::string Suffix = Level == 0 ? "" : "_" + std::to_string(Level);
  auto Named = [&](const char *What, size_t I) {
    return (What + Suffix + "_" + Twine(I)).str();
  };
  auto Chosen = [&](Endpoint E, StringRef Name) {
    Ends Inputs{E, Predicates[Level]};
    Inputs.append(At.Pivot.begin(), At.Pivot.end());
    return typed(Prefix, Name, op::Switch, Inputs, N).Node;
  };
  NodeId Pred = Chosen(Predicates[Level], "switch_pred" + Suffix);
  Endpoint On =
      typed(Prefix, "pivot_t" + Suffix, op::Identity, Endpoint{Pred, 1}, N);
  Endpoint Off =
      typed(Prefix, "pivot_f" + Suffix, op::Identity, Endpoint{Pred, 0}, N);
  Ends Here, Rest;
  for (auto [I, E] : enumerate(Args)) {
    NodeId Switch = Chosen(E, Named("switch", I));
    Here.push_back({Switch, 1});
    Rest.push_back({Switch, 0});
  }
  // Only the else branch reads the other predicates.
  SmallVector<Endpoint, 4> Later(Predicates.begin(), Predicates.end());
  for (size_t I = Level + 1; I < Later.size(); ++I)
    Later[I] = {Chosen(Later[I], Named("switch_is", I)), 0};
  Body T = instantiate(Functions[Level], Here,
                       {(Prefix + "/branch_" + Twine(Level)).str(),
                        N,
                        At.Chain,
                        {Endpoint{On.Node, ControlPort}}});
  waitForEffects(T, Prefix, N);
  Body F = branches(N, Later, Functions, Rest,
                    {Prefix, N, At.Chain, {Endpoint{Off.Node, ControlPort}}},
                    Level + 1);
  Body Both;
  AttrMap Two;
  Two["N"].set_i(2);
  for (auto [X, Y] : zip(F.Outputs, T.Outputs))
    Both.Outputs.push_back(typed(Prefix, Named("merge", Both.Outputs.size()),
                                 op::Merge, {X, Y}, N, Two));
  if (T.Effects.empty() && F.Effects.empty() && !Both.Outputs.empty())
    return Both;
  // Adds a node that runs after the effects of the taken branch.
  Ends Sides;
  for (auto [Pivot, Side] : {std::pair(Off, &F), std::pair(On, &T)}) {
    Ends Inputs{Pivot};
    Inputs.append(Side->Effects.begin(), Side->Effects.end());
    Sides.push_back(typed(Prefix, "done" + Suffix, op::Identity, Inputs, N));
  }
  Endpoint Done =
      typed(Prefix, "branch_executed" + Suffix, op::Merge, Sides, N, Two);
  Both.Effects.push_back({Done.Node, ControlPort});
  return Both;
}

void Inliner::conditional(NodeId N, CallKind Kind,
                          ArrayRef<FunctionRef> Functions, uint32_t Chain) {
  ArrayRef<Endpoint> In = G.dataInputs(N);
  Ends Args(In.begin() + 1, In.end());
  Endpoint Index = G.input(N, 0);
  std::string Prefix = G.name(N).str();
  SmallVector<Endpoint, 4> Predicates;
  std::vector<FunctionRef> Branches(Functions.begin(), Functions.end());
  if (Kind == CallKind::If) {
    Predicates.push_back(Index);
  } else {
    for (size_t I = 0; I + 1 < Branches.size(); ++I) {
      AttrMap Const;
      Const["dtype"].set_type(tensorflow::DT_INT32);
      tensorflow::TensorProto *Value = Const["value"].mutable_tensor();
      Value->set_dtype(tensorflow::DT_INT32);
      Value->mutable_tensor_shape();
      Value->add_int_val(static_cast<int>(I));
      NodeId Number = add(Prefix, ("number_" + Twine(I)).str(), op::Const,
                          witness(N), N, Const);
      Predicates.push_back(typed(Prefix, ("is_" + Twine(I)).str(), op::Equal,
                                 {Index, {Number, 0}}, N));
    }
  }
  // A conditional with one branch has no predicate that could be its pivot.
  Ends Pivot = Predicates.empty() ? witness(N) : controls(N);
  Body B =
      branches(N, Predicates, Branches, Args, {Prefix, N, Chain, Pivot}, 0);
  replace(N, B);
}

/// Returns a flag for each output of \p Def: true if the output is the argument
/// with the same index, unchanged.
static std::vector<bool> findInvariants(const tensorflow::FunctionDef &Def) {
  StringMap<StringRef> Passes;
  for (const tensorflow::NodeDef &Node : Def.node_def())
    if (Node.op() == op::Identity && Node.input_size() == 1)
      Passes[Node.name()] = StringRef(Node.input(0)).split(':').first;
  // Finds the first node of a chain of Identities. After a walk each node of
  // the chain points to the first node or, on a cycle, to no node.
  auto FirstOf = [&](StringRef Name) {
    SmallVector<StringRef *, 8> Path;
    for (auto It = Passes.find(Name); It != Passes.end() && !Name.empty();
         It = Passes.find(Name)) {
      Name = It->second;
      It->second = "";
      Path.push_back(&It->second);
    }
    for (StringRef *Passed : Path)
      *Passed = Name;
    return Name;
  };
  std::vector<bool> Result;
  for (auto [Out, Arg] :
       zip(Def.signature().output_arg(), Def.signature().input_arg()))
    Result.push_back(
        FirstOf(StringRef(Def.ret().at(Out.name())).split(':').first) ==
        Arg.name());
  return Result;
}

void Inliner::loop(NodeId N, ArrayRef<FunctionRef> Functions, uint32_t Chain) {
  const FunctionRef &Cond = Functions[0], &Does = Functions[1];
  ArrayRef<Endpoint> In = G.dataInputs(N);
  Ends Args(In.begin(), In.end()), Controls = controls(N);
  std::string Prefix = G.name(N).str();
  AttrMap Frame;
  Frame["frame_name"].set_s(Prefix);
  Frame["parallel_iterations"].set_i(
      G.intAttr(N, "parallel_iterations").value_or(10));
  AttrMap Two;
  Two["N"].set_i(2);
  // An invariant of the loop is the same in all iterations.
  std::vector<bool> Fixed = findInvariants(*Does.Def);
  Ends Now;
  NodeId First = NoNode;
  for (size_t I = 0; I < Args.size(); ++I) {
    Ends Inputs{Args[I]};
    Inputs.append(Controls.begin(), Controls.end());
    Frame["is_constant"].set_b(Fixed[I]);
    Endpoint E =
        typed(Prefix, ("enter_" + Twine(I)).str(), op::Enter, Inputs, N, Frame);
    if (!Fixed[I])
      E = typed(Prefix, ("merge_" + Twine(I)).str(), op::Merge, {E, E}, N, Two);
    if (!Fixed[I] && First == NoNode)
      First = E.Node;
    Now.push_back(E);
  }
  if (First == NoNode)
    First = Now[0].Node;
  Body C = instantiate(
      Cond, Now, {Prefix + "/cond", N, Chain, {Endpoint{First, ControlPort}}});
  Ends Asked{C.Outputs[0]};
  Asked.append(C.Effects.begin(), C.Effects.end());
  Endpoint Again{add(Prefix, "loop_cond", op::LoopCond, Asked, N), 0};
  Ends Inside, Last;
  for (auto [I, E] : enumerate(Now)) {
    NodeId Switch =
        typed(Prefix, ("switch_" + Twine(I)).str(), op::Switch, {E, Again}, N)
            .Node;
    Inside.push_back({Switch, 1});
    Last.push_back({Switch, 0});
  }
  Endpoint Pivot = typed(Prefix, "body_pivot", op::Identity, Inside[0], N);
  Body B = instantiate(
      Does, Inside,
      {Prefix + "/body", N, Chain, {Endpoint{Pivot.Node, ControlPort}}});
  waitForEffects(B, Prefix, N);
  Body Whole;
  for (size_t I = 0; I < Args.size(); ++I) {
    if (Fixed[I]) {
      Whole.Outputs.push_back(Args[I]);
      continue;
    }
    Endpoint Next = typed(Prefix, ("next_iteration_" + Twine(I)).str(),
                          op::NextIteration, B.Outputs[I], N);
    G.setInput(Now[I].Node, 1, Next);
    Whole.Outputs.push_back(
        typed(Prefix, ("exit_" + Twine(I)).str(), op::Exit, Last[I], N));
    Whole.Effects.push_back({Whole.Outputs.back().Node, ControlPort});
  }
  replace(N, Whole);
}

} // namespace graft
