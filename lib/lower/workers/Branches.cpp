//===- lib/lower/workers/Branches.cpp - values of conditionals --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Branches.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace graft {

Branches::Branches(Graph &G, AddFn Add) : G(G), Add(std::move(Add)) {
  All.resize(2);
  Of.assign(G.size(), Root);
  for (NodeId N : topologicalOrder(G))
    place(N);
}

/// Returns the tensor behind the Identities of \p Predicate.
Endpoint Branches::source(Endpoint Predicate) const {
  return through(G, Predicate, op::Identity);
}

/// Returns the representative of the predicates that are equal to \p Predicate.
Endpoint Branches::first(Endpoint Predicate) const {
  Predicate = source(Predicate);
  for (auto It = Equal.find({Predicate.Node, Predicate.Port});
       It != Equal.end(); It = Equal.find({Predicate.Node, Predicate.Port}))
    Predicate = It->second;
  return Predicate;
}

unsigned Branches::side(NodeId Switch, unsigned Port) const {
  auto It = Sides.find(Switch);
  return It == Sides.end() ? Of[Switch] : It->second[Port & 1];
}

unsigned Branches::at(Endpoint E) const {
  if (E.Node >= Of.size())
    return Root;
  return E.isControl() ? Of[E.Node] : side(E.Node, E.Port);
}

unsigned Branches::child(unsigned Parent, Endpoint Predicate, unsigned Side) {
  unsigned Depth = All[Parent].Depth + 1;
  if (Parent == Unknown || Depth > MaxDepth)
    return Unknown;
  Endpoint Source = Predicate.Node == NoNode ? Predicate : source(Predicate);
  auto [It, New] = Ids.try_emplace({Parent, Source.Node, Source.Port, Side},
                                   static_cast<unsigned>(All.size()));
  if (New)
    All.push_back({Parent, Depth, Predicate, Side});
  return It->second;
}

unsigned Branches::loopAround(unsigned B) const {
  while (B > Unknown && !isLoop(B))
    B = All[B].Parent;
  return B;
}

bool Branches::isSame(unsigned A, unsigned B) const {
  for (; A != B; A = All[A].Parent, B = All[B].Parent)
    if (All[A].Depth != All[B].Depth || isLoop(A) || isLoop(B) ||
        All[A].Side != All[B].Side ||
        first(All[A].Predicate) != first(All[B].Predicate))
      return false;
  return true;
}

/// Records that the predicates of \p A and \p B are equal, because a node reads
/// both branches. They are copies of one predicate, which has the same value on
/// all replicas. Returns false for loops, and if the parents differ.
bool Branches::unite(unsigned A, unsigned B) {
  if (isLoop(A) || isLoop(B) || !isSame(All[A].Parent, All[B].Parent))
    return false;
  Endpoint Of = first(All[B].Predicate), To = first(All[A].Predicate);
  if (Of != To)
    Equal[{Of.Node, Of.Port}] = To;
  return true;
}

/// Returns the branch of a node that reads nodes of \p A and of \p B.
unsigned Branches::join(unsigned A, unsigned B) {
  if (A == B)
    return A;
  // In a loop it suffices to know the loop.
  unsigned Loop = std::max(loopAround(A), loopAround(B));
  unsigned Else = Loop == Root ? Unknown : Loop;
  if (A == Unknown || B == Unknown)
    return Else;
  if (All[A].Depth < All[B].Depth)
    std::swap(A, B);
  SmallVector<std::pair<unsigned, unsigned>, 4> Pairs;
  unsigned Up = A;
  while (All[Up].Depth > All[B].Depth)
    Up = All[Up].Parent;
  for (unsigned Other = B; Up != Other;
       Up = All[Up].Parent, Other = All[Other].Parent)
    Pairs.push_back({Up, Other});
  for (auto [Its, Other] : reverse(Pairs))
    if (All[Its].Side != All[Other].Side || !unite(Its, Other))
      return Else;
  return A;
}

/// Returns the branch of a Merge of \p A and \p B. For the two sides of a
/// predicate it is their parent, since one side always runs.
unsigned Branches::merge(unsigned A, unsigned B) {
  if (A > Unknown && B > Unknown && All[A].Side != All[B].Side &&
      All[A].Depth == All[B].Depth && unite(A, B))
    return All[A].Parent;
  unsigned Loop = std::max(loopAround(A), loopAround(B));
  return Loop == Root ? Unknown : Loop;
}

void Branches::place(NodeId N) {
  StringRef Op = G.opName(N);
  bool Joins = Op == op::Merge || Op == op::RefMerge;
  SmallVector<unsigned, 2> Inputs;
  unsigned Its = Root;
  bool Loops = false;
  for (Endpoint E : G.inputs(N)) {
    if (isBackEdgeOp(G.opName(E.Node)))
      Loops = true;
    else if (Joins && !E.isControl())
      Inputs.push_back(at(E));
    else
      Its = join(Its, at(E));
  }
  if (Joins && Inputs.size() == 2)
    Its = join(Its, merge(Inputs[0], Inputs[1]));
  else if (Joins)
    Its = Inputs.size() == 1 && Loops ? join(Its, Inputs[0]) : Unknown;
  if (Op == op::Enter || Op == op::RefEnter)
    Its = child(Its, {NoNode, 0}, 0);
  else if (Op == op::Exit || Op == op::RefExit)
    Its = isLoop(loopAround(Its)) ? All[loopAround(Its)].Parent : Its;
  Of[N] = Its;
  if ((Op == op::Switch || Op == op::RefSwitch) &&
      !G.isOp(source(G.input(N, 1)).Node, op::LoopCond))
    Sides[N] = {child(Its, G.input(N, 1), 0), child(Its, G.input(N, 1), 1)};
}

void Branches::add(NodeId N) {
  Of.resize(std::max<size_t>(Of.size(), N + 1), Root);
  place(N);
}

bool Branches::canLeave(Endpoint E) const {
  for (unsigned B = at(E); B != Root; B = All[B].Parent)
    if (B == Unknown || isLoop(B))
      return false;
  return true;
}

Branches::Pivots Branches::pivots(unsigned B, int Worker, NodeId After) {
  if (auto It = PivotsOf.find({B, Worker}); It != PivotsOf.end())
    return It->second;
  const Branch This = All[B];
  std::string Name =
      G.name(This.Predicate.Node).str() + "/of_" + std::to_string(Worker);
  AttrRun Bool;
  Bool.type("T", DT_BOOL);
  NodeId Switch = Add(Name, op::Switch, {This.Predicate, This.Predicate}, After,
                      Bool, Worker);
  auto Pivot = [&](unsigned Side) {
    SmallVector<Endpoint, 2> Inputs{{Switch, Side}};
    if (This.Parent != Root)
      Inputs.push_back({pivots(This.Parent, Worker, After).Taken, ControlPort});
    return Add(Name + "/pivot_" + std::to_string(Side), op::Identity, Inputs,
               After, Bool, Worker);
  };
  Pivots Result{Pivot(This.Side), Pivot(1 - This.Side)};
  PivotsOf[{B, Worker}] = Result;
  return Result;
}

Endpoint Branches::leave(Endpoint E, int Worker) {
  auto Key = std::tuple(E.Node, E.Port, Worker);
  if (auto It = Left.find(Key); It != Left.end())
    return It->second;
  std::string Name = G.name(E.Node).str();
  unsigned Type = E.isControl() ? unsigned(DT_BOOL) : G.outputType(E);
  // A TensorProto without elements is all zeros or empty strings.
  AttrRun Scalar;
  Scalar.type("dtype", Type).raw("value", encodeIntTensor(Type, {}, {}));
  Endpoint At = E;
  if (E.isControl())
    At = {Add(Name + "/taken", op::Const, E, E.Node, Scalar, Worker), 0};
  AttrRun Join;
  Join.integer("N", 2).type("T", Type);
  for (unsigned B = at(E); B != Root; B = All[B].Parent) {
    Endpoint Other{pivots(B, Worker, E.Node).Left, ControlPort};
    NodeId Zero =
        Add(Name + "/not_taken", op::Const, Other, E.Node, Scalar, Worker);
    At = {Add(Name + "/any", op::Merge, {At, {Zero, 0}}, E.Node, Join, Worker),
          0};
  }
  return Left[Key] = At;
}

Endpoint Branches::enter(Endpoint E, Endpoint Value, int Worker) {
  auto Key = std::tuple(E.Node, E.Port, Worker);
  if (auto It = Entered.find(Key); It != Entered.end())
    return It->second;
  SmallVector<unsigned, 4> Chain;
  for (unsigned B = at(E); B != Root; B = All[B].Parent)
    Chain.push_back(B);
  std::string Name = G.name(E.Node).str();
  AttrRun Attrs;
  Attrs.type("T", G.outputType(Value));
  for (unsigned B : reverse(Chain))
    Value = {Add(Name + "/taken_by_" + std::to_string(Worker), op::Switch,
                 {Value, All[B].Predicate}, E.Node, Attrs, Worker),
             All[B].Side};
  if (E.isControl())
    Value = {Add(Name + "/end_taken_by_" + std::to_string(Worker), op::Identity,
                 Value, E.Node, Attrs, Worker),
             ControlPort};
  return Entered[Key] = Value;
}

} // namespace graft
