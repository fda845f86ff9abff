//===- lib/graph/Graph.cpp - the graph that passes edit ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Edits, names and order. Reading is in GraphParse.cpp, attributes in
// GraphAttrs.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Graph.h"

#include "lib/ops/ProgramOps.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <cassert>

using namespace llvm;

namespace graft {

Graph::Graph() {
  DeviceNames.push_back("");
  DeviceIds.insert(0, "", hashBytes(""), [](uint32_t) { return StringRef(); });
}

Graph::~Graph() = default;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

NodeId Graph::find(StringRef Name) const {
  return Names.find(Name, hashBytes(Name), nameOf());
}

void Graph::eraseName(NodeId N) {
  Names.erase(N, hashBytes(name(N)));
  if (N < VerifiedCount)
    LostNames.push_back(name(N));
}

bool Graph::hasVerifiedNames() const {
  return VerifiedCount != 0 &&
         all_of(LostNames, [&](StringRef S) { return find(S) != NoNode; });
}

uint32_t Graph::splitPort(StringRef &Text) {
  if (Text.consume_front("^"))
    return ControlPort;
  // Names have no colon, so digits after one are a port.
  size_t Digits = Text.size();
  while (Digits > 0 && Text[Digits - 1] >= '0' && Text[Digits - 1] <= '9')
    --Digits;
  uint32_t Port = 0;
  if (Digits == 0 || Digits == Text.size() || Text[Digits - 1] != ':' ||
      Text.substr(Digits).getAsInteger(10, Port) || Port == ControlPort)
    return 0;
  Text = Text.take_front(Digits - 1);
  return Port;
}

std::optional<Endpoint> Graph::findEndpoint(StringRef Text) const {
  Endpoint E;
  E.Port = splitPort(Text);
  E.Node = find(Text);
  if (E.Node == NoNode)
    return std::nullopt;
  return E;
}

std::string Graph::uniqueName(StringRef Name) const {
  std::string Result = Name.str();
  for (unsigned I = 1; find(Result) != NoNode; ++I)
    Result = (Name + "_" + Twine(I)).str();
  return Result;
}

//===----------------------------------------------------------------------===//
// Interned ops and devices
//===----------------------------------------------------------------------===//

static OpFacts factsOf(const OpDef *Def) {
  OpFacts Facts;
  Facts.Def = Def;
  if (!Def)
    return Facts;
  auto IsList = [](const ArgDef &A) {
    return *A.TypeListAttr || *A.NumberAttr;
  };
  auto IsRef = [](const ArgDef &A) { return A.IsRef; };
  if (none_of(Def->inputs(), IsList))
    Facts.Inputs = Def->NumInputs;
  if (none_of(Def->outputs(), IsList))
    Facts.Outputs = Def->NumOutputs;
  Facts.RefInputs = any_of(Def->inputs(), IsRef);
  Facts.RefOutputs = any_of(Def->outputs(), IsRef);
  return Facts;
}

uint32_t Graph::addOp(StringRef Name, uint32_t Hash) {
  auto Id = static_cast<uint32_t>(OpNames.size());
  OpNames.push_back(save(Name));
  Ops.push_back(factsOf(findOp(Name)));
  Ops.back().OfUser = !Ops.back().Def && !isProgramOp(Name);
  OpIds.insert(Id, Name, Hash, [&](uint32_t I) { return OpNames[I]; });
  return Id;
}

uint32_t Graph::internDevice(StringRef Name) {
  if (equalBytes(Name, DeviceNames[LastDevice]))
    return LastDevice;
  auto Next = static_cast<uint32_t>(DeviceNames.size());
  LastDevice = DeviceIds.insert(Next, Name, hashBytes(Name),
                                [&](uint32_t I) { return DeviceNames[I]; });
  if (LastDevice == Next)
    DeviceNames.push_back(save(Name));
  return LastDevice;
}

//===----------------------------------------------------------------------===//
// Edges and uses
//===----------------------------------------------------------------------===//

void Graph::unlink(uint32_t Edge) {
  const Link &L = Links[Edge];
  if (L.Prev == NoEdge)
    Nodes[EdgeSources[Edge].Node].FirstUse = L.Next;
  else
    Links[L.Prev].Next = L.Next;
  if (L.Next != NoEdge)
    Links[L.Next].Prev = L.Prev;
}

SmallVector<Use, 8> Graph::uses(NodeId N) const {
  SmallVector<Use, 8> Result;
  forEachUse(N, [&](Use U) { Result.push_back(U); });
  llvm::sort(Result, [](const Use &A, const Use &B) {
    return std::tie(A.User, A.Index) < std::tie(B.User, B.Index);
  });
  return Result;
}

Node &Graph::appendNode(StringRef Name, StringRef Op, NodeId After) {
  Node &New = Nodes.emplace_back();
  New.NameData = Name.data();
  New.NameSize = static_cast<uint32_t>(Name.size());
  New.Op = internOp(Op);
  New.After = After;
  New.FirstEdge = static_cast<uint32_t>(EdgeSources.size());
  ++Live;
  touch(size() - 1);
  return New;
}

NodeId Graph::addNode(StringRef Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                      NodeId After) {
  assert(find(Name) == NoNode && "node names are unique");
  NodeId N = size();
  StringRef Saved = save(Name);
  Names.insert(N, Saved, hashBytes(Saved), nameOf());
  appendNode(Saved, Op, After);
  setInputs(N, Inputs);
  return N;
}

void Graph::rename(NodeId N, StringRef NewName) {
  assert(find(NewName) == NoNode && "node names are unique");
  eraseName(N);
  StringRef Saved = save(NewName);
  Nodes[N].NameData = Saved.data();
  Nodes[N].NameSize = static_cast<uint32_t>(Saved.size());
  Names.insert(N, name(N), hashBytes(name(N)), nameOf());
  touch(N);
  // The bytes of a user contain the names of its inputs, so they change too.
  forEachUse(N, [&](Use U) { touch(U.User); });
}

void Graph::setOp(NodeId N, StringRef Op) {
  Nodes[N].Op = internOp(Op);
  touch(N);
}

void Graph::setDevice(NodeId N, StringRef Device) {
  uint32_t Id = internDevice(Device);
  if (Nodes[N].Device == Id)
    return;
  Nodes[N].Device = Id;
  touch(N);
}

void Graph::setInput(NodeId N, unsigned Index, Endpoint Source) {
  assert(Index < Nodes[N].NumInputs &&
         Source.isControl() == (Index >= Nodes[N].NumData));
  uint32_t Edge = Nodes[N].FirstEdge + Index;
  unlink(Edge);
  EdgeSources[Edge] = Source;
  link(Edge, N);
  touch(N);
}

void Graph::setInputs(NodeId N, ArrayRef<Endpoint> Inputs) {
  // Inputs may point into EdgeSources, which grows below.
  SmallVector<Endpoint, 8> Sources(Inputs.begin(), Inputs.end());
  Node &This = Nodes[N];
  for (uint32_t I = 0; I < This.NumInputs; ++I)
    unlink(This.FirstEdge + I);
  if (Sources.size() > This.NumInputs) {
    This.FirstEdge = static_cast<uint32_t>(EdgeSources.size());
    EdgeSources.resize(EdgeSources.size() + Sources.size());
    Links.resize(EdgeSources.size());
  }
  This.NumInputs = static_cast<uint32_t>(Sources.size());
  This.NumData = static_cast<uint32_t>(
      llvm::find_if(Sources, [](Endpoint E) { return E.isControl(); }) -
      Sources.begin());
  for (uint32_t I = 0; I < Sources.size(); ++I) {
    assert(Sources[I].isControl() == (I >= This.NumData) &&
           "control inputs come last");
    EdgeSources[This.FirstEdge + I] = Sources[I];
    link(This.FirstEdge + I, N);
  }
  touch(N);
}

void Graph::addControlInput(NodeId N, NodeId Source) {
  Endpoint E{Source, ControlPort};
  if (llvm::is_contained(controlInputs(N), E))
    return;
  SmallVector<Endpoint, 8> Inputs(inputs(N).begin(), inputs(N).end());
  Inputs.push_back(E);
  setInputs(N, Inputs);
}

void Graph::replaceUses(Endpoint From, Endpoint To, NodeId Except) {
  for (const Use &U : uses(From.Node))
    if (U.User != Except && input(U.User, U.Index) == From)
      setInput(U.User, U.Index, To);
}

void Graph::remove(NodeId N) {
  assert(!hasUses(N) && "a node with users cannot be removed");
  setInputs(N, {});
  eraseName(N);
  Nodes[N].Flags |= NF_Dead;
  --Live;
}

//===----------------------------------------------------------------------===//
// Whole graph
//===----------------------------------------------------------------------===//

std::vector<NodeId> Graph::order() const {
  std::vector<NodeId> Result;
  Result.reserve(Live);
  if (size() == InputCount) {
    for (NodeId N = 0; N < size(); ++N)
      if (isLive(N))
        Result.push_back(N);
    return Result;
  }
  // For each node, the list of new nodes after it, in order of creation.
  std::vector<NodeId> FirstNew(size() + 1, NoNode);
  std::vector<NodeId> NextNew(size() - InputCount, NoNode);
  for (NodeId N = size(); N-- > InputCount;) {
    NodeId After = Nodes[N].After == NoNode ? size() : Nodes[N].After;
    NextNew[N - InputCount] = FirstNew[After];
    FirstNew[After] = N;
  }
  SmallVector<NodeId, 8> Stack;
  auto Emit = [&](NodeId Root) {
    Stack.push_back(Root);
    while (!Stack.empty()) {
      NodeId N = Stack.pop_back_val();
      if (N != size() && isLive(N))
        Result.push_back(N);
      // The next sibling comes after all followers of this node, so it is
      // pushed first.
      if (N != size() && N >= InputCount && N != Root &&
          NextNew[N - InputCount] != NoNode)
        Stack.push_back(NextNew[N - InputCount]);
      if (FirstNew[N] != NoNode)
        Stack.push_back(FirstNew[N]);
    }
  };
  for (NodeId N = 0; N < InputCount; ++N) {
    if (FirstNew[N] != NoNode)
      Emit(N);
    else if (isLive(N))
      Result.push_back(N);
  }
  Emit(size());
  return Result;
}

uint64_t Graph::fingerprint() const {
  uint64_t Hash = Live;
  for (StringRef Field : Others)
    Hash += xxh3_64bits(Field);
  auto Mix = [&](uint64_t V) {
    Hash = llvm::hashing::detail::hash_16_bytes(Hash, V);
  };
  for (NodeId N : order()) {
    const Node &This = Nodes[N];
    Mix(xxh3_64bits(name(N)));
    Mix(This.Op);
    Mix(This.Device);
    Mix(xxh3_64bits(StringRef(This.AttrData, This.AttrSize)));
    Mix(This.NameSplit);
    Mix((uint64_t(This.Plan) << 24) | (uint64_t(This.Count) << 16) |
        (uint64_t(This.Kind) << 8) |
        (This.Flags & ~(NF_Modified | NF_MayHaveClass | NF_MayHaveGraft)));
    for (Endpoint E : inputs(N))
      Mix((uint64_t(E.Node) << 32) | E.Port);
  }
  return Hash;
}

} // namespace graft
